"""What operators keep for all pipelines, over HTTP: schedules, rejected messages, dead letters."""

from collections.abc import Sequence
from typing import Annotated, Final

from fastapi import APIRouter, Body, Path, Query
from pydantic import BaseModel, ConfigDict, Field

from adapters.ports.records import RejectedFilter, RejectedHead, RejectedMessage
from workers.shared.gateway.http.problems import problem_responses
from workers.shared.gateway.http.requests import PageLimit, Who, the
from workers.shared.schedules import ScheduleView
from workers.shared.services.dead_letters import DeadLetterRecord
from workers.shared.services.errors import InvalidRequest
from workers.shared.services.letter_service import DeadLetterService, PlacedLetter
from workers.shared.services.rejected import RejectedService
from workers.shared.services.schedules import ScheduleService
from workers.shared.services.status_service import (
    OutageRecord,
    StatusRecord,
    StatusService,
    TypeDetail,
    TypeHead,
    TypeService,
)
from workflows.shared.contracts import PlainRecord, served

_PROBLEMS: Final = problem_responses(401, 403, 422, 503)
_ONE: Final = problem_responses(404)


class ReasonBody(BaseModel):
    """Why something is done."""

    model_config = ConfigDict(extra="forbid")

    reason: Annotated[str | None, served("Why, for those who come later", "audit")] = Field(
        default=None, max_length=500
    )


Why = Annotated[ReasonBody | None, Body()]


def _reason(body: ReasonBody | None) -> str | None:
    return None if body is None else body.reason


schedules = APIRouter(prefix="/api/v1/schedules", tags=["schedules"], responses=_PROBLEMS)
Schedules = Annotated[ScheduleService, the(ScheduleService)]
ScheduleId = Annotated[str, Path(max_length=200, examples=["imports-retention"])]


class ScheduleList(PlainRecord):
    """All schedules."""

    items: Annotated[Sequence[ScheduleView], served("The schedules", [])]
    next: Annotated[None, served("Always null: there are few", None)] = None


@schedules.get("")
async def list_schedules(service: Schedules, who: Who) -> ScheduleList:
    """List the schedules that docflow declares, and whether Temporal has them so."""
    return ScheduleList(items=await service.list(who))


@schedules.get("/{id}", responses=_ONE)
async def get_schedule(service: Schedules, who: Who, id: ScheduleId) -> ScheduleView:
    """Show one schedule."""
    return await service.get(who, id)


@schedules.post("/{id}/pause", responses=_ONE)
async def pause_schedule(
    service: Schedules, who: Who, id: ScheduleId, body: Why = None
) -> ScheduleView:
    """Pause a schedule until it is resumed; workers that start change nothing."""
    return await service.pause(who, id, _reason(body), paused=True)


@schedules.post("/{id}/resume", responses=_ONE)
async def resume_schedule(
    service: Schedules, who: Who, id: ScheduleId, body: Why = None
) -> ScheduleView:
    """Let a schedule start runs again."""
    return await service.pause(who, id, _reason(body), paused=False)


@schedules.post("/{id}/trigger", responses=_ONE)
async def trigger_schedule(
    service: Schedules, who: Who, id: ScheduleId, body: Why = None
) -> ScheduleView:
    """Start a run now; while one is under way, that one counts."""
    return await service.trigger(who, id, _reason(body))


rejected = APIRouter(
    prefix="/api/v1/rejected-messages", tags=["rejected messages"], responses=_PROBLEMS
)
Rejected = Annotated[RejectedService, the(RejectedService)]
Number = Annotated[int, Path(ge=1, lt=2**63, examples=[7])]


class RejectedPage(PlainRecord):
    """Some rejected messages, the newest first."""

    items: Annotated[Sequence[RejectedHead], served("The messages, without their bodies", [])]
    next: Annotated[str | None, served("`cursor` of the next page; null on the last page", None)]


