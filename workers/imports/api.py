"""Document imports over HTTP: where one stands, and a person's answer to it."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Final, cast

from fastapi import APIRouter, Depends, Header, Path, Request, Response

from activities.imports.views import ImportTaskRow
from workers.imports.service import LARGEST_FILE, PIPELINE, ImportService
from workers.imports.submission import DocumentSubmission, SentDocument
from workers.shared.gateway.access import TheAct
from workers.shared.gateway.http.problems import ProblemDescription, problem_responses
from workers.shared.gateway.http.requests import Who, bounded_body, the
from workers.shared.gateway.http.upload import Upload, any_file, whole_file
from workers.shared.services.bodies import RefusedMessage, object_of, text_of
from workers.shared.services.errors import NotFound, Refused, TooLarge, WrongState
from workflows.imports.messages import MESSAGE_BYTES, DocumentType
from workflows.shared.contracts import PlainRecord, served

_DESCRIPTIONS: Final = {
    404: ProblemDescription(NotFound.kind, "no such import"),
    409: ProblemDescription(WrongState.kind, "the import is not parked"),
    413: ProblemDescription(TooLarge.kind, "the file is too large"),
    422: ProblemDescription(Refused.kind, "the import does not take this answer"),
}
_CHANGES: Final[Mapping[str, str]] = {
    "sheet": "sheet",
    "schedule_id": "schedule_id",
    "encoding": "encoding",
}
"""Field of a form to the field of the message that it changes; `map` is JSON."""
_FIELDS: Final = ("id", "map", "changes", *_CHANGES)
"""What a form may have in front of its file."""


def _responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return problem_responses(*statuses, further=_DESCRIPTIONS)


router = APIRouter(
    prefix="/api/v1/documents", tags=["documents"], responses=_responses(400, 401, 403, 422, 503)
)


def _service_of(request: Request) -> ImportService:
    return cast("ImportService", request.app.state.services[PIPELINE])


TheService = Annotated[ImportService, Depends(_service_of)]
Id = Annotated[
    str, Path(min_length=1, max_length=1_000, description="`import/PROJECT/TASK`: its workflow id.")
]


class AcceptedDocument(PlainRecord):
    """An import that was accepted."""

    id: Annotated[str, served("Its run: /api/v1/runs/{id}", "import/P1/T1")]
    is_new: Annotated[bool, served("False: the same was asked for before", True)]


_EXAMPLE: Final = {
    "document_type": "equipment",
    "project_id": "P1",
    "task_id": "list-7",
    "blob_name": "inbox/list.xlsx",
}
_BODY: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["document_type", "project_id"],
                    "description": "A message as on the queue; `blob_name` says where its file is",
                    "properties": {
                        "document_type": {
                            "type": "string",
                            "maxLength": 40,
                            "examples": [*DocumentType, "tools"],
                            "description": "One of docflow's own types or a declared one; "
                            "`GET /api/v1/types` lists those whose files are tables",
                        }
                    },
                },
                "example": _EXAMPLE,
            },
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["message", "file"],
                    "properties": {
                        "message": {
                            "type": "string",
                            "description": "The message as JSON, without what names its file; it "
                            "comes before the file",
                        },
                        "file": {"type": "string", "format": "binary"},
                    },
                },
                "example": {
                    "message": '{"document_type": "equipment", "project_id": "P1"}',
                    "file": "list.xlsx",
                },
            },
        },
    }
}
_MADE: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "The same was asked for before", "model": AcceptedDocument},
    201: {
        "headers": {"Location": {"schema": {"type": "string"}, "description": "Address of the run"}}
    },
}


@router.post(
    "",
    status_code=201,
    openapi_extra=_BODY,
    responses={**_MADE, **_responses(409, 413, 415)},
)
async def submit_document(
    submission: Annotated[DocumentSubmission, the(DocumentSubmission)],
    who: Who,
    act: TheAct,
    request: Request,
    response: Response,
    idempotency_key: Annotated[
        str | None,
        Header(
            min_length=1,
            max_length=255,
            description="A second request with this key starts nothing; its file must be the same.",
        ),
    ] = None,
) -> AcceptedDocument:
    """Import a document: one that is sent along, or one that the message refers to.

    The message is that of the queue, and checked as strictly. If it names no `task_id`, the task
    follows from the idempotency key.
    """
    document = None
    if request.headers.get("content-type", "").startswith("multipart/"):
        upload = Upload(request, LARGEST_FILE, any_file)
        await upload.open()
        message = _message(upload.fields.get("message", "").encode())
        if unknown := sorted(upload.fields.keys() - {"message"}):
            raise Refused(f"{unknown[0]}: is not a field of this form; put it into the message")
        document = SentDocument(upload.filename, lambda: whole_file(upload))
    else:
        message = _message(await bounded_body(request, MESSAGE_BYTES, "a message"))
    done = await submission.submit(who, message, document, idempotency_key)
    act.object = done.workflow_id
    response.status_code = 201 if done.is_new else 200
    response.headers["location"] = f"/api/v1/runs/{done.workflow_id}"
    return AcceptedDocument(id=done.workflow_id, is_new=done.is_new)


def _message(raw: bytes) -> Mapping[str, Any]:
    try:
        return object_of(text_of(raw, MESSAGE_BYTES))
    except RefusedMessage as refused:
        raise Refused(f"message: {refused.description}") from refused


@router.post(
    "/corrections",
    responses=_responses(409, 413, 415),
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "multipart/form-data": {
                    "schema": {
                        "type": "object",
                        "required": ["id", "file"],
                        "properties": {
                            "id": {"type": "string"},
                            "sheet": {"type": "string"},
                            "map": {"type": "string", "description": "JSON object"},
                            "schedule_id": {"type": "string"},
                            "encoding": {"type": "string"},
                            "changes": {
                                "type": "string",
                                "description": "JSON object: any other fields of the message",
                            },
                            "file": {"type": "string", "format": "binary"},
                        },
                    },
                    "example": {
                        "id": "import/P1/list-7",
                        "map": '{"Daily rate": "rate"}',
                        "file": "list-corrected.xlsx",
                    },
                }
            },
        }
    },
)
async def correct_document(service: TheService, who: Who, request: Request) -> ImportTaskRow:
    """Try a parked import again with a corrected file; it keeps its id.

    The file is the last part of the form.
    """
    upload = Upload(request, LARGEST_FILE, any_file)
    await upload.open()
    return await take_file(service, who, upload)


@router.get("/{id:path}", responses=_responses(404))
async def get_document(service: TheService, who: Who, id: Id) -> ImportTaskRow:
    """Show an import with its problems, its question and its corrections."""
    return await service.get(who, id)


async def take_file(service: ImportService, who: Who, upload: Upload) -> ImportTaskRow:
    """Try an import again with the file of a form that has been opened.

    Raises:
        Refused: The form names no import, what it changes cannot be read, or it has a field that
            would not be used.
    """
    fields = dict(upload.fields)
    id = fields.get("id")
    if not id:
        raise Refused("id: name the import, before the file")
    if unknown := sorted(fields.keys() - _FIELDS):
        raise Refused(f"{unknown[0]}: is not a field of this form; it has {', '.join(_FIELDS)}")
    changes = changes_of(fields)

    try:
        return await service.retry_with(
            who, id, upload.filename, lambda: whole_file(upload), changes
        )
    except NotFound as error:
        raise Refused(f"id: {error}") from error


def changes_of(fields: Mapping[str, str]) -> Mapping[str, Any]:
    """What a form changes of the message.

    Raises:
        Refused: `map` is not a JSON object of texts, or `changes` none.
    """
    changes: dict[str, Any] = {
        name: text for field, name in _CHANGES.items() if (text := fields.get(field, "").strip())
    }
    if text := fields.get("map", "").strip():
        changes["map"] = read_map(text)
    if text := fields.get("changes", "").strip():
        changes = {**_object("changes", text), **changes}
    return changes


def _object(name: str, text: str) -> dict[str, Any]:
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refused(f"{name} is not JSON") from error
    if not isinstance(found, dict):
        raise Refused(f"{name} has to be a JSON object")
    return cast("dict[str, Any]", found)


def read_map(text: str) -> Mapping[str, str]:
    """What a form says that headers mean, as JSON.

    Raises:
        Refused: It is not a JSON object of texts.
    """
    pairs = _object("map", text)
    if not all(isinstance(value, str) for value in pairs.values()):
        raise Refused("map has to be an object of headers and fields")
    return pairs
