"""Every error as problem details (RFC 9457)."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, cast

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi_problem.error import Problem
from fastapi_problem.handler import ExceptionHandler
from sqlalchemy.exc import DBAPIError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match

from adapters.database.foreign import state_of
from adapters.ports.errors import PortError
from workers.shared.errors import UnreadablePayload
from workers.shared.gateway.http.answers import SECURITY_HEADERS
from workers.shared.gateway.http.auth import Unauthorised
from workers.shared.gateway.http.keys import KeysUnavailable
from workers.shared.services.bodies import printable
from workers.shared.services.errors import (
    Conflict,
    Forbidden,
    Gone,
    NotFound,
    QuotaExceeded,
    Refused,
    ServiceError,
    ServiceUnavailable,
    TooLarge,
    TooManyRequests,
    UnsupportedFile,
    WrongState,
)
from workflows.shared.contracts import problem_text

logger = logging.getLogger(__name__)

MakeProblem = Callable[[Any], Problem]
"""Makes the problem of a refusal of one class."""

_TYPES: Final = "urn:docflow:problem:{type}"
_ASKED: Final = ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")
_RETRY_SECONDS: Final = "5"
"""When to try again while something does not answer."""


def handle_problems(
    app: FastAPI,
    further: Mapping[type[ServiceError], MakeProblem],
    refusal: Callable[[Request], Awaitable[Exception | None]] | None = None,
    for_people: Callable[[Response, Request], Awaitable[Response]] | None = None,
) -> None:
    """Answer every error of an application with a problem, and people with a page.

    Args:
        app: What raises them.
        further: Refusals that say more than others.
        refusal: Finds why the sender of a malformed request has no access; None where they have.
        for_people: Makes a page of a problem where a person asks; else returns the problem. None:
            the application has no pages.
    """
    handler = ExceptionHandler(
        # The first that matches counts.
        handlers={
            **{kind: _handler(make) for kind, make in further.items()},
            ServiceError: _of_service,
            Unauthorised: _unauthorised,
            KeysUnavailable: _unavailable,
            PortError: _unavailable,
            UnreadablePayload: _unavailable,
            DBAPIError: _of_database,
            ClientDisconnect: _client_closed,
            RequestValidationError: _malformed,
            HTTPException: _of_http,
            Exception: _unexpected,
        },
        documentation_uri_template=_TYPES,
    )

    async def answered(request: Request, error: Exception) -> Response:
        problem = handler(request, error)
        return problem if for_people is None else await for_people(problem, request)

    async def malformed(request: Request, error: Exception) -> Response:
        found = None if refusal is None else await refusal(request)
        return await answered(request, found or error)

    async def unexpected(request: Request, error: Exception) -> Response:
        answer = await answered(request, error)
        # The only answer that is made outside of what adds them.
        for name, value in SECURITY_HEADERS.items():
            answer.headers.setdefault(name, value)
        return answer

    for kind in handler.handlers:
        app.add_exception_handler(kind, answered)
    app.add_exception_handler(RequestValidationError, malformed)
    app.add_exception_handler(Exception, unexpected)


def _handler(make: MakeProblem) -> Callable[[ExceptionHandler, Request, Any], Problem]:
    def handle(handler: ExceptionHandler, request: Request, error: Any) -> Problem:
        return make(error)

    return handle


def problem_of(error: ServiceError, headers: Mapping[str, str], **members: Any) -> Problem:
    """The problem of a refusal.

    Args:
        error: What was refused, and why.
        headers: Of the answer.
        members: What the problem says beyond its title and sentence.
    """
    return Problem(
        error.title,
        type_=error.kind,
        detail=str(error),
        status=error.status,
        headers=dict(headers),
        **members,
    )


def _of_service(handler: ExceptionHandler, request: Request, error: ServiceError) -> Problem:
    match error:
        case Conflict(version=int(version)):
            return problem_of(error, {"etag": f'"{version}"'}, version=version)
        case TooManyRequests(retry_after=seconds):
            return problem_of(error, {"retry-after": str(seconds)})
        case ServiceUnavailable():
            logger.warning("%s: %s", error, error.__cause__)
            return problem_of(error, {"retry-after": _RETRY_SECONDS})
        case _:
            return problem_of(error, {})


def _of_http(handler: ExceptionHandler, request: Request, error: HTTPException) -> Problem:
    title, detail = HTTPStatus(error.status_code).phrase, error.detail
    headers = {name.lower(): value for name, value in (error.headers or {}).items()}
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["allow"] = ", ".join(_methods(request))
        detail = f"this address does not take {request.method}; it takes {headers['allow']}"
    elif error.status_code == HTTPStatus.NOT_FOUND and detail == title:
        address = printable(request.url.path[:200])
        detail = f"the gateway has no address {address}; /docs lists those of the API"
    return Problem(
        title,
        type_=_KINDS.get(error.status_code, title.lower().replace(" ", "-")),
        detail=detail,
        status=error.status_code,
        headers=headers,
    )


def _methods(request: Request) -> Sequence[str]:
    """Every method of the address, not only of the first route that has it."""
    routes = cast("FastAPI", request.app).routes
    asked = ((method, {**request.scope, "method": method}) for method in _ASKED)
    found = [
        method
        for method, scope in asked
        if any(route.matches(scope)[0] is Match.FULL for route in routes)
    ]
    return sorted({*found, "HEAD"} if "GET" in found else found)


def _unauthorised(handler: ExceptionHandler, request: Request, error: Unauthorised) -> Problem:
    return Problem(
        "A token is needed",
        type_="unauthorised",
        detail=str(error),
        status=401,
        headers={"www-authenticate": error.challenge},
    )


def _unavailable(handler: ExceptionHandler, request: Request, error: Exception) -> Problem:
    logger.warning("not available: %s", error)
    return Problem(
        ServiceUnavailable.title,
        type_=ServiceUnavailable.kind,
        detail="something that the gateway needs does not answer; try again in a moment",
        status=ServiceUnavailable.status,
        headers={"retry-after": _RETRY_SECONDS},
    )


_WRONG_DATA: Final = "22"
"""Class of what PostgreSQL, or its driver, says of values that it cannot hold."""


def _of_database(handler: ExceptionHandler, request: Request, error: DBAPIError) -> Problem:
    if not (state_of(error) or "").startswith(_WRONG_DATA):
        logger.error("a statement failed", exc_info=error)
        return _unexpected(handler, request, error)
    return Problem(
        "Unprocessable request",
        type_="refused",
        detail="the request holds a value that cannot be stored or looked for: a NUL character, or "
        "a number or date out of range",
        status=422,
    )


def _malformed(
    handler: ExceptionHandler, request: Request, error: RequestValidationError
) -> Problem:
    found = error.errors()[:20]
    errors = [
        {"location": printable(".".join(map(str, each["loc"]))), "message": problem_text(each)}
        for each in found
        if not _follows(each, found)
    ]
    return Problem(
        "Unprocessable request",
        type_="refused",
        detail="; ".join(f"{each['location']}: {each['message']}" for each in errors[:5]),
        status=422,
        errors=errors,
    )


def _follows(problem: Mapping[str, Any], found: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a list is too short only because its items are wrong."""
    place = problem["loc"]
    within = (each["loc"] for each in found if each is not problem)
    return problem["type"] == "too_short" and any(each[: len(place)] == place for each in within)


