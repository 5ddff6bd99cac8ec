"""Events over HTTP: send one, and see what became of it."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final, cast

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from activities.transfers.cloud_events import NoEvent, read_event
from activities.transfers.records import AcceptedEvent, Transfer
from workers.shared.gateway.access import TheAct
from workers.shared.gateway.http.problems import (
    QUOTA_PROBLEMS,
    ProblemDescription,
    problem_responses,
)
from workers.shared.gateway.http.requests import (
    PageCursor,
    PageLimit,
    Who,
    bounded_body,
    cursor_of,
    the,
)
from workers.shared.services.errors import NotFound, Refused, WrongState
from workers.shared.services.lists import Cursor
from workers.transfers.redrive import Redrives
from workers.transfers.register import NAME
from workers.transfers.service import TransferService
from workers.transfers.starts import (
    STRUCTURED,
    EventTooLarge,
    StartedTransfer,
    UnsupportedEvent,
    structured,
)
from workflows.shared.contracts import PlainRecord, served
from workflows.transfers.events import (
    EVENT_BYTES,
    LARGEST_ORGANISATION,
    ORGANISATION,
    TransferStatus,
)
from workflows.transfers.runs import transfer_workflow_id

_DESCRIPTIONS = {
    404: ProblemDescription(NotFound.kind, "no such transfer"),
    409: ProblemDescription(WrongState.kind, "its state does not allow it"),
    413: ProblemDescription(EventTooLarge.kind, f"an event has at most {EVENT_BYTES:,} bytes"),
    415: ProblemDescription(UnsupportedEvent.kind, "a batch, or another format than JSON"),
    422: ProblemDescription(
        Refused.kind,
        "the event is invalid or lacks a field, or another one came with its source and id",
    ),
}


def _problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return problem_responses(*statuses, further=_DESCRIPTIONS)


router = APIRouter(
    prefix="/api/v1/transfers", tags=["transfers"], responses=_problems(401, 403, 422, 503)
)


def _service_of(request: Request) -> TransferService:
    return cast("TransferService", request.app.state.services[NAME])


TheService = Annotated[TransferService, Depends(_service_of)]
TheRedrives = Annotated[Redrives, the(Redrives)]
EventName = Annotated[
    str,
    Path(
        min_length=8,
        max_length=200,
        description="Id of a transfer, or its first 8 characters or more.",
    ),
]


class SentView(PlainRecord):
    """An event that was taken."""

    id: Annotated[str, served("Its run: /api/v1/runs/{id}", "transfer/5f0c")]
    transfer_id: Annotated[str, served("Id of its transfer", "5f0c")]
    is_new: Annotated[bool, served("False: the same event came before", True)]


class Assignment(BaseModel):
    """A queue for a transfer that waits for one."""

    model_config = ConfigDict(extra="forbid")

    queue: Annotated[str, served("Whose jobs carry it out", "orders")] = Field(max_length=63)
    reason: Annotated[str | None, served("Why, for its trail", "a new customer")] = Field(
        default=None, max_length=500
    )


class Rerouting(PlainRecord):
    """What became of one event whose rules were looked at again."""

    transfer_id: Annotated[str, served("Id of the transfer", "5f" * 32)]
    problem: Annotated[str | None, served("Why it was not done; null: it was", None)]


class Resending(BaseModel):
    """How a transfer is sent again."""

    model_config = ConfigDict(extra="forbid")

    partner: Annotated[
        str | None, served("Where to; null: where the settings of its job say", "acme-backup")
    ] = Field(default=None, max_length=63)


class Redriving(BaseModel):
    """How a failed transfer is carried out anew."""

    model_config = ConfigDict(extra="forbid")

    from_action: Annotated[
        int | None, served("The action to begin with, from 1; null: the one that failed", 2)
    ] = Field(default=None, ge=1, le=100)


class RedrivenView(SentView):
    """A failed transfer that is carried out anew."""

    from_action: Annotated[int, served("The action that it begins with, from 1", 2)]
    done_before: Annotated[Sequence[str], served("Actions that are not repeated", ["1. WriteFile"])]


_RECEIPT: Final[dict[str, Any]] = {
    "description": "Its steps, each with the hash of the one before it",
    "content": {"application/json": {"schema": {"type": "object"}}},
}


class TransferPage(PlainRecord):
    """Some transfers, the newest change first."""

    items: Annotated[Sequence[Transfer], served("The transfers", [])]
    next: Annotated[str | None, served("`cursor` of the next page; null on the last page", None)]


_EVENT: Final = {
    "specversion": "1.0",
    "id": "1047",
    "source": "TMS.Route",
    "type": "Succeeded",
    "subject": "File Upload",
    "time": "2026-03-01T08:00:00Z",
    "data": {"accountId": "TMS001", "path": "/out/routes.csv.pgp"},
}
EVENT_BODY: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "description": "A CloudEvent in structured mode; in binary mode its attributes are headers "
        "(`ce-id`, `ce-source`, ...), and the body is its data.",
        "content": {
            STRUCTURED: {"schema": {"type": "object"}, "example": _EVENT},
            "application/json": {"schema": {"type": "object"}, "example": _EVENT["data"]},
        },
    }
}


@router.post(
    "",
    status_code=201,
    openapi_extra=EVENT_BODY,
    responses={
        200: {"description": "The same event came before", "model": SentView},
        **_problems(413, 415),
        **QUOTA_PROBLEMS,
    },
)
async def send_event(
    request: Request,
    service: TheService,
    who: Who,
    response: Response,
    organisation_id: Annotated[
        int | None,
        Query(
            ge=1,
            le=LARGEST_ORGANISATION,
            description="Organisation that its transfer belongs to; without it the one that the "
            f"extension `{ORGANISATION}` of the event names, or none.",
        ),
    ] = None,
) -> SentView:
    """Have an event routed and carried out.

    What is not an event, or lacks a field, is refused and recorded all the same: its row says why.
    """
    body = structured(request.headers, await event_body(request))
    started = await service.submit(who, body, "api", organisation_id)
    try:
        read_event(body, datetime.now(UTC))
    except NoEvent as error:
        raise Refused(f"{error}; it is recorded as {started.transfer_id}") from error
    response.status_code = 201 if started.created else 200
    return _sent(started, response)


@router.get("")
async def list_transfers(
    service: TheService,
    who: Who,
    status: TransferStatus | None = None,
    queue: Annotated[str | None, Query(max_length=63)] = None,
    account_id: Annotated[str | None, Query(max_length=500)] = None,
    limit: PageLimit = 50,
    cursor: PageCursor = None,
) -> TransferPage:
    """List transfers, the newest change first."""
    rows = await service.list(
        who,
        status=status,
        queue=queue,
        account_id=account_id,
        before=cursor_of(cursor),
        limit=limit + 1,
    )
    items = rows[:limit]
    next = str(Cursor(items[-1].at, items[-1].transfer_id)) if len(rows) > limit else None
    return TransferPage(items=items, next=next)


@router.get("/{id}", responses=_problems(404))
async def get_transfer(service: TheService, who: Who, id: EventName) -> Transfer | AcceptedEvent:
    """Show what became of an event; one that no worker has checked yet is `Accepted`."""
    try:
        return await service.get(who, id)
    except NotFound:
        return await service.accepted(who, id)


@router.post("/{id}/assign", responses=_problems(404, 409))
async def assign_transfer(
    service: TheService, who: Who, id: EventName, act: TheAct, body: Assignment
) -> Transfer:
    """Name the queue of an event that no rule matches, or another one for a job that fits none."""
    act.after = {"queue": body.queue}
    return await service.assign(who, id, body.queue, body.reason)


@router.post("/{id}/reroute", responses=_problems(404, 409))
async def reroute_transfer(service: TheService, who: Who, id: EventName) -> Rerouting:
    """Look at the rules again for one event that none has matched."""
    [done] = await service.reroute(who, id)
    return Rerouting.model_validate(done)


@router.post("/{id}/resend", status_code=201, responses={**_problems(404, 409), **QUOTA_PROBLEMS})
async def resend_transfer(
    service: TheService, who: Who, id: EventName, response: Response, body: Resending | None = None
) -> SentView:
    """Send what was written again, from the copy that is kept of it, as a transfer of its own."""
    started = await service.resend(who, id, None if body is None else body.partner)
    return _sent(started, response)


@router.post("/{id}/redrive", status_code=201, responses={**_problems(404, 409), **QUOTA_PROBLEMS})
async def redrive_transfer(
    redrives: TheRedrives,
    who: Who,
    id: EventName,
    response: Response,
    body: Redriving | None = None,
) -> RedrivenView:
    """Carry out a failed transfer anew, as a transfer of its own, from the action that failed.

    Its files are read, decrypted and scanned again. What it has written, sent or called before that
    action is not repeated.
    """
    done = await redrives.redrive(who, id, None if body is None else body.from_action)
    return RedrivenView(
        **_sent(done.started, response).model_dump(),
        from_action=done.from_action,
        done_before=done.done_before,
    )


@router.get("/{id}/receipt", responses={200: _RECEIPT, **_problems(404, 409)})
async def get_receipt(redrives: TheRedrives, who: Who, id: EventName) -> Response:
    """Show what was done with the files of a transfer, step by step, byte by byte as written.

    `receipt.sha256` of the transfer is the digest of these bytes.
    """
    return Response(await redrives.written(who, id), media_type="application/json")


def _sent(started: StartedTransfer, response: Response) -> SentView:
    response.headers["location"] = f"{router.prefix}/{started.transfer_id}"
    return SentView(
        id=transfer_workflow_id(started.transfer_id),
        transfer_id=started.transfer_id,
        is_new=started.created,
    )


async def event_body(request: Request) -> bytes:
    """The body of a request, of bounded size.

    Raises:
        EventTooLarge: It has more bytes than an event may have.
    """
    return await bounded_body(request, EVENT_BYTES, "an event", EventTooLarge)
