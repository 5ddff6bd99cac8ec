"""One batch: its infrastructure up, its documents loaded, everything down again."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ApplicationError, FailureError, is_cancelled_exception

from workflows.batches.calls import BatchSteps, happens_within, pause
from workflows.batches.events import Announcement, CancelMode, CaseEvent, ImportCancelled
from workflows.batches.names import BatchPlan, LoaderStatus, Phase, Purpose
from workflows.batches.pauses import (
    LOOKED_AT_AGAIN,
    Attention,
    BatchClosed,
    BatchDisplay,
    BatchPauses,
    BatchRequests,
    redrive_offer,
)
from workflows.batches.runs import (
    EMPTY,
    BatchAnswer,
    BatchInput,
    BatchProgress,
    BatchResult,
    BatchStatus,
    Closing,
    DocumentCounts,
    PolledDepth,
    RedriveInput,
    outcome_of,
)
from workflows.shared.errors import BATCH_FAILED
from workflows.shared.failures import Cancellation, failures_logged, finished_despite_cancel
from workflows.shared.notifications import counted
from workflows.shared.parking import Decision, Parkable, Parking
from workflows.shared.run_notifications import Notifications
from workflows.shared.waiting import Waiting


@workflow.defn(name="BatchLifecycle")
class BatchLifecycle(Parkable, retry=BatchAnswer, skip=BatchAnswer, fail=BatchAnswer):
    """validate -> provision -> load -> drain -> redrive -> end -> tear down.

    However it ends, what was built is removed: after a failure, after a cancel at any moment, and
    by the sweeper's run of the same id when this one was terminated.
    """

    @workflow.init
    def __init__(self, order: BatchInput) -> None:
        self._notices, self._waiting = Notifications(order.notices), Waiting()
        super().__init__(Parking(timedelta(seconds=order.timings.patience), self._notices))
        before = order.progress
        self._order, self._key, self._times = order, order.key, order.timings
        self._cancellation = Cancellation[bool]()
        self._view, self._steps = BatchDisplay(order, self._waiting), BatchSteps(order.key)
        self._building = self._view.building
        self._attention = Attention(order, self._view, self._notices, self._steps)
        self._pauses = BatchPauses(
            order, self._view, self._parking, self._waiting, self._cancellation, self._steps
        )
        self._plan: BatchPlan | None = before and before.plan
        self._requests = BatchRequests(order.purpose, before)
        self._redrives = before.redrives if before else 0
        self._empty_since = before and before.empty_since
        self._ended = before.ended if before else False
        self._counts: DocumentCounts | None = None
        self._outcome: str | None = None

    @workflow.run
    async def run(self, order: BatchInput) -> BatchResult:
        """Run the batch; a batch that fails has status `failed` in its row too."""
        self._notices.begin()
        try:
            await self._until_over(self._cancellation.start(self._load_batch()))
            status = LoaderStatus.CANCELLED if self._cancelled else LoaderStatus.COMPLETE
        except BatchClosed as closed:
            status, self._view.reason = closed.status, closed.reason
        except asyncio.CancelledError:
            status = LoaderStatus.CANCELLED
        except FailureError as error:
            if not is_cancelled_exception(error):
                raise
            status = LoaderStatus.CANCELLED
        result = await finished_despite_cancel(self._close(status))
        if status is LoaderStatus.CANCELLED and self._cancelled is None:
            # Temporal's own cancel: the run shows as Canceled.
            raise asyncio.CancelledError("cancelled; what was built is removed")
        if status is LoaderStatus.FAILED:
            reason = self._view.reason or "failed"
            raise ApplicationError(reason, result, type=BATCH_FAILED, non_retryable=True)
        return result

    async def _until_over(self, work: asyncio.Task[None]) -> None:
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            # Temporal's own cancel, or one by event, which has ended the work already.
            self._cancellation.stop(True)
            await work

    async def _load_batch(self) -> None:
        if self._order.progress is None:
            if self._is_sweep:
                self._plan = await self._pauses.do("plan", self._steps.plan)
                status = await self._pauses.do(
                    "read its row",
                    lambda: self._requests.swept(self._order, self._steps.sweep_facts),
                )
                raise BatchClosed(status, "its run was terminated")
            validation = await self._pauses.may_be_built(self._steps)
            self._requests.add_earlier(validation, self._order.purpose)
            self._plan = validation.plan or await self._pauses.do("plan", self._steps.plan)
            if not validation.leased:
                await self._pauses.take_leases(self._steps, self._plan)
            await self._provision(self._plan)
        if not self._ended:
            await self._load()
            await self._drain_and_redrive()
            await self._count()
            await self._end()
        if not self._cancelled and workflow.patched(LOOKED_AT_AGAIN):
            await self._look_once_more()

    async def _provision(self, plan: BatchPlan) -> None:
        self._view.enter(Phase.PROVISIONING)
        await self._building.make(plan, lambda why: self._pauses.park("provision", why))
        await self._publish(Announcement.LOADER_STARTED)

    async def _load(self) -> None:
        """Watch the queue until all documents have been sent."""
        if self._view.phase is Phase.DRAINING:
            return
        self._view.enter(Phase.LOADING)
        while not (self._requests.job_finished or self._cancelled):
            await self._attention.check()
            await self._show_queues()
            await self._pauses.restored(self._planned)
            self._cancellation.check()
            self._continue_as_new_when_long()
            await self._wait_for(
                lambda: self._requests.job_finished, self._times.poll, "waits for JOB_FINISHED"
            )
        await self._attention.end()

    async def _drain_and_redrive(self) -> None:
        if self._view.phase is not Phase.DRAINING:
            self._view.enter(Phase.DRAINING)
            await pause(self._times.settle)
        while True:
            depth = await self._drain()
            # One at least where a pass was asked for.
            most = max(self._times.max_redrives, self._order.purpose.tries_again)
            most += self._requests.asked
            is_nothing_left = depth.dead_letters.total == 0 and not self._requests.with_failed
            if self._cancelled or is_nothing_left or self._redrives >= most:
                await self._attention.end()
                return
            await self._redrive(final=self._redrives + 1 >= most)

    async def _drain(self) -> PolledDepth:
        """Wait until the queue has been empty, and no load open, for long enough."""
        while True:
            if self._cancelled and not self._building.is_closed:
                await self._pauses.do(
                    "close the intake", lambda: self._building.close_intake(self._planned)
                )
                self._empty_since = None
            await self._attention.check()
            depth = await self._pauses.look(self._look, self._planned)
            seconds = self._times.poll
            if depth.queue.total or depth.loads:
                self._empty_since = None
            else:
                if self._empty_since is None:
                    self._empty_since, seconds = workflow.now(), self._times.hold
                if workflow.now() - self._empty_since >= timedelta(seconds=self._times.hold):
                    return depth
            self._continue_as_new_when_long()
            await pause(seconds)

    async def _redrive(self, *, final: bool) -> None:
        number, before = self._redrives + 1, self._view.reason
        self._view.enter(Phase.REDRIVING, f"pass {number}" + (", the final one" if final else ""))
        with_failed, self._requests.with_failed = self._requests.with_failed, False
        order = RedriveInput(
            key=self._key,
            plan=self._planned,
            number=number,
            final=final,
            with_failed=with_failed,
        )
        await self._pauses.do("redrive", lambda: self._steps.redrive(order))
        self._redrives, self._empty_since = number, None
        self._view.enter(Phase.DRAINING, before)
        await pause(self._times.poll)

    async def _count(self) -> None:
        """Hold what was loaded against the number of documents that JOB_FINISHED said."""
        while (expected := self._requests.expected) is not None and not self._cancelled:
            if not await self._pauses.ask_for_missing(expected, self._steps):
                return
            self._empty_since = None
            await self._drain_and_redrive()

    async def _look_once_more(self) -> None:
        """Load what has come in since BATCH_END_START, before anything is deleted."""
        self._ended = True
        self._view.enter(Phase.DRAINING, self._view.reason)
        plan, self._empty_since = self._planned, None
        await self._pauses.do_or_leave(
            "close the intake", lambda: self._building.close_intake(plan)
        )
        await self._drain_and_redrive()

    async def _end(self) -> None:
        """Let other services do what follows a loaded batch."""
        if self._cancelled:
            return
        early = self._requests.early_end()
        self._view.enter(Phase.ENDING, self._view.with_reason(early))
        if early and self._requests.end_finished:
            await self._publish(Announcement.BATCH_END_START)
        while not (self._requests.end_finished or self._cancelled):
            await self._publish(Announcement.BATCH_END_START)
            if await self._wait_for(
                lambda: self._requests.end_finished, self._times.end, "waits for BATCH_END_FINISHED"
            ):
                return
            reason = f"BATCH_END_FINISHED has not come within {self._times.end} s"
            answered = await self._pauses.ask("wait for the end", reason)
            if answered.decision is Decision.FAIL:
                raise BatchClosed(LoaderStatus.FAILED, answered.explain(reason))
            if answered.decision is Decision.SKIP:
                self._view.reason = self._view.with_reason(answered.remark)
                return

    async def _close(self, status: LoaderStatus) -> BatchResult:
        """Give the batch its status, remove everything, forget what was needed for loading."""
        if status is LoaderStatus.CANCELLED:
            self._view.reason = self._requests.cancelled_because or self._view.reason
        if self._plan is None:
            # Nothing was built.
            await self._pauses.do_or_leave("record", lambda: self._record(status))
            return await self._done(status, DocumentCounts())
        plan = self._plan
        self._view.enter(Phase.TEARING_DOWN, self._view.reason)
        if status is not LoaderStatus.COMPLETE:
            await self._show_queues()
            self._view.note_unread()
        counts = await self._pauses.do_or_leave("record", lambda: self._record(status))
        await self._building.remove(
            plan,
            keep_dead_letters=self._cancelled is not CancelMode.FULL,
            on_failure=None if self._is_sweep else self._pauses.ask_what_to_leave,
        )
        if status is not LoaderStatus.COMPLETE:
            # Nothing starts another one now.
            stopped = await self._pauses.do_or_leave("stop loads", self._steps.cancel_loads)
            counts = stopped or counts
        await self._pauses.do_or_leave("truncate", self._steps.truncate)
        announced = await self._requests.announced_as(
            status, lambda: self._pauses.do_or_leave("read its row", self._steps.sweep_facts)
        )
        if announced is not None:
            outcome = outcome_of(announced, counts, self._view.not_loaded or self._requests.kept)
            await self._pauses.do_or_leave(
                "announce",
                lambda: self._steps.announce(plan, Announcement.LOADER_FINISHED, outcome, counts),
            )
        return await self._done(status, counts or DocumentCounts())

    async def _record(self, status: LoaderStatus) -> DocumentCounts:
        if status is LoaderStatus.SKIPPED:
            await self._steps.skip(self._view.reason or "skipped")
            return DocumentCounts()
        kept = 0 if self._cancelled is CancelMode.FULL else self._view.dead_letters
        closing = Closing(
            key=self._key,
            status=status,
            reason=self._view.reason,
            dead_letters=kept,
            only_processing=self._is_sweep,
            lost=self._view.lost,
            unbuilt=self._plan is None,
        )
        return await self._steps.close(closing)

    async def _done(self, status: LoaderStatus, counts: DocumentCounts) -> BatchResult:
        left, kept, self._counts = self._building.left, self._view.kept, counts
        self._outcome = outcome_of(status, counts, self._view.not_loaded)
        if self._outcome == EMPTY:
            self._view.reason = self._view.with_reason("no document came")
        kind = self._view.close(status, kept, left)
        reason, steps = self._view.reason or counted(counts), redrive_offer(self._key, kept)
        # Each sweep of a batch that cannot be removed ends in the same way.
        await self._notices.end(kind, status, reason, once=self._is_sweep, steps=steps)
        await workflow.wait_condition(workflow.all_handlers_finished)
        if self._order.notify:
            await self._steps.notify_case()
        return BatchResult(
            key=self._key,
            status=status,
            validation=self._view.validation,
            reason=self._view.reason,
            documents=counts,
            redrives=self._redrives,
            dead_letters=kept,
            left=left,
            outcome=self._outcome,
        )

    async def _publish(self, event: Announcement) -> None:
        await self._pauses.do("announce", lambda: self._steps.announce(self._planned, event))

    async def _look(self) -> PolledDepth:
        depth = await self._steps.look(self._planned, self._building.subscription)
        self._view.add(depth)
        return depth

    async def _show_queues(self) -> None:
        """Show the queues to people; nothing depends on it."""
        with failures_logged(f"queues of {self._key} not seen"):
            await self._look()

    async def _wait_for(self, event: Callable[[], bool], most: int, summary: str) -> bool:
        return await happens_within(lambda: event() or self._cancelled is not None, most, summary)

    def _continue_as_new_when_long(self) -> None:
        if not workflow.info().is_continue_as_new_suggested():
            return
        progress = BatchProgress(
            plan=self._planned,
            phase=self._view.phase,
            resources=self._building.rows,
            depths=tuple(self._view.depths),
            reason=self._view.reason,
            lost=self._view.lost,
            redrives=self._redrives,
            empty_since=self._empty_since,
            ended=self._ended,
            slow_since=self._attention.since,
            **self._requests.progress,
        )
        workflow.continue_as_new(self._order.model_copy(update={"progress": progress}))

    @property
    def _cancelled(self) -> CancelMode | None:
        return self._requests.cancelled

    @property
    def _is_sweep(self) -> bool:
        return self._order.purpose is Purpose.SWEEP

    @property
    def _planned(self) -> BatchPlan:
        assert self._plan is not None
        return self._plan

    @workflow.signal(name="take")
    def take(self, event: CaseEvent) -> None:
        """An event of this batch, forwarded by its case."""
        if isinstance(event, ImportCancelled):
            self._cancel(event)
        else:
            self._requests.add(event)

    def _cancel(self, event: ImportCancelled) -> None:
        is_over = self._view.phase in (Phase.TEARING_DOWN, Phase.DONE)
        if is_over or not self._requests.cancel(event):
            return
        if event.mode is CancelMode.FULL or self._view.nothing_in_flight:
            self._cancellation.stop(True)

    @workflow.query(name="status")
    def status(self) -> BatchStatus:
        """Where the batch stands."""
        waits = self._parking.waits
        return BatchStatus(
            key=self._key,
            phase=self._view.phase,
            validation=self._view.validation,
            reason=self._parking.reason or self._view.call_reason or self._view.reason,
            resources=self._building.rows,
            depths=tuple(self._view.depths),
            redrives=self._redrives,
            job_finished=self._requests.job_finished,
            end_finished=self._requests.end_finished,
            cancelled=self._cancelled,
            waiting_since=self._parking.since if waits else None,
            next_steps="retry, skip or fail" if waits else None,
            waiting_for=self._waiting.dependency,
            documents=self._counts,
            outcome=self._outcome,
        )
