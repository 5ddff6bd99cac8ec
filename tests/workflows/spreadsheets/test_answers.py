"""What people say about columns and values: taken, or refused without any change."""

import asyncio

import pytest
from temporalio.client import WorkflowFailureError, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from tests.support.spreadsheets.runs import (
    ANN,
    S,
    SpreadsheetRuns,
    columns,
    refusal_of,
    send_update,
    values,
    waits_in,
)
from tests.support.spreadsheets.scripted import (
    MATCHED,
    UNMATCHED,
    ScriptedSpreadsheet,
    spreadsheet_order,
)
from workflows.shared.errors import INVALID_DECISION, STILL_OPEN, VERSION_CONFLICT, WRONG_STATE
from workflows.spreadsheets.mappings import (
    CellDecision,
    ColumnDecision,
    MappingsAnswer,
    MappingStatus,
)
from workflows.spreadsheets.runs import Answer
from workflows.spreadsheets.spreadsheet_import import SpreadsheetImport

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_refusal_says_what_is_open_and_changes_nothing(
    spreadsheets: SpreadsheetRuns,
) -> None:
    script = ScriptedSpreadsheet(columns=UNMATCHED, values=("U18",))
    async with spreadsheets.running(script, spreadsheet_order()) as handle:
        await waits_in(handle, S.COLUMN_MAPPING)
        for name in ("confirm_column_mappings", "start"):
            refusal = await refusal_of(handle, name, ANN)
            assert refusal.type == STILL_OPEN
            assert "Last name" in refusal.message
            assert MappingsAnswer.model_validate(refusal.details[0]).missing_fields == (
                "LAST_NAME",
            )
        assert (await handle.query(SpreadsheetImport.status)).version == 1
        assert script.saved == []
        await send_update(
            handle, "update_column_mappings", columns(ColumnDecision(id=1, target="LAST_NAME"))
        )
        await send_update(handle, "confirm_column_mappings", ANN)
        await waits_in(handle, S.CELL_MAPPING)
        for name in ("confirm_cell_mappings", "start"):
            refusal = await refusal_of(handle, name, ANN)
            assert refusal.type == STILL_OPEN
            assert "'U18'" in refusal.message
        assert script.decided == []
        refusal = await refusal_of(handle, "confirm_column_mappings", ANN)
        assert refusal.type == WRONG_STATE
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await handle.result()


async def test_a_column_that_means_no_field_waits_for_a_person(
    spreadsheets: SpreadsheetRuns,
) -> None:
    script = ScriptedSpreadsheet(columns=(*MATCHED, UNMATCHED[2]), needs_all_columns=True)
    async with spreadsheets.running(script, spreadsheet_order(auto_start=True)) as handle:
        await waits_in(handle, S.COLUMN_MAPPING)
        for name in ("confirm_column_mappings", "start"):
            refusal = await refusal_of(handle, name, ANN)
            assert refusal.type == STILL_OPEN
            assert refusal.message == (
                "columns that mean no field: 'Shoe size'. This type refuses them: say what each "
                "means, or leave it out expressly"
            )
        left_out = columns(ColumnDecision(id=3, ignore=True))
        await send_update(handle, "update_column_mappings", left_out)
        await send_update(handle, "confirm_column_mappings", ANN)
        assert (await handle.result()).state is S.COMPLETED


async def test_rows_that_are_skipped_are_asked_about(spreadsheets: SpreadsheetRuns) -> None:
    script = ScriptedSpreadsheet(asks_about_skipped=True)
    async with spreadsheets.running(script, spreadsheet_order(auto_start=True)) as handle:
        await waits_in(handle, S.COLUMN_MAPPING)
        assert script.processed == []
        await send_update(handle, "confirm_column_mappings", ANN)
        assert (await handle.result()).state is S.COMPLETED


