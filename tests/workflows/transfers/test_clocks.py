"""Looks of watches, checks of what is expected, and the runs about gaps."""

from datetime import UTC, date, datetime, time
from typing import Any

import pytest
from temporalio.client import WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ApplicationError

from activities.shared.dependencies import Dependencies
from activities.shared.notifications import NotificationSending
from activities.transfers.watches import Expecting, Watching
from tests.support.scripted import scripted
from tests.support.waiting import eventually
from workflows.shared.contracts import Answer
from workflows.shared.dependencies import Dependency
from workflows.shared.errors import PERMANENT, UNAVAILABLE
from workflows.shared.notifications import NotificationKind
from workflows.shared.run_notifications import NoticeDelivery
from workflows.transfers.expected_files import ExpectedFiles, ExpectedFilesCheck
from workflows.transfers.scheduled import WatchLook
from workflows.transfers.watches import (
    Expectation,
    ExpectationCheckInput,
    ExpectedDay,
    ExpectedResult,
    ExpectedState,
    GapInput,
    GapView,
    PollWatchInput,
    PollWatchResult,
    Watch,
    gap_id,
)

WATCH = Watch(name="orders", partner="acme", path="out/*", account_id="ACME")
EXPECTED = Expectation(name="orders", queue="jobs", deadline=time(6))
DUE = datetime(2026, 3, 2, 6, tzinfo=UTC)
WORKFLOWS = [WatchLook, ExpectedFilesCheck, ExpectedFiles, NoticeDelivery]


def a_day(state: ExpectedState, **fields: Any) -> ExpectedDay:
    return ExpectedDay(
        **{"name": "orders", "day": date(2026, 3, 2), "state": state, "deadline": DUE, **fields}
    )


def a_gap(state: ExpectedState, **fields: Any) -> GapInput:
    return GapInput(day=a_day(state, **fields), sentence=f"orders: {state}")


def script_of(**results: Any) -> Any:
    known = {"note_look": None, "record_expected": None}
    return scripted(Watching, Expecting, NotificationSending, Dependencies, results=known | results)


async def parked(handle: WorkflowHandle[Any, GapView]) -> None:
    async def is_parked() -> bool:
        return (await handle.query(ExpectedFiles.status)).since is not None

    await eventually(is_parked)


async def test_a_partner_that_is_unavailable_is_waited_for(server: Any, run_worker: Any) -> None:
    script = script_of(look=PollWatchResult(files=1))
    details = (Dependency.PARTNER.value, 0, "acme")
    script.fails["look"] = [
        ApplicationError("no answer", *details, type=UNAVAILABLE, non_retryable=True)
    ]
    async with run_worker("clocks", WORKFLOWS, script.activities()):
        result = await server.client.execute_workflow(
            WatchLook.run, PollWatchInput(watch=WATCH), id="look-away", task_queue="clocks"
        )
    assert result == PollWatchResult(files=1)
    assert script.calls == ["look", "wait", "look"]


async def test_a_look_that_fails_sends_one_notice(server: Any, run_worker: Any) -> None:
    script = script_of(look=PollWatchResult())
    refused = ApplicationError("it refuses us", type=PERMANENT, non_retryable=True)
    script.fails["look"] = [refused, refused]
    async with run_worker("clocks", WORKFLOWS, script.activities()):
        for number in range(2):
            with pytest.raises(WorkflowFailureError):
                await server.client.execute_workflow(
                    WatchLook.run,
                    PollWatchInput(watch=WATCH),
                    id=f"fail-{number}",
                    task_queue="clocks",
                )

        async def reported() -> bool:
            return len(script.notices) == 1

        await eventually(reported)
    (notice,) = script.notices
    assert notice.reason == "watch orders cannot look: it refuses us"
    assert [each.problem for each in script.received["note_look"]] == [notice.reason] * 2