def _client_closed(handler: ExceptionHandler, request: Request, error: ClientDisconnect) -> Problem:
    # The client is gone; this keeps an everyday event out of the log of failures.
    return Problem("Client closed request", type_="gone-away", status=400)


def _unexpected(handler: ExceptionHandler, request: Request, error: Exception) -> Problem:
    # The server logs the error itself; its text may hold what outsiders must not read.
    return Problem(
        "Something went wrong",
        type_="internal",
        detail="this should not have happened; it is logged, and trying again may help",
        status=500,
    )


@dataclass(frozen=True, slots=True)
class ProblemDescription:
    """How the OpenAPI document describes the problems of a status."""

    kind: str
    detail: str


_KINDS: Final[Mapping[int, str]] = {
    400: "bad-request",
    **{
        error.status: error.kind
        for error in (Forbidden, NotFound, WrongState, Gone, TooLarge, UnsupportedFile, Refused)
    },
}
"""Of refusals by the web framework."""
_DESCRIPTIONS: Final[Mapping[int, ProblemDescription]] = {
    400: ProblemDescription("bad-request", "the body is not text"),
    401: ProblemDescription("unauthorised", "no token, or one that is not valid"),
    403: ProblemDescription(Forbidden.kind, "the roles of the token do not allow it"),
    404: ProblemDescription(NotFound.kind, "it does not exist, or belongs to another organisation"),
    409: ProblemDescription(WrongState.kind, "its state does not allow it"),
    410: ProblemDescription(Gone.kind, "removed after its retention"),
    412: ProblemDescription(Conflict.kind, "it was changed meanwhile"),
    413: ProblemDescription(TooLarge.kind, "the body is too large"),
    415: ProblemDescription(UnsupportedFile.kind, "not a form upload"),
    422: ProblemDescription(Refused.kind, "the request cannot be processed"),
    429: ProblemDescription(
        TooManyRequests.kind, "too many requests; Retry-After says when to ask"
    ),
    503: ProblemDescription(
        ServiceUnavailable.kind, "something that the gateway needs does not answer"
    ),
}


def problem_responses(
    *statuses: int, further: Mapping[int, ProblemDescription] | None = None
) -> dict[int | str, dict[str, Any]]:
    """Entries of an OpenAPI document for problems.

    Args:
        statuses: Of the problems.
        further: Descriptions of statuses that mean something in one pipeline only.
    """
    descriptions = {**_DESCRIPTIONS, **(further or {})}
    return {status: _response(status, descriptions[status]) for status in statuses}


def _response(status: int, description: ProblemDescription) -> dict[str, Any]:
    return {
        "description": description.detail[0].upper() + description.detail[1:],
        "content": {
            "application/problem+json": {
                "schema": {"$ref": f"#/components/schemas/{PROBLEM_SCHEMA['title']}"},
                "example": {
                    "type": _TYPES.format(type=description.kind),
                    # Phrases of a status differ between versions of Python.
                    "title": description.kind.replace("-", " ").capitalize(),
                    "status": status,
                    "detail": description.detail,
                },
            }
        },
    }


PROBLEM_SCHEMA: Final[Mapping[str, Any]] = {
    # Records of what is wrong with a row have the shorter name.
    "title": "ProblemDetails",
    "description": "Problem details (RFC 9457); what is open or wrong stands in further members",
    "type": "object",
    "required": ["type", "title", "status"],
    "properties": {
        "type": {"type": "string", "description": "A word for programs, as a URN"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "A sentence for people"},
    },
}

QUOTA_PROBLEMS: Final = problem_responses(
    429,
    further={
        429: ProblemDescription(
            QuotaExceeded.kind,
            "a quota of the organisation is used up, or there are too many requests "
            "(`too-many-requests`); Retry-After says when to ask",
        )
    },
)
"""Of operations that start runs of an organisation."""
