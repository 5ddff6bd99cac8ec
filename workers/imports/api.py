"""Document imports over HTTP: where one stands, and a person's answer to it."""

import json
from collections.abc import AsyncGenerator, Mapping
from typing import Annotated, Any, Final, Literal, cast

from fastapi import APIRouter, Depends, Path, Request
from pydantic import Field

from activities.imports.views import ImportTaskRow
from workers.imports.service import LARGEST_FILE, PIPELINE, ImportService, RunAnswer
from workers.shared.gateway.access import TheAct
from workers.shared.gateway.http.problems import ProblemDescription, problem_responses
from workers.shared.gateway.http.requests import Who
from workers.shared.gateway.http.upload import Upload
from workers.shared.services.bodies import Body
from workers.shared.services.errors import NotFound, Refused, TooLarge, UnsupportedFile, WrongState
from workflows.imports.runs import Changed

_DESCRIPTIONS: Final = {
    404: ProblemDescription(NotFound.kind, "no such import"),
    409: ProblemDescription(WrongState.kind, "the import is not parked"),
    413: ProblemDescription(TooLarge.kind, "the file is too large"),
    415: ProblemDescription(UnsupportedFile.kind, "not a form upload"),
    422: ProblemDescription(Refused.kind, "the import does not take this answer"),
}
_CHANGES: Final[Mapping[str, str]] = {
    "sheet": "sheet",
    "scheduleId": "schedule_id",
    "encoding": "encoding",
}
"""Field of a form to the field of the message that it changes; `map` is JSON."""
_FIELDS: Final = ("id", "map", *_CHANGES)
"""What a form may have in front of its file."""


def _responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return problem_responses(*statuses, further=_DESCRIPTIONS)


router = APIRouter(
    prefix="/api/documents", tags=["documents"], responses=_responses(400, 401, 403, 422, 503)
)


def _service_of(request: Request) -> ImportService:
    return cast("ImportService", request.app.state.services[PIPELINE])


TheService = Annotated[ImportService, Depends(_service_of)]
Id = Annotated[
    str, Path(min_length=1, max_length=1_000, description="`import/PROJECT/TASK`: its workflow id.")
]


class AnswerBody(Body):
    """A person's answer to a parked import, or the request to stop one."""

    verb: Literal["retry", "skip", "fail", "cancel"]
    reason: str | None = Field(default=None, max_length=500)
    changes: dict[str, Changed] = Field(default_factory=dict[str, Changed], max_length=32)
    """Fields of the message that get another value, with `retry`."""


@router.get("/{id:path}", responses=_responses(404))
async def get_document(service: TheService, who: Who, id: Id) -> ImportTaskRow:
    """Where an import stands."""
    return await service.get(who, id)


@router.post("/{id:path}/answers", responses=_responses(404, 409))
async def answer_document(
    service: TheService, who: Who, act: TheAct, id: Id, body: AnswerBody
) -> ImportTaskRow:
    """Answer an import; the answer is applied when this returns."""
    act.reason, act.after = body.reason, {"verb": body.verb, "changes": body.changes}
    answer = RunAnswer(body.verb, by=who.subject, reason=body.reason, changes=body.changes)
    return await service.answer(who, id, answer)


@router.post(
    "/files",
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
                            "scheduleId": {"type": "string"},
                            "encoding": {"type": "string"},
                            "file": {"type": "string", "format": "binary"},
                        },
                    }
                }
            },
        }
    },
)
async def retry_document(service: TheService, who: Who, request: Request) -> ImportTaskRow:
    """Try a parked import again with a corrected file; it keeps its id.

    The file is the last part of the form.
    """
    upload = Upload(request, LARGEST_FILE, any_file)
    await upload.open()
    return await take_file(service, who, upload)


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

    async def content() -> AsyncGenerator[bytes]:
        async for block in upload.file():
            yield block
        after = await upload.finish()
        if late := sorted(name for name, text in after.items() if fields.get(name) != text):
            raise Refused(f"{late[0]}: comes after the file; send it before")

    try:
        return await service.retry_with(who, id, upload.filename, content, changes)
    except NotFound as error:
        raise Refused(f"id: {error}") from error


def changes_of(fields: Mapping[str, str]) -> Mapping[str, Any]:
    """What a form changes of the message.

    Raises:
        Refused: `map` is not a JSON object of texts.
    """
    changes: dict[str, Any] = {
        name: text for field, name in _CHANGES.items() if (text := fields.get(field, "").strip())
    }
    if text := fields.get("map", "").strip():
        changes["map"] = _read_map(text)
    return changes


def _read_map(text: str) -> Mapping[str, str]:
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refused("map is not JSON") from error
    if not isinstance(found, dict):
        raise Refused("map has to be an object of headers and fields")
    pairs = cast("dict[str, Any]", found)
    if not all(isinstance(value, str) for value in pairs.values()):
        raise Refused("map has to be an object of headers and fields")
    return pairs


def any_file(head: bytes, name: str) -> None:
    """Accept a file by its beginning: the import says what is wrong with it."""
    if not head:
        raise Refused(f"{name} is empty")
