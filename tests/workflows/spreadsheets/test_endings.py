"""Imports that are cancelled, fail, or wait for a step that cannot be done."""

import pytest
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError
from temporalio.exceptions import ApplicationError

from tests.support.spreadsheets.runs import (
    S,
    SpreadsheetRuns,
    send_update,
    shows,
    status_when,
    waits_in,
    was_called,
)
from tests.support.spreadsheets.scripted import (
    ScriptedSpreadsheet,
    damaged,
    spreadsheet_order,
    transient,
)
from workflows.shared.errors import SPREADSHEET_FAILED, TABLE_CHANGED
from workflows.spreadsheets.runs import Answer

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize("step", ["analyse", "stage", "collect_values", "process"])
async def test_it_can_be_cancelled_in_every_state(spreadsheets: SpreadsheetRuns, step: str) -> None:
    script = ScriptedSpreadsheet(held={step})
    async with spreadsheets.running(script, spreadsheet_order(auto_start=True)) as handle:
        await was_called(script, step)
        answer = await send_update(handle, "cancel", Answer(by="ann"))
        assert answer.state is S.CANCELLED
        assert (await handle.result()).state is S.CANCELLED
    assert "finish" in script.calls
    script.check_legal()


async def test_temporals_own_cancel_is_recorded_too(spreadsheets: SpreadsheetRuns) -> None:
    script = ScriptedSpreadsheet()
    async with spreadsheets.running(script, spreadsheet_order()) as handle:
        await waits_in(handle, S.COLUMN_MAPPING)
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await handle.result()
        assert (await handle.describe()).status is WorkflowExecutionStatus.CANCELED
    assert script.finished[-1].result.state is S.CANCELLED


@pytest.mark.parametrize("step", ["analyse", "stage", "process"])
async def test_a_damaged_file_fails_with_the_reason(
    spreadsheets: SpreadsheetRuns, step: str
) -> None:
    script = ScriptedSpreadsheet(fails={step: [damaged("the file is damaged at row 9")]})
    async with spreadsheets.running(script, spreadsheet_order(auto_start=True)) as handle:
        with pytest.raises(WorkflowFailureError) as failure:
            await handle.result()
    assert isinstance(failure.value.cause, ApplicationError)
    assert failure.value.cause.type == SPREADSHEET_FAILED
    assert failure.value.cause.message == "the file is damaged at row 9"
    assert script.finished[-1].result.state is S.FAILED
    script.check_legal()


async def test_damage_that_shows_while_a_person_maps_fails_at_once(
    spreadsheets: SpreadsheetRuns,
) -> None:
    script = ScriptedSpreadsheet(held={"stage"}, fails={"stage": [damaged()]})
    async with spreadsheets.running(script, spreadsheet_order()) as handle:
        await waits_in(handle, S.COLUMN_MAPPING)
        script.held.clear()
        with pytest.raises(WorkflowFailureError):
            await handle.result()
    assert script.states == [S.UPLOADED, S.COLUMN_MAPPING, S.FAILED]


@pytest.mark.parametrize(
    "step", ["begin", "analyse", "stage", "collect_values", "process", "write_report", "hand_over"]
)
async def test_a_failed_step_parks_and_resumes(spreadsheets: SpreadsheetRuns, step: str) -> None:
    script = ScriptedSpreadsheet(fails={step: [transient()]}, errors=1, file="accepted/x.csv")
    async with spreadsheets.running(script, spreadsheet_order(auto_start=True)) as handle:
        status = await status_when(handle, lambda s: s.reason is not None)
        assert status.reason == "the database is unavailable"
        await shows(handle, "parked", "operators")
        await send_update(handle, "retry", Answer(by="ann"))
        result = await handle.result()
    assert result.state is S.COMPLETED
    assert result.report is not None
    assert result.reason == "the accepted rows are in accepted/x.csv"
    assert [work.report for work in script.received["hand_over"]][-1] == result.report
    assert script.calls.count(step) == 2
    records = [*script.records, *(each.record for each in script.finished)]
    retries = [line for each in records for line in each.trail if line.kind == "retry"]
    assert [line.by for line in retries] == ["ann"]
    script.check_legal()


async def test_a_table_that_has_changed_names_the_cure_of_an_upload(
    spreadsheets: SpreadsheetRuns,
) -> None:
    changed = ApplicationError("no column price", type=TABLE_CHANGED, non_retryable=True)
    script = ScriptedSpreadsheet(fails={"process": [changed]})
    async with spreadsheets.running(script, spreadsheet_order(auto_start=True)) as handle:
        status = await status_when(handle, lambda s: s.reason is not None)
        assert status.reason is not None and status.reason.startswith("no column price; or")
        assert status.reason.endswith("cancel this import and upload the file again")
        await handle.signal("retry")
        assert (await handle.result()).state is S.COMPLETED


async def test_an_end_that_cannot_be_recorded_waits(spreadsheets: SpreadsheetRuns) -> None:
    script = ScriptedSpreadsheet(fails={"finish": [transient()]})
    async with spreadsheets.running(script, spreadsheet_order(auto_start=True)) as handle:
        await status_when(handle, lambda s: s.reason is not None)
        await handle.signal("retry")
        assert (await handle.result()).state is S.COMPLETED
