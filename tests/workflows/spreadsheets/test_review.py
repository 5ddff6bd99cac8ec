"""A run whose rows are reviewed: it takes changes, and continues when the review is confirmed."""

from collections.abc import Awaitable, Callable

import pytest
from temporalio.client import WorkflowFailureError

from tests.support.spreadsheets.runs import (
    ANN,
    WHOLE_WAY,
    Handle,
    S,
    SpreadsheetRuns,
    refusal_of,
    send_update,
    status_when,
    waits_in,
)
from tests.support.spreadsheets.scripted import ScriptedSpreadsheet, damaged, spreadsheet_order
from tests.support.waiting import eventually
from workflows.shared.errors import INVALID_DECISION, VERSION_CONFLICT, WRONG_STATE
from workflows.spreadsheets.reviews import REVIEW, CheckAgain, ReviewChange, ReviewChanged
from workflows.spreadsheets.runs import Confirmation, Patience

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def in_review(handle: Handle) -> None:
    await waits_in(handle, S.CELL_MAPPING)
    await status_when(handle, lambda status: status.step == REVIEW)


async def test_rows_wait_for_a_person_and_go_in_as_they_were_corrected(
    spreadsheets: SpreadsheetRuns,
) -> None:
    script = ScriptedSpreadsheet(wrong=1)
    order = spreadsheet_order(auto_start=True, review=True)
    async with spreadsheets.running(script, order) as handle:
        await in_review(handle)
        refusal = await refusal_of(
            handle, "change_review", ReviewChange(by="ann", operation=1, expected_version=0)
        )
        assert refusal.type == VERSION_CONFLICT
        refusal = await refusal_of(handle, "change_review", ReviewChange(by="ann", operation=404))
        assert refusal.type == INVALID_DECISION
        change = ReviewChange(by="ann", operation=1, expected_version=1)
        changed = await handle.execute_update("change_review", change, result_type=ReviewChanged)
        assert (changed.version, changed.counts.wrong) == (2, 0)
        status = await status_when(handle, lambda s: s.review is not None and s.review.checked == 2)
        assert status.version == 2
        await send_update(handle, "confirm_cell_mappings", ANN)
        await handle.result()
    assert script.states == WHOLE_WAY
    script.check_legal()
    assert script.received["close_review"][-1].version == 3
    assert script.calls.index("close_review") < script.calls.index("process")


async def test_a_check_that_fails_is_shown_and_tried_again(spreadsheets: SpreadsheetRuns) -> None:
    script = ScriptedSpreadsheet(wrong=1, fails={"check_review": [damaged("rows are missing")]})
    order = spreadsheet_order(auto_start=True, review=True)
    async with spreadsheets.running(script, order) as handle:
        await in_review(handle)
        refusal = await refusal_of(handle, "check_review", CheckAgain(by="ann"))
        assert (refusal.type, refusal.message) == (WRONG_STATE, "all rows are checked already")
        change = ReviewChange(by="ann", operation=1)
        await handle.execute_update("change_review", change, result_type=ReviewChanged)
        status = await status_when(handle, lambda s: s.check_failure is not None)
        assert "rows are missing" in (status.check_failure or "")
        assert status.review is not None and status.review.checked < status.version
        await eventually(is_noted(script, 1))
        await send_update(handle, "check_review", CheckAgain(by="bea"))
        status = await status_when(handle, lambda s: s.review is not None and s.review.checked == 2)
        assert status.check_failure is None
        await send_update(handle, "confirm_cell_mappings", ANN)
        await handle.result()
    notes = script.received["note_check"]
    assert [(note.version, note.reason is None) for note in notes] == [(2, False), (2, True)]
    trail = [line for record in script.records for line in record.trail]
    assert ("retry", "check all rows", "bea") in [(e.kind, e.decision, e.by) for e in trail]


def is_noted(script: ScriptedSpreadsheet, times: int) -> Callable[[], Awaitable[bool]]:
    async def noted() -> bool:
        return script.made("note_check") == times

    return noted


async def test_a_change_after_a_failed_check_has_the_rows_checked(
    spreadsheets: SpreadsheetRuns,
) -> None:
    fails = {"check_review": [damaged()], "note_check": [damaged()]}
    script = ScriptedSpreadsheet(wrong=2, fails=fails)
    order = spreadsheet_order(auto_start=True, review=True)
    async with spreadsheets.running(script, order) as handle:
        await in_review(handle)
        for operation in (1, 2):
            change = ReviewChange(by="ann", operation=operation)
            await handle.execute_update("change_review", change, result_type=ReviewChanged)
            await status_when(handle, lambda s: (s.check_failure is None) is (s.version == 3))
        await status_when(handle, lambda s: s.review is not None and s.review.checked == 3)
        await send_update(handle, "cancel", ANN)
        await handle.result()


async def test_right_rows_go_through_and_no_change_is_taken_any_more(
    spreadsheets: SpreadsheetRuns,
) -> None:
    script = ScriptedSpreadsheet(held={"process"})
    order = spreadsheet_order(auto_start=True, review=True)
    async with spreadsheets.running(script, order) as handle:
        await script.working.wait()
        assert script.made("close_review") == 1
        refusal = await refusal_of(handle, "change_review", ReviewChange(by="ann", operation=1))
        assert refusal.type == WRONG_STATE
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await handle.result()


async def test_a_dry_run_stops_and_is_imported_when_it_is_asked_for(
    spreadsheets: SpreadsheetRuns,
) -> None:
    script = ScriptedSpreadsheet()
    order = spreadsheet_order(auto_start=True, review=True, dry_run=True)
    async with spreadsheets.running(script, order) as handle:
        await in_review(handle)
        await send_update(handle, "start", Confirmation(by="ann", import_now=True))
        result = await handle.result()
    assert not result.dry_run
    assert [work.order.dry_run for work in script.processed] == [False]


async def test_start_skips_the_review_before_it_and_a_cancel_ends_it(
    spreadsheets: SpreadsheetRuns,
) -> None:
    script = ScriptedSpreadsheet()
    async with spreadsheets.running(script, spreadsheet_order(review=True)) as handle:
        await waits_in(handle, S.COLUMN_MAPPING)
        await send_update(handle, "start", ANN)
        await handle.result()
    assert script.made("open_review") == 0
    script = ScriptedSpreadsheet(wrong=1, held={"check_review"})
    order = spreadsheet_order(auto_start=True, review=True, patience=Patience())
    async with spreadsheets.running(script, order) as handle:
        await in_review(handle)
        change = ReviewChange(by="ann", operation=1)
        await handle.execute_update("change_review", change, result_type=ReviewChanged)
        await script.working.wait()
        await send_update(handle, "cancel", ANN)
        assert (await handle.result()).state is S.CANCELLED