@rejected.get("")
async def list_rejected_messages(
    service: Rejected,
    who: Who,
    queue: Annotated[str | None, Query(max_length=300)] = None,
    reason: Annotated[str | None, Query(max_length=100, description="In one word")] = None,
    open: Annotated[
        bool | None, Query(description="Neither sent again nor dismissed, or the others")
    ] = None,
    limit: PageLimit = 50,
    cursor: Annotated[str | None, Query(pattern=r"^[0-9]{1,18}$")] = None,
) -> RejectedPage:
    """List messages that a bridge has rejected, the newest first."""
    before = None if cursor is None else int(cursor)
    found = await service.list(who, limit + 1, RejectedFilter(queue, reason, open, before))
    items = found[:limit]
    return RejectedPage(items=items, next=str(items[-1].id) if len(found) > limit else None)


@rejected.get("/{number}", responses=_ONE)
async def get_rejected_message(service: Rejected, who: Who, number: Number) -> RejectedMessage:
    """Show one rejected message with its body."""
    return await service.get(who, number)


@rejected.post("/{number}/dismiss", responses=_ONE)
async def dismiss_rejected_message(
    service: Rejected, who: Who, number: Number, body: Why = None
) -> RejectedMessage:
    """Dismiss a message that needs no more work; it stays in the record."""
    return await service.dismiss(who, number, _reason(body))


class RetryBody(BaseModel):
    """How a rejected message is sent again."""

    model_config = ConfigDict(extra="forbid")

    body: Annotated[
        str | None, served("Corrected message; null: as it was", '{"task_id": "T1"}')
    ] = Field(default=None, max_length=256 * 1024)
    force: Annotated[
        bool, served("Send it although it is not valid, or was sent before", False)
    ] = False
    bridge: Annotated[
        str | None, served("What rejected it, where the gateway's settings do not say so", None)
    ] = Field(default=None, max_length=100)


class Retried(PlainRecord):
    """A message that was sent again."""

    message: Annotated[RejectedMessage, served("Its record", {"id": 7})]
    remarks: Annotated[Sequence[str], served("What is not known of its queue", [])]


@rejected.post("/{number}/retry", responses=_ONE)
async def retry_rejected_message(
    service: Rejected, who: Who, number: Number, body: RetryBody | None = None
) -> Retried:
    """Send a rejected message to its queue again, as it was or corrected.

    A worker of its pipeline does it, which has the keys of the queue.
    """
    given = body or RetryBody()
    remarks = await service.retry(who, number, given.body, given.bridge, force=given.force)
    return Retried(message=await service.get(who, number), remarks=remarks)


letters = APIRouter(prefix="/api/v1/dead-letters", tags=["dead letters"], responses=_PROBLEMS)
Letters = Annotated[DeadLetterService, the(DeadLetterService)]
PipelineName = Annotated[str, Path(max_length=64, examples=["a-name"])]
QueueName = Annotated[str, Path(max_length=300, examples=["a-queue"])]
Bridge = Annotated[
    str | None, Query(max_length=100, description="What receives, if two queues share a name")
]


class DeadLetterPage(PlainRecord):
    """Dead letters, the oldest first."""

    items: Annotated[Sequence[PlacedLetter], served("At most 200 of each pipeline", [])]
    next: Annotated[None, served("Always null", None)] = None
    unanswered: Annotated[
        dict[str, str], served("Pipelines whose workers did not say, and why", {})
    ]


class LetterOrder(BaseModel):
    """Which dead letters."""

    model_config = ConfigDict(extra="forbid")

    numbers: Annotated[Sequence[int] | None, served("Their numbers; null: `all` is given", [7])] = (
        Field(default=None, min_length=1, max_length=1_000)
    )
    all: Annotated[bool, served("Every dead letter of the queue", False)] = False
    bridge: Annotated[str | None, served("What receives, if two queues share a name", None)] = None


class RedriveOrder(LetterOrder):
    """Which dead letters are sent again."""

    body: Annotated[
        str | None, served("Corrected message, for one number", '{"task_id": "T1"}')
    ] = Field(default=None, max_length=256 * 1024)


