"""The ways a spreadsheet import, its undoing and retention can go."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from temporalio.client import Client, WorkflowHandle
from temporalio.exceptions import ApplicationError

from tests.support.scripted import ScriptedActivities, unavailable
from tests.support.spreadsheets.scripted import (
    UNMATCHED,
    ScriptedRetention,
    ScriptedSpreadsheet,
    damaged,
    scripted_undo,
    spreadsheet_order,
    transient,
)
from tests.support.waiting import eventually
from workflows.shared import attributes
from workflows.shared.dependencies import Dependency
from workflows.shared.errors import PERMANENT, UNDO_REFUSED
from workflows.spreadsheets.mappings import (
    CellDecision,
    CellDecisions,
    ColumnDecision,
    ColumnDecisions,
    Layout,
    LayoutChange,
    SpreadsheetState,
)
from workflows.spreadsheets.reviews import REVIEW, CheckAgain, ReviewChange
from workflows.spreadsheets.runs import (
    Answer,
    Confirmation,
    Patience,
    Reassignment,
    RetentionInput,
    SpreadsheetProgress,
    UndoInput,
    undo_id,
    workflow_id,
)
from workflows.spreadsheets.spreadsheet_import import SpreadsheetImport
from workflows.spreadsheets.undo_and_retention import SpreadsheetRetention, SpreadsheetUndo

Handle = WorkflowHandle[Any, Any]
Act = Callable[[Handle, ScriptedSpreadsheet], Awaitable[None]]
ANN = Confirmation(by="ann")
UUID = uuid.UUID("5eed0000-0000-4000-8000-000000000000")
IN_NO_TIME = Patience(remind_after=1, remind_every=2, escalate_after=2, abandon_after=4)


def _uuid(name: str) -> str:
    return str(uuid.uuid5(UUID, name))


async def _nothing(handle: Handle, script: ScriptedSpreadsheet) -> None:
    return


async def when(handle: Handle, state: SpreadsheetState) -> None:
    async def waits() -> bool:
        status = await handle.query(SpreadsheetImport.status)
        return status.state is state and status.waiting_since is not None

    await eventually(waits)


async def when_parked(handle: Handle) -> None:
    async def parked() -> bool:
        return (await handle.query(SpreadsheetImport.status)).reason is not None

    await eventually(parked)


async def when_called(script: ScriptedSpreadsheet, step: str) -> None:
    async def called() -> bool:
        return step in script.calls

    await eventually(called)


async def _answer_columns(handle: Handle) -> None:
    await when(handle, SpreadsheetState.COLUMN_MAPPING)
    decisions = (ColumnDecision(id=1, target="LAST_NAME"), ColumnDecision(id=3, ignore=True))
    await handle.execute_update(
        "update_column_mappings", ColumnDecisions(by="ann", decisions=decisions)
    )


async def _answer_values(handle: Handle) -> None:
    await when(handle, SpreadsheetState.CELL_MAPPING)
    status = await handle.query(SpreadsheetImport.status)
    for value in status.cells.first_open:
        decision = CellDecision(id=value.id, target_id=7)
        await handle.execute_update(
            "update_cell_mappings", CellDecisions(by="ann", decisions=(decision,))
        )
    await handle.execute_update("confirm_cell_mappings", ANN)


async def _by_updates(handle: Handle, script: ScriptedSpreadsheet) -> None:
    await _answer_columns(handle)
    await handle.execute_update("confirm_column_mappings", ANN)
    await _answer_values(handle)


async def _by_signals(handle: Handle, script: ScriptedSpreadsheet) -> None:
    await when(handle, SpreadsheetState.COLUMN_MAPPING)
    await handle.signal("confirm_column_mappings")
    decisions = (ColumnDecision(id=1, target="LAST_NAME"), ColumnDecision(id=3, ignore=True))
    await handle.signal("update_column_mappings", ColumnDecisions(by="ann", decisions=decisions))
    await handle.signal("reassign", Reassignment(to="bea", by="ann"))
    await handle.signal("start")
    await handle.result()


async def _start(handle: Handle, script: ScriptedSpreadsheet) -> None:
    await when(handle, SpreadsheetState.COLUMN_MAPPING)
    await handle.execute_update("start", ANN)
    await _answer_values(handle)


async def _another_layout(handle: Handle, script: ScriptedSpreadsheet) -> None:
    await when(handle, SpreadsheetState.COLUMN_MAPPING)
    change = LayoutChange(by="ann", layout=Layout(sheet="Second"))
    await handle.execute_update("change_layout", change)
    await handle.execute_update("start", ANN)


async def _cancel_pause(handle: Handle, script: ScriptedSpreadsheet) -> None:
    await when(handle, SpreadsheetState.COLUMN_MAPPING)
    await handle.execute_update("cancel", Answer(by="ann", reason="wrong file"))


async def _cancel_rows(handle: Handle, script: ScriptedSpreadsheet) -> None:
    await when_called(script, "process")
    await handle.execute_update("cancel", Answer(by="ann"))


async def retry(handle: Handle, script: ScriptedSpreadsheet) -> None:
    await when_parked(handle)
    await handle.execute_update("retry", Answer(by="ann"))


async def when_reviewed(handle: Handle, wrong: int) -> None:
    """Wait until the rows are reviewed, and all of them checked."""

    async def checked() -> bool:
        status = await handle.query(SpreadsheetImport.status)
        review = status.review
        return (
            status.step == REVIEW
            and status.waiting_since is not None
            and review is not None
            and (review.wrong, review.checked) == (wrong, status.version)
        )

    await eventually(checked)


async def _review(handle: Handle, script: ScriptedSpreadsheet) -> None:
    await when_reviewed(handle, 2)
    await handle.execute_update("change_review", ReviewChange(by="ann", operation=1, preview=True))
    await handle.execute_update("change_review", ReviewChange(by="ann", operation=2))
    await when_reviewed(handle, 1)
    await handle.signal("change_review", ReviewChange(by="bea", operation=3))
    await when_reviewed(handle, 0)
    await handle.execute_update("confirm_cell_mappings", ANN)


async def _import_now(handle: Handle, script: ScriptedSpreadsheet) -> None:
    await when_reviewed(handle, 0)
    await handle.execute_update("confirm_cell_mappings", Confirmation(by="ann", import_now=True))


async def _check_again(handle: Handle, script: ScriptedSpreadsheet) -> None:
    await when_reviewed(handle, 1)
    await handle.execute_update("change_review", ReviewChange(by="ann", operation=1))

    async def failed() -> bool:
        status = await handle.query(SpreadsheetImport.status)
        return status.check_failure is not None and script.made("note_check") == 1

    await eventually(failed)
    await handle.execute_update("check_review", CheckAgain(by="bea"))
    await when_reviewed(handle, 0)
    await handle.execute_update("confirm_cell_mappings", ANN)


@dataclass
class Case:
    """One way an import can go."""

    script: ScriptedSpreadsheet
    order: dict[str, Any] = field(default_factory=dict[str, Any])
    act: Act = _nothing
    progress: SpreadsheetProgress | None = None
    events_per_run: int | None = None

    workflow = SpreadsheetImport

    def activities(self) -> list[Callable[..., Any]]:
        """For the worker."""
        return self.script.activities()

    async def start(self, client: Client, name: str, task_queue: str) -> Handle:
        """Start the run."""
        order = spreadsheet_order(uuid=_uuid(name), **self.order)
        return await client.start_workflow(
            SpreadsheetImport.run,
            args=[order, self.progress],
            id=workflow_id(order.uuid),
            task_queue=task_queue,
            search_attributes=attributes.at_start("spreadsheets", order.import_type, "1"),
        )

    async def go(self, handle: Handle) -> None:
        """Do what people do."""
        await self.act(handle, self.script)


STRAIGHT = {"auto_start": True}


CASES: dict[str, Case] = {
    "straight-through": Case(ScriptedSpreadsheet(), STRAIGHT),
    "answered-by-updates": Case(
        ScriptedSpreadsheet(columns=UNMATCHED, values=("U18", "Old boys")), act=_by_updates
    ),
    "answered-by-signals": Case(ScriptedSpreadsheet(columns=UNMATCHED), act=_by_signals),
    "started-with-late-values": Case(ScriptedSpreadsheet(late=[("U18",), ()]), act=_start),
    "another-layout": Case(ScriptedSpreadsheet(), act=_another_layout),
    "cancelled-while-waiting": Case(ScriptedSpreadsheet(columns=UNMATCHED), act=_cancel_pause),
    "cancelled-while-processing": Case(
        ScriptedSpreadsheet(held={"process"}), STRAIGHT, _cancel_rows
    ),
    "damaged-at-the-top": Case(ScriptedSpreadsheet(fails={"analyse": [damaged()]})),
    "damaged-below": Case(ScriptedSpreadsheet(fails={"stage": [damaged()]})),
    "parked-and-retried": Case(
        ScriptedSpreadsheet(fails={"process": [transient()]}, errors=1), STRAIGHT, retry
    ),
    "end-not-recorded": Case(ScriptedSpreadsheet(fails={"finish": [transient()]}), STRAIGHT, retry),
    "outage-in-a-step": Case(ScriptedSpreadsheet(fails={"process": [unavailable()]}), STRAIGHT),
    "outage-while-staging": Case(
        ScriptedSpreadsheet(fails={"stage": [unavailable(Dependency.SCRATCH_DISK)]}), STRAIGHT
    ),
    "outage-while-closing": Case(ScriptedSpreadsheet(fails={"finish": [unavailable()]}), STRAIGHT),
    "reminded-and-abandoned": Case(ScriptedSpreadsheet(), {"patience": IN_NO_TIME}),
    "reviewed": Case(ScriptedSpreadsheet(wrong=2), {"auto_start": True, "review": True}, _review),
    "checked-again": Case(
        ScriptedSpreadsheet(wrong=1, fails={"check_review": [damaged()]}),
        {"auto_start": True, "review": True},
        _check_again,
    ),
    "nothing-to-review": Case(ScriptedSpreadsheet(), {"auto_start": True, "review": True}),
    "dry-run-imported": Case(
        ScriptedSpreadsheet(), {"auto_start": True, "review": True, "dry_run": True}, _import_now
    ),
    "dry-run": Case(ScriptedSpreadsheet(), {"auto_start": True, "dry_run": True}),
}


async def _when_undo_parked(handle: Handle) -> None:
    async def parked() -> bool:
        described = await handle.describe()
        return described.typed_search_attributes.get(attributes.STATE) == "parked"

    await eventually(parked)


@dataclass
class UndoCase:
    """One way an undo can go."""

    script: ScriptedActivities
    retry: bool = False
    act: Callable[[Handle], Awaitable[None]] | None = None
    passes: timedelta | None = None
    notices: bool = False

    workflow = SpreadsheetUndo

    def activities(self) -> list[Callable[..., Any]]:
        """For the worker."""
        return self.script.activities()

    async def start(self, client: Client, name: str, task_queue: str) -> Handle:
        """Start the run."""
        order = UndoInput(
            uuid=_uuid(name),
            organisation_id=1,
            by="ann",
            filename="registrations.xlsx",
            requested_at=datetime.now(UTC),
            notices=self.notices,
        )
        return await client.start_workflow(
            SpreadsheetUndo.run,
            order,
            id=undo_id(order.uuid),
            task_queue=task_queue,
            search_attributes=attributes.at_start("spreadsheets", "EVENT_PARTICIPANT", "1"),
        )

    async def go(self, handle: Handle) -> None:
        """Answer when it is parked."""
        if self.act is not None:
            await _when_undo_parked(handle)
            await self.act(handle)
        while self.retry and self.script.made("undo") < 2:
            await handle.signal("retry")
            await asyncio.sleep(0.1)


async def _nothing_more(handle: Handle) -> None:
    return


UNDO_CASES: dict[str, UndoCase] = {
    "outage-in-a-step": UndoCase(scripted_undo(unavailable())),
    "plain": UndoCase(scripted_undo()),
    "parked-and-retried": UndoCase(scripted_undo(transient()), retry=True),
    "parked-and-retried-by-update": UndoCase(
        scripted_undo(transient()),
        act=lambda handle: handle.execute_update("retry", Answer(by="ann")),
    ),
    "parked-and-cancelled": UndoCase(
        scripted_undo(transient()), act=lambda handle: handle.cancel()
    ),
    "parked-shown-and-retried": UndoCase(
        scripted_undo(transient()),
        act=lambda handle: handle.execute_update("retry", Answer(by="ann")),
    ),
    "parked-too-long": UndoCase(
        scripted_undo(transient()), act=_nothing_more, passes=timedelta(days=31)
    ),
    "refused": UndoCase(
        scripted_undo(ApplicationError("older than 30 days", type=PERMANENT, non_retryable=True))
    ),
    "refused-and-recorded": UndoCase(
        scripted_undo(ApplicationError("older than 30 days", type=UNDO_REFUSED, non_retryable=True))
    ),
    "permanent-failure-parked": UndoCase(
        scripted_undo(ApplicationError("no column price", type=PERMANENT, non_retryable=True)),
        retry=True,
    ),
    "cancelled-and-recorded": UndoCase(
        scripted_undo(transient()), act=lambda handle: handle.cancel()
    ),
    "parked-too-long-and-recorded": UndoCase(
        scripted_undo(transient()), act=_nothing_more, passes=timedelta(days=31)
    ),
}


async def _has_begun(script: ScriptedRetention) -> bool:
    return bool(script.nows)


@dataclass
class RetentionCase:
    """One way a run of retention can go."""

    script: ScriptedRetention
    cancel: bool = False

    workflow = SpreadsheetRetention

    def activities(self) -> list[Callable[..., Any]]:
        """For the worker."""
        return self.script.activities()

    async def start(self, client: Client, name: str, task_queue: str) -> Handle:
        """Start the run."""
        return await client.start_workflow(
            SpreadsheetRetention.run,
            RetentionInput(page=2),
            id=f"retention-{name}",
            task_queue=task_queue,
        )

    async def go(self, handle: Handle) -> None:
        """Cancel it, when this is such a case."""
        if self.cancel:
            await eventually(lambda: _has_begun(self.script))
            await handle.cancel()


def _interrupted_retention() -> ScriptedRetention:
    script = ScriptedRetention([_uuid("1")])
    script.fails["purge"] = [unavailable()]
    return script


RETENTION_CASES: dict[str, RetentionCase] = {
    "outage-in-a-step": RetentionCase(_interrupted_retention()),
    "cancelled": RetentionCase(ScriptedRetention([_uuid("1")], held={"purge"}), cancel=True),
    "nothing-due": RetentionCase(ScriptedRetention([])),
    "three-pages": RetentionCase(
        ScriptedRetention([_uuid(str(n)) for n in range(5)], waiting={_uuid("1")})
    ),
}
