"""Rows of an import, taken back."""

from datetime import timedelta
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.spreadsheets.rows import SpreadsheetUndoSteps
from tests.support.imports.activities import Killed, environment
from tests.support.spreadsheets.activities import (
    NOW,
    FailingStore,
    SpreadsheetSetup,
    StagedSpreadsheet,
)
from workflows.shared.errors import UNDO_REFUSED
from workflows.spreadsheets.mappings import UndoState
from workflows.spreadsheets.runs import UndoCounts, UndoInput, UndoResult


def undo_of(prepared: StagedSpreadsheet, **fields: Any) -> UndoInput:
    order = UndoInput(
        uuid=prepared.order.uuid,
        organisation_id=1,
        by="anna",
        filename="registrations.csv",
        requested_at=NOW + timedelta(days=1),
    )
    return order.model_copy(update=fields)


async def test_undo_takes_everything_back(setup: SpreadsheetSetup) -> None:
    setup.chunk_rows = 2
    prepared = await setup.finished()
    undo = SpreadsheetUndoSteps(setup.store).undo
    result = await environment().run(undo, undo_of(prepared))
    # A registration and a person for each row that went in.
    assert result == UndoResult(
        uuid=prepared.order.uuid, state=UndoState.UNDONE, counts=UndoCounts(deleted=6)
    )
    assert await setup.count("persons") == await setup.count("event_participants") == 0


@pytest.mark.parametrize(
    ("method", "call"),
    [("begin_undo", 1), ("undo_chunk", 1), ("undo_chunk", 2), ("undo_chunk", 3), ("end_undo", 1)],
)
async def test_an_undo_resumes_where_a_worker_died(
    setup: SpreadsheetSetup, method: str, call: int
) -> None:
    setup.chunk_rows = 2
    prepared = await setup.finished()

    def die(number: int) -> None:
        if number == call:
            raise Killed

    dying: Any = FailingStore(setup.store, method, after=die)
    with pytest.raises(Killed):
        await environment().run(SpreadsheetUndoSteps(dying).undo, undo_of(prepared))
    result = await environment().run(SpreadsheetUndoSteps(setup.store).undo, undo_of(prepared))
    assert (result.state, result.counts) == (UndoState.UNDONE, UndoCounts(deleted=6))


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"organisation_id": 2}, "there is no such import"),
        ({"requested_at": NOW + timedelta(days=31)}, "can be undone for 30 days"),
    ],
)
async def test_what_cannot_be_undone_is_refused(
    setup: SpreadsheetSetup, fields: dict[str, Any], reason: str
) -> None:
    prepared = await setup.finished()
    with pytest.raises(ApplicationError, match=reason) as caught:
        await environment().run(SpreadsheetUndoSteps(setup.store).undo, undo_of(prepared, **fields))
    assert (caught.value.type, caught.value.non_retryable) == (UNDO_REFUSED, True)
    assert await setup.count("persons") == 3


async def test_nothing_is_undone_twice(setup: SpreadsheetSetup) -> None:
    prepared = await setup.finished()
    undo = SpreadsheetUndoSteps(setup.store).undo
    await environment().run(undo, undo_of(prepared))
    later = undo_of(prepared, requested_at=NOW + timedelta(days=2))
    with pytest.raises(ApplicationError, match="was undone") as caught:
        await environment().run(undo, later)
    assert caught.value.type == UNDO_REFUSED
