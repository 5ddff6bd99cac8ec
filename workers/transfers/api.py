"""Events over HTTP: send one, and see what became of it."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final, cast

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic import BaseModel

from activities.transfers.cloud_events import NoEvent, read_event
from activities.transfers.records import AcceptedEvent, Transfer
from workers.shared.gateway.http.problems import ProblemDescription, problem_responses
from workers.shared.gateway.http.requests import Before, Who, bounded_body, cursor_of
from workers.shared.services.errors import NotFound, Refused
from workers.shared.services.lists import Cursor
from workers.transfers.register import NAME
from workers.transfers.service import LARGEST_PAGE, PAGE, TransferService
from workers.transfers.starts import STRUCTURED, EventTooLarge, UnsupportedEvent, structured
from workflows.transfers.events import EVENT_BYTES, TransferStatus

_DESCRIPTIONS = {
    404: ProblemDescription(NotFound.kind, "no such transfer"),
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
    prefix="/api/events", tags=["transfers"], responses=_problems(401, 403, 422, 503)
)


def _service_of(request: Request) -> TransferService:
    return cast("TransferService", request.app.state.services[NAME])


TheService = Annotated[TransferService, Depends(_service_of)]
_LINKED: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "headers": {
            "Link": {
                "description": 'The next page (`rel="next"`), where there may be one.',
                "schema": {"type": "string"},
            }
        }
    }
}
EventName = Annotated[
    str,
    Path(
        alias="event",
        min_length=8,
        max_length=200,
        description="Id of a transfer, or its first 8 characters or more.",
    ),
]


class SentView(BaseModel):
    """An event that was taken."""

    transfer_id: str
    created: bool
    """False: the same event came before."""


EVENT_BODY: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "description": "A CloudEvent in structured mode; in binary mode its attributes are headers "
        "(`ce-id`, `ce-source`, ...), and the body is its data.",
        "content": {
            STRUCTURED: {
                "schema": {"type": "object"},
                "example": {
                    "specversion": "1.0",
                    "id": "1047",
                    "source": "TMS.Route",
                    "type": "Succeeded",
                    "subject": "File Upload",
                    "time": "2026-03-01T08:00:00Z",
                    "data": {"accountId": "TMS001", "path": "/out/routes.csv.pgp"},
                },
            },
            "application/json": {"schema": {"type": "object"}},
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
    },
)
async def send_event(
    request: Request, service: TheService, who: Who, response: Response
) -> SentView:
    """Have an event routed and carried out.

    What is not an event, or lacks a field, is refused and recorded all the same: its row says why.
    """
    body = structured(request.headers, await event_body(request))
    started = await service.submit(who, body, "api")
    try:
        read_event(body, datetime.now(UTC))
    except NoEvent as error:
        raise Refused(f"{error}; it is recorded as {started.transfer_id}") from error
    response.status_code = 201 if started.created else 200
    response.headers["location"] = f"/api/events/{started.transfer_id}"
    return SentView(transfer_id=started.transfer_id, created=started.created)


@router.get("", responses=_LINKED)
async def list_events(
    request: Request,
    response: Response,
    service: TheService,
    who: Who,
    status: TransferStatus | None = None,
    queue: Annotated[str | None, Query(max_length=63)] = None,
    account_id: Annotated[str | None, Query(max_length=500)] = None,
    before: Before = None,
    limit: Annotated[int, Query(ge=1, le=LARGEST_PAGE)] = PAGE,
) -> Sequence[Transfer]:
    """Events, the newest change first."""
    rows = await service.list(
        who,
        status=status,
        queue=queue,
        account_id=account_id,
        before=cursor_of(before),
        limit=limit,
    )
    if len(rows) == limit:
        next = request.url.include_query_params(before=Cursor(rows[-1].at, rows[-1].transfer_id))
        response.headers["link"] = f'<{next.path}?{next.query}>; rel="next"'
    return rows


@router.get("/{event}", responses=_problems(404))
async def show_event(service: TheService, who: Who, event: EventName) -> Transfer | AcceptedEvent:
    """What became of an event; one that no worker has checked yet is `Accepted`."""
    try:
        return await service.get(who, event)
    except NotFound:
        return await service.accepted(who, event)


async def event_body(request: Request) -> bytes:
    """The body of a request, of bounded size.

    Raises:
        EventTooLarge: It has more bytes than an event may have.
    """
    return await bounded_body(request, EVENT_BYTES, "an event", EventTooLarge)
