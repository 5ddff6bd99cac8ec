"""Takes an import back, row by row, from what the database looked like before it."""

from datetime import timedelta
from typing import Final

from temporalio import workflow
from temporalio.exceptions import FailureError, is_cancelled_exception

from activities.spreadsheets.undo import SpreadsheetUndoSteps
from contracts.errors import PERMANENT
from contracts.spreadsheets import Answer, UndoOrder, UndoResult
from workflows import attributes, policies
from workflows.steps import Answered, Decision, Parking, explain, kind_of

_PATIENCE: Final = timedelta(days=30)


@workflow.defn(name="SpreadsheetUndo")
class SpreadsheetUndo:
    """Newest chunk first; each is taken back in one transaction and never twice.

    A step that cannot be done parks the run, which goes on behind the last chunk.
    """

    @workflow.init
    def __init__(self, order: UndoOrder) -> None:
        self._parking = Parking[None](_PATIENCE, {"retry": "try again"})

    @workflow.run
    async def run(self, order: UndoOrder) -> UndoResult:
        """Undo the import; one that cannot be undone fails with the reason."""
        while True:
            try:
                result = await workflow.execute_activity_method(
                    SpreadsheetUndoSteps.undo,
                    order,
                    summary=f"undo {order.filename}"[:200],
                    **policies.LONG,
                )
                break
            except FailureError as error:
                if is_cancelled_exception(error) or kind_of(error) == PERMANENT:
                    raise
                answered = await self._parking.wait("undo", explain(error), _nobody)
                if answered.decision is not Decision.RETRY:
                    raise
                self._parking.resume()
        workflow.upsert_search_attributes(attributes.going_on(result.state))
        return result

    @workflow.update(name="retry")
    async def retry(self, answer: Answer) -> None:
        """Try again what could not be done."""
        self._parking.answer(Answered(Decision.RETRY, by=answer.by))

    @retry.validator
    def _check_retry(self, answer: Answer) -> None:
        self._parking.refuse_unless_waiting()

    @workflow.signal(name="retry")
    def retry_signal(self, answer: Answer | None = None) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        self._parking.answer(Answered(Decision.RETRY, by=(answer or Answer()).by))


async def _nobody() -> None:
    """Nothing to tell."""
