"""The story of one spreadsheet from its analysis to the rows, with every activity scripted."""

from typing import Any

import pytest
from temporalio.api.sdk.v1 import WorkflowMetadata

from tests.support.spreadsheets.runs import (
    ANN,
    WHOLE_WAY,
    S,
    SpreadsheetRuns,
    columns,
    refusal_of,
    send_update,
    shows,
    status_when,
    values,
    waits_in,
)
from tests.support.spreadsheets.scripted import (
    COUNTS,
    UNMATCHED,
    ScriptedSpreadsheet,
    damaged,
    spreadsheet_order,
)
from workflows.shared import attributes
from workflows.shared.errors import INVALID_DECISION
from workflows.spreadsheets.mappings import (
    CellDecision,
    ColumnDecision,
    Layout,
    LayoutChange,
    MappingStatus,
)
from workflows.spreadsheets.runs import Answer, Reassignment, SpreadsheetResult
from workflows.spreadsheets.spreadsheet_import import SpreadsheetImport

pytestmark = pytest.mark.asyncio(loop_scope="session")

MOST_ANSWERS = 60
"""More than a run takes before its history begins anew."""


async def test_with_nothing_to_ask_it_goes_straight_through(spreadsheets: SpreadsheetRuns) -> None:
    script = ScriptedSpreadsheet()
    async with spreadsheets.running(script, spreadsheet_order(auto_start=True)) as handle:
        result = await handle.result()
    assert (result.state, result.counts, result.report) == (S.COMPLETED, COUNTS, None)
    assert script.states == WHOLE_WAY
    assert script.notices == []
    script.check_legal()


async def test_without_auto_start_it_waits_for_both_confirmations(
    spreadsheets: SpreadsheetRuns,
) -> None:
    script = ScriptedSpreadsheet()
    async with spreadsheets.running(script, spreadsheet_order()) as handle:
        status = await waits_in(handle, S.COLUMN_MAPPING)
        assert (status.version, status.missing_fields, status.assignee) == (1, (), "ann")
        answer = await send_update(handle, "confirm_column_mappings", ANN)
        assert answer.state is S.CELL_MAPPING
        assert answer.cells.total == 3
        await waits_in(handle, S.CELL_MAPPING)
        answer = await send_update(handle, "confirm_cell_mappings", ANN)
        assert answer.state in (S.PROCESSING, S.COMPLETED)
        assert (await handle.result()).state is S.COMPLETED
    assert script.states == WHOLE_WAY
    assert [save.remember for save in script.saved] == [True]
    assert [decide.confirm for decide in script.decided] == [True]
    script.check_legal()


async def test_an_import_without_values_skips_their_confirmation(
    spreadsheets: SpreadsheetRuns,
) -> None:
    async with spreadsheets.running(ScriptedSpreadsheet(known=0), spreadsheet_order()) as handle:
        await waits_in(handle, S.COLUMN_MAPPING)
        await send_update(handle, "confirm_column_mappings", ANN)
        assert (await handle.result()).state is S.COMPLETED


@pytest.mark.cached
async def test_a_person_answers_for_columns_and_values(spreadsheets: SpreadsheetRuns) -> None:
    script = ScriptedSpreadsheet(columns=UNMATCHED, values=("U18", "Old boys"))
    async with spreadsheets.running(script, spreadsheet_order(auto_start=True)) as handle:
        status = await waits_in(handle, S.COLUMN_MAPPING)
        assert status.missing_fields == ("LAST_NAME",)
        answer = await send_update(
            handle,
            "update_column_mappings",
            columns(ColumnDecision(id=1, target="LAST_NAME"), ColumnDecision(id=3, ignore=True)),
        )
        assert (answer.version, answer.missing_fields) == (2, ())
        answer = await send_update(handle, "confirm_column_mappings", ANN)
        assert (answer.state, answer.cells.open) == (S.CELL_MAPPING, 2)
        first, second = answer.cells.first_open
        await waits_in(handle, S.CELL_MAPPING)
        answer = await send_update(
            handle, "update_cell_mappings", values(CellDecision(id=first.id, target_id=7))
        )
        assert answer.cells.open == 1
        await send_update(
            handle, "update_cell_mappings", values(CellDecision(id=second.id, ignore=True))
        )
        await send_update(handle, "confirm_cell_mappings", ANN)
        assert (await handle.result()).state is S.COMPLETED
    assert script.states == WHOLE_WAY
    saved = script.saved[0]
    assert [(c.target, c.status) for c in saved.columns] == [
        ("LAST_NAME", MappingStatus.MANUAL_MATCHED),
        ("EVENT_CATEGORY_NAME", MappingStatus.AUTO_MATCHED),
        (None, MappingStatus.IGNORED),
    ]
    assert [(line.subject, line.decision, line.by) for line in saved.trail] == [
        ("Who", "LAST_NAME", "ann"),
        ("Shoe size", "ignored", "ann"),
    ]


