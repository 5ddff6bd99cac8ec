"""Jobs over HTTP: their types, files, tasks and restarts; what the catalogue no longer holds."""

from collections.abc import Sequence
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic import ConfigDict, Field

from activities.jobs.catalogue import ORGANISATION, Catalogue
from workers.jobs.api import RestartBody, TheService, fields_once, job_problems
from workers.jobs.runs import JobDocument, StartedJob
from workers.jobs.service import JobTypeList, StoredFile
from workers.jobs.submission import FieldError, InvalidJob
from workers.shared.gateway.access import TheAct
from workers.shared.gateway.http.problems import QUOTA_PROBLEMS, problem_responses
from workers.shared.gateway.http.requests import PageCursor, PageLimit, Who, cursor_of, the
from workers.shared.gateway.http.upload import Upload, any_file, whole_file
from workers.shared.services.errors import NotFound, Refused
from workers.shared.services.identity import OPERATOR, VIEWER, require_role
from workflows.jobs.definitions import STAGES
from workflows.jobs.records import LARGEST_INTEGER, JobRecord, JobStatus, TaskRecord, TaskStatus
from workflows.jobs.runs import JobRequest
from workflows.shared.contracts import PlainRecord, served

LARGEST_FILE: Final = 50_000_000_000
_SHA256: Final = 64
_FILE_FIELDS: Final = {"job_type": "Whose jobs read it", "sha256": "Of the file, in hexadecimal"}
_PROBLEMS: Final = (401, 403, 422, 503)
_ONE: Final = job_problems(404)
_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "required": [*_FILE_FIELDS, "file"],
    "properties": {
        **{
            name: {"type": "string", "description": f"{words}; before the file"}
            for name, words in _FILE_FIELDS.items()
        },
        "file": {"type": "string", "format": "binary"},
    },
}
_EXAMPLE: Final = {"job_type": "process_vector", "sha256": "5f" * 32, "file": "wells.gpkg"}
_FORM: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {"multipart/form-data": {"schema": _SCHEMA, "example": _EXAMPLE}},
    }
}
jobs = APIRouter(
    prefix="/api/v1/jobs",
    tags=["jobs"],
    dependencies=[Depends(fields_once)],
    responses=job_problems(*_PROBLEMS),
)
catalogue = APIRouter(
    prefix="/api/v1/catalogue", tags=["catalogue"], responses=problem_responses(*_PROBLEMS)
)
Id = Annotated[
    str,
    Path(
        min_length=1,
        max_length=200,
        description="Id of a job, its first 8 characters or more, or its alias.",
    ),
]


class JobList(PlainRecord):
    """Some jobs, the newest change first."""

    items: Annotated[Sequence[JobRecord], served("The jobs", [])]
    next: Annotated[str | None, served("`cursor` of the next page; null on the last page", None)]


class TaskList(PlainRecord):
    """Some tasks of a job, by stage and place in it."""

    items: Annotated[Sequence[TaskRecord], served("The tasks", [])]
    next: Annotated[str | None, served("`cursor` of the next page; null on the last page", None)]