@pytest.mark.parametrize(
    ("decisions", "named"),
    [
        ([ColumnDecision(id=9, ignore=True)], "no column 9"),
        ([ColumnDecision(id=1, target="SHOE_SIZE")], "no field SHOE_SIZE"),
        ([ColumnDecision(id=1)], "exactly one of"),
        ([ColumnDecision(id=1, target="LAST_NAME", ignore=True)], "exactly one of"),
        ([ColumnDecision(id=1, confirm=True)], "no match to confirm"),
        ([ColumnDecision(id=1, ignore=True), ColumnDecision(id=1, ignore=True)], "twice"),
        (
            [ColumnDecision(id=1, target="LAST_NAME"), ColumnDecision(id=3, target="LAST_NAME")],
            "two columns cannot fill Last name: 'Who' and 'Shoe size'",
        ),
    ],
)
async def test_columns_that_make_no_sense_are_refused(
    spreadsheets: SpreadsheetRuns, decisions: list[ColumnDecision], named: str
) -> None:
    script = ScriptedSpreadsheet(columns=UNMATCHED)
    async with spreadsheets.running(script, spreadsheet_order()) as handle:
        await waits_in(handle, S.COLUMN_MAPPING)
        refusal = await refusal_of(handle, "update_column_mappings", columns(*decisions))
        assert refusal.type == INVALID_DECISION
        assert named in refusal.message
        assert script.saved == []
        await send_update(handle, "cancel", Answer(by="ann"))


async def test_a_field_that_is_given_away_is_taken_from_its_automatic_match(
    spreadsheets: SpreadsheetRuns,
) -> None:
    script = ScriptedSpreadsheet(columns=(MATCHED[0], *UNMATCHED[1:]))
    async with spreadsheets.running(script, spreadsheet_order()) as handle:
        await waits_in(handle, S.COLUMN_MAPPING)
        await send_update(
            handle, "update_column_mappings", columns(ColumnDecision(id=3, target="LAST_NAME"))
        )
        found = (await handle.query(SpreadsheetImport.column_mappings)).columns
        assert [column.target for column in found] == [None, "EVENT_CATEGORY_NAME", "LAST_NAME"]
        assert found[0].status is MappingStatus.UNMATCHED
        await send_update(handle, "cancel", Answer(by="ann"))


async def test_of_two_answers_at_once_the_second_is_refused(spreadsheets: SpreadsheetRuns) -> None:
    script = ScriptedSpreadsheet(columns=UNMATCHED)
    async with spreadsheets.running(script, spreadsheet_order()) as handle:
        await waits_in(handle, S.COLUMN_MAPPING)
        answers = await asyncio.gather(
            *(
                handle.execute_update(
                    "update_column_mappings",
                    columns(ColumnDecision(id=3, ignore=True), version=1),
                )
                for _ in range(2)
            ),
            return_exceptions=True,
        )
        reported = [answer for answer in answers if isinstance(answer, WorkflowUpdateFailedError)]
        assert len(reported) == 1
        assert isinstance(reported[0].cause, ApplicationError)
        assert reported[0].cause.type == VERSION_CONFLICT
        assert len(script.saved) == 1
        await send_update(handle, "cancel", Answer(by="ann"))


async def test_a_candidate_that_does_not_exist_is_refused_by_the_activity(
    spreadsheets: SpreadsheetRuns,
) -> None:
    script = ScriptedSpreadsheet(values=("U18",))
    async with spreadsheets.running(script, spreadsheet_order(auto_start=True)) as handle:
        status = await waits_in(handle, S.CELL_MAPPING)
        wrong = values(CellDecision(id=status.cells.first_open[0].id, target_id=404))
        refusal = await refusal_of(handle, "update_cell_mappings", wrong)
        assert refusal.type == INVALID_DECISION
        assert "no candidate 404" in refusal.message
        after = await handle.query(SpreadsheetImport.status)
        assert (after.version, after.cells) == (status.version, status.cells)
        await send_update(handle, "cancel", Answer(by="ann"))
