"""The messages that a spreadsheet import takes: updates, and a twin signal of each.

An update is let in only where it makes sense; a signal of the plain Temporal CLI has no such door,
and one that is refused leaves its reason in the `status` query.
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
    MappingsAnswer,
    Reassignment,
)
from workflows.spreadsheets.answers import SpreadsheetAnswers
from workflows.steps import explain


class SpreadsheetMessages(SpreadsheetAnswers):
    """An import with doors for its answers."""

    @workflow.update(name="update_column_mappings")
    async def update_column_mappings(self, answer: ColumnDecisions) -> MappingsAnswer:
        """Say what columns mean; all of the decisions are taken, or none."""
        return await self._take_columns(answer)

    @update_column_mappings.validator
    def _let_in_update_column_mappings(self, answer: ColumnDecisions) -> None:
        self._decided_columns(answer)

    @workflow.update(name="change_layout")
    async def change_layout(self, change: LayoutChange) -> MappingsAnswer:
        """Read the file in another way; what was decided about its columns starts over."""
        return await self._take_layout(change)

    @change_layout.validator
    def _let_in_change_layout(self, change: LayoutChange) -> None:
        self._check_column_turn(change.expected_version)

    @workflow.update(name="confirm_column_mappings")
    async def confirm_column_mappings(self, answer: Confirmation) -> MappingsAnswer:
        """Go on to the values; answers when they are collected, or after a while."""
        return await self._confirm_columns(answer)

    @confirm_column_mappings.validator
    def _let_in_confirm_column_mappings(self, answer: Confirmation) -> None:
        self._check_confirm_columns(answer)

    @workflow.update(name="update_cell_mappings")
    async def update_cell_mappings(self, answer: CellDecisions) -> MappingsAnswer:
        """Say what values mean; all of the decisions are taken, or none."""
        return await self._take_values(answer)

    @update_cell_mappings.validator
    def _let_in_update_cell_mappings(self, answer: CellDecisions) -> None:
        self._check_values(answer)

    @workflow.update(name="confirm_cell_mappings")
    async def confirm_cell_mappings(self, answer: Confirmation) -> MappingsAnswer:
        """Go on to the rows."""
        return await self._confirm_values(answer)

    @confirm_cell_mappings.validator
    def _let_in_confirm_cell_mappings(self, answer: Confirmation) -> None:
        self._check_confirm_values(answer)

    @workflow.update(name="start")
    async def start(self, answer: Confirmation) -> MappingsAnswer:
        """Confirm all that matched by itself and process the rows; columns may lead to it."""
        return await self._start(answer)

    @start.validator
    def _let_in_start(self, answer: Confirmation) -> None:
        self._check_start(answer)

    @workflow.update(name="cancel")
    async def cancel(self, answer: Answer) -> MappingsAnswer:
        """Stop for good; rows that are written stay, and can be undone."""
        return await self._cancel(answer)

    @cancel.validator
    def _let_in_cancel(self, answer: Answer) -> None:
        self._check_not_over()

    @workflow.update(name="reassign")
    async def reassign(self, answer: Reassignment) -> MappingsAnswer:
        """Wait for somebody else."""
        return await self._reassign(answer)

    @reassign.validator
    def _let_in_reassign(self, answer: Reassignment) -> None:
        self._check_not_over()

    @workflow.update(name="retry")
    async def retry(self, answer: Answer) -> MappingsAnswer:
        """Try the step again that could not be done."""
        return self._retry(answer)

    @retry.validator
    def _let_in_retry(self, answer: Answer) -> None:
        self._parking.refuse_unless_waiting()

    @workflow.signal(name="update_column_mappings")
    async def update_column_mappings_signal(self, answer: ColumnDecisions) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        await self._heed("update_column_mappings", self._take_columns(answer))

    @workflow.signal(name="change_layout")
    async def change_layout_signal(self, change: LayoutChange) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        await self._heed("change_layout", self._take_layout(change))

    @workflow.signal(name="confirm_column_mappings")
    async def confirm_column_mappings_signal(self, answer: Confirmation | None = None) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        await self._heed("confirm_column_mappings", self._confirm_columns(answer or Confirmation()))

    @workflow.signal(name="update_cell_mappings")
    async def update_cell_mappings_signal(self, answer: CellDecisions) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        await self._heed("update_cell_mappings", self._take_values(answer))

    @workflow.signal(name="confirm_cell_mappings")
    async def confirm_cell_mappings_signal(self, answer: Confirmation | None = None) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        await self._heed("confirm_cell_mappings", self._confirm_values(answer or Confirmation()))

    @workflow.signal(name="start")
    async def start_signal(self, answer: Confirmation | None = None) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        await self._heed("start", self._start(answer or Confirmation()))

    @workflow.signal(name="cancel")
    async def cancel_signal(self, answer: Answer | None = None) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        await self._heed("cancel", self._cancel(answer or Answer()))

    @workflow.signal(name="reassign")
    async def reassign_signal(self, answer: Reassignment) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        await self._heed("reassign", self._reassign(answer))

    @workflow.signal(name="retry")
    def retry_signal(self, answer: Answer | None = None) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        self._retry(answer or Answer())

    async def _heed(self, name: str, answer: Awaitable[MappingsAnswer]) -> None:
        """Take the answer of a signal; nobody hears why it is refused, so the status says it."""
        try:
            await answer
        except FailureError as error:
            if is_cancelled_exception(error):
                raise
            self._last_refusal = f"{name}: {explain(error)}"
            workflow.logger.warning("signal %s refused: %s", name, explain(error))
        else:
            self._last_refusal = None
