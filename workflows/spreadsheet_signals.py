"""Twins of a spreadsheet import's updates, for `temporal workflow signal`.

Nobody hears the answer to a signal: one that is refused leaves its reason in the `status` query.
"""

from collections.abc import Awaitable

from temporalio import workflow
from temporalio.exceptions import FailureError, is_cancelled_exception

from contracts.spreadsheets import (
    Answer,
    CellDecisions,
    ColumnDecisions,
    Confirmation,
    LayoutChange,
    Reassignment,
)
from workflows.spreadsheet_answers import SpreadsheetAnswers
from workflows.steps import Answered, Decision, explain


class SpreadsheetSignals(SpreadsheetAnswers):
    """An import that can be answered by signals as well."""

    async def _heed(self, name: str, answer: Awaitable[object]) -> None:
        try:
            await answer
        except FailureError as error:
            if is_cancelled_exception(error):
                raise
            self._last_refusal = f"{name}: {explain(error)}"
            workflow.logger.warning("signal %s refused: %s", name, explain(error))
        else:
            self._last_refusal = None

    @workflow.signal(name="update_column_mappings")
    async def update_column_mappings_signal(self, answer: ColumnDecisions) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        await self._heed("update_column_mappings", self.update_column_mappings(answer))

    @workflow.signal(name="change_layout")
    async def change_layout_signal(self, change: LayoutChange) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        await self._heed("change_layout", self.change_layout(change))

    @workflow.signal(name="confirm_column_mappings")
    async def confirm_column_mappings_signal(self, answer: Confirmation | None = None) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        confirmed = self._confirm_columns(answer or Confirmation(), skip_values=False)
        await self._heed("confirm_column_mappings", confirmed)

    @workflow.signal(name="update_cell_mappings")
    async def update_cell_mappings_signal(self, answer: CellDecisions) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        await self._heed("update_cell_mappings", self.update_cell_mappings(answer))

    @workflow.signal(name="confirm_cell_mappings")
    async def confirm_cell_mappings_signal(self, answer: Confirmation | None = None) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        await self._heed("confirm_cell_mappings", self._confirm_values(answer or Confirmation()))

    @workflow.signal(name="start")
    async def start_signal(self, answer: Confirmation | None = None) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        await self._heed("start", self.start(answer or Confirmation()))

    @workflow.signal(name="cancel")
    async def cancel_signal(self, answer: Answer | None = None) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        await self._heed("cancel", self.cancel(answer or Answer()))

    @workflow.signal(name="reassign")
    async def reassign_signal(self, answer: Reassignment) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        await self._heed("reassign", self.reassign(answer))

    @workflow.signal(name="retry")
    def retry_signal(self, answer: Answer | None = None) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        self._parking.answer(Answered(Decision.RETRY, by=(answer or Answer()).by))
