"""Undo of an import, row by row, from what the database held before it."""

from datetime import timedelta
from typing import Final

from temporalio import workflow
from temporalio.exceptions import FailureError

from activities.spreadsheets.undo import SpreadsheetUndoSteps
from contracts.errors import PERMANENT
from contracts.spreadsheets import Answer, UndoOrder, UndoResult
from workflows import attributes, policies
from workflows.failures import explain, failure_type
from workflows.parkable import Parkable
from workflows.parking import Decision

_PARKED_FOR: Final = timedelta(days=30)


@workflow.defn(name="SpreadsheetUndo")
class SpreadsheetUndo(Parkable, retry=Answer):
    """Newest chunk first; each is undone in one transaction and never twice.

    A step that fails permanently parks the run, which resumes behind the last chunk.
    """

    @workflow.init
    def __init__(self, order: UndoOrder) -> None:
        super().__init__(_PARKED_FOR, {"retry": "try again"})
        self._order = order

    @workflow.run
    async def run(self, order: UndoOrder) -> UndoResult:
        """Undo the import; one that cannot be undone fails with the reason."""
        result = await self._waiting.retried(self._undo, self._park)
        workflow.upsert_search_attributes(attributes.not_waiting(result.state))
        return result

    async def _undo(self) -> UndoResult:
        return await workflow.execute_activity_method(
            SpreadsheetUndoSteps.undo,
            self._order,
            summary=f"undo {self._order.filename}"[:200],
            **policies.LONG,
        )

    async def _park(self, failure: FailureError) -> None:
        if failure_type(failure) == PERMANENT:
            raise failure
        answered = await self._parking.wait("undo", explain(failure))
        if answered.decision is not Decision.RETRY:
            raise failure
        self._parking.resume()
