"""Asking people to look at a batch that loads or drains for too long."""

from datetime import timedelta
from typing import Final

from temporalio import workflow

from contracts.batches import BatchKey, BatchOrder, Phase
from contracts.notices import NextStep, NoticeKind, notice_id
from workflows import attributes
from workflows.batches.pauses import BatchDisplay
from workflows.notices import Notices

_PATCH: Final = "slow-batches-named"
"""Releases before it let a batch load and drain for as long as it took."""


class Attention:
    """The limit of one phase of a batch after the other.

    Nothing stops for it: the batch shows up in the inbox, and people are sent one notice, until the
    phase is over.

    Args:
        order: Of the batch.
        view: What people see of it.
        notices: Of its run.
    """

    def __init__(self, order: BatchOrder, view: BatchDisplay, notices: Notices) -> None:
        self._key, self._limit = order.key, order.timings.slow_after
        self._view, self._notices = view, notices
        self.since = order.progress and order.progress.slow_since
        """When the phase began; None: it has not."""

    async def check(self) -> None:
        """Ask for attention once the present phase has lasted too long."""
        since = self.since = self.since or workflow.now()
        is_slow = workflow.now() >= since + timedelta(seconds=self._limit)
        if self._view.call_reason is not None or not (is_slow and workflow.patched(_PATCH)):
            return
        phase = self._view.phase
        reason = f"it has been {phase} for more than {self._limit} s: {_why(phase)}"
        self._view.call(reason)
        workflow.upsert_search_attributes(attributes.waiting(phase, since, attributes.OPERATORS))
        order = self._notices.order(
            NoticeKind.NEEDS_YOU, phase, reason, waiting_since=since, steps=_steps(self._key, phase)
        )
        # One for the phase, also after a pause, and when the run continues as a new one.
        same = notice_id(order.kind, phase, workflow.info().first_execution_run_id)
        await self._notices.once(order.model_copy(update={"id": same}))

    def end(self) -> None:
        """The phase is over."""
        self.since = None
        self._view.call(None)


def _why(phase: Phase) -> str:
    if phase is Phase.LOADING:
        return "JOB_FINISHED has not come"
    return "its queue or its loads do not become empty"


def _steps(key: BatchKey, phase: Phase) -> tuple[NextStep, ...]:
    name = f"{key.case_id} {key.batch_id}"
    look = NextStep(
        does="look at its queues, and at whom it waits for", command=f"docflow batches show {name}"
    )
    finish = NextStep(
        does="say that all documents have been sent", command=f"docflow batches finish {name}"
    )
    cancel = NextStep(does="cancel it", command=f"docflow batches cancel {name}")
    return (look, finish, cancel) if phase is Phase.LOADING else (look, cancel)
