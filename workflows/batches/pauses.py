"""How people see a batch, what was asked of it, and how it waits for them."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from temporalio import workflow
from temporalio.exceptions import FailureError

from workflows.batches.calls import BatchSteps
from workflows.batches.events import (
    BatchEndFinished,
    CancelMode,
    CaseEvent,
    ImportCancelled,
    JobFinished,
    JobStarted,
    RedriveRequested,
)
from workflows.batches.infrastructure import Building, LeftToSweeper, table_of
from workflows.batches.names import (
    BatchKey,
    BatchPlan,
    LoaderStatus,
    Phase,
    Purpose,
    Resource,
    ValidationOutcome,
)
from workflows.batches.runs import (
    DEPTHS_KEPT,
    LOSS,
    BatchInput,
    BatchProgress,
    PolledDepth,
    SweepInfo,
    Validation,
)
from workflows.shared import attributes
from workflows.shared.failures import Cancellation, explain, failures_logged
from workflows.shared.notifications import (
    REASON_CHARACTERS,
    NextStep,
    NotificationKind,
    counted,
    notice_id,
)
from workflows.shared.parking import Answered, Decision, Parking
from workflows.shared.run_notifications import Notifications
from workflows.shared.waiting import StepOutages, Waiting

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
        self, order: BatchInput, facts: Callable[[], Awaitable[SweepInfo]]
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
        self, status: LoaderStatus, facts: Callable[[], Awaitable[SweepInfo | None]]
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


T = TypeVar("T")

_CALLS_RECORDED: Final = "batch-calls-recorded"
"""Releases before it showed in Temporal alone that a batch needs attention."""
WAITS_FOR_ROOM: Final = "waits for room in the account: other batches go first"
_NOTHING_IN_FLIGHT: Final = (
    Phase.VALIDATING,
    Phase.BLOCKED,
    Phase.PROVISIONING,
    Phase.ENDING,
    Phase.PARKED,
)


_LOSES: Final = frozenset({Resource.QUEUE, Resource.DEAD_LETTERS, Resource.SUBSCRIPTION})
"""Documents are lost where one of these is deleted."""
_WORKS: Final = frozenset({Resource.FUNCTION, Resource.MAPPING})
"""Without one of these, documents stay in the queue."""


class BatchClosed(Exception):
    """The batch ends here, for a reason that a person reads."""

    def __init__(self, status: LoaderStatus, reason: str | None = None) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


class BatchDisplay:
    """Where a batch stands, as people see it: phase and reason, resources, queues."""

    def __init__(self, order: BatchInput, waiting: Waiting) -> None:
        before = order.progress
        self.phase = before.phase if before else Phase.VALIDATING
        self.reason = before and before.reason
        self.call_reason: str | None = None
        """Why people are asked to look at the batch, which continues."""
        self.validation: ValidationOutcome | None = None
        self.depths = list(before.depths) if before else []
        self.missing: Sequence[Resource] = ()
        """At the last look: what was deleted by someone else."""
        self.lost = before and before.lost
        """Which queue was, with what it held."""
        resources = before.resources if before else ()
        self.building = Building(order.key, order.timings, waiting, resources, self.show)

    def enter(self, phase: Phase, reason: str | None = None) -> None:
        """Go to another phase."""
        self.phase, self.reason, self.call_reason = phase, reason, None
        if self.lost and self.lost not in (reason or ""):
            self.reason = self.with_reason(self.lost)
        workflow.upsert_search_attributes(attributes.not_waiting(phase))
        self.show()

    def with_reason(self, more: str | None) -> str | None:
        """The reason, and one more."""
        return "; ".join(filter(None, (self.reason, more)))[:REASON_CHARACTERS] or None

    def call(self, reason: str | None) -> None:
        """Ask people to look at the batch, which continues; None: no longer."""
        self.call_reason = reason
        self.show()

    def add(self, depth: PolledDepth) -> None:
        """Show what a look at the queues found."""
        self.depths, self.missing = [*self.depths, depth][-DEPTHS_KEPT:], depth.missing
        self.show()

    def note_unread(self) -> None:
        """Say what is lost with the queue of a batch that ends before it has drained."""
        # Before the batch was loading, what is there is a canary.
        unread = self.depths[-1].queue.total if len(self.depths) > 1 else 0
        if unread:
            self.reason = self.with_reason(f"{unread:,} messages in its queue were not loaded")

    def close(self, status: LoaderStatus, kept: int, left: Sequence[Resource]) -> NotificationKind:
        """Show how the batch ended.

        Args:
            status: Of the batch.
            kept: Dead letters in a queue that stays.
            left: Resources that could not be removed.

        Returns:
            The kind of its notice.
        """
        notes = [self.reason] if self.reason else []
        if kept:
            notes.append(f"{kept} dead letters are kept: `docflow batch redrive` retries them")
        if left:
            notes.append(f"left for the sweeper: {', '.join(left)}")
        self.phase, self.reason = Phase.DONE, "; ".join(notes) or None
        workflow.upsert_search_attributes(
            attributes.waiting(status, workflow.now(), attributes.OPERATORS)
            if kept or left
            else attributes.not_waiting(status)
        )
        self.show()
        if status is LoaderStatus.FAILED:
            return NotificationKind.FAILED
        return NotificationKind.NEEDS_YOU if kept or left else NotificationKind.ENDED

    @property
    def nothing_in_flight(self) -> bool:
        """No document is on its way: a partial cancel is a full one."""
        return self.phase in _NOTHING_IN_FLIGHT

    def show(self) -> None:
        """Bring the run's current details up to date."""
        reasons = "; ".join(filter(None, (self.call_reason, self.reason)))
        reason = f": {reasons}" if reasons else ""
        table = table_of(self.building.rows, self.depths)
        workflow.set_current_details(f"**{self.phase}**{reason}\n\n{table}")

    @property
    def dead_letters(self) -> int:
        """At the last look."""
        return self.depths[-1].dead_letters.total if self.depths else 0

    @property
    def kept(self) -> int:
        """Dead letters in a queue that stays."""
        return self.dead_letters if self.building.keeps_dead_letters else 0

    @property
    def not_loaded(self) -> int:
        """Dead letters that are kept; where a queue was lost, one at least."""
        return self.kept or int(self.lost is not None)


