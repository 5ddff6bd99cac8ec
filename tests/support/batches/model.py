"""What the tables of batches shall hold, in dictionaries: the oracle of random lives."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from activities.batches.records import BatchView
from adapters.ports.batches import BatchInfo
from tests.support.batches.load_model import LoadModel
from workflows.batches.events import (
    NOT_KNOWN,
    BatchEndFinished,
    CancelMode,
    CaseEvent,
    ImportCancelled,
    JobFinished,
    JobStarted,
    RedriveRequested,
)
from workflows.batches.names import BatchKey, LoaderStatus, Purpose, Timings
from workflows.batches.runs import (
    OPEN_BATCHES,
    Closing,
    DocumentCounts,
    WaitingBatch,
    WaitingBatches,
)


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass
class _Batch:
    key: BatchKey
    status: LoaderStatus = LoaderStatus.WAITING
    since: datetime = field(default_factory=_now)
    updated_at: datetime = field(default_factory=_now)
    reason: str | None = None
    purpose: Purpose | None = None
    timings: Timings | None = None
    job_finished: bool = False
    end_finished: bool = False
    skipped: bool = False
    known: bool = False
    final_pass: bool = False
    dead_letters: int = 0
    cancelled: CancelMode | None = None
    lost: str | None = None
    unannounced: bool = False

    def become(self, status: LoaderStatus, reason: str | None = None) -> None:
        self.status, self.reason = status, reason
        self.since = self.updated_at = _now()

    def begin_clean(self, status: LoaderStatus, reason: str | None = None) -> None:
        """Forget everything but its dead letters, what it lost, and what is not announced."""
        names = ("dead_letters", "known", "lost", "unannounced")
        kept = {name: getattr(self, name) for name in names}
        fresh = _Batch(self.key, **kept)
        vars(self).update(vars(fresh))
        self.become(status, reason)

    def end_without_run(self, status: LoaderStatus, reason: str | None) -> None:
        """End; one that was cancelled is cancelled, and announced."""
        self.unannounced = self.cancelled is not None
        if self.cancelled is not None:
            status = LoaderStatus.CANCELLED
            reason = "; ".join(filter(None, (self.reason, reason))) or None
        self.begin_clean(status, reason)

    def take(self, event: CaseEvent) -> None:
        match event:
            case JobStarted():
                self._start(event)
            case JobFinished():
                self.job_finished |= not self.status.terminal
            case BatchEndFinished():
                self.end_finished |= not self.status.terminal
            case ImportCancelled():
                if self.status is LoaderStatus.PROCESSING:
                    self._cancel(event)
                if self.status is LoaderStatus.WAITING:
                    self.begin_clean(LoaderStatus.CANCELLED, "cancelled before it was built")
            case RedriveRequested():
                if self.status.terminal and self.dead_letters:
                    self.begin_clean(LoaderStatus.WAITING)
                    self.purpose = Purpose.REDRIVE

    def _cancel(self, event: ImportCancelled) -> None:
        if self.cancelled is not event.mode:
            self.cancelled, self.reason = event.mode, event.explanation or "cancelled"

    def _start(self, event: JobStarted) -> None:
        self.known = True
        over = self.status in (LoaderStatus.COMPLETE, LoaderStatus.CANCELLED)
        if over or self.purpose is not None:
            return
        if self.status.terminal:
            self.become(LoaderStatus.WAITING)
            self.lost = None
        self.purpose, self.timings = Purpose.LOAD, event.timings
        self.skipped, self.reason = False, None


class BatchModel:
    """The rules of `SqlBatchStore` once more, written without a database.

    Args:
        loads: Documents of the batches.
    """

    def __init__(self, loads: LoadModel) -> None:
        self._loads = loads
        self._concurrency: dict[int, int | None] = {}
        self._batches: dict[int, dict[int, _Batch]] = {}

    async def expect(self, keys: Sequence[BatchKey]) -> None:
        """Make rows of batches that will be started, so that their order is kept."""
        for key in keys:
            self._ensure(key).known = True

    async def set_concurrency(self, case_id: int, most: int | None) -> None:
        """Set `max_processing_daemons` of a case; None: it has none of its own."""
        self._concurrency[case_id] = most

    async def concurrency(self, case_id: int) -> int | None:
        """`max_processing_daemons` of a case; None: it has none of its own."""
        return self._concurrency.get(case_id)

    async def note(self, case_id: int, events: Sequence[CaseEvent]) -> WaitingBatches:
        """Write events down, and read who waits; writing twice is once."""
        for event in events:
            batch = self._ensure(event.key)
            before = replace(batch)
            batch.take(event)
            if batch != before:
                batch.updated_at = _now()
        waiting = [
            batch for batch in self._case(case_id) if batch.known and not batch.status.terminal
        ]
        waiting.sort(key=lambda batch: (batch.skipped, batch.key.batch_id))
        shown = sorted(waiting[:OPEN_BATCHES], key=lambda batch: batch.key.batch_id)
        return WaitingBatches(
            batches=tuple(
                WaitingBatch(
                    batch_id=batch.key.batch_id,
                    status=batch.status,
                    purpose=batch.purpose,
                    timings=batch.timings,
                    since=batch.since,
                    skipped=batch.skipped,
                    cancelled=batch.cancelled,
                )
                for batch in shown
            )
        )

    async def facts(self, key: BatchKey) -> BatchInfo | None:
        """Everything that validation looks at; None: there is no such batch."""
        batch = self._get(key)
        if batch is None:
            return None
        return BatchInfo(
            status=batch.status,
            reason=batch.reason,
            job_finished=batch.job_finished,
            end_finished=batch.end_finished,
            dead_letters=batch.dead_letters,
            lost=batch.lost,
            cancelled=batch.cancelled,
            concurrency=self._concurrency.get(key.case_id),
            processing=[(other.key.batch_id, other.since) for other in self._others(key)],
            unannounced=batch.unannounced,
        )

    async def claim(self, key: BatchKey, orphans: Sequence[int]) -> bool:
        """Set a batch to `processing` and others of its case from there to `in-complete`."""
        batch = self._get(key)
        if batch is not None and batch.status is LoaderStatus.CANCELLED:
            return False
        others = list(self._others(key))
        if any(other.key.batch_id not in orphans for other in others):
            return False
        for other in others:
            other.end_without_run(LoaderStatus.INCOMPLETE, "its run and its function were gone")
        if batch is not None:
            batch.become(LoaderStatus.PROCESSING)
            batch.purpose, batch.skipped, batch.unannounced = None, False, False
        return True

    async def skip(self, key: BatchKey, reason: str) -> None:
        """Note that a batch no longer holds its case up, and forget what was asked for."""
        batch = self._get(key)
        if batch is None or batch.status.terminal:
            return
        batch.purpose, batch.updated_at = None, _now()
        if batch.status is LoaderStatus.WAITING:
            batch.skipped, batch.reason = True, reason

    async def start_pass(self, key: BatchKey, number: int, final: bool) -> None:
        """Note which pass over the dead letters is under way."""
        batch = self._get(key)
        if batch is not None:
            batch.final_pass = final

    async def is_final_pass(self, key: BatchKey) -> bool:
        """Whether a document that fails now is recorded as failed."""
        batch = self._get(key)
        return batch is not None and batch.final_pass

    async def close(self, closing: Closing) -> None:
        """Give a batch its final status, and forget what was noted for this run of it."""
        batch = self._get(closing.key)
        if batch is None:
            return
        if closing.only_processing and batch.status is not LoaderStatus.PROCESSING:
            return
        if closing.only_processing:
            batch.end_without_run(closing.status, closing.reason)
        else:
            batch.begin_clean(closing.status, closing.reason)
            batch.unannounced = not closing.unbuilt
        batch.dead_letters = closing.dead_letters
        batch.lost = closing.lost or batch.lost

    async def announced(self, key: BatchKey) -> None:
        """Note that LOADER_FINISHED of a batch is published."""
        batch = self._get(key)
        if batch is not None:
            batch.unannounced = False

    async def truncate(self, key: BatchKey) -> int:
        """Empty doc_dedupe, tag_dedupe and process_checkpoints of a batch; rows removed."""
        return self._loads.truncate(key)

    async def counts(self, key: BatchKey) -> DocumentCounts:
        """Documents of a batch by state."""
        return self._loads.counts(key)

    async def get(self, key: BatchKey) -> BatchView | None:
        """One batch."""
        batch = self._get(key)
        return None if batch is None else self._view(batch)

    def _ensure(self, key: BatchKey) -> _Batch:
        return self._batches.setdefault(key.case_id, {}).setdefault(key.batch_id, _Batch(key))

    def _case(self, case_id: int) -> Sequence[_Batch]:
        return list(self._batches.get(case_id, {}).values())

    def _get(self, key: BatchKey) -> _Batch | None:
        return self._batches.get(key.case_id, {}).get(key.batch_id)

    def _others(self, key: BatchKey) -> Iterator[_Batch]:
        """Others of the case in `processing`, lowest id first."""
        for batch in sorted(self._case(key.case_id), key=lambda batch: batch.key.batch_id):
            if batch.key != key and batch.status is LoaderStatus.PROCESSING:
                yield batch

    def _view(self, batch: _Batch) -> BatchView:
        return BatchView(
            key=batch.key,
            status=batch.status,
            reason=batch.reason if batch.known else batch.reason or NOT_KNOWN,
            updated_at=batch.updated_at,
            known=batch.known,
            documents=self._loads.counts(batch.key),
            unannounced=batch.unannounced and batch.status.terminal,
            dead_letters=batch.dead_letters,
            lost=batch.lost,
        )