class LettersDone(PlainRecord):
    """Dead letters with which something was done."""

    numbers: Annotated[Sequence[int], served("Those that were there", [7])]


@letters.get("")
async def list_dead_letters(
    service: Letters,
    who: Who,
    pipeline: Annotated[str | None, Query(max_length=64)] = None,
    queue: Annotated[str | None, Query(max_length=300, description="With `pipeline`")] = None,
    bridge: Bridge = None,
) -> DeadLetterPage:
    """List what queues have given up, without bodies; none is taken.

    Workers are asked, which have the keys of the queues.
    """
    found, unanswered = await service.list(who, pipeline, queue, bridge)
    return DeadLetterPage(items=found, unanswered=dict(unanswered))


@letters.get("/{pipeline}/{queue}/{number}", responses=_ONE)
async def get_dead_letter(
    service: Letters,
    who: Who,
    pipeline: PipelineName,
    queue: QueueName,
    number: Number,
    bridge: Bridge = None,
) -> DeadLetterRecord:
    """Show one dead letter with its body."""
    return await service.get(who, pipeline, queue, number, bridge)


@letters.post("/{pipeline}/{queue}/redrive", responses=_ONE)
async def redrive_dead_letters(
    service: Letters, who: Who, pipeline: PipelineName, queue: QueueName, body: RedriveOrder
) -> LettersDone:
    """Send dead letters to their queue again; each is removed once it is there."""
    numbers = _numbers(body)
    if body.body is not None and (numbers is None or len(numbers) != 1):
        raise InvalidRequest("`body` goes with one number")
    done = await service.redrive(who, pipeline, queue, numbers, body.body, body.bridge)
    return LettersDone(numbers=done)


@letters.post("/{pipeline}/{queue}/remove", responses=_ONE)
async def remove_dead_letters(
    service: Letters, who: Who, pipeline: PipelineName, queue: QueueName, body: LetterOrder
) -> LettersDone:
    """Remove dead letters for ever."""
    done = await service.remove(who, pipeline, queue, _numbers(body), body.bridge)
    return LettersDone(numbers=done)


def _numbers(order: LetterOrder) -> Sequence[int] | None:
    """The numbers; None: all."""
    if order.all == (order.numbers is not None):
        raise InvalidRequest("give either `numbers` or `all`")
    return order.numbers


types = APIRouter(prefix="/api/v1/types", tags=["types"], responses=_PROBLEMS)
Types = Annotated[TypeService, the(TypeService)]


class TypeList(PlainRecord):
    """All types."""

    items: Annotated[Sequence[TypeHead], served("The types", [])]
    next: Annotated[None, served("Always null: there are few", None)] = None


@types.get("")
async def list_document_types(service: Types, who: Who) -> TypeList:
    """List the types that documents may have: docflow's own and the declared ones."""
    return TypeList(items=await service.list(who))


@types.get("/{name}", responses=_ONE)
async def get_document_type(
    service: Types, who: Who, name: Annotated[str, Path(max_length=100, examples=["equipment"])]
) -> TypeDetail:
    """Show the declaration of a type."""
    return await service.get(who, name)


status = APIRouter(prefix="/api/v1", tags=["status"], responses=_PROBLEMS)
Status = Annotated[StatusService, the(StatusService)]


class OutageList(PlainRecord):
    """All open outages, the longest first."""

    items: Annotated[Sequence[OutageRecord], served("The outages", [])]
    next: Annotated[None, served("Always null: there are few", None)] = None


@status.get("/outages")
async def list_outages(service: Status, who: Who) -> OutageList:
    """List what docflow needs and cannot use."""
    return OutageList(items=await service.outages(who))


@status.get("/status")
async def get_status(service: Status, who: Who) -> StatusRecord:
    """Show what is up, what cannot be used, and what waits for a person."""
    return await service.status(who)


ROUTERS: Final = (schedules, rejected, letters, types, status)
