"""The status row of a spreadsheet import, from its first step to its last."""

from temporalio import activity

from activities.failures import announces, translate_failures
from activities.heartbeat import Heartbeater
from adapters.ports import SpreadsheetStore
from contracts.spreadsheets import (
    Finishing,
    RowCounts,
    SaveColumns,
    SpreadsheetOrder,
    StatusRecord,
    workflow_id,
)
from contracts.spreadsheets.reviews import DecideRows


class SpreadsheetLifecycle:
    """Opens, records and closes imports.

    Args:
        store: Tables.
    """

    def __init__(self, store: SpreadsheetStore) -> None:
        self._store = store

    @activity.defn(name="spreadsheets.begin")
    @translate_failures
    async def begin(self, order: SpreadsheetOrder) -> None:
        """Open the status row; a second run leaves the one that is there alone."""
        info = activity.info()
        run = info.workflow_id or workflow_id(order.uuid)
        # When the step was first scheduled: the same moment at every attempt.
        await self._store.open(order, run, info.scheduled_time)

    @activity.defn(name="spreadsheets.record")
    @announces(lambda record: record.reason is not None)
    @translate_failures
    async def record(self, record: StatusRecord) -> None:
        """Write one transition; a second run, or one that comes late, changes nothing."""
        await self._store.record(record)

    @activity.defn(name="spreadsheets.finish")
    @translate_failures
    async def finish(self, finishing: Finishing) -> RowCounts:
        """Write the end of an import; a second run changes nothing and answers the same.

        Returns:
            The rows as the progress mark counted them.
        """
        return await self._store.finish(finishing.result, finishing.record)

    @activity.defn(name="spreadsheets.decide_rows")
    @translate_failures
    async def decide_rows(self, work: DecideRows) -> None:
        """Keep rows, or leave them out; a second run changes nothing."""
        async with Heartbeater():
            await self._store.reviews.decide_rows(work)

    @activity.defn(name="spreadsheets.save_columns")
    @translate_failures
    async def save_columns(self, save: SaveColumns) -> None:
        """Write column mappings with their trail; a second run changes nothing."""
        async with Heartbeater():
            await self._store.save_columns(save)
