"""Jobs over HTTP: submit, follow, restart, cancel; webhooks and their log."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any, Final

from fastapi import APIRouter, Body, Depends, Header, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.models import Example
from fastapi.responses import StreamingResponse
from fastapi.routing import APIRoute
from fastapi_problem.error import Problem
from pydantic import ConfigDict, Field

from activities.jobs.ports import TaskPage, WebhookDelivery
from workers.jobs.runs import JobDocument, StartedJob
from workers.jobs.service import LARGEST_PAGE, PAGE, JobPage, JobService, revision
from workers.jobs.submission import InvalidJob
from workers.shared.gateway.access import TheAct
from workers.shared.gateway.http.answers import event_stream
from workers.shared.gateway.http.problems import (
    QUOTA_PROBLEMS,
    ProblemDescription,
    problem_of,
    problem_responses,
)
from workers.shared.gateway.http.requests import Before, Who, cursor_of, the
from workers.shared.services.errors import NotFound, WrongState
from workflows.jobs.definitions import STAGES
from workflows.jobs.records import (
    LARGEST_INTEGER,
    JobStatus,
    JsonObject,
    TaskStatus,
)
from workflows.jobs.runs import JobRequest
from workflows.shared.contracts import Contract
from workflows.shared.parking import Decision

_DESCRIPTIONS = {
    404: ProblemDescription(NotFound.kind, "no such job"),
    409: ProblemDescription(WrongState.kind, "not in this state of the job"),
    422: ProblemDescription(
        InvalidJob.kind, "fields of the request are wrong; `errors` names them"
    ),
}


TheService = Annotated[JobService, the(JobService)]
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


class _Body(Contract):
    """A request; an unknown field is a mistake."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class RestartBody(_Body):
    """Where a job begins again."""

    from_stage: int | None = Field(default=None, ge=1)
    """Null: the stage that failed."""


class AnswerBody(_Body):
    """What becomes of a job that is parked."""

    decision: Decision = Decision.RETRY
    """`retry` does the failed stage again, `skip` leaves out what has failed, `fail` gives up."""
    parameters: JsonObject = Field(default_factory=dict)
    """For `retry`: what the job asks for, and others that are corrected."""
    reason: str | None = Field(default=None, max_length=500)
    """For `skip` and `fail`."""


router = APIRouter(
    prefix="/api/jobs",
    tags=["jobs"],
    dependencies=[Depends(known_parameters), Depends(fields_once)],
    responses=job_problems(401, 403, 422, 503),
)

_ONE = job_problems(404)
_NEW: Final = {"organisation_id"}
"""Fields of records that clients of this interface do not know."""
_EXAMPLE: Final[dict[str, Example]] = {
    "hello": {
        "value": {
            "job_type": "hello_world",
            "parameters": {"n": 3, "webhook_url": "https://client.example.com/api/job-complete"},
        }
    }
}


@router.post(
    "",
    status_code=201,
    responses={
        200: {"description": "The same job was asked for before", "model": StartedJob},
        **job_problems(400, 413),
        **QUOTA_PROBLEMS,
    },
)
async def submit_job(
    service: TheService,
    who: Who,
    response: Response,
    body: Annotated[JobRequest, Body(openapi_examples=_EXAMPLE)],
) -> StartedJob:
    """Start a job.

    The same request over the same bytes is the same job: it is answered from its result, with 200.
    Parameters of webhooks (`webhook_url`, `webhook_secret`, `webhook_secret_name`,
    `webhook_retry_count`, `webhook_timeout_seconds`) stand beside those of the job; the secret is
    kept encrypted and shown nowhere.
    """
    done = await service.submit(who, body)
    response.status_code = 201 if done.created else 200
    response.headers["location"] = f"/api/jobs/{done.job_id}"
    return done


@router.get("", response_model_exclude={"jobs": {"__all__": _NEW}})
async def list_jobs(
    service: TheService,
    who: Who,
    status: JobStatus | None = None,
    job_type: Annotated[str | None, Query(max_length=64)] = None,
    project: Annotated[str | None, Query(max_length=128)] = None,
    before: Before = None,
    limit: PageSize = PAGE,
) -> JobPage:
    """Jobs, the newest change first."""
    return await service.queries.list(
        who,
        status=status,
        job_type=job_type,
        project=project,
        before=cursor_of(before),
        limit=limit,
    )


