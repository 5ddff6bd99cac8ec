"""Recorded cases of watches and of expected files, by workflow."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from typing import Any

from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ApplicationError

from activities.shared.dependencies import Dependencies
from activities.shared.notifications import NotificationSending
from activities.transfers.watches import Expecting, Watching
from tests.support.scripted import ScriptedActivities, scripted
from tests.support.waiting import eventually
from workflows.shared import attributes
from workflows.shared.contracts import Answer, Contract
from workflows.shared.dependencies import Dependency
from workflows.shared.errors import PERMANENT, UNAVAILABLE
from workflows.transfers.expected_files import ExpectedFiles, ExpectedFilesCheck
from workflows.transfers.scheduled import WatchLook
from workflows.transfers.watches import (
    Expectation,
    ExpectationCheckInput,
    ExpectedDay,
    ExpectedResult,
    ExpectedState,
    GapInput,
    PollWatchInput,
    PollWatchResult,
    Watch,
    gap_id,
)

Handle = WorkflowHandle[Any, Any]
Act = Callable[[Handle], Awaitable[None]]
DAY = ExpectedDay(
    name="orders",
    day=date(2026, 3, 2),
    state=ExpectedState.MISSING,
    deadline=datetime(2026, 3, 2, 6, tzinfo=UTC),
)
LATE = DAY.model_copy(update={"state": ExpectedState.LATE, "count": 1})
GAP = GapInput(day=DAY, sentence="orders: 0 of 1 files came")
LOOK = PollWatchInput(watch=Watch(name="orders", partner="acme", path="out/*", account_id="ACME"))
CHECK = ExpectationCheckInput(
    expectation=Expectation(name="orders", queue="jobs", deadline=time(6))
)


async def _nothing(handle: Handle) -> None:
    return


async def _parked(handle: Handle) -> None:
    async def is_parked() -> bool:
        return (await handle.query(ExpectedFiles.status)).since is not None

    await eventually(is_parked)


async def _arrived(handle: Handle) -> None:
    await _parked(handle)
    await handle.signal("arrived", LATE)


async def _closed(handle: Handle) -> None:
    await _parked(handle)
    await handle.execute_update("skip", Answer(by="ann"))


def _script(**fields: Any) -> ScriptedActivities:
    results = {"note_look": None, "record_expected": None, **fields.pop("results", {})}
    return scripted(
        Watching, Expecting, NotificationSending, Dependencies, results=results, **fields
    )


def _fails(step: str, *details: Any, type: str) -> dict[str, list[BaseException]]:
    return {step: [ApplicationError("it failed", *details, type=type, non_retryable=True)]}


@dataclass
class Case:
    """One way a run can go."""

    workflow: type
    order: Contract
    script: ScriptedActivities = field(default_factory=_script)
    act: Act = _nothing

    def activities(self) -> list[Callable[..., Any]]:
        """For the worker."""
        return self.script.activities()

    async def start(self, client: Client, name: str, task_queue: str) -> Handle:
        """Start it."""
        id = f"schedule/transfer-watch-orders-{name}"
        if isinstance(self.order, GapInput):
            day = self.order.day
            id = gap_id(day.name, day.day, day.state)
        return await client.start_workflow(
            self.workflow.run,  # pyright: ignore[reportAttributeAccessIssue]
            self.order,
            id=id,
            task_queue=task_queue,
            search_attributes=attributes.at_start("transfers", "expected", "orders"),
        )

    async def go(self, handle: Handle) -> None:
        """Do what a person does, and wait for the end."""
        await self.act(handle)
        try:
            await handle.result()
        except WorkflowFailureError:
            return


_AWAY = _fails("look", Dependency.PARTNER.value, 0, "acme", type=UNAVAILABLE)
_PROBLEM = PollWatchResult(files=1, problems=("'a': its event is refused",))

CASES_OF: dict[str, dict[str, Any]] = {
    "WatchLook": {
        "happy": Case(WatchLook, LOOK, _script(results={"look": PollWatchResult(files=1, sent=1)})),
        "problem": Case(WatchLook, LOOK, _script(results={"look": _PROBLEM})),
        "partner-away": Case(
            WatchLook, LOOK, _script(results={"look": PollWatchResult()}, fails=_AWAY)
        ),
        "failed": Case(WatchLook, LOOK, _script(fails=_fails("look", type=PERMANENT))),
    },
    "ExpectedFilesCheck": {
        "nothing-new": Case(
            ExpectedFilesCheck, CHECK, _script(results={"check_expected": ExpectedResult()})
        ),
        "gap": Case(
            ExpectedFilesCheck,
            CHECK,
            _script(results={"check_expected": ExpectedResult(days=(DAY,), gaps=(GAP,))}),
        ),
        "arrived": Case(
            ExpectedFilesCheck,
            CHECK,
            _script(results={"check_expected": ExpectedResult(days=(LATE,), arrived=(LATE,))}),
        ),
        "failed": Case(
            ExpectedFilesCheck, CHECK, _script(fails=_fails("check_expected", type=PERMANENT))
        ),
    },
    "ExpectedFiles": {
        "arrived": Case(ExpectedFiles, GAP, act=_arrived),
        "closed": Case(ExpectedFiles, GAP, act=_closed),
        # The history is of a release in which it caused a notice alone.
        "late": Case(ExpectedFiles, GAP.model_copy(update={"day": LATE}), act=_closed),
        "late-seen": Case(ExpectedFiles, GAP.model_copy(update={"day": LATE}), act=_closed),
    },
}
