"""How spreadsheet imports are answered when they are parked, cancelled, and continued as new."""

import asyncio
from datetime import UTC, datetime
from typing import Any

from temporalio.client import WorkflowUpdateFailedError

from tests.replay.spreadsheets_cases import (
    ANN,
    IN_NO_TIME,
    STRAIGHT,
    Act,
    Case,
    Handle,
    retry,
    when,
    when_called,
    when_parked,
)
from tests.support.scripted import unavailable
from tests.support.spreadsheets.scripted import (
    FIELDS,
    MATCHED,
    UNMATCHED,
    ScriptedSpreadsheet,
    damaged,
    transient,
)
from tests.support.waiting import eventually
from workflows.shared.contracts import BlobRef
from workflows.spreadsheets.mappings import (
    CellDecision,
    CellDecisions,
    ColumnDecision,
    ColumnDecisions,
    Layout,
    LayoutChange,
    SpreadsheetState,
)
from workflows.spreadsheets.runs import (
    Answer,
    Confirmation,
    Patience,
    Reassignment,
    SpreadsheetProgress,
    Staged,
)
from workflows.spreadsheets.spreadsheet_import import SpreadsheetImport

SINCE = datetime(2026, 1, 1, tzinfo=UTC)


def _signal_when_parked(name: str) -> Act:
    async def act(handle: Handle, script: ScriptedSpreadsheet) -> None:
        await when_parked(handle)
        await handle.signal(name)

    return act


async def _cancel_parked(handle: Handle, script: ScriptedSpreadsheet) -> None:
    await when_parked(handle)
    await handle.execute_update("cancel", Answer(by="ann", reason="wrong file"))


async def _cancel_parked_by_temporal(handle: Handle, script: ScriptedSpreadsheet) -> None:
    await when_parked(handle)
    await handle.cancel()


async def _cancel_waiting_by_temporal(handle: Handle, script: ScriptedSpreadsheet) -> None:
    await when(handle, SpreadsheetState.COLUMN_MAPPING)
    await handle.cancel()


async def _cancel_rows_by_temporal(handle: Handle, script: ScriptedSpreadsheet) -> None:
    await when_called(script, "process")
    await handle.cancel()


async def _cancel_rows_by_signal(handle: Handle, script: ScriptedSpreadsheet) -> None:
    await when_called(script, "process")
    await handle.signal("cancel")


async def _until_cancelled(handle: Handle, refused: str | None = None) -> None:
    if refused is not None:
        status = await handle.query(SpreadsheetImport.status)
        assert refused in (status.last_refusal or ""), status.last_refusal
    await handle.execute_update("cancel", Answer(by="ann"))


async def _refused_signals(handle: Handle, script: ScriptedSpreadsheet) -> None:
    await when(handle, SpreadsheetState.COLUMN_MAPPING)
    await handle.signal("start", Confirmation(by="ann", expected_version=9))
    await handle.signal("confirm_cell_mappings")
    await handle.signal("retry")
    await handle.signal("confirm_column_mappings")
    await _until_cancelled(handle, "confirm_column_mappings")


async def _answer_that_fails(handle: Handle, script: ScriptedSpreadsheet) -> None:
    """An answer whose step fails: the caller gets the failure, and the import still waits."""
    await when(handle, SpreadsheetState.COLUMN_MAPPING)
    try:
        await handle.execute_update("confirm_column_mappings", ANN)
    except WorkflowUpdateFailedError:
        await handle.execute_update("start", ANN)


async def _when_refused(handle: Handle) -> None:
    async def refused() -> bool:
        return bool((await handle.query(SpreadsheetImport.status)).last_refusal)

    await eventually(refused)


async def _layout_that_fails(handle: Handle, script: ScriptedSpreadsheet) -> None:
    await when(handle, SpreadsheetState.COLUMN_MAPPING)
    change = LayoutChange(by="ann", layout=Layout(sheet="Second"))
    await handle.signal("change_layout", change)
    await _when_refused(handle)
    await handle.signal("change_layout", change)
    await handle.execute_update("start", ANN)


async def _values_by_signals(handle: Handle, script: ScriptedSpreadsheet) -> None:
    await when(handle, SpreadsheetState.COLUMN_MAPPING)
    await handle.signal("confirm_column_mappings")
    await when(handle, SpreadsheetState.CELL_MAPPING)
    status = await handle.query(SpreadsheetImport.status)
    decisions = tuple(CellDecision(id=v.id, target_id=7) for v in status.cells.first_open)
    unknown = (CellDecision(id=status.cells.first_open[0].id, target_id=404),)
    await handle.signal("update_cell_mappings", CellDecisions(by="ann", decisions=unknown))
    await handle.signal("update_cell_mappings", CellDecisions(by="ann", decisions=decisions))
    await handle.signal("confirm_cell_mappings")


async def _reassign(handle: Handle, script: ScriptedSpreadsheet) -> None:
    await when(handle, SpreadsheetState.COLUMN_MAPPING)
    await handle.execute_update("reassign", Reassignment(to="bea", by="ann", notify="b@c.org"))
    await handle.execute_update("start", ANN)


async def _only_start(handle: Handle, script: ScriptedSpreadsheet) -> None:
    await when(handle, SpreadsheetState.COLUMN_MAPPING)
    await handle.execute_update("start", ANN)