async def test_what_is_wrong_with_files_causes_a_notice(server: Any, run_worker: Any) -> None:
    script = script_of(look=PollWatchResult(vanished=1, vanished_unsent=("'out/a'",)))
    async with run_worker("clocks", WORKFLOWS, script.activities()):
        await server.client.execute_workflow(
            WatchLook.run, PollWatchInput(watch=WATCH), id="vanished", task_queue="clocks"
        )

        async def reported() -> bool:
            return bool(script.notices)

        await eventually(reported)
    assert script.notices[0].reason == "watch orders: gone before they were sent: 'out/a'"


async def test_a_gap_waits_in_the_inbox_until_its_files_come(server: Any, run_worker: Any) -> None:
    gap, late = a_gap(ExpectedState.MISSING), a_day(ExpectedState.LATE, count=1)
    results = [
        ExpectedResult(days=(gap.day,), gaps=(gap,)),
        ExpectedResult(gaps=(gap,)),
        ExpectedResult(days=(late,), arrived=(late,)),
    ]
    script = script_of(check_expected=lambda *_: results[0])
    async with run_worker("clocks", WORKFLOWS, script.activities()):
        run = gap_id("orders", gap.day.day, ExpectedState.MISSING)
        handle = server.client.get_workflow_handle_for(ExpectedFiles.run, run)
        for number in range(3):
            await server.client.execute_workflow(
                ExpectedFilesCheck.run,
                ExpectationCheckInput(expectation=EXPECTED),
                id=f"check-{number}",
                task_queue="clocks",
            )
            if number < 2:
                await parked(handle)
            results.pop(0)
        view = await handle.result()
    assert (view.day.state, view.day.count) == (ExpectedState.LATE, 1)
    assert [each.kind for each in script.notices] == [NotificationKind.PARKED]
    assert [each.days for each in script.received["record_expected"]] == [(gap.day,), (late,)]


async def test_a_person_closes_a_gap(server: Any, run_worker: Any) -> None:
    script, gap = script_of(), a_gap(ExpectedState.TOO_MANY, count=4)
    async with run_worker("clocks", WORKFLOWS, script.activities()):
        handle = await server.client.start_workflow(
            ExpectedFiles.run, gap, id="expected/orders/2026-03-02/too-many", task_queue="clocks"
        )
        await parked(handle)
        await handle.execute_update("skip", Answer(by="ann"))
        view = await handle.result()
    closed = gap.day.model_copy(update={"state": ExpectedState.CLOSED, "by": "ann"})
    assert view.day == closed
    assert script.received["record_expected"][0].days == (closed,)


async def test_files_that_came_late_wait_until_a_person_has_seen_it(
    server: Any, run_worker: Any
) -> None:
    script, gap = script_of(), a_gap(ExpectedState.LATE)
    async with run_worker("clocks", WORKFLOWS, script.activities()):
        handle = await server.client.start_workflow(
            ExpectedFiles.run, gap, id="expected/orders/2026-03-02/late", task_queue="clocks"
        )
        await parked(handle)
        await handle.execute_update("skip", Answer(by="ann"))
        view = await handle.result()
    assert [each.kind for each in script.notices] == [NotificationKind.PARKED]
    # The day stays as it was judged: more files may come on it.
    assert view.day == gap.day and "record_expected" not in script.received


async def test_a_check_that_cannot_be_made_causes_a_notice(server: Any, run_worker: Any) -> None:
    script = script_of(check_expected=ExpectedResult())
    script.fails["check_expected"] = [
        ApplicationError("no such rule", type=PERMANENT, non_retryable=True)
    ]
    async with run_worker("clocks", WORKFLOWS, script.activities()):
        with pytest.raises(WorkflowFailureError):
            await server.client.execute_workflow(
                ExpectedFilesCheck.run,
                ExpectationCheckInput(expectation=EXPECTED),
                id="check-fails",
                task_queue="clocks",
            )

        async def reported() -> bool:
            return bool(script.notices)

        await eventually(reported)
    assert script.notices[0].reason == "orders cannot be checked: no such rule"