async def test_start_skips_the_values_and_parks_only_rows_that_need_one(
    spreadsheets: SpreadsheetRuns,
) -> None:
    script = ScriptedSpreadsheet(late=[("U18", "Old boys"), ()])
    async with spreadsheets.running(script, spreadsheet_order()) as handle:
        await waits_in(handle, S.COLUMN_MAPPING)
        await send_update(handle, "start", ANN)
        status = await waits_in(handle, S.CELL_MAPPING)
        assert "collect_values" not in script.calls
        assert status.cells.open == 2
        assert status.counts == COUNTS
        for value in status.cells.first_open:
            await send_update(
                handle, "update_cell_mappings", values(CellDecision(id=value.id, target_id=7))
            )
        await send_update(handle, "confirm_cell_mappings", ANN)
        assert (await handle.result()).state is S.COMPLETED
    assert [work.round for work in script.processed] == [0, 1]
    assert script.states == [*WHOLE_WAY[:-1], S.CELL_MAPPING, S.PROCESSING, S.COMPLETED]
    script.check_legal()


async def test_another_layout_is_read_and_rows_are_put_aside_again(
    spreadsheets: SpreadsheetRuns,
) -> None:
    script = ScriptedSpreadsheet()
    async with spreadsheets.running(script, spreadsheet_order()) as handle:
        await waits_in(handle, S.COLUMN_MAPPING)
        change = LayoutChange(by="ann", layout=Layout(sheet="Second"), expected_version=1)
        answer = await send_update(handle, "change_layout", change)
        assert answer.version == 2
        script.fails["analyse"] = [damaged("there is no sheet 'Third'")]
        change = LayoutChange(by="ann", layout=Layout(sheet="Third"))
        refusal = await refusal_of(handle, "change_layout", change)
        assert (refusal.type, refusal.message) == (INVALID_DECISION, "there is no sheet 'Third'")
        await send_update(handle, "start", ANN)
        assert (await handle.result()).state is S.COMPLETED
    assert [layout.sheet for layout in script.layouts][-1] == "Second"
    assert script.processed[0].staged.total == 10


async def test_signals_do_what_updates_do(spreadsheets: SpreadsheetRuns) -> None:
    script = ScriptedSpreadsheet(columns=UNMATCHED, values=("U18",))
    async with spreadsheets.running(script, spreadsheet_order()) as handle:
        await waits_in(handle, S.COLUMN_MAPPING)
        await handle.signal("confirm_column_mappings")
        status = await status_when(handle, lambda s: s.last_refusal is not None)
        assert status.last_refusal is not None
        assert "Last name" in status.last_refusal
        await handle.signal(
            "update_column_mappings", columns(ColumnDecision(id=1, target="LAST_NAME"))
        )
        await handle.signal("change_layout", LayoutChange(by="ann", layout=Layout(sheet="Second")))
        await status_when(handle, lambda s: s.version == 3)
        await handle.signal(
            "update_column_mappings", columns(ColumnDecision(id=1, target="LAST_NAME"))
        )
        await handle.signal("reassign", Reassignment(to="bea", by="ann"))
        await handle.signal("confirm_column_mappings")
        status = await waits_in(handle, S.CELL_MAPPING)
        assert status.assignee == "bea"
        decision = CellDecision(id=status.cells.first_open[0].id, create=True)
        await handle.signal("update_cell_mappings", values(decision))
        await handle.signal("confirm_cell_mappings")
        assert (await handle.result()).state is S.COMPLETED
    script.check_legal()


