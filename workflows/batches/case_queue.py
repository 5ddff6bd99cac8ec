"""The batches of a case, one after the other; each is a run of `BatchLifecycle`."""

import asyncio
from datetime import datetime, timedelta
from typing import Any, Final, NoReturn

from temporalio import workflow
from temporalio.exceptions import ApplicationError, FailureError, WorkflowAlreadyStartedError
from temporalio.workflow import ParentClosePolicy

from workflows.batches.batch_lifecycle import BatchLifecycle
from workflows.batches.events import BatchEndFinished, CaseEvent, JobStarted, RedriveRequested
from workflows.batches.names import BatchKey, LoaderStatus, Purpose
from workflows.batches.runs import (
    BatchInput,
    CaseInput,
    CaseResult,
    CaseStatus,
    EventAccepted,
    NoteEvents,
    SkipBatch,
    WaitingBatch,
    WaitingBatches,
)
from workflows.batches.steps import CaseBacklog
from workflows.shared import attributes, policies
from workflows.shared.errors import BUSY, KEY_REUSED, OTHER_CASE
from workflows.shared.failures import explain, reraise_cancellation
from workflows.shared.waiting import StepOutages, Waiting

__all__ = ["BatchLifecycle", "CaseQueue"]

INBOX: Final = 1_000
"""Events that wait to be recorded; more are refused, and are delivered again."""
INBOX_BYTES: Final = 500_000
"""Of the fields that they pass on: what is recorded together has to fit into one payload."""
EVENTS_PER_RUN: Final = 1_500
"""A run takes 2,000 updates at most."""
DATABASE_PAUSE: Final = timedelta(seconds=30)
CLOSING_PAUSE: Final = timedelta(seconds=2)
"""Between two looks at a batch that signalled its end."""

_EVERY_END: Final = "every-end-forwarded"
_FAILING: Final = "failing-cases-continue-as-new"
"""Releases before it let the history grow for as long as the table could not be used."""


