"""One batch: its infrastructure up, its documents loaded, everything down again."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from temporalio import workflow
from temporalio.exceptions import ApplicationError, FailureError, is_cancelled_exception

from contracts.batches import (
    Announcement,
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
from contracts.batches.runs import DEPTHS_KEPT
from contracts.errors import BATCH_FAILED
from workflows import attributes
from workflows.batches.pauses import BatchOver, BatchPauses
from workflows.batches.steps import BatchSteps
from workflows.steps import Decision, explain, to_its_end

NOTHING_IN_FLIGHT: Final = (
    Phase.VALIDATING,
    Phase.BLOCKED,
    Phase.PROVISIONING,
    Phase.ENDING,
    Phase.PARKED,
)
"""Where stopping to take in is the same as stopping."""


@workflow.defn(name="BatchLifecycle")
class BatchLifecycle(BatchPauses):
    """validate -> provision -> load -> drain -> redrive -> end -> tear down.

    However it ends, what was built is removed: after a failure, after a cancel at any moment, and
    by the sweeper's run of the same id when this one was terminated.
    """

    @workflow.init
    def __init__(self, order: BatchOrder) -> None:
        super().__init__(order)
        before = order.progress
        self._steps = BatchSteps(order.key)
        self._work: asyncio.Task[None] | None = None
        self._validation: ValidationOutcome | None = None
        self._plan: BatchPlan | None = before and before.plan
        self._redrives = before.redrives if before else 0
        self._asked = before.asked if before else 0
        self._job_finished = before.job_finished if before else False
        self._end_finished = before.end_finished if before else False
        self._cancelled = before and before.cancelled
        self._empty_since = before and before.empty_since

    @workflow.run
    async def run(self, order: BatchOrder) -> BatchResult:
        """Run the batch; a batch that fails has status `failed` in its row too."""
        self._work = asyncio.create_task(self._live())
        try:
            await self._until_over(self._work)
            status = LoaderStatus.CANCELLED if self._cancelled else LoaderStatus.COMPLETE
        except BatchOver as over:
            status, self._reason = over.status, over.reason
        except asyncio.CancelledError:
            status = LoaderStatus.CANCELLED
        except FailureError as error:
            if not is_cancelled_exception(error):
                raise
            status = LoaderStatus.CANCELLED
        result = await to_its_end(self._close(status))
        if status is LoaderStatus.CANCELLED and self._cancelled is None:
            # Temporal's own cancel: the run shows as Canceled.
            raise asyncio.CancelledError("cancelled; what was built is removed")
        if status is LoaderStatus.FAILED:
            reason = self._reason or "failed"
            raise ApplicationError(reason, result, type=BATCH_FAILED, non_retryable=True)
        return result

    async def _until_over(self, work: asyncio.Task[None]) -> None:
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            # Temporal's own cancel, or ours, which has ended the work already.
            self._stop()
            await work

    def _stop(self) -> None:
        self._stopped = True
        if self._work is not None:
            self._work.cancel()

    async def _live(self) -> None:
        if self._order.progress is None:
            if self._is_sweep:
                self._plan = await self._do("plan", self._steps.plan)
                raise BatchOver(LoaderStatus.INCOMPLETE, "its run was terminated")
            await self._validate()
            self._plan = await self._do("plan", self._steps.plan)
            await self._provision(self._plan)
        await self._load()
        await self._drain_and_redrive()
        await self._end()

    async def _validate(self) -> None:
        since = workflow.now()
        while True:
            validation = await self._do("validate", self._ask_whether)
            self._validation = validation.outcome
            if validation.outcome is ValidationOutcome.CONTINUE:
                again = self._order.purpose is Purpose.REDRIVE
                self._job_finished |= validation.job_finished or again
                self._end_finished |= validation.end_finished
                return
            if validation.outcome.skips:
                raise BatchOver(LoaderStatus.SKIPPED, validation.reason)
            await self._wait_until_unblocked(validation, since)

    async def _ask_whether(self) -> Validation:
        return await self._steps.validate(self._order.purpose, self._times.grace)

    async def _wait_until_unblocked(self, validation: Validation, since: datetime) -> None:
        again = validation.retry_at or workflow.now() + timedelta(seconds=self._times.poll)
        if validation.outcome is ValidationOutcome.BLOCKED:
            stuck_at = since + timedelta(seconds=self._times.stuck_after)
            if workflow.now() >= stuck_at:
                said = f"stuck for {self._times.stuck_after} s: {validation.reason}"
                raise BatchOver(LoaderStatus.SKIPPED, said)
            again = min(again, stuck_at)
        self._enter(Phase.BLOCKED, validation.reason)
        await workflow.sleep(max(again - workflow.now(), timedelta(seconds=1)))

    async def _provision(self, plan: BatchPlan) -> None:
        self._enter(Phase.PROVISIONING)
        await self._building.make(plan, lambda why: self._park("provision", why))
        await self._publish(Announcement.LOADER_STARTED)

    async def _load(self) -> None:
        """Watch the queue until all documents have been sent."""
        if self._phase is Phase.DRAINING:
            return
        self._enter(Phase.LOADING)
        while not (self._job_finished or self._cancelled):
            await self._glance()
            self._go_on()
            self._go_on_as_new_when_long()
            await self._wait_for(
                lambda: self._job_finished, self._times.poll, "waits for JOB_FINISHED"
            )

    async def _drain_and_redrive(self) -> None:
        if self._phase is not Phase.DRAINING:
            self._enter(Phase.DRAINING)
            await self._rest(self._times.settle)
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
                await self._do(
                    "close the intake", lambda: self._building.close_intake(self._planned)
                )
                self._empty_since = None
            depth = await self._do("look at the queues", self._look)
            pause = self._times.poll
            if depth.queue.total or depth.loads:
                self._empty_since = None
            else:
                if self._empty_since is None:
                    self._empty_since, pause = workflow.now(), self._times.hold
                if workflow.now() - self._empty_since >= timedelta(seconds=self._times.hold):
                    return depth
            self._go_on_as_new_when_long()
            await self._rest(pause)

    async def _redrive(self, *, final: bool) -> None:
        number = self._redrives + 1
        self._enter(Phase.REDRIVING, f"pass {number}" + (", the final one" if final else ""))
        await self._do("redrive", lambda: self._steps.redrive(self._planned, number, final=final))
        self._redrives, self._empty_since = number, None
        self._enter(Phase.DRAINING, self._reason)
        await self._rest(self._times.poll)

    async def _end(self) -> None:
        """Let the outside world do what follows a loaded batch."""
        if self._cancelled:
            return
        self._enter(Phase.ENDING)
        while not (self._end_finished or self._cancelled):
            await self._publish(Announcement.BATCH_END_START)
            if await self._wait_for(
                lambda: self._end_finished, self._times.end, "waits for BATCH_END_FINISHED"
            ):
                return
            said = f"BATCH_END_FINISHED has not come within {self._times.end} s"
            decision = await self._ask("wait for the end", said)
            if decision is Decision.FAIL:
                raise BatchOver(LoaderStatus.FAILED, said)
            if decision is Decision.SKIP:
                return

    async def _close(self, status: LoaderStatus) -> BatchResult:
        """Give the batch its status, remove everything, forget what was needed for loading."""
        if self._plan is None:
            # Nothing was built.
            if status is LoaderStatus.SKIPPED:
                reason = self._reason or "skipped"
                await self._leave("record", lambda: self._steps.skip(reason))
            else:
                await self._leave("record", lambda: self._record(status))
            return await self._done(status, DocumentCounts())
        plan = self._plan
        self._enter(Phase.TEARING_DOWN, self._reason)
        if status is not LoaderStatus.COMPLETE:
            await self._glance()
        counts = await self._leave("record", lambda: self._record(status))
        await self._building.remove(
            plan,
            keep_dead_letters=self._cancelled is not CancelMode.FULL,
            trouble=None if self._is_sweep else self._ask_what_to_leave,
        )
        if status is not LoaderStatus.COMPLETE:
            # Nothing starts another one now.
            await self._leave("stop loads", self._steps.cancel_loads)
        await self._leave("truncate", self._steps.truncate)
        if not self._is_sweep:
            said = "SUCCESS" if status is LoaderStatus.COMPLETE else status.upper()
            await self._leave(
                "announce", lambda: self._steps.announce(plan, Announcement.LOADER_FINISHED, said)
            )
        return await self._done(status, counts or DocumentCounts())

    async def _record(self, status: LoaderStatus) -> DocumentCounts:
        kept = 0 if self._cancelled is CancelMode.FULL else self._dead_letters
        closing = Closing(
            key=self._key,
            status=status,
            reason=self._reason,
            dead_letters=kept,
            only_processing=self._is_sweep,
        )
        return await self._steps.close(closing)

    async def _done(self, status: LoaderStatus, counts: DocumentCounts) -> BatchResult:
        left = self._building.left
        kept = self._dead_letters if self._building.keeps_dead_letters else 0
        said = [self._reason] if self._reason else []
        if kept:
            said.append(f"{kept} dead letters are kept: `docflow batches redrive` tries them again")
        if left:
            said.append(f"left for the sweeper: {', '.join(left)}")
        self._phase, self._reason = Phase.DONE, "; ".join(said) or None
        workflow.upsert_search_attributes(
            attributes.waiting(status, workflow.now(), attributes.OPERATORS)
            if kept or left
            else attributes.going_on(status)
        )
        self._show()
        await workflow.wait_condition(workflow.all_handlers_finished)
        if self._order.notify:
            await self._steps.tell_case()
        return BatchResult(
            key=self._key,
            status=status,
            validation=self._validation,
            reason=self._reason,
            documents=counts,
            redrives=self._redrives,
            dead_letters=kept,
            left=left,
        )

    async def _publish(self, event: Announcement) -> None:
        await self._do("announce", lambda: self._steps.announce(self._planned, event))

    async def _look(self) -> PolledDepth:
        depth = await self._steps.look(self._planned)
        self._depths = [*self._depths, depth][-DEPTHS_KEPT:]
        self._show()
        return depth

    async def _glance(self) -> None:
        """Look at the queues for whoever watches; nothing depends on it."""
        try:
            await self._look()
        except FailureError as error:
            if is_cancelled_exception(error):
                raise
            workflow.logger.warning("queues of %s not seen: %s", self._key, explain(error))

    async def _wait_for(self, event: Callable[[], bool], most: int, summary: str) -> bool:
        """Wait for an event or a wish to stop; False: neither came in time."""
        try:
            await workflow.wait_condition(
                lambda: event() or self._cancelled is not None,
                timeout=timedelta(seconds=most),
                timeout_summary=summary,
            )
        except TimeoutError:
            return False
        return True

    def _go_on_as_new_when_long(self) -> None:
        if not workflow.info().is_continue_as_new_suggested():
            return
        progress = BatchProgress(
            plan=self._planned,
            phase=self._phase,
            resources=self._building.rows,
            depths=tuple(self._depths),
            redrives=self._redrives,
            asked=self._asked,
            job_finished=self._job_finished,
            end_finished=self._end_finished,
            cancelled=self._cancelled,
            empty_since=self._empty_since,
        )
        workflow.continue_as_new(self._order.model_copy(update={"progress": progress}))

    @property
    def _planned(self) -> BatchPlan:
        assert self._plan is not None
        return self._plan

    @property
    def _dead_letters(self) -> int:
        return self._depths[-1].dead_letters.total if self._depths else 0

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
                self._cancel(event.mode)
            case JobStarted():
                # It is running: the message came twice.
                return

    def _cancel(self, mode: CancelMode) -> None:
        if self._phase in (Phase.TEARING_DOWN, Phase.DONE) or self._cancelled is CancelMode.FULL:
            return
        self._cancelled = mode
        if mode is CancelMode.FULL or self._phase in NOTHING_IN_FLIGHT:
            self._stop()

    @workflow.query(name="status")
    def status(self) -> BatchStatus:
        """Where the batch stands."""
        waits = self._parking.waits
        return BatchStatus(
            key=self._key,
            phase=self._phase,
            validation=self._validation,
            reason=self._parking.reason or self._reason,
            resources=self._building.rows,
            depths=tuple(self._depths),
            redrives=self._redrives,
            job_finished=self._job_finished,
            end_finished=self._end_finished,
            cancelled=self._cancelled,
            waiting_since=self._parking.since if waits else None,
            next_steps="retry, skip or fail" if waits else None,
        )