@router.get("/{job}", responses=_ONE, response_model_exclude=_NEW)
async def get_job(service: TheService, who: Who, job: JobName) -> JobDocument:
    """A job, with how far each of its stages is."""
    return await service.queries.get(who, job)


@router.delete("/{job}", status_code=202, responses={**_ONE, **job_problems(409)})
async def cancel_job(
    service: TheService,
    who: Who,
    job: JobName,
    reason: Annotated[str | None, Query(max_length=500)] = None,
) -> JobDocument:
    """Begin no more tasks and end the job; tasks that run clean up."""
    await service.cancel(who, job, reason)
    return await service.queries.get(who, job)


@router.post(
    "/{job}/restart",
    status_code=202,
    responses={**_ONE, **job_problems(400, 409, 413), **QUOTA_PROBLEMS},
)
async def restart_job(
    service: TheService, who: Who, job: JobName, body: RestartBody | None = None
) -> StartedJob:
    """Begin another attempt at the stage that failed; good tasks are kept."""
    return await service.restart(who, job, body.from_stage if body else None)


@router.post(
    "/{job}/answer",
    status_code=202,
    responses={**_ONE, **job_problems(400, 409, 413)},
    response_model_exclude=_NEW,
)
async def answer_job(
    service: TheService, who: Who, act: TheAct, job: JobName, body: AnswerBody | None = None
) -> JobDocument:
    """Answer a job that is parked: give the parameters that it asks for, or decide what follows.

    Parameters are checked as those of a new job are. Those that name inputs cannot be changed.
    """
    given = body or AnswerBody()
    # Parameters may hold secrets.
    act.after = {"decision": given.decision}
    return await service.answer(
        who, job, given.decision, parameters=given.parameters, reason=given.reason
    )


@router.get("/{job}/tasks", responses=_ONE)
async def list_tasks(
    service: TheService,
    who: Who,
    job: JobName,
    status: TaskStatus | None = None,
    stage: Annotated[int | None, Query(ge=1, le=STAGES)] = None,
    attempt: Annotated[
        int | None, Query(ge=1, le=LARGEST_INTEGER, description="Without it the newest.")
    ] = None,
    token: Annotated[str | None, Query(max_length=200)] = None,
    limit: PageSize = PAGE,
) -> TaskPage:
    """Tasks of a job, by stage and place in it."""
    return await service.queries.tasks(
        who, job, status=status, stage=stage, attempt=attempt, token=token, limit=limit
    )


@router.get(
    "/{job}/events",
    response_class=StreamingResponse,
    responses={
        200: {"description": "Events `job`", "content": {"text/event-stream": {}}},
        204: {"description": "Nothing more will happen: do not come back"},
        **_ONE,
    },
)
async def watch_job(
    service: TheService,
    who: Who,
    job: JobName,
    request: Request,
    last_event_id: Annotated[
        str | None, Header(max_length=30, description="Revision that you have seen.")
    ] = None,
) -> Response:
    """The job whenever it changes, as server-sent events, until it has ended."""
    now = revision(await service.queries.get(who, job))
    if now.job.ended and now.id == last_event_id:
        return Response(status_code=204)
    stopping = request.app.state.stopping
    revisions = service.queries.events(who, job, last_event_id, stopping)
    return event_stream(
        request,
        who,
        revisions,
        event="job",
        id=lambda each: each.id,
        render=lambda each: each.job.model_dump_json(exclude=_NEW),
    )


@router.get("/{job}/webhooks", responses=_ONE)
async def list_deliveries(service: TheService, who: Who, job: JobName) -> Sequence[WebhookDelivery]:
    """Deliveries of webhooks about the end of the job, the newest first."""
    return await service.queries.deliveries(who, job)


@router.post(
    "/{job}/webhooks/{number}/send", status_code=202, responses={**_ONE, **job_problems(409)}
)
async def send_again(
    service: TheService,
    who: Who,
    job: JobName,
    number: int,
    attempt: Annotated[int | None, Query(ge=1, description="Without it the newest.")] = None,
) -> WebhookDelivery:
    """Send a webhook again, with the same id and content; the entry that it is sent like."""
    return await service.send_again(who, job, number, attempt)
