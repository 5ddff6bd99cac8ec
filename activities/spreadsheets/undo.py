"""Takes the rows of an import back."""

from temporalio import activity

from activities.failures import translate_failures
from activities.heartbeat import Heartbeater
from adapters.ports import SpreadsheetStore
from contracts.base import Contract
from contracts.spreadsheets import UndoOrder, UndoResult
from domain.errors import RuleViolation


class ChunksUndone(Contract):
    """Heartbeat of `spreadsheets.undo`."""

    chunks: int
    """Of this attempt."""


class SpreadsheetUndoSteps:
    """Undoes imports.

    Args:
        store: Tables.
    """

    def __init__(self, store: SpreadsheetStore) -> None:
        self._store = store

    @activity.defn(name="spreadsheets.undo")
    @translate_failures
    async def undo(self, order: UndoOrder) -> UndoResult:
        """Delete the rows that an import has created, restore those that it has changed.

        Newest chunk first, each with its progress mark in one transaction: a second run continues
        behind the last chunk that was taken back, and ends with the same result.

        Raises:
            ApplicationError: `Permanent` when the import cannot be undone, with the reason; see
                `activities.failures` for the others.
        """
        async with Heartbeater() as heart:
            refusal = await self._store.begin_undo(order)
            if refusal is not None:
                raise RuleViolation(refusal)
            chunks = 0
            while await self._store.undo_chunk(order.uuid):
                chunks += 1
                heart.beat(ChunksUndone(chunks=chunks))
            return await self._store.end_undo(order.uuid)