async def _two_at_once(handle: Handle, script: ScriptedSpreadsheet) -> None:
    await when(handle, SpreadsheetState.COLUMN_MAPPING)
    decisions = (ColumnDecision(id=1, target="LAST_NAME"), ColumnDecision(id=3, ignore=True))
    answer = ColumnDecisions(by="ann", decisions=decisions, expected_version=1)
    await asyncio.gather(
        handle.signal("update_column_mappings", answer),
        handle.signal("update_column_mappings", answer),
    )
    await _when_refused(handle)
    await handle.execute_update("start", ANN)


async def _reassign_often(handle: Handle, script: ScriptedSpreadsheet) -> None:
    await when(handle, SpreadsheetState.COLUMN_MAPPING)
    for name in ("bea", "cleo", "dora"):
        await handle.execute_update("reassign", Reassignment(to=name, by="ann"))
    await handle.execute_update("cancel", Answer(by="ann"))


class _Late(ScriptedSpreadsheet):
    """A step fails, not at first."""

    def __init__(self, step: str, failure: Exception, after: int, **fields: Any) -> None:
        super().__init__(**fields)
        self._step, self._failure, self._after = step, failure, after

    def record(self, name: str, work: Any) -> None:
        if name == self._step and self.made(name) == self._after:
            self.fails[name] = [self._failure]
        super().record(name, work)


def _stuck(step: str) -> ScriptedSpreadsheet:
    return ScriptedSpreadsheet(fails={step: [transient()]})


CASES: dict[str, Case] = {
    "parked-and-retried-by-signal": Case(_stuck("process"), STRAIGHT, _signal_when_parked("retry")),
    "parked-and-cancelled": Case(_stuck("process"), STRAIGHT, _cancel_parked),
    "parked-and-cancelled-by-signal": Case(
        _stuck("collect_values"), STRAIGHT, _signal_when_parked("cancel")
    ),
    "parked-and-cancelled-by-temporal": Case(
        _stuck("process"), STRAIGHT, _cancel_parked_by_temporal
    ),
    "parked-too-long": Case(
        _stuck("process"), {"auto_start": True, "patience": Patience(abandon_after=2)}
    ),
    "parked-at-the-top": Case(_stuck("analyse"), STRAIGHT, retry),
    "parked-at-the-rows": Case(_stuck("stage"), STRAIGHT, retry),
    "parked-at-the-report": Case(
        ScriptedSpreadsheet(fails={"write_report": [transient()]}, errors=1), STRAIGHT, retry
    ),
    "parked-in-an-outage": Case(
        _Late("record", unavailable(), after=4, fails={"process": [transient()]}), STRAIGHT, retry
    ),
    "parked-without-status-row": Case(
        _Late("record", transient(), after=4, fails={"process": [transient()]}),
        STRAIGHT,
        retry,
    ),
    "cancelled-while-waiting-by-temporal": Case(
        ScriptedSpreadsheet(columns=UNMATCHED), act=_cancel_waiting_by_temporal
    ),
    "cancelled-while-processing-by-temporal": Case(
        ScriptedSpreadsheet(held={"process"}), STRAIGHT, _cancel_rows_by_temporal
    ),
    "cancelled-while-processing-by-signal": Case(
        ScriptedSpreadsheet(held={"process"}), STRAIGHT, _cancel_rows_by_signal
    ),
    "end-not-recorded-by-signal": Case(_stuck("finish"), STRAIGHT, _signal_when_parked("retry")),
    "end-not-recorded-for-too-long": Case(
        _stuck("finish"), {"auto_start": True, "patience": Patience(abandon_after=2)}
    ),
    "end-not-recorded-and-cancelled-by-temporal": Case(
        _stuck("finish"), STRAIGHT, _cancel_parked_by_temporal
    ),
    "signals-refused": Case(ScriptedSpreadsheet(columns=UNMATCHED), act=_refused_signals),
    "answer-not-saved": Case(_stuck("save_columns"), act=_answer_that_fails),
    "layout-unreadable": Case(_Late("analyse", damaged(), after=1), act=_layout_that_fails),
    "values-by-signals": Case(
        ScriptedSpreadsheet(values=("U18", "Old boys")), act=_values_by_signals
    ),
    "reassigned-by-update": Case(ScriptedSpreadsheet(), act=_reassign),
    "two-answers-at-once": Case(ScriptedSpreadsheet(columns=UNMATCHED), act=_two_at_once),
    "reminder-not-sent": Case(
        ScriptedSpreadsheet(fails={"notify": [transient()]}), {"patience": IN_NO_TIME}
    ),
    "continued-as-new": Case(
        ScriptedSpreadsheet(columns=UNMATCHED), act=_reassign_often, events_per_run=30
    ),
    "continued": Case(
        ScriptedSpreadsheet(),
        act=_only_start,
        progress=SpreadsheetProgress(
            state=SpreadsheetState.COLUMN_MAPPING,
            sequence=4,
            version=2,
            assignee="bea",
            layout=Layout(header_line=1),
            columns=MATCHED,
            fields=FIELDS,
            staged=Staged(rows=BlobRef(name="spreadsheets/x/rows", size=5), total=10),
            waiting_since=SINCE,
            touched=SINCE,
        ),
    ),
}
