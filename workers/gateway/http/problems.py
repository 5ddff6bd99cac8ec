"""Every error as problem details (RFC 9457)."""

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi_problem.error import Problem
from fastapi_problem.handler import ExceptionHandler
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from adapters.ports import PortError
from workers.gateway.http.auth import KeysUnavailable, Unauthorised
from workers.gateway.spreadsheets.schemas import answer_fields
from workers.services.errors import (
    Conflict,
    ServiceError,
    StillOpen,
    TooManyRequests,
    Unavailable,
)

logger = logging.getLogger(__name__)

_TYPES: Final = "urn:docflow:problem:{type}"
_RETRY_SECONDS: Final = "5"
"""When to try again while something does not answer."""


def handle_problems(app: FastAPI) -> None:
    """Answer every error of an application with a problem."""
    handler = ExceptionHandler(
        handlers={
            ServiceError: _of_service,
            Unauthorised: _unauthorised,
            KeysUnavailable: _unavailable,
            PortError: _unavailable,
            ClientDisconnect: _client_closed,
            RequestValidationError: _malformed,
            HTTPException: _of_http,
            Exception: _unexpected,
        },
        documentation_uri_template=_TYPES,
    )
    for kind in handler.handlers:
        app.add_exception_handler(kind, handler)


def _of_service(handler: ExceptionHandler, request: Request, error: ServiceError) -> Problem:
    headers: dict[str, str] = {}
    more: dict[str, Any] = {}
    match error:
        case StillOpen(answer=answer, saved=saved):
            headers["etag"] = f'"{answer.version}"'
            more = {"saved": saved, **answer_fields(answer)}
        case Conflict(version=int(version)):
            headers["etag"] = f'"{version}"'
            more = {"version": version}
        case TooManyRequests(retry_after=seconds):
            headers["retry-after"] = str(seconds)
        case Unavailable():
            logger.warning("%s: %s", error, error.__cause__)
            headers["retry-after"] = _RETRY_SECONDS
        case _:
            pass
    return Problem(
        error.title,
        type_=error.kind,
        detail=str(error),
        status=error.status,
        headers=headers,
        **more,
    )


def _of_http(handler: ExceptionHandler, request: Request, error: HTTPException) -> Problem:
    title = HTTPStatus(error.status_code).phrase
    return Problem(
        title,
        type_=_KINDS.get(error.status_code, title.lower().replace(" ", "-")),
        detail=error.detail,
        status=error.status_code,
        headers=dict(error.headers or {}),
    )


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
        Unavailable.title,
        type_=Unavailable.kind,
        detail="something that the gateway needs does not answer; try again in a moment",
        status=Unavailable.status,
        headers={"retry-after": _RETRY_SECONDS},
    )


def _malformed(
    handler: ExceptionHandler, request: Request, error: RequestValidationError
) -> Problem:
    errors = [
        {"location": ".".join(map(str, each["loc"])), "message": str(each["msg"])}
        for each in error.errors()[:20]
    ]
    return Problem(
        "Unprocessable request",
        type_="refused",
        detail="; ".join(f"{each['location']}: {each['message']}" for each in errors[:5]),
        status=422,
        errors=errors,
    )


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


_KINDS: Final[Mapping[int, str]] = {
    400: "bad-request",
    401: "unauthorised",
    **{error.status: error.kind for error in ServiceError.__subclasses__()},
}
_DESCRIPTIONS: Final[Mapping[int, str]] = {
    400: "the body is not text",
    401: "no token, or one that is not valid",
    403: "the roles of the token do not allow it",
    404: "no such import in your organisations",
    406: "required mappings are still open",
    409: "not in this state of the import",
    410: "removed after its retention",
    412: "the mappings were changed by another person",
    413: "the body is too large",
    415: "not a spreadsheet, or not a form upload",
    422: "the request cannot be processed",
    429: "too many uploads",
    503: "something that the gateway needs does not answer",
}


def problem_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Entries of an OpenAPI document for problems of these statuses."""
    return {
        status: {
            "description": _DESCRIPTIONS[status].capitalize(),
            "content": {
                "application/problem+json": {
                    "schema": {"$ref": "#/components/schemas/Problem"},
                    "example": {
                        "type": _TYPES.format(type=_KINDS.get(status, "refused")),
                        "title": HTTPStatus(status).phrase,
                        "status": status,
                        "detail": _DESCRIPTIONS[status],
                    },
                }
            },
        }
        for status in statuses
    }


PROBLEM_SCHEMA: Final[Mapping[str, Any]] = {
    "title": "Problem",
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
