"""What other services and people have asked of a batch."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from temporalio import workflow

from contracts.batches import (
    BatchEndFinished,
    BatchOrder,
    BatchProgress,
    CancelMode,
    CaseEvent,
    ImportCancelled,
    JobFinished,
    JobStarted,
    LoaderStatus,
    Purpose,
    RedriveRequested,
    SweepFacts,
    Validation,
)

_MOST_COUNT: Final = "of-two-counts-the-larger"
_NONE_COUNTS: Final = "no-documents-are-a-count"
"""Releases before it took a count of 0 for none."""
_CANCELS_SWEPT: Final = "cancels-seen-by-the-sweeper"
"""Releases before it announced no end of a cancelled batch that the sweeper removed."""

LOOKED_AT_AGAIN: Final = "looked-at-again"
"""Releases before it took an end that came too early, and deleted what had come in after it."""
_EARLY_END_KEPT: Final = "early-ends-kept"
"""Releases before it accepted an end that came too early, and waited for another one."""
_EARLY: Final = "BATCH_END_FINISHED came before BATCH_END_START, and"


class BatchRequests:
    """The events of a batch so far.

    Args:
        purpose: Of the run.
        before: Of the run that this one continues.

    Attributes:
        asked: Passes over the dead letters that were requested beyond the plan's.
        with_failed: The next pass takes the documents that are recorded as failed along.
        job_finished: All documents have been sent.
        end_finished: What follows the loading is done.
        expected: Documents of the batch, as JOB_FINISHED said.
        cancelled: How much of it is stopped.
        cancelled_because: Why, for people.
        unannounced: A sweep has found the batch in `processing`.
        kept: Dead letters that an earlier run kept; where it lost a queue, one at least.
    """

    def __init__(self, purpose: Purpose, before: BatchProgress | None) -> None:
        self.asked = before.asked if before else 0
        self.with_failed = before.with_failed if before else purpose is Purpose.RETRY_FAILED
        self.job_finished = before.job_finished if before else False
        self.end_finished = before.end_finished if before else False
        self.expected = before and before.expected
        self.cancelled = before and before.cancelled
        self.cancelled_because = before and before.cancelled_because
        self.unannounced = False
        self.kept = 0
        self._unsaid: LoaderStatus | None = None
        self._is_sweep = purpose is Purpose.SWEEP

    def add_earlier(self, validation: Validation, purpose: Purpose) -> None:
        """Add what had come before the run began."""
        self.job_finished |= validation.job_finished or purpose.tries_again
        self.end_finished |= validation.end_finished
        if self.expected is None:
            self.expected = validation.documents

    def add(self, event: CaseEvent) -> None:
        """Add an event; a cancel is `cancel`'s."""
        match event:
            case JobFinished():
                self.job_finished = True
                self._expect(event.documents)
            case BatchEndFinished():
                self.end_finished = True
            case RedriveRequested():
                self.asked += 1
                self.with_failed |= event.with_failed
            case JobStarted() | ImportCancelled():
                # It is running: the message came twice.
                return

    def early_end(self) -> str | None:
        """How an end counts that came before BATCH_END_START, for people; None: none came."""
        if not (self.end_finished and workflow.patched(LOOKED_AT_AGAIN)):
            return None
        self.end_finished = workflow.patched(_EARLY_END_KEPT)
        return f"{_EARLY} was {'kept until then' if self.end_finished else 'not used'}"

    def _expect(self, documents: int | None) -> None:
        """Note how many documents there are; events may come in any order, and the most count."""
        if documents is None or (documents == 0 and not workflow.patched(_NONE_COUNTS)):
            return
        fewer = documents < (self.expected or 0)
        if not fewer or not workflow.patched(_MOST_COUNT):
            self.expected = documents

    async def swept(
        self, order: BatchOrder, facts: Callable[[], Awaitable[SweepFacts]]
    ) -> LoaderStatus:
        """Add the cancel, if there was one, of a batch whose run was terminated; how it ends."""
        self.cancelled = order.cancelled
        if self.cancelled is None and workflow.patched(_CANCELS_SWEPT):
            before = await facts()
            self.unannounced = before.processing
            self.cancelled = before.cancelled if before.processing else None
            self._unsaid, self.kept = before.unannounced, before.not_loaded
        return LoaderStatus.CANCELLED if self.cancelled else LoaderStatus.TERMINATED

    async def announced_as(
        self, status: LoaderStatus, facts: Callable[[], Awaitable[SweepFacts | None]]
    ) -> LoaderStatus | None:
        """How the end of the batch is announced; None: not at all.

        A sweep announces cancels, and ends that were recorded and not announced. A batch that it
        sets to `terminated` is loaded again, and announced then.
        """
        if self.cancelled or not self._is_sweep:
            return status
        if self.unannounced and (after := await facts()) is not None:
            # A cancel may have come while it was swept: its row has become `cancelled`.
            return LoaderStatus.CANCELLED if after.cancelled else after.unannounced
        return self._unsaid

    def cancel(self, event: ImportCancelled) -> bool:
        """Add a cancel; False: all of the batch is stopped already."""
        if self.cancelled is CancelMode.FULL:
            return False
        self.cancelled, self.cancelled_because = event.mode, event.explanation
        return True

    @property
    def progress(self) -> dict[str, Any]:
        """Fields of `BatchProgress`."""
        return {
            "asked": self.asked,
            "with_failed": self.with_failed,
            "job_finished": self.job_finished,
            "end_finished": self.end_finished,
            "expected": self.expected,
            "cancelled": self.cancelled,
            "cancelled_because": self.cancelled_because,
        }
