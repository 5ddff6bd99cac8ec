"""Jobs over HTTP: submit, follow, restart, cancel; webhooks and their log."""

from typing import Annotated, Final

from fastapi import APIRouter, Body, Depends, Header, Query, Request, Response
from fastapi.openapi.models import Example
from fastapi.responses import StreamingResponse

from contracts.jobs import LARGEST_INTEGER, STAGES, JobRequest, JobStatus, TaskStatus
from workers.gateway.http.cursors import Before, cursor_of
from workers.gateway.http.event_stream import event_stream
from workers.gateway.http.identity import Who
from workers.gateway.jobs.dependencies import (
    JobName,
    PageSize,
    TheService,
    fields_once,
    job_problems,
    known_parameters,
)
from workers.gateway.jobs.schemas import (
    AnswerBody,
    DeliveryView,
    JobList,
    RestartBody,
    SubmittedView,
    TaskList,
    delivery_view,
)
from workers.services.jobs.documents import JobDocument
from workers.services.jobs.queries import PAGE, revision

router = APIRouter(
    prefix="/api/jobs",
    tags=["jobs"],
    dependencies=[Depends(known_parameters), Depends(fields_once)],
    responses=job_problems(401, 403, 422, 503),
)

_ONE = job_problems(404)
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
        200: {"description": "The same job was asked for before", "model": SubmittedView},
        **job_problems(400, 413),
    },
)
async def submit_job(
    service: TheService,
    who: Who,
    response: Response,
    body: Annotated[JobRequest, Body(openapi_examples=_EXAMPLE)],
) -> SubmittedView:
    """Start a job.

    The same request over the same bytes is the same job: it is answered from its result, with 200.
    Parameters of webhooks (`webhook_url`, `webhook_secret`, `webhook_secret_name`,
    `webhook_retry_count`, `webhook_timeout_seconds`) stand beside those of the job; the secret is
    kept encrypted and shown nowhere.
    """
    done = await service.submit(who, body)
    response.status_code = 201 if done.created else 200
    response.headers["location"] = f"/api/jobs/{done.job_id}"
    return SubmittedView(
        job_id=done.job_id, attempt=done.attempt, created=done.created, notes=done.notes
    )


@router.get("")
async def list_jobs(
    service: TheService,
    who: Who,
    status: JobStatus | None = None,
    job_type: Annotated[str | None, Query(max_length=64)] = None,
    project: Annotated[str | None, Query(max_length=128)] = None,
    before: Before = None,
    limit: PageSize = PAGE,
) -> JobList:
    """Jobs, the newest change first."""
    found = await service.queries.list(
        who,
        status=status,
        job_type=job_type,
        project=project,
        before=cursor_of(before),
        limit=limit,
    )
    return JobList(jobs=tuple(found.jobs), next=found.next and f"{found.next}")


@router.get("/{job}", responses=_ONE)
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


@router.post("/{job}/restart", status_code=202, responses={**_ONE, **job_problems(400, 409, 413)})
async def restart_job(
    service: TheService, who: Who, job: JobName, body: RestartBody | None = None
) -> SubmittedView:
    """Begin another attempt at the stage that failed; good tasks are kept."""
    done = await service.restart(who, job, body.from_stage if body else None)
    notes = () if done.note is None else (done.note,)
    return SubmittedView(
        job_id=done.job_id, attempt=done.attempt, created=done.created, notes=notes
    )


@router.post("/{job}/answer", status_code=202, responses={**_ONE, **job_problems(400, 409, 413)})
async def answer_job(
    service: TheService, who: Who, job: JobName, body: AnswerBody | None = None
) -> JobDocument:
    """Answer a job that is parked: give the parameters that it asks for, or decide what follows.

    Parameters are checked as those of a new job are. Those that name inputs cannot be changed.
    """
    given = body or AnswerBody()
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
) -> TaskList:
    """Tasks of a job, by stage and place in it."""
    found = await service.queries.tasks(
        who, job, status=status, stage=stage, attempt=attempt, token=token, limit=limit
    )
    return TaskList(tasks=tuple(found.tasks), next=found.next and f"{found.next}")


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
        revisions,
        event="job",
        id=lambda each: each.id,
        render=lambda each: each.job.model_dump_json(),
    )


@router.get("/{job}/webhooks", responses=_ONE)
async def list_deliveries(service: TheService, who: Who, job: JobName) -> list[DeliveryView]:
    """Deliveries of webhooks about the end of the job, the newest first."""
    return [delivery_view(each) for each in await service.queries.deliveries(who, job)]


@router.post(
    "/{job}/webhooks/{number}/send", status_code=202, responses={**_ONE, **job_problems(409)}
)
async def send_again(
    service: TheService,
    who: Who,
    job: JobName,
    number: int,
    attempt: Annotated[int | None, Query(ge=1, description="Without it the newest.")] = None,
) -> DeliveryView:
    """Send a webhook again, with the same id and content; the entry that it is sent like."""
    return delivery_view(await service.send_again(who, job, number, attempt))
