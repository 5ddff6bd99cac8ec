"""One stage of a job: plan its tasks, do them in batches, aggregate what they found."""

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from temporalio import workflow
from temporalio.exceptions import (
    ChildWorkflowError,
    FailureError,
    is_cancelled_exception,
)

from workflows.jobs.batch_work import REPORTED, BatchWork, TaskBatch, wait_of
from workflows.jobs.definitions import OnFailure
from workflows.jobs.progress import FanOut, fan_out, is_small, line, tasks_of, with_progress
from workflows.jobs.runs import (
    NAMED,
    STAGE,
    BatchEnd,
    BatchProgress,
    JobWait,
    Question,
    SmallStageTally,
    StageClosed,
    StageEnd,
    StageInput,
    StagePlan,
    StageProgress,
    StageState,
    StageTally,
    StageView,
    TaskBatchInput,
    TaskCounts,
    batch_workflow_id,
)
from workflows.jobs.steps import StageClosing, StagePlanning
from workflows.shared import attributes, policies
from workflows.shared.failures import explain, failures_logged
from workflows.shared.waiting import Waiting

MANY_BATCHES: Final = 20
"""With more of them, batches report their end alone: the history has no room for more."""
REPORTS: Final = 20
"""How often a stage reports progress to its job, at most."""
REPORTED_EVERY: Final = timedelta(seconds=1)
"""And how soon again, at least: each signal costs the job a workflow task."""
_PATCH: Final = "stages-report-by-time"
_INLINE: Final = "small-stages-by-themselves"


