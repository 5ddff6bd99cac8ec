"""What operators keep for all pipelines, over HTTP: schedules and rejected messages."""

from collections.abc import Sequence
from typing import Annotated, Final

from fastapi import APIRouter, Body, Path, Query
from pydantic import BaseModel, ConfigDict, Field

from adapters.ports.records import RejectedFilter, RejectedHead, RejectedMessage
from workers.shared.gateway.http.problems import problem_responses
from workers.shared.gateway.http.requests import PageLimit, Who, the
from workers.shared.schedules import ScheduleView
from workers.shared.services.rejected import RejectedService
from workers.shared.services.schedules import ScheduleService
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
    next: Annotated[str | None, served("`cursor` of the next page; null: there is none", None)]


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
    """Note that nobody has to look at a message any more; it stays in the record."""
    return await service.dismiss(who, number, _reason(body))


ROUTERS: Final = (schedules, rejected)