@pytest.mark.parametrize("signal", ["start", "cancel"])
async def test_the_other_signals(spreadsheets: SpreadsheetRuns, signal: str) -> None:
    script = ScriptedSpreadsheet()
    async with spreadsheets.running(script, spreadsheet_order()) as handle:
        await waits_in(handle, S.COLUMN_MAPPING)
        await handle.signal(signal)
        result = await handle.result()
    assert result.state is (S.COMPLETED if signal == "start" else S.CANCELLED)


async def test_what_is_awaited_stands_where_operators_look(spreadsheets: SpreadsheetRuns) -> None:
    script = ScriptedSpreadsheet(columns=UNMATCHED)
    async with spreadsheets.running(script, spreadsheet_order()) as handle:
        status = await waits_in(handle, S.COLUMN_MAPPING)
        await shows(handle, "COLUMN_MAPPING", "ann")
        found = (await handle.describe()).typed_search_attributes
        assert found[attributes.NEEDS_ATTENTION] is True
        assert found[attributes.WAITING_SINCE] == status.waiting_since
        metadata: WorkflowMetadata = await handle.query(
            "__temporal_workflow_metadata", result_type=WorkflowMetadata
        )
        assert "LAST_NAME" in metadata.current_details
        assert "temporal workflow update execute" in metadata.current_details
        await send_update(handle, "reassign", Reassignment(to="bea", by="ann"))
        await shows(handle, "COLUMN_MAPPING", "bea")
        await send_update(handle, "cancel", Answer(by="bea", reason="wrong file"))
        await shows(handle, "CANCELLED", None)
        found = (await handle.describe()).typed_search_attributes
        assert found[attributes.NEEDS_ATTENTION] is False
    last = script.finished[-1]
    assert (last.result.state, last.result.reason) == (S.CANCELLED, "wrong file")
    assert [line.by for line in last.record.trail] == ["bea"]


async def test_a_long_history_begins_anew_and_loses_nothing(
    spreadsheets: SpreadsheetRuns, server: Any
) -> None:
    script = ScriptedSpreadsheet(columns=UNMATCHED, values=("U18",))
    order = spreadsheet_order()
    async with spreadsheets.running(script, order) as handle:
        await waits_in(handle, S.COLUMN_MAPPING)
        latest = server.client.get_workflow_handle(handle.id)
        first_run, version = (await latest.describe()).run_id, 1
        while (await latest.describe()).run_id == first_run:
            assert version < MOST_ANSWERS
            ignored = columns(ColumnDecision(id=3, ignore=True), version=version)
            version = (await send_update(latest, "update_column_mappings", ignored)).version
        status = await latest.query(SpreadsheetImport.status)
        assert (status.version, status.missing_fields) == (version, ("LAST_NAME",))
        await send_update(
            latest, "update_column_mappings", columns(ColumnDecision(id=1, target="LAST_NAME"))
        )
        await send_update(latest, "confirm_column_mappings", ANN)
        status = await waits_in(latest, S.CELL_MAPPING)
        value = status.cells.first_open[0]
        await send_update(
            latest, "update_cell_mappings", values(CellDecision(id=value.id, target_id=7))
        )
        await send_update(latest, "start", ANN)
        result = await latest.result()
        assert SpreadsheetResult.model_validate(result).state is S.COMPLETED
    assert script.calls.count("begin") == script.calls.count("analyse") == 1
    # Once more for the column of names: it tells which rows are no people.
    assert script.calls.count("stage") == 2
    script.check_legal()