@workflow.defn(name=STAGE)
class Stage:
    """plan -> batches, some of them side by side -> aggregate; the tasks of a small one by itself.

    That it fails is a result: the job decides what follows.
    """

    @workflow.init
    def __init__(self, order: StageInput) -> None:
        self._order = order
        self._definition = order.definition
        self._waiting = Waiting(on_change=self._waits)
        self._waits_of: dict[int, JobWait] = {}
        self._wait: JobWait | None = None
        self._view = StageView(
            stage=order.stage,
            name=self._definition.stage_name,
            state=StageState.RUNNING,
            ref=order.ref,
            began_at=workflow.info().start_time,
        )
        self._plan = StagePlan()
        self._batches: dict[int, TaskCounts] = {}
        self._open: dict[int, Callable[[], None]] = {}
        """Batch to what stops it."""
        self._inline: BatchWork | None = None
        self._stopped = False
        self._failure: str | None = None
        self._questions: dict[str, Question] = {}
        self._reported = 0
        self._reported_at: datetime | None = None

    @workflow.run
    async def run(self, order: StageInput) -> StageEnd:
        """Run the stage; a cancelled one ends as well, with true counts."""
        try:
            await self._work()
        except asyncio.CancelledError:
            self._stopped = True
        except FailureError as error:
            if not is_cancelled_exception(error):
                self._failure = explain(error)[:300]
            self._stopped = True
        end = await self._end()
        await workflow.wait_condition(workflow.all_handlers_finished)
        return end

    async def _work(self) -> None:
        self._plan = await self._waiting.done(self._planned)
        if self._plan.question is not None:
            self._questions[self._plan.question.parameter] = self._plan.question
        if not self._total or self._is_stopped:
            return
        division = fan_out(self._plan.tasks, self._definition.max_parallel_tasks)
        if is_small(self._plan.tasks, self._definition) and workflow.patched(_INLINE):
            await self._run_inline(self._batch_order(0, division))
            return
        self._show()
        slots = asyncio.Semaphore(division.parallel)
        async with asyncio.TaskGroup() as working:
            for batch in range(division.batches):
                working.create_task(self._batch(batch, division, slots))

    @property
    def _total(self) -> int:
        return self._plan.tasks + self._plan.kept

    def _tally(self) -> TaskCounts:
        """What has become of the tasks so far; those that are kept have completed."""
        done = sum_of(self._batches.values())
        update = {"total": self._total, "completed": done.completed + self._plan.kept}
        return done.model_copy(update=update)

    async def _planned(self) -> StagePlan:
        return await workflow.execute_activity_method(
            StagePlanning.plan_stage,
            self._order,
            summary=f"plan {self._definition.stage_name}",
            **policies.LONG,
        )

    async def _batch(self, batch: int, division: FanOut, slots: asyncio.Semaphore) -> None:
        async with slots:
            if self._is_stopped:
                return
            order = self._batch_order(batch, division)
            try:
                handle = await workflow.start_child_workflow(
                    TaskBatch.run,
                    order,
                    id=batch_workflow_id(order.job_id, order.ref, batch),
                    search_attributes=attributes.of_part(self._order.job.organisation_id),
                    static_summary=f"{self._definition.stage_name}, batch {batch}",
                )
                self._open[batch] = partial(_stop_batch, handle)
                end = await handle
            except ChildWorkflowError as error:
                if not is_cancelled_exception(error):
                    self._failure = explain_child(error)
                    self._stop()
                return
            finally:
                self._open.pop(batch, None)
                self._report_wait(batch, None)
            self._batch_ended(batch, end)

    def _batch_order(self, batch: int, division: FanOut) -> TaskBatchInput:
        return TaskBatchInput(
            job_id=self._order.job.job_id,
            ref=self._order.ref,
            definition=self._definition,
            batch=batch,
            tasks=tasks_of(batch, self._plan.tasks),
            window=division.window,
            reports=division.batches <= MANY_BATCHES,
        )

    async def _run_inline(self, order: TaskBatchInput) -> None:
        """Do the only batch in this run: one of its own would cost more than a few tasks do.

        The job is sent nothing before the table is, so that a quick stage sends nothing at all.
        """

        def report() -> None:
            self._progressed(work.progress)

        work = self._inline = BatchWork(order, workflow.now(), report, on_record=report)
        self._open[order.batch] = work.stop
        self._view = with_progress(self._view, self._tally(), workflow.now())
        workflow.set_current_details(line(self._view))
        await work.run()
        del self._open[order.batch]
        self._report_wait(order.batch, None)
        self._batch_ended(order.batch, work.end())

    def _batch_ended(self, batch: int, end: BatchEnd) -> None:
        self._batches[batch] = end.counts
        for question in end.questions:
            self._questions.setdefault(question.parameter, question)
        self._failure = self._failure or end.failure
        failed = end.counts.failed > len(end.questions)
        if end.failure or (failed and self._definition.on_failure is OnFailure.FAIL_FAST):
            self._stop()
        self._show()

    def _stop(self, except_batch: int | None = None) -> None:
        """Begin no further task in any batch; `except_batch` stops by itself."""
        if not self._stopped:
            self._stopped = True
            for batch, stop in self._open.items():
                if batch != except_batch:
                    stop()

    @property
    def _is_stopped(self) -> bool:
        return self._stopped or self._is_cancelled

    @property
    def _is_cancelled(self) -> bool:
        return workflow.cancellation_reason() is not None

    async def _end(self) -> StageEnd:
        if not self._total:
            skipped = self._failure is None and not self._questions and not self._is_cancelled
            if not skipped:
                return self._ended(StageClosed(counts=TaskCounts()), self._failure)
            closed = StageClosed(counts=TaskCounts())
            return self._ended(closed, None).model_copy(update={"skipped": True})
        tally = self._tally()
        failure = self._failure or self._verdict(tally)
        is_used = failure is None and not self._questions and not self._is_cancelled
        try:
            closed = await self._waiting.done_despite_cancel(lambda: self._closed(is_used))
        except FailureError as error:
            failure = failure or explain(error)[:300]
            closed = StageClosed(counts=tally)
        return self._ended(closed, failure)

    async def _closed(self, aggregate: bool) -> StageClosed:
        if self._inline is not None:
            return await workflow.execute_activity_method(
                StageClosing.close_small_stage,
                SmallStageTally(
                    order=self._order,
                    tasks=self._total,
                    aggregate=aggregate,
                    batch=self._inline.recording(),
                ),
                summary=f"close {self._definition.stage_name}",
                **policies.LONG,
            )
        return await workflow.execute_activity_method(
            StageClosing.close_stage,
            StageTally(order=self._order, tasks=self._total, aggregate=aggregate),
            summary=f"close {self._definition.stage_name}",
            **policies.LONG,
        )

    def _verdict(self, tally: TaskCounts) -> str | None:
        """Why a stage cannot be used, by what became of its tasks; None: it can."""
        if not tally.failed:
            return None
        verdict = f"{tally.failed:,} of {self._total:,} tasks failed"
        is_lost = tally.completed == 0
        if self._definition.on_failure is OnFailure.CONTINUE and not is_lost:
            return None
        return verdict

    def _ended(self, closed: StageClosed, failure: str | None) -> StageEnd:
        return StageEnd(
            ref=self._order.ref,
            counts=closed.counts,
            failure=failure,
            failed=closed.failed,
            questions=tuple(self._questions.values())[:NAMED],
            cancelled=self._is_cancelled,
        )

    @workflow.signal(name="progress")
    def progress(self, progress: BatchProgress) -> None:
        """A batch says how far it is."""
        self._progressed(progress)

    def _progressed(self, progress: BatchProgress) -> None:
        if progress.batch in self._open:
            self._batches[progress.batch] = progress.counts
            self._report_wait(progress.batch, progress.awaits)
            if progress.failing and self._definition.on_failure is OnFailure.FAIL_FAST:
                self._stop(progress.batch)
            self._show()

    def _waits(self) -> None:
        """A wait of the stage itself has begun or ended."""
        if workflow.patched(REPORTED):
            self._show_wait()

    def _report_wait(self, batch: int, wait: JobWait | None) -> None:
        """A batch waits, or waits no longer."""
        if wait is not None:
            self._waits_of[batch] = wait
        else:
            self._waits_of.pop(batch, None)
        self._show_wait()

    def _show_wait(self) -> None:
        wait = wait_of(self._waiting.current) or min(
            self._waits_of.values(), key=lambda each: each.since, default=None
        )
        if wait != self._wait:
            self._wait = wait
            asyncio.create_task(self._report_to_job())  # noqa: RUF006 - the run keeps its tasks

    def _show(self) -> None:
        counts = self._tally()
        self._view = with_progress(self._view, counts, workflow.now())
        workflow.set_current_details(line(self._view))
        part = counts.done * REPORTS // max(counts.total, 1)
        if (self._reported < part < REPORTS and self._is_due()) or not counts.done:
            self._reported, self._reported_at = part, workflow.now()
            asyncio.create_task(self._report_to_job())  # noqa: RUF006 - the run keeps its tasks

    def _is_due(self) -> bool:
        is_soon = (
            self._reported_at is not None and workflow.now() - self._reported_at < REPORTED_EVERY
        )
        return not (is_soon and workflow.patched(_PATCH))

    async def _report_to_job(self) -> None:
        parent = workflow.info().parent
        if parent is None:
            return
        job = workflow.get_external_workflow_handle(parent.workflow_id, run_id=parent.run_id)
        with failures_logged("the job was not sent the progress of its stage"):
            await job.signal("progress", StageProgress(view=self._view, awaits=self._wait))

    @workflow.query(name="status")
    def status(self) -> StageView:
        """How far the stage is."""
        return self._view


def sum_of(parts: Iterable[TaskCounts]) -> TaskCounts:
    """All counts together."""
    total = TaskCounts()
    for each in parts:
        total = total.plus(each)
    return total


def explain_child(error: ChildWorkflowError) -> str:
    """Why a child has failed, in a bounded sentence."""
    cause = error.cause
    while isinstance(cause, FailureError) and cause.cause is not None:
        cause = cause.cause
    message = cause.message if isinstance(cause, FailureError) else str(cause or error)
    return message[:300]


def _stop_batch(handle: workflow.ChildWorkflowHandle[TaskBatch, BatchEnd]) -> None:
    async def stop() -> None:
        with failures_logged("a batch was not stopped"):
            await handle.signal(TaskBatch.stop)

    asyncio.create_task(stop())  # noqa: RUF006 - the run keeps its tasks
