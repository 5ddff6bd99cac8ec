"""Undo of an import, row by row, from what the database held before it."""

from datetime import timedelta
from typing import Final

from temporalio import workflow
from temporalio.exceptions import FailureError

from activities.spreadsheets.undo import SpreadsheetUndoSteps
from contracts.errors import PERMANENT
from contracts.notices import NoticeKind
from contracts.spreadsheets import Answer, UndoOrder, UndoResult
from domain.notices import counted
from workflows import attributes, policies
from workflows.failures import explain, failure_type, reraise_cancellation
from workflows.notices import Notices
from workflows.parkable import Parkable
from workflows.parking import Decision, Parking
from workflows.waiting import Waiting

_PARKED_FOR: Final = timedelta(days=30)


@workflow.defn(name="SpreadsheetUndo")
class SpreadsheetUndo(Parkable, retry=Answer):
    """Newest chunk first; each is undone in one transaction and never twice.

    A step that fails permanently parks the run, which resumes behind the last chunk.
    """

    @workflow.init
    def __init__(self, order: UndoOrder) -> None:
        self._order = order
        self._notices, self._waiting = Notices(order.notices), Waiting()
        super().__init__(Parking(_PARKED_FOR, self._notices, {"retry": "try again"}))
        self._notices.facts = {"about": {"uuid": order.uuid, "filename": order.filename}}

    @workflow.run
    async def run(self, order: UndoOrder) -> UndoResult:
        """Undo the import; one that cannot be undone fails with the reason."""
        try:
            result = await self._waiting.retried(self._undo, self._park)
        except FailureError as error:
            reraise_cancellation(error)
            await self._notices.end(NoticeKind.FAILED, "failed", explain(error))
            raise
        workflow.upsert_search_attributes(attributes.not_waiting(result.state))
        await self._notices.end(
            NoticeKind.UNDONE, result.state.replace("_", " ").lower(), counted(result.counts)
        )
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
        by = (answered.by or "operator",)
        retried = (*self._order.retried_by, *by)[-20:]
        self._order = self._order.model_copy(update={"retried_by": retried})
        self._parking.resume()
