"""Undoing imports, and removing what is no longer kept, with every activity scripted."""

import uuid
from datetime import UTC, datetime
from typing import Any

import pytest
from temporalio.client import WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ActivityError, ApplicationError

from activities.spreadsheets.lifecycle import SpreadsheetRetentionSteps
from tests.support.spreadsheets.scripted import (
    ScriptedRetention,
    ScriptedSpreadsheet,
    scripted_undo,
    spreadsheet_order,
    transient,
)
from tests.support.waiting import eventually
from workflows.shared import attributes
from workflows.shared.errors import PERMANENT, UNDO_REFUSED
from workflows.spreadsheets.mappings import SpreadsheetState, UndoState
from workflows.spreadsheets.runs import (
    Answer,
    PurgeResult,
    RetentionInput,
    UndoInput,
    UndoResult,
    undo_id,
    workflow_id,
)
from workflows.spreadsheets.spreadsheet_import import SpreadsheetImport
from workflows.spreadsheets.undo_and_retention import SpreadsheetRetention, SpreadsheetUndo

CHANGED = ApplicationError("a table is another one", type=PERMANENT, non_retryable=True)

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _undo(server: Any, queue: str) -> WorkflowHandle[Any, UndoResult]:
    order = UndoInput(
        uuid=str(uuid.uuid4()),
        organisation_id=1,
        by="ann",
        filename="registrations.xlsx",
        requested_at=datetime.now(UTC),
    )
    return await server.client.start_workflow(
        SpreadsheetUndo.run,
        order,
        id=undo_id(order.uuid),
        task_queue=queue,
        search_attributes=attributes.at_start("spreadsheets", "EVENT_PARTICIPANT", "1"),
    )


@pytest.mark.cached
async def test_an_import_is_undone(server: Any, run_worker: Any) -> None:
    script, queue = scripted_undo(), uuid.uuid4().hex
    async with run_worker(queue, [SpreadsheetUndo], script.activities()):
        result = await (await _undo(server, queue)).result()
    assert (result.state, result.counts.left_alone) == (UndoState.UNDONE, 1)


async def test_what_cannot_be_undone_fails_with_the_reason(server: Any, run_worker: Any) -> None:
    refusal = ApplicationError("older than 30 days", type=UNDO_REFUSED, non_retryable=True)
    script, queue = scripted_undo(refusal), uuid.uuid4().hex
    async with run_worker(queue, [SpreadsheetUndo], script.activities()):
        with pytest.raises(WorkflowFailureError) as failure:
            await (await _undo(server, queue)).result()
    assert isinstance(failure.value.cause, ActivityError)
    assert "older than 30 days" in str(failure.value.cause.cause)
    assert script.made("fail_undo") == 1


@pytest.mark.parametrize(
    ("way", "failure"), [("update", transient()), ("signal", transient()), ("signal", CHANGED)]
)
async def test_an_undo_that_cannot_continue_parks(
    server: Any, run_worker: Any, way: str, failure: ApplicationError
) -> None:
    script, queue = scripted_undo(failure), uuid.uuid4().hex
    async with run_worker(queue, [SpreadsheetUndo], script.activities()):
        handle = await _undo(server, queue)

        async def parked() -> bool:
            found = (await handle.describe()).typed_search_attributes
            return found.get(attributes.NEEDS_ATTENTION) is True

        await eventually(parked)
        if way == "update":
            await handle.execute_update("retry", Answer(by="ann"))
        else:
            await handle.signal("retry")
        assert (await handle.result()).state is UndoState.UNDONE
    assert (script.made("undo"), script.made("fail_undo")) == (2, 0)
    [shown] = script.received["park_undo"]
    assert shown.reason == failure.message


async def test_an_undo_that_is_cancelled_has_failed(server: Any, run_worker: Any) -> None:
    script, queue = scripted_undo(transient()), uuid.uuid4().hex
    async with run_worker(queue, [SpreadsheetUndo], script.activities()):
        handle = await _undo(server, queue)

        async def parked() -> bool:
            found = (await handle.describe()).typed_search_attributes
            return found.get(attributes.NEEDS_ATTENTION) is True

        await eventually(parked)
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await handle.result()
    assert script.made("fail_undo") == 1


async def _retain(server: Any, queue: str, order: RetentionInput) -> PurgeResult:
    return await server.client.execute_workflow(
        SpreadsheetRetention.run,
        order,
        id=f"retention-{uuid.uuid4()}",
        task_queue=queue,
    )


def _uuids(count: int) -> list[str]:
    return [str(uuid.uuid4()) for _ in range(count)]


@pytest.mark.cached
async def test_everything_due_is_purged_page_by_page(server: Any, run_worker: Any) -> None:
    due = _uuids(25)
    script, queue = ScriptedRetention(list(due)), uuid.uuid4().hex
    async with run_worker(queue, [SpreadsheetRetention], script.activities()):
        result = await _retain(server, queue, RetentionInput(page=10))
        assert (result.purged, result.journals, result.uploads) == (25, 2, 1)
        assert script.purged == due
        assert len(script.nows) == 1
        again = await _retain(server, queue, RetentionInput(page=10))
    assert again.purged == 0


async def test_a_run_of_retention_is_bounded(server: Any, run_worker: Any) -> None:
    script, queue = ScriptedRetention(_uuids(25)), uuid.uuid4().hex
    async with run_worker(queue, [SpreadsheetRetention], script.activities()):
        result = await _retain(server, queue, RetentionInput(page=10, most=20))
    assert result.purged == 20
    assert len(script.due) == 5


async def test_what_cannot_be_purged_does_not_go_round_in_circles(
    server: Any, run_worker: Any
) -> None:
    script, queue = ScriptedRetention(_uuids(3), stuck=True), uuid.uuid4().hex
    async with run_worker(queue, [SpreadsheetRetention], script.activities()):
        assert (await _retain(server, queue, RetentionInput())).purged == 0


async def test_a_run_that_still_waits_is_given_up_first(server: Any, run_worker: Any) -> None:
    order, sheet, queue = spreadsheet_order(), ScriptedSpreadsheet(), uuid.uuid4().hex
    gone = str(uuid.uuid4())
    script = ScriptedRetention([order.uuid, gone], waiting={order.uuid, gone})
    # Both would serve the wait for a dependency.
    script.classes = (SpreadsheetRetentionSteps,)
    activities = [*script.activities(), *sheet.activities()]
    async with run_worker(queue, [SpreadsheetRetention, SpreadsheetImport], activities):
        waiting = await server.client.start_workflow(
            SpreadsheetImport.run,
            args=[order, None],
            id=workflow_id(order.uuid),
            task_queue=queue,
            search_attributes=attributes.at_start("spreadsheets", "EVENT_PARTICIPANT", "1"),
        )

        async def waits() -> bool:
            return (await waiting.query(SpreadsheetImport.status)).waiting_since is not None

        await eventually(waits)
        assert (await _retain(server, queue, RetentionInput())).purged == 2
        result = await waiting.result()
    assert result.state is SpreadsheetState.CANCELLED
    assert result.reason == "no answer for too long"
