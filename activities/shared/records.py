"""Records of runs and messages that are written, closed and removed for every pipeline."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from temporalio import activity

from activities.shared.failures import Heartbeater, translate_failures
from activities.shared.scratch import sweep
from adapters.database.records import KeptRows
from adapters.ports.blobs import Blobs
from adapters.ports.records import OpenRow, OpenRows, RejectionRecord, RunEnd, Runs
from workflows.shared.records import (
    DOCUMENTS,
    DOCUMENTS_DESCRIPTION,
    KINDS,
    NAMED,
    TERMINATED,
    Rejection,
    RemovedRows,
    RowRetentionInput,
    RowRetentionResult,
    RunsSwept,
    RunSweepInput,
)


class Rejections:
    """Records rejected messages.

    Args:
        rejected: The record.
    """

    def __init__(self, rejected: RejectionRecord) -> None:
        self._rejected = rejected

    @activity.defn(name="rejections.record")
    @translate_failures
    async def record(self, rejection: Rejection) -> None:
        """Record one message; a second run finds it."""
        await self._rejected.record(
            rejection.queue,
            # The record knows a message that comes twice by its id.
            rejection.message_id or rejection.workflow_id,
            rejection.reason,
            rejection.description,
            rejection.body,
        )


class RowRemoval:
    """Removes rows whose time is over, and the blobs that only they name.

    Args:
        kept: What each pipeline of this worker keeps for a time.
        blobs: Where those blobs are.
    """

    def __init__(
        self, kept: Mapping[str, Callable[[], Awaitable[Sequence[KeptRows]]]], blobs: Blobs
    ) -> None:
        self._kept = kept
        self._blobs = blobs

    @activity.defn(name="rows.remove_old")
    @translate_failures
    async def remove_old(self, order: RowRetentionInput) -> RowRetentionResult:
        """Remove kind after kind, the oldest rows first, a page in each transaction.

        Blobs go before the row that names them. A second run continues with the rest, and counts
        what was left for it.
        """
        done: list[RemovedRows] = []
        async with Heartbeater() as heart:
            for kind in await self._kept[order.pipeline]():
                done.append(await self._of_kind(kind, order, heart))
        return RowRetentionResult(kinds=tuple(done[:KINDS]))

    async def _of_kind(
        self, kind: KeptRows, order: RowRetentionInput, heart: Heartbeater
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


_ENDS: Final = {
    "canceled": "was cancelled",
    "completed": "ended",
    "failed": "failed",
    "terminated": "was terminated",
    "timed_out": "ran out of time",
}
"""What Temporal calls the end of a run, as people do."""
_UNCOUNTED: Final = frozenset({"terminated", "timed_out", "unknown"})
"""Ends that no worker sees; of any other the run itself is counted."""
PAGE: Final = 500
"""Rows that are read at once."""


class RunSweep:
    """Finds rows whose run is over, and closes them.

    Args:
        rows: The rows of each pipeline that this worker serves.
        runs: What Temporal knows of runs.
        scratch: Folder for temporary files.
    """

    def __init__(self, rows: Mapping[str, Sequence[OpenRows]], runs: Runs, scratch: Path) -> None:
        self._rows = rows
        self._runs = runs
        self._scratch = scratch

    @activity.defn(name="runs.sweep")
    @translate_failures
    async def sweep(self, order: RunSweepInput) -> RunsSwept:
        """Close every open row of a pipeline whose run is over, or unknown for long.

        A second run finds what the first one left. Scratch folders that no process of this machine
        holds are removed as well.
        """
        closed = list[str]()
        async with Heartbeater():
            folders = await asyncio.to_thread(sweep, self._scratch)
            for rows in self._rows[order.pipeline]:
                closed += await self._closed(rows, order)
        return RunsSwept(terminated=len(closed), runs=tuple(closed[:NAMED]), folders=folders)

    async def _closed(self, rows: OpenRows, order: RunSweepInput) -> Sequence[str]:
        now, after, closed = datetime.now(UTC), "", list[str]()
        before = now - timedelta(seconds=order.closed_for)
        while page := await rows.open_rows(before, after, PAGE):
            closed += [row.id for row in page if await self._is_closed(rows, row, order, now)]
            after = page[-1].id
        return closed

    async def _is_closed(
        self, rows: OpenRows, row: OpenRow, order: RunSweepInput, now: datetime
    ) -> bool:
        run = row.run or row.id
        end = await self._runs.end(run)
        if end is None or (row.only_after and end.status not in row.only_after):
            return False
        if not _is_old(row, end, order, now):
            return False
        reason = reason_of(run, end)
        if not await rows.terminate(row.id, reason, row.changed_at):
            return False
        activity.logger.warning("%s is terminated: %s", row.id, reason)
        if end.status in _UNCOUNTED:
            _count(order.pipeline, end)
        return True


def _count(pipeline: str, end: RunEnd) -> None:
    counter = activity.metric_meter().create_counter(DOCUMENTS, DOCUMENTS_DESCRIPTION)
    kind = end.document_type or "unknown"
    counter.add(1, {"pipeline": pipeline, "type": kind, "state": TERMINATED})


def _is_old(row: OpenRow, end: RunEnd, order: RunSweepInput, now: datetime) -> bool:
    if end.at is None:
        return now - row.changed_at >= timedelta(seconds=order.unknown_for)
    return now - end.at >= timedelta(seconds=order.closed_for) + row.grace


def reason_of(run: str, end: RunEnd) -> str:
    """Why a row that was left open is closed, for people."""
    if end.at is None:
        return f"Temporal knows no run {run}"
    said = _ENDS.get(end.status, "ended")
    return f"its run {run} {said} at {end.at:%Y-%m-%d %H:%M} UTC and could not record its end"
