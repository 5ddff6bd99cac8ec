"""`rows.remove_old`: rows of a pipeline that are no longer kept."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from temporalio import activity

from activities.failures import translate_failures
from activities.heartbeat import Heartbeater
from adapters.ports import Blobs, KeptRows
from contracts.retention import RemovedRows, RowRetentionOrder, RowRetentionResult


class RowRemoval:
    """Removes rows whose time is over, and the blobs that only they name.

    Args:
        kept: What each pipeline of this worker keeps for a time.
        blobs: Where those blobs are.
    """

    def __init__(self, kept: Mapping[str, Sequence[KeptRows]], blobs: Blobs) -> None:
        self._kept = kept
        self._blobs = blobs

    @activity.defn(name="rows.remove_old")
    @translate_failures
    async def remove_old(self, order: RowRetentionOrder) -> RowRetentionResult:
        """Remove kind after kind, the oldest rows first, a page in each transaction.

        Blobs go before the row that names them. A second run continues with the rest, and counts
        what was left for it.
        """
        done: list[RemovedRows] = []
        async with Heartbeater() as heart:
            for kind in self._kept[order.pipeline]:
                done.append(await self._of_kind(kind, order, heart))
        return RowRetentionResult(kinds=tuple(done))

    async def _of_kind(
        self, kind: KeptRows, order: RowRetentionOrder, heart: Heartbeater
    ) -> RemovedRows:
        removed = RemovedRows(what=kind.what, days=kind.days)
        if kind.days is None:
            return removed
        before = datetime.now(UTC) - timedelta(days=kind.days)
        if order.dry_run:
            found = await kind.rows.count(before, order.most)
            return removed.model_copy(update={"rows": found, "more": found == order.most})
        rows = blobs = 0
        while rows < order.most:
            page = await kind.rows.due(before, min(order.page, order.most - rows))
            for name in (name for row in page for name in row.blobs):
                await self._blobs.delete(name)
                blobs += 1
            gone = await kind.rows.remove(page, before) if page else 0
            rows += gone
            heart.beat(removed.model_copy(update={"rows": rows, "blobs": blobs}))
            if not gone:
                break
        return removed.model_copy(update={"rows": rows, "blobs": blobs, "more": rows >= order.most})
