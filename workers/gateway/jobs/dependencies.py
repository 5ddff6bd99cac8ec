"""What the endpoints of jobs share."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any, cast

from fastapi import Depends, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from fastapi_problem.error import Problem

from workers.gateway.http.problems import ProblemDescription, problem_of, problem_responses
from workers.pipelines.jobs import NAME
from workers.services.errors import NotFound, Refused, WrongState
from workers.services.jobs.errors import InvalidJob
from workers.services.jobs.queries import LARGEST_PAGE
from workers.services.jobs.service import JobService

_DESCRIPTIONS = {
    404: ProblemDescription(NotFound.kind, "no such job"),
    409: ProblemDescription(WrongState.kind, "not in this state of the job"),
    422: ProblemDescription(Refused.kind, "fields of the request are wrong; `errors` names them"),
}


def _service_of(request: Request) -> JobService:
    return cast("JobService", request.app.state.services[NAME])


TheService = Annotated[JobService, Depends(_service_of)]
JobName = Annotated[
    str,
    Path(
        alias="job",
        min_length=1,
        max_length=200,
        description="Id of a job, its first 8 characters or more, or its alias.",
    ),
]
PageSize = Annotated[int, Query(alias="limit", ge=1, le=LARGEST_PAGE, description="At most.")]


def known_parameters(request: Request) -> None:
    """Refuse parameters of an address that an endpoint has not, or has once: a list without its
    filter, or with half of it, would look like the answer.

    Raises:
        RequestValidationError: There is one.
    """
    route: APIRoute = request.scope["route"]
    known = sorted(field.alias for field in route.dependant.query_params)
    given = request.query_params
    errors = [
        {"type": "unknown", "loc": ("query", name), "msg": f"is not known; known are {known}"}
        for name in given
        if name not in known
    ] + [
        {"type": "repeated", "loc": ("query", name), "msg": "is given more than once"}
        for name in given
        if len(given.getlist(name)) > 1
    ]
    if errors:
        raise RequestValidationError(errors)


async def fields_once(request: Request) -> None:
    """Refuse a JSON body with a field that is given twice: either value would be a guess.

    Raises:
        RequestValidationError: There is one.
    """
    if not request.headers.get("content-type", "").startswith("application/json"):
        return
    repeated: list[str] = []

    def note(pairs: Sequence[tuple[str, Any]]) -> None:
        counts = Counter(name for name, _ in pairs)
        repeated.extend(name for name, count in counts.items() if count > 1)

    try:
        json.loads(await request.body() or b"null", object_pairs_hook=note)
    except (ValueError, RecursionError):
        # The framework reads the body too, and says what is wrong with it.
        return
    if repeated:
        raise RequestValidationError(
            [
                {"type": "repeated", "loc": ("body", name), "msg": "is given more than once"}
                for name in dict.fromkeys(repeated)
            ]
        )


def job_problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Entries of an OpenAPI document for problems of these statuses."""
    return problem_responses(*statuses, further=_DESCRIPTIONS)


def invalid_job(error: InvalidJob) -> Problem:
    """Each field that is wrong, and why."""
    errors = [{"location": each.location, "message": each.message} for each in error.errors]
    return problem_of(error, {}, errors=errors)