def redrive_offer(key: BatchKey, kept: int) -> tuple[NextStep, ...]:
    """What a person can do with the dead letters of a batch that has ended."""
    command = f"docflow batch redrive {key.case_id}/{key.batch_id}"
    return (NextStep(does="retry its dead letters", command=command),) if kept else ()


def explain_loss(missing: Sequence[Resource]) -> str:
    """What was deleted, and what that costs."""
    deleted = " and ".join(missing)
    if missing == (Resource.MAPPING,):
        deleted = f"{deleted} disabled or"
    what = f"{deleted} deleted by someone else"
    if Resource.QUEUE in missing or Resource.DEAD_LETTERS in missing:
        return f"{what}, with the documents that had not been loaded: send them again"
    if Resource.SUBSCRIPTION in missing:
        return f"{what}: documents that were published since have not come; send them again"
    return what


class BatchPauses:
    """Does the steps of a batch, and parks it at one that has failed permanently.

    A sweep never parks: the next one tries again what this one cannot do.
    """

    def __init__(
        self,
        order: BatchInput,
        view: BatchDisplay,
        parking: Parking,
        waiting: Waiting,
        cancellation: Cancellation[bool],
        steps: BatchSteps,
    ) -> None:
        self._order, self._asks = order, order.purpose is not Purpose.SWEEP
        self._view, self._parking, self._waiting = view, parking, waiting
        self._cancellation, self._steps = cancellation, steps

    async def do(self, step: str, work: Callable[[], Awaitable[T]]) -> T:
        """Do a step; a person decides whether one that failed permanently is tried again.

        Raises:
            BatchClosed: The batch is given up.
        """

        async def attempt() -> T:
            self._cancellation.check()
            done = await work()
            self._cancellation.check()
            return done

        return await self._waiting.retried(attempt, lambda error: self.park(step, explain(error)))

    async def do_or_leave(self, step: str, work: Callable[[], Awaitable[T]]) -> T | None:
        """Do a step of the end, which a person may leave out."""
        outages = StepOutages(self._waiting)
        while True:
            try:
                return await work()
            except FailureError as error:
                failure = error
            if await outages.waited_for(failure):
                continue
            if not await self._is_to_be_retried(step, explain(failure)):
                return None

    async def look(
        self, look: Callable[[], Awaitable[PolledDepth]], plan: BatchPlan
    ) -> PolledDepth:
        """Look at the queues until everything that the batch was built with is there.

        Raises:
            BatchClosed: The batch is given up.
        """
        while True:
            depth = await self.do("look at the queues", look)
            if not await self.restored(plan):
                return depth

    async def restored(self, plan: BatchPlan) -> bool:
        """Let a person decide what becomes of a batch of which something was deleted; False: none.

        Raises:
            BatchClosed: The batch is given up.
        """
        missing, self._view.missing = self._view.missing, ()
        if not missing:
            return False
        what = explain_loss(missing)
        if not _LOSES.isdisjoint(missing):
            self._view.lost = what[:LOSS]
        if self._view.building.is_closed and _WORKS.isdisjoint(missing):
            # Nothing more comes in: there is nothing to build a queue again for.
            self._view.enter(self._view.phase, self._view.reason)
            return False
        await self.park("look at the queues", f"{what}: retry builds again what is missing")
        await self.do("restore", lambda: self._view.building.restore(plan))
        self._view.enter(self._view.phase, self._view.reason)
        return True

    async def may_be_built(self, steps: BatchSteps) -> Validation:
        """Wait until a batch may be built; it is ours then.

        Raises:
            BatchClosed: It is to be left alone, or has been blocked for too long.
        """
        since, order = workflow.now(), self._order
        while True:
            validation = await self.do(
                "validate", lambda: steps.validate(order.purpose, order.timings.grace)
            )
            self._view.validation, self._view.lost = validation.outcome, validation.lost
            if validation.outcome is ValidationOutcome.CONTINUE:
                return validation
            if validation.outcome.skips:
                raise BatchClosed(LoaderStatus.SKIPPED, validation.reason)
            await self._until_unblocked(validation, since)

    async def _until_unblocked(self, validation: Validation, since: datetime) -> None:
        times = self._order.timings
        again = validation.retry_at or workflow.now() + timedelta(seconds=times.poll)
        if validation.outcome is ValidationOutcome.BLOCKED:
            stuck_at = since + timedelta(seconds=times.stuck_after)
            if workflow.now() >= stuck_at:
                reason = f"stuck for {times.stuck_after} s: {validation.reason}"
                raise BatchClosed(LoaderStatus.SKIPPED, reason)
            again = min(again, stuck_at)
        self._view.enter(Phase.BLOCKED, validation.reason)
        await workflow.sleep(max(again - workflow.now(), timedelta(seconds=1)))

    async def take_leases(self, steps: BatchSteps, plan: BatchPlan) -> None:
        """Wait until the account has room for the batch, in the order of those that wait."""
        if plan.leases:
            self._view.enter(Phase.PROVISIONING, WAITS_FOR_ROOM)
            await self.do("take leases", lambda: steps.take_leases(plan))

    async def ask_for_missing(self, expected: int, steps: BatchSteps) -> bool:
        """Hold what was loaded against the count of JOB_FINISHED; True: count again.

        Raises:
            BatchClosed: The batch is given up.
        """
        counts = await self.do("count documents", steps.count)
        if counts.sent > expected:
            surplus = f"JOB_FINISHED said {expected:,} documents, and {counts.sent:,} are known"
            self._view.reason = self._view.with_reason(surplus)
        if counts.sent >= expected:
            return False
        reason = (
            f"JOB_FINISHED said {expected:,} documents, and {counts.sent:,} are known "
            f"({counted(counts)}): send those that are missing, then retry"
        )
        answered = await self.ask("count documents", reason)
        if answered.decision is Decision.FAIL:
            raise BatchClosed(LoaderStatus.FAILED, answered.explain(reason))
        if answered.decision is Decision.SKIP:
            self._view.reason = answered.explain(reason)
        return answered.decision is Decision.RETRY

    async def park(self, step: str, reason: str) -> None:
        """Wait until a person decides that a step is tried again.

        Raises:
            BatchClosed: The batch is given up.
        """
        why = f"{step}: {reason}"
        if not self._asks:
            raise BatchClosed(LoaderStatus.FAILED, why)
        answered = await self.ask(step, reason)
        if answered.decision is not Decision.RETRY:
            raise BatchClosed(LoaderStatus.FAILED, answered.explain(why))

    async def _is_to_be_retried(self, step: str, reason: str) -> bool:
        if not self._asks:
            # The result of the sweep says it.
            self._view.reason = self._view.with_reason(f"{step}: {reason}")
            return False
        return (await self.ask(step, reason)).decision is Decision.RETRY

    async def ask(self, step: str, reason: str) -> Answered:
        """Park until a person decides, or the time for that is over."""
        before, self._view.phase = self._view.phase, Phase.PARKED
        if workflow.patched(_CALLS_RECORDED):
            why = f"{step}: {reason}"
            answered = await self._parking.wait(step, reason, lambda: self._steps.call(why))
            with failures_logged(f"{self._order.key} still shown as parked"):
                await self._waiting.done(lambda: self._steps.call(None))
        else:
            answered = await self._parking.wait(step, reason)
        self._view.phase = before
        self._parking.resume(before)
        # The search attributes no longer ask for anything.
        self._view.call(None)
        return answered

    async def ask_what_to_leave(self, reason: str) -> None:
        """Wait until a person decides that something is to be removed after all.

        Raises:
            LeftToSweeper: It is left to the sweeper.
        """
        if (await self.ask("tear down", reason)).decision is not Decision.RETRY:
            raise LeftToSweeper


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
        steps: Of the batch.
    """

    def __init__(
        self, order: BatchInput, view: BatchDisplay, notices: Notifications, steps: BatchSteps
    ) -> None:
        self._key, self._limit = order.key, order.timings.slow_after
        self._view, self._notices, self._steps = view, notices, steps
        self.since = order.progress and order.progress.slow_since
        """When the phase began; None: it has not."""

    async def check(self) -> None:
        """Ask for attention once the present phase has lasted too long."""
        since = self.since = self.since or workflow.now()
        is_called = self._view.call_reason is not None
        if is_called or not (self._is_slow and workflow.patched(_PATCH)):
            return
        phase = self._view.phase
        reason = f"it has been {phase} for more than {self._limit} s: {_why(phase)}"
        self._view.call(reason)
        workflow.upsert_search_attributes(attributes.waiting(phase, since, attributes.OPERATORS))
        await self._record(reason)
        order = self._notices.order(
            NotificationKind.NEEDS_YOU,
            phase,
            reason,
            waiting_since=since,
            steps=_steps(self._key, phase),
        )
        # One for the phase, also after a pause, and when the run continues as a new one.
        same = notice_id(order.kind, phase, workflow.info().first_execution_run_id)
        await self._notices.once(order.model_copy(update={"id": same}))

    async def end(self) -> None:
        """The phase is over."""
        was_slow, self.since = self._is_slow, None
        self._view.call(None)
        if was_slow:
            await self._record(None)

    @property
    def _is_slow(self) -> bool:
        since = self.since
        return since is not None and workflow.now() >= since + timedelta(seconds=self._limit)

    async def _record(self, reason: str | None) -> None:
        if workflow.patched(_CALLS_RECORDED):
            with failures_logged(f"what {self._key} needs not recorded"):
                await self._steps.call(reason)


def _why(phase: Phase) -> str:
    if phase is Phase.LOADING:
        return "JOB_FINISHED has not come"
    return "its queue or its loads do not become empty"


def _steps(key: BatchKey, phase: Phase) -> tuple[NextStep, ...]:
    name = f"{key.case_id}/{key.batch_id}"
    look = NextStep(
        does="look at its queues, and at whom it waits for", command=f"docflow batch show {name}"
    )
    finish = NextStep(
        does="say that all documents have been sent", command=f"docflow batch finish {name}"
    )
    cancel = NextStep(does="cancel it", command=f"docflow batch cancel {name}")
    return (look, finish, cancel) if phase is Phase.LOADING else (look, cancel)
