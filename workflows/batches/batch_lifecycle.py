"""One batch: its infrastructure up, its documents loaded, everything down again."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

from temporalio import workflow
from temporalio.exceptions import ApplicationError, FailureError, is_cancelled_exception

from contracts.batches import (
    Announcement,
    BatchAnswer,
    BatchEndFinished,
    BatchOrder,
    BatchPlan,
    BatchProgress,
    BatchResult,
    BatchStatus,
    CancelMode,
    CaseEvent,
    Closing,
    DocumentCounts,
    ImportCancelled,
    JobFinished,
    JobStarted,
    LoaderStatus,
    Phase,
    PolledDepth,
    Purpose,
    RedriveRequested,
    Validation,
    ValidationOutcome,
)
from contracts.errors import BATCH_FAILED
from domain.notices import counted
from workflows.batches.pauses import BatchDisplay, BatchOver, BatchPauses, redrive_of
from workflows.batches.steps import BatchSteps
from workflows.cancellation import Cancellation, finished_despite_cancel
from workflows.failures import failures_logged
from workflows.notices import Notices
from workflows.parkable import Parkable
from workflows.parking import Decision, Parking
from workflows.waiting import Waiting


@workflow.defn(name="BatchLifecycle")
class BatchLifecycle(Parkable, retry=BatchAnswer, skip=BatchAnswer, fail=BatchAnswer):
    """validate -> provision -> load -> drain -> redrive -> end -> tear down.

    However it ends, what was built is removed: after a failure, after a cancel at any moment, and
    by the sweeper's run of the same id when this one was terminated.
    """

    @workflow.init
    def __init__(self, order: BatchOrder) -> None:
        self._notices, self._waiting = Notices(order.notices), Waiting()
        super().__init__(Parking(timedelta(seconds=order.timings.patience), self._notices))
        before = order.progress
        self._order, self._key, self._times = order, order.key, order.timings
        self._cancellation = Cancellation[bool]()
        self._view, self._steps = BatchDisplay(order, self._waiting), BatchSteps(order.key)
        self._building = self._view.building
        self._pauses = BatchPauses(
            order, self._view, self._parking, self._waiting, self._cancellation
        )
        self._validation: ValidationOutcome | None = None
        self._plan: BatchPlan | None = before and before.plan
        self._redrives, self._asked = (before.redrives, before.asked) if before else (0, 0)
        self._job_finished = before.job_finished if before else False
        self._end_finished = before.end_finished if before else False
        self._cancelled = before and before.cancelled
        self._cancelled_because = before and before.cancelled_because
        self._empty_since = before and before.empty_since

    @workflow.run
    async def run(self, order: BatchOrder) -> BatchResult:
        """Run the batch; a batch that fails has status `failed` in its row too."""
        self._notices.begin()
        try:
            await self._until_over(self._cancellation.start(self._load_batch()))
            status = LoaderStatus.CANCELLED if self._cancelled else LoaderStatus.COMPLETE
        except BatchOver as over:
            status, self._view.reason = over.status, over.reason
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
                raise BatchOver(LoaderStatus.TERMINATED, "its run was terminated")
            await self._validate()
            self._plan = await self._pauses.do("plan", self._steps.plan)
            await self._provision(self._plan)
        await self._load()
        await self._drain_and_redrive()
        await self._end()

    async def _validate(self) -> None:
        since = workflow.now()
        while True:
            validation = await self._pauses.do("validate", self._may_be_built)
            self._validation = validation.outcome
            if validation.outcome is ValidationOutcome.CONTINUE:
                again = self._order.purpose is Purpose.REDRIVE
                self._job_finished |= validation.job_finished or again
                self._end_finished |= validation.end_finished
                return
            if validation.outcome.skips:
                raise BatchOver(LoaderStatus.SKIPPED, validation.reason)
            await self._wait_until_unblocked(validation, since)

    async def _may_be_built(self) -> Validation:
        return await self._steps.validate(self._order.purpose, self._times.grace)

    async def _wait_until_unblocked(self, validation: Validation, since: datetime) -> None:
        again = validation.retry_at or workflow.now() + timedelta(seconds=self._times.poll)
        if validation.outcome is ValidationOutcome.BLOCKED:
            stuck_at = since + timedelta(seconds=self._times.stuck_after)
            if workflow.now() >= stuck_at:
                reason = f"stuck for {self._times.stuck_after} s: {validation.reason}"
                raise BatchOver(LoaderStatus.SKIPPED, reason)
            again = min(again, stuck_at)
        self._view.enter(Phase.BLOCKED, validation.reason)
        await workflow.sleep(max(again - workflow.now(), timedelta(seconds=1)))

    async def _provision(self, plan: BatchPlan) -> None:
        self._view.enter(Phase.PROVISIONING)
        await self._building.make(plan, lambda why: self._pauses.park("provision", why))
        await self._publish(Announcement.LOADER_STARTED)

    async def _load(self) -> None:
        """Watch the queue until all documents have been sent."""
        if self._view.phase is Phase.DRAINING:
            return
        self._view.enter(Phase.LOADING)
        while not (self._job_finished or self._cancelled):
            await self._glance()
            self._cancellation.check()
            self._continue_as_new_when_long()
            await self._wait_for(
                lambda: self._job_finished, self._times.poll, "waits for JOB_FINISHED"
            )

    async def _drain_and_redrive(self) -> None:
        if self._view.phase is not Phase.DRAINING:
            self._view.enter(Phase.DRAINING)
            await _rest(self._times.settle)
        while True:
            depth = await self._drain()
            most = self._passes
            if self._cancelled or depth.dead_letters.total == 0 or self._redrives >= most:
                return
            await self._redrive(final=self._redrives + 1 >= most)

    @property
    def _passes(self) -> int:
        """Passes over the dead letters that there may be, one at least where asked for."""
        least = 1 if self._order.purpose is Purpose.REDRIVE else 0
        return max(self._times.max_redrives, least) + self._asked

    async def _drain(self) -> PolledDepth:
        """Wait until the queue has been empty, and no load open, for long enough."""
        while True:
            if self._cancelled and not self._building.is_closed:
                await self._pauses.do(
                    "close the intake", lambda: self._building.close_intake(self._planned)
                )
                self._empty_since = None
            depth = await self._pauses.do("look at the queues", self._look)
            pause = self._times.poll
            if depth.queue.total or depth.loads:
                self._empty_since = None
            else:
                if self._empty_since is None:
                    self._empty_since, pause = workflow.now(), self._times.hold
                if workflow.now() - self._empty_since >= timedelta(seconds=self._times.hold):
                    return depth
            self._continue_as_new_when_long()
            await _rest(pause)

    async def _redrive(self, *, final: bool) -> None:
        number = self._redrives + 1
        self._view.enter(Phase.REDRIVING, f"pass {number}" + (", the final one" if final else ""))
        await self._pauses.do(
            "redrive", lambda: self._steps.redrive(self._planned, number, final=final)
        )
        self._redrives, self._empty_since = number, None
        self._view.enter(Phase.DRAINING, self._view.reason)
        await _rest(self._times.poll)

    async def _end(self) -> None:
        """Let other services do what follows a loaded batch."""
        if self._cancelled:
            return
        self._view.enter(Phase.ENDING)
        while not (self._end_finished or self._cancelled):
            await self._publish(Announcement.BATCH_END_START)
            if await self._wait_for(
                lambda: self._end_finished, self._times.end, "waits for BATCH_END_FINISHED"
            ):
                return
            reason = f"BATCH_END_FINISHED has not come within {self._times.end} s"
            answered = await self._pauses.ask("wait for the end", reason)
            if answered.decision is Decision.FAIL:
                raise BatchOver(LoaderStatus.FAILED, answered.explain(reason))
            if answered.decision is Decision.SKIP:
                self._view.reason = answered.remark
                return

    async def _close(self, status: LoaderStatus) -> BatchResult:
        """Give the batch its status, remove everything, forget what was needed for loading."""
        if status is LoaderStatus.CANCELLED:
            self._view.reason = self._cancelled_because or self._view.reason
        if self._plan is None:
            # Nothing was built.
            if status is LoaderStatus.SKIPPED:
                reason = self._view.reason or "skipped"
                await self._pauses.do_or_leave("record", lambda: self._steps.skip(reason))
            else:
                await self._pauses.do_or_leave("record", lambda: self._record(status))
            return await self._done(status, DocumentCounts())
        plan = self._plan
        self._view.enter(Phase.TEARING_DOWN, self._view.reason)
        if status is not LoaderStatus.COMPLETE:
            await self._glance()
        counts = await self._pauses.do_or_leave("record", lambda: self._record(status))
        await self._building.remove(
            plan,
            keep_dead_letters=self._cancelled is not CancelMode.FULL,
            on_failure=None if self._is_sweep else self._pauses.ask_what_to_leave,
        )
        if status is not LoaderStatus.COMPLETE:
            # Nothing starts another one now.
            await self._pauses.do_or_leave("stop loads", self._steps.cancel_loads)
        await self._pauses.do_or_leave("truncate", self._steps.truncate)
        if not self._is_sweep:
            outcome = "SUCCESS" if status is LoaderStatus.COMPLETE else status.upper()
            await self._pauses.do_or_leave(
                "announce",
                lambda: self._steps.announce(plan, Announcement.LOADER_FINISHED, outcome),
            )
        return await self._done(status, counts or DocumentCounts())

    async def _record(self, status: LoaderStatus) -> DocumentCounts:
        kept = 0 if self._cancelled is CancelMode.FULL else self._view.dead_letters
        closing = Closing(
            key=self._key,
            status=status,
            reason=self._view.reason,
            dead_letters=kept,
            only_processing=self._is_sweep,
        )
        return await self._steps.close(closing)

    async def _done(self, status: LoaderStatus, counts: DocumentCounts) -> BatchResult:
        left = self._building.left
        kept = self._view.dead_letters if self._building.keeps_dead_letters else 0
        kind = self._view.close(status, kept, left)
        reason, steps = self._view.reason or counted(counts), redrive_of(self._key, kept)
        # Each sweep of a batch that cannot be removed ends in the same way.
        await self._notices.end(kind, status, reason, once=self._is_sweep, steps=steps)
        await workflow.wait_condition(workflow.all_handlers_finished)
        if self._order.notify:
            await self._steps.notify_case()
        return BatchResult(
            key=self._key,
            status=status,
            validation=self._validation,
            reason=self._view.reason,
            documents=counts,
            redrives=self._redrives,
            dead_letters=kept,
            left=left,
        )

    async def _publish(self, event: Announcement) -> None:
        await self._pauses.do("announce", lambda: self._steps.announce(self._planned, event))

    async def _look(self) -> PolledDepth:
        depth = await self._steps.look(self._planned)
        self._view.add(depth)
        return depth

    async def _glance(self) -> None:
        """Show the queues to people; nothing depends on it."""
        with failures_logged(f"queues of {self._key} not seen"):
            await self._look()

    async def _wait_for(self, event: Callable[[], bool], most: int, summary: str) -> bool:
        """Wait for an event or a request to stop; False: neither came in time."""
        try:
            await workflow.wait_condition(
                lambda: event() or self._cancelled is not None,
                timeout=timedelta(seconds=most),
                timeout_summary=summary,
            )
        except TimeoutError:
            return False
        return True

    def _continue_as_new_when_long(self) -> None:
        if not workflow.info().is_continue_as_new_suggested():
            return
        progress = BatchProgress(
            plan=self._planned,
            phase=self._view.phase,
            resources=self._building.rows,
            depths=tuple(self._view.depths),
            redrives=self._redrives,
            asked=self._asked,
            job_finished=self._job_finished,
            end_finished=self._end_finished,
            cancelled=self._cancelled,
            cancelled_because=self._cancelled_because,
            empty_since=self._empty_since,
        )
        workflow.continue_as_new(self._order.model_copy(update={"progress": progress}))

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
        match event:
            case JobFinished():
                self._job_finished = True
            case BatchEndFinished():
                self._end_finished = True
            case RedriveRequested():
                self._asked += 1
            case ImportCancelled():
                self._cancel(event)
            case JobStarted():
                # It is running: the message came twice.
                return

    def _cancel(self, event: ImportCancelled) -> None:
        if (
            self._view.phase in (Phase.TEARING_DOWN, Phase.DONE)
            or self._cancelled is CancelMode.FULL
        ):
            return
        self._cancelled, self._cancelled_because = event.mode, event.explanation
        if event.mode is CancelMode.FULL or self._view.nothing_in_flight:
            self._cancellation.stop(True)

    @workflow.query(name="status")
    def status(self) -> BatchStatus:
        """Where the batch stands."""
        waits = self._parking.waits
        return BatchStatus(
            key=self._key,
            phase=self._view.phase,
            validation=self._validation,
            reason=self._parking.reason or self._view.reason,
            resources=self._building.rows,
            depths=tuple(self._view.depths),
            redrives=self._redrives,
            job_finished=self._job_finished,
            end_finished=self._end_finished,
            cancelled=self._cancelled,
            waiting_since=self._parking.since if waits else None,
            next_steps="retry, skip or fail" if waits else None,
            waiting_for=self._waiting.dependency,
        )


async def _rest(seconds: int) -> None:
    # The server fires a timer of no time after a second.
    if seconds:
        await workflow.sleep(timedelta(seconds=seconds))
