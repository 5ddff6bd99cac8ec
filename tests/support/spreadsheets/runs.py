"""Runs of the spreadsheets workflow over scripted activities, and what people say to them."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from temporalio.client import WorkflowHandle, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from tests.support.spreadsheets.scripted import ScriptedSpreadsheet
from tests.support.waiting import eventually
from workflows.shared import attributes
from workflows.spreadsheets.mappings import (
    CellDecision,
    CellDecisions,
    ColumnDecision,
    ColumnDecisions,
    MappingsAnswer,
    SpreadsheetState,
)
from workflows.spreadsheets.runs import (
    Confirmation,
    SpreadsheetInput,
    SpreadsheetResult,
    SpreadsheetStatus,
    workflow_id,
)
from workflows.spreadsheets.spreadsheet_import import SpreadsheetImport

Handle = WorkflowHandle[Any, SpreadsheetResult]
S = SpreadsheetState
WHOLE_WAY = [S.UPLOADED, S.COLUMN_MAPPING, S.CELL_MAPPING, S.PROCESSING, S.COMPLETED]
ANN = Confirmation(by="ann")


@dataclass
class SpreadsheetRuns:
    """Starts imports on a worker of the test's own."""

    server: Any
    run_worker: Any

    @asynccontextmanager
    async def running(
        self, script: ScriptedSpreadsheet, order: SpreadsheetInput
    ) -> AsyncIterator[Handle]:
        queue = f"spreadsheets-{uuid.uuid4().hex}"
        async with self.run_worker(queue, [SpreadsheetImport], script.activities()):
            yield await self.server.client.start_workflow(
                SpreadsheetImport.run,
                args=[order, None],
                id=workflow_id(order.uuid),
                task_queue=queue,
                search_attributes=attributes.at_start("spreadsheets", "EVENT_PARTICIPANT", "1"),
            )


async def status_when(
    handle: Handle, done: Callable[[SpreadsheetStatus], bool]
) -> SpreadsheetStatus:
    """Wait until a run's status is such."""
    status = await handle.query(SpreadsheetImport.status)

    async def is_done() -> bool:
        nonlocal status
        status = await handle.query(SpreadsheetImport.status)
        return done(status)

    await eventually(is_done)
    return status


async def waits_in(handle: Handle, state: SpreadsheetState) -> SpreadsheetStatus:
    """Wait until a run waits for a person, and its history says so.

    An update that comes before writes a history that cannot be replayed, where the run is not in
    the cache: https://github.com/temporalio/sdk-python/issues/1591
    """

    async def is_recorded() -> bool:
        found = (await handle.describe()).typed_search_attributes
        return found.get(attributes.STATE) == state and found[attributes.NEEDS_ATTENTION]

    await eventually(is_recorded)
    return await status_when(handle, lambda s: s.state is state and s.waiting_since is not None)


async def was_called(script: ScriptedSpreadsheet, step: str) -> None:
    """Wait until an activity runs."""

    async def called() -> bool:
        return step in script.calls

    await eventually(called)


async def shows(handle: Handle, state: str, person: str | None) -> None:
    """Wait until visibility has caught up with the run."""

    async def shown() -> bool:
        found = (await handle.describe()).typed_search_attributes
        return (found.get(attributes.STATE), found.get(attributes.WAITING_FOR)) == (state, person)

    await eventually(shown)


async def send_update(handle: Handle, name: str, answer: Any) -> MappingsAnswer:
    """Send an update that is accepted; its result."""
    async with asyncio.timeout(20):
        return await handle.execute_update(name, answer, result_type=MappingsAnswer)


async def refusal_of(handle: Handle, name: str, answer: Any) -> ApplicationError:
    """An update that is refused, and why."""
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        async with asyncio.timeout(20):
            await handle.execute_update(name, answer)
    assert isinstance(refused.value.cause, ApplicationError)
    return refused.value.cause


def columns(*decisions: ColumnDecision, version: int | None = None) -> ColumnDecisions:
    """What Ann says about columns."""
    return ColumnDecisions(by="ann", expected_version=version, decisions=decisions)


def values(*decisions: CellDecision, version: int | None = None) -> CellDecisions:
    """What Ann says about values."""
    return CellDecisions(by="ann", expected_version=version, decisions=decisions)