class JobOrder(JobRequest):
    """A job that is asked for; an unknown field is a mistake."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"job_type": "hello_world", "parameters": {"n": 2}}}
    )

    typed: dict[str, str] = Field(default_factory=dict[str, str], repr=False)
    """More parameters, as a person types them: JSON if it fits the parameter, else the text."""
    organisation_id: int | None = Field(default=None, ge=1, le=2**53)
    """Organisation that the job belongs to, and what it makes. None: the first one in which the
    caller is an operator; that of an operator of the whole installation belongs to none."""


@jobs.get("/types")
async def list_job_types(service: TheService, who: Who) -> JobTypeList:
    """List the job types that are installed, with the JSON schema of their parameters."""
    return service.queries.job_types()


@jobs.post("/files", status_code=201, openapi_extra=_FORM, responses=job_problems(400, 413, 415))
async def store_job_file(
    service: TheService, who: Who, act: TheAct, request: Request
) -> StoredFile:
    """Store a file that a job reads; give its name as the parameter that the answer says.

    It is stored under a name that is made of its content: if you store it again, it is the same
    input, and a job that reads it is the same job.
    """
    upload = Upload(request, LARGEST_FILE, any_file)
    await upload.open()
    job_type, sha256 = (upload.fields.get(each, "") for each in _FILE_FIELDS)
    if unknown := sorted(upload.fields.keys() - _FILE_FIELDS.keys()):
        raise Refused(f"{unknown[0]}: is not a field of this form")
    if len(sha256) != _SHA256 or not sha256.isalnum():
        raise Refused("sha256: give the 64 hexadecimal digits, before the file")
    stored = await service.store_file(
        who, job_type, upload.filename, sha256.lower(), whole_file(upload)
    )
    act.object = stored.name
    return stored


@jobs.post(
    "",
    status_code=201,
    responses={
        200: {"description": "The same job was asked for before", "model": StartedJob},
        **job_problems(400, 413),
        **QUOTA_PROBLEMS,
    },
)
async def start_job(
    service: TheService, who: Who, response: Response, body: JobOrder
) -> StartedJob:
    """Start a job; the same request over the same files is the same job.

    Parameters of webhooks stand beside those of the job.
    """
    if twice := sorted(body.typed.keys() & body.parameters.keys()):
        raise InvalidJob([FieldError(f"typed.{twice[0]}", "stands in parameters as well")])
    typed = service.submission.typed(body.job_type, body.typed)
    order = body.model_copy(update={"parameters": {**body.parameters, **typed}})
    done = await service.submit(who, order, body.organisation_id)
    response.status_code = 201 if done.created else 200
    response.headers["location"] = f"/api/v1/jobs/{done.job_id}"
    return done


@jobs.get("")
async def find_jobs(
    service: TheService,
    who: Who,
    status: JobStatus | None = None,
    job_type: Annotated[str | None, Query(max_length=64)] = None,
    project: Annotated[str | None, Query(max_length=128)] = None,
    limit: PageLimit = 50,
    cursor: PageCursor = None,
) -> JobList:
    """List jobs, the newest change first."""
    found = await service.queries.list(
        who,
        status=status,
        job_type=job_type,
        project=project,
        before=cursor_of(cursor),
        limit=limit,
    )
    return JobList(items=found.jobs, next=found.next)


@jobs.get("/{id}", responses=_ONE)
async def show_job(service: TheService, who: Who, id: Id) -> JobDocument:
    """Show a job, with how far each of its stages is and what it asks for."""
    return await service.queries.get(who, id)


@jobs.get("/{id}/tasks", responses=_ONE)
async def list_job_tasks(
    service: TheService,
    who: Who,
    id: Id,
    status: TaskStatus | None = None,
    stage: Annotated[int | None, Query(ge=1, le=STAGES)] = None,
    attempt: Annotated[
        int | None, Query(ge=1, le=LARGEST_INTEGER, description="Without it the newest.")
    ] = None,
    limit: PageLimit = 50,
    cursor: PageCursor = None,
) -> TaskList:
    """List the tasks of a job, by stage and place in it."""
    found = await service.queries.tasks(
        who, id, status=status, stage=stage, attempt=attempt, token=cursor, limit=limit
    )
    return TaskList(items=found.tasks, next=found.next)


@jobs.post(
    "/{id}/restart",
    status_code=202,
    responses={**_ONE, **job_problems(400, 409, 413), **QUOTA_PROBLEMS},
)
async def continue_job(
    service: TheService, who: Who, act: TheAct, id: Id, body: RestartBody | None = None
) -> StartedJob:
    """Begin another attempt at the stage that failed, or at another one; good tasks are kept."""
    done = await service.restart(who, id, body.from_stage if body else None)
    act.object, act.after = done.job_id, {"attempt": done.attempt}
    return done


@catalogue.delete("/{collection}/{item}", status_code=204, responses=problem_responses(404))
async def remove_item(
    found: Annotated[Catalogue, the(Catalogue)], who: Who, collection: str, item: str
) -> None:
    """Take an item out of the catalogue; its files and tables stay."""
    known = await found.seen_by(who.where(VIEWER)).item(collection, item)
    if known is not None:
        owner: int | None = known["properties"].get(ORGANISATION)
        require_role(who, OPERATOR, owner)
        if await found.acting_for(owner).delete_item(collection, item):
            return
    raise NotFound(f"there is no item {item!r} in the collection {collection!r}")


ROUTERS: Final = (jobs, catalogue)