@workflow.defn(name="CaseQueue")
class CaseQueue:
    """Takes the events of a case, keeps its batches in the order of their ids, runs one at a time.

    Every event is recorded first; which batch is next is read from the table each time. The
    run ends when there has been nothing to do for a while: the next event starts another.
    """

    @workflow.init
    def __init__(self, order: CaseInput) -> None:
        self._order = order
        self._inbox = list(order.inbox)
        self._taken, self._finished = order.taken, order.finished
        self._running = order.running
        self._batch: asyncio.Future[Any] | None = None
        """The running batch, when this very run started it."""
        self._closing = False
        """The running batch signalled that it ends."""
        self._forwarded = set[CaseEvent]()
        """Events that the running batch has been sent."""
        self._swept = set[int]()
        """Cancelled batches without a run that a sweep was started for."""
        self._line = WaitingBatches()
        self._wake: datetime | None = None
        self._waiting = Waiting()
        self._outages = StepOutages(self._waiting)

    @workflow.run
    async def run(self, order: CaseInput) -> CaseResult:
        """Run the batches of the case until none is left."""
        try:
            return await self._run_batches()
        except asyncio.CancelledError:
            await self._cancel_running()
            raise

    async def _run_batches(self) -> CaseResult:
        while True:
            if self._is_over:
                self._ended()
            try:
                await self._record_events()
                await self._start_next()
            except FailureError as error:
                reraise_cancellation(error)
                if not await self._outages.waited_for(error):
                    self._show(
                        "**The table of batches cannot be used**, trying again: "
                        f"{explain(error)}\n\n"
                    )
                    await workflow.sleep(DATABASE_PAUSE)
                if self._is_long and workflow.patched(_FAILING):
                    await self._continue_as_new()
                continue
            self._show()
            if self._is_long:
                await self._continue_as_new()
            if not await self._wait_for_event():
                return CaseResult(events=self._taken, finished=self._finished)

    async def _record_events(self) -> None:
        """Record the events that came, and read which batches wait."""
        events = tuple(self._inbox[:INBOX])
        adopted = self._running if self._batch is None else None
        self._line = await workflow.execute_local_activity_method(
            CaseBacklog.record_events,
            NoteEvents(case_id=self._order.case_id, events=events, running=adopted),
            summary=f"note {len(events)} events",
            **policies.SHORT,
        )
        del self._inbox[: len(events)]
        await self._forward(events)
        if adopted is not None and not self._line.running_open:
            self._ended()

    async def _forward(self, events: tuple[CaseEvent, ...]) -> None:
        if self._running is None:
            return
        run = workflow.get_external_workflow_handle_for(BatchLifecycle.run, self._key.workflow_id)
        # Forward each event once; a batch that runs has been started.
        for event in dict.fromkeys(events):
            if event.batch_id != self._running or isinstance(event, JobStarted):
                continue
            # An end that came too early is no reason to keep the one that counts.
            ends = isinstance(event, BatchEndFinished)
            if event in self._forwarded and not (ends and workflow.patched(_EVERY_END)):
                continue
            try:
                await run.signal(BatchLifecycle.take, event)
            except FailureError as error:
                # It has ended meanwhile: what stands in the table decides what follows.
                workflow.logger.info("%s for a batch that has ended: %s", event.event_type, error)
            else:
                if not isinstance(event, RedriveRequested):
                    self._forwarded.add(event)

    async def _start_next(self) -> None:
        """Start the first batch that may run, or set when to look again."""
        self._wake = None
        for batch in self._line.batches:
            if self._running is not None:
                await self._sweep_cancelled()
                return
            if batch.open_run or batch.purpose is not None:
                await self._start(batch)
            elif batch.status is LoaderStatus.WAITING and not batch.skipped:
                given_up_at = batch.since + timedelta(seconds=self._order.timings.stuck_after)
                if workflow.now() < given_up_at:
                    self._wake = given_up_at
                    return
                await self._skip(batch)
            elif self._is_to_be_swept(batch):
                await self._start(batch)
            # One in `processing` whose run has ended: the next batch's validation decides.

    async def _sweep_cancelled(self) -> None:
        """Remove what batches have left that were cancelled, beside the one that runs.

        That may be waiting for them.
        """
        for batch in self._line.batches:
            if batch.batch_id != self._running and self._is_to_be_swept(batch):
                await self._start_run(batch)

    def _is_to_be_swept(self, batch: WaitingBatch) -> bool:
        """Whether a batch was cancelled whose run was terminated; once in a run of the case."""
        is_left = batch.cancelled is not None and not batch.open_run
        return is_left and batch.batch_id not in self._swept

    async def _skip(self, batch: WaitingBatch) -> None:
        await workflow.execute_local_activity_method(
            CaseBacklog.skip,
            SkipBatch(
                key=BatchKey(case_id=self._order.case_id, batch_id=batch.batch_id),
                reason=f"not started within {self._order.timings.stuck_after} s "
                f"of {batch.since:%Y-%m-%d %H:%M} UTC: batches after it go first",
            ),
            summary=f"skip batch {batch.batch_id}",
            **policies.SHORT,
        )

    async def _start(self, batch: WaitingBatch) -> None:
        self._running, self._closing = batch.batch_id, False
        self._forwarded.clear()
        if not batch.open_run:
            self._batch = await self._start_run(batch)

    async def _start_run(self, batch: WaitingBatch) -> asyncio.Future[Any] | None:
        """Start a run of a batch; None: another run of the case did, or the sweeper is at work."""
        key = BatchKey(case_id=self._order.case_id, batch_id=batch.batch_id)
        purpose = batch.purpose or Purpose.SWEEP
        if purpose is Purpose.SWEEP:
            self._swept.add(batch.batch_id)
        try:
            run = await workflow.start_child_workflow(
                BatchLifecycle.run,
                BatchInput(
                    key=key,
                    purpose=purpose,
                    timings=batch.timings or self._order.timings,
                    notices=True,
                    cancelled=batch.cancelled,
                ),
                id=key.workflow_id,
                # It outlives runs of the case that continue as new; a case that is cancelled
                # cancels it, and one that is terminated leaves it to finish its work.
                parent_close_policy=ParentClosePolicy.ABANDON,
                search_attributes=attributes.at_start("batches", purpose, str(self._order.case_id)),
                static_summary=f"{str(key).capitalize()}: {purpose}",
            )
        except WorkflowAlreadyStartedError:
            return None
        run.add_done_callback(_note_end)
        return run

    async def _wait_for_event(self) -> bool:
        """Wait for an event, an end or a time; False: nothing did, and nothing is expected."""
        try:
            await workflow.wait_condition(
                lambda: bool(self._inbox) or self._is_over or self._closing,
                timeout=self._pause,
                timeout_summary="waits for events",
            )
        except TimeoutError:
            return self._running is not None or self._wake is not None
        if self._closing and not self._inbox:
            await workflow.sleep(CLOSING_PAUSE)
        return True

    @property
    def _pause(self) -> timedelta:
        if self._running is not None:
            return timedelta(seconds=self._order.watch)
        if self._wake is not None:
            return max(self._wake - workflow.now(), timedelta(seconds=1))
        return timedelta(seconds=self._order.idle)

    @property
    def _is_over(self) -> bool:
        return self._batch is not None and self._batch.done()

    def _ended(self) -> None:
        self._running, self._batch, self._closing = None, None, False
        self._finished += 1

    @property
    def _is_long(self) -> bool:
        info = workflow.info()
        taken_here = self._taken - self._order.taken
        return info.is_continue_as_new_suggested() or taken_here >= EVENTS_PER_RUN

    async def _continue_as_new(self) -> NoReturn:
        """Continue in a new run with every event that is not recorded yet.

        Raises:
            ContinueAsNewError: Always.
        """
        await workflow.wait_condition(workflow.all_handlers_finished)
        workflow.continue_as_new(
            self._order.model_copy(
                update={
                    "inbox": tuple(self._inbox),
                    "running": self._running,
                    "taken": self._taken,
                    "finished": self._finished,
                }
            )
        )

    async def _cancel_running(self) -> None:
        if self._running is None:
            return
        run = workflow.get_external_workflow_handle(self._key.workflow_id)
        try:
            await run.cancel()
        except FailureError as error:
            workflow.logger.info("%s has ended already: %s", self._key, error)
            return
        if self._batch is not None:
            # Its resources are removed before the case is over.
            await asyncio.gather(self._batch, return_exceptions=True)

    @property
    def _key(self) -> BatchKey:
        assert self._running is not None
        return BatchKey(case_id=self._order.case_id, batch_id=self._running)

    def _show(self, problem: str = "") -> None:
        waiting = ", ".join(str(batch.batch_id) for batch in self._line.batches[:20]) or "none"
        running = (
            "none" if self._running is None else f"[{self._running}] `{self._key.workflow_id}`"
        )
        until = f"; looks again at {self._wake:%Y-%m-%d %H:%M} UTC" if self._wake else ""
        workflow.set_current_details(
            f"{problem}Running: {running}\n\nNot done, in order: {waiting}{until}"
        )

    @workflow.update(name="take")
    async def take(self, event: CaseEvent) -> EventAccepted:
        """Accept an event; it is in history when this returns."""
        self._inbox.append(event)
        self._taken += 1
        return EventAccepted(events=self._taken, running=self._running)

    @take.validator
    def _check_take(self, event: CaseEvent) -> None:
        if event.case_id != self._order.case_id:
            raise ApplicationError(
                f"this is case {self._order.case_id}, not {event.case_id}", type=OTHER_CASE
            )
        passed_on = sum(len(other.passed_on or "") for other in self._inbox)
        if len(self._inbox) >= INBOX or passed_on >= INBOX_BYTES:
            raise ApplicationError("too many events wait to be recorded; try again", type=BUSY)
        if isinstance(event, JobStarted):
            self._refuse_other_start(event)

    def _refuse_other_start(self, event: JobStarted) -> None:
        """Refuse a start that differs from the one by which the batch waits or runs."""
        if event.batch_id == self._running and (self._closing or self._is_over):
            return
        earlier = [
            other.timings
            for other in self._inbox
            if isinstance(other, JobStarted) and other.batch_id == event.batch_id
        ]
        earlier += [
            batch.timings
            for batch in self._line.batches
            if batch.batch_id == event.batch_id
            and (batch.open_run or batch.purpose is Purpose.LOAD)
        ]
        if earlier and event.timings not in earlier:
            raise ApplicationError(
                f"{event.key} was started with other timings, which it keeps; cancel it, or start "
                "it with these when it has ended",
                type=KEY_REUSED,
            )

    @workflow.signal(name="take")
    def take_signal(self, event: CaseEvent) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        try:
            self._check_take(event)
        except ApplicationError as error:
            workflow.logger.warning("signal take refused: %s", error.message)
            return
        self._inbox.append(event)
        self._taken += 1

    @workflow.signal(name="batch_ends")
    def batch_ends(self, batch_id: int) -> None:
        """The running batch is about to end."""
        self._closing = self._closing or (batch_id == self._running and self._batch is None)

    @workflow.query(name="status")
    def status(self) -> CaseStatus:
        """Where the case stands."""
        return CaseStatus(
            case_id=self._order.case_id,
            running=self._running,
            waiting=tuple(batch.batch_id for batch in self._line.batches),
            unrecorded=tuple(sorted({event.batch_id for event in self._inbox})),
            events=self._taken,
            finished=self._finished,
            waiting_for=self._waiting.dependency,
        )


def _note_end(batch: asyncio.Future[Any]) -> None:
    """Take notice of a failure, which the batch's own run shows: the table decides what follows."""
    if not batch.cancelled():
        batch.exception()
