"""The tasks of a batch: a sliding window of activities, in the stage's run or in one of its own."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import FailureError, is_cancelled_exception

from workflows.jobs.definitions import OnFailure
from workflows.jobs.progress import groups, pause
from workflows.jobs.runs import (
    NAMED,
    TASK_BATCH,
    BatchEnd,
    BatchProgress,
    BatchRecording,
    GroupResult,
    JobWait,
    Question,
    TaskAgain,
    TaskBatchInput,
    TaskCounts,
    TaskGroupInput,
)
from workflows.jobs.steps import BatchRecords, TaskGroups
from workflows.shared import attributes, policies
from workflows.shared.dependencies import WAITING, WAITS, outage_id
from workflows.shared.errors import UNAVAILABLE
from workflows.shared.failures import explain, failure_type, failures_logged
from workflows.shared.waiting import CurrentWait, Waiting

REPORTED: Final = "jobs-waits-reported"
"""Runs of releases that did not report their waits replay without."""
LONG: Final = 15.0
"""Seconds from which on a pause before a task is tried again is a wait to be reported."""
MOST_CHANGES: Final = 20
"""Reports of one batch, so that one whose wait comes and goes keeps a short history."""


def wait_of(current: CurrentWait | None) -> JobWait | None:
    """A wait for what docflow needs."""
    if current is None:
        return None
    awaited = current.awaited
    outage = outage_id(awaited.dependency, awaited.name)
    what = f"the {awaited.label}: {current.problem}"
    return JobWait(what=what[:400], since=current.since, outage=outage)


def show_wait(wait: JobWait | None) -> None:
    """Show in lists what a job waits for; None: it waits no longer."""
    if wait is None:
        workflow.upsert_search_attributes(attributes.not_waiting("running"))
        workflow.upsert_memo({WAITS: None})
        return
    awaited = attributes.WAITING_FOR
    workflow.upsert_search_attributes(
        [
            attributes.STATE.value_set(WAITING),
            attributes.WAITING_SINCE.value_set(wait.since),
            awaited.value_set(wait.outage) if wait.outage else awaited.value_unset(),
        ]
    )
    workflow.upsert_memo({WAITS: sentence(wait)})


def sentence(wait: JobWait) -> str:
    """What a job waits for, in lists."""
    return f"waits since {wait.since:%Y-%m-%d %H:%M} UTC for {wait.what}"


class LaterTasks:
    """Tasks of a batch that are tried again after a long pause, until they have ended."""

    def __init__(self) -> None:
        self._since: dict[int, datetime] = {}
        self._reason = ""

    def begun(self, positions: Iterable[int], again: Iterable[TaskAgain], why: str) -> None:
        """Some tasks were tried; some of them are tried again."""
        later = {each.position: each for each in again if each.seconds >= LONG}
        for position in positions:
            if position not in later:
                self._since.pop(position, None)
        for position in later:
            self._since.setdefault(position, workflow.now())
            self._reason = why

    @property
    def wait(self) -> JobWait | None:
        """The longest wait of them; None: none waits."""
        if not self._since:
            return None
        number = len(self._since)
        tasks = "1 task needs" if number == 1 else f"{number:,} tasks need"
        why = f": {self._reason}" if self._reason else ""
        return JobWait(what=f"what {tasks}{why}", since=min(self._since.values()))


RECORDED_EVERY: Final = timedelta(seconds=5)
"""At first; later less often, so that a long batch keeps a short history."""
RECORDED_AT_LEAST_EVERY: Final = timedelta(minutes=1)
REPORTS: Final = 4
"""Parts of a batch after which it reports progress."""
LONGEST: Final = timedelta(hours=1)
"""Of an activity, beyond what its tasks may take: the others of its worker may delay them."""
QUICK: Final = timedelta(seconds=2)
"""A batch that has not worked longer reports its end alone."""
_STOP_ENDS_PAUSES: Final = "stop-ends-pauses"
"""Runs of releases whose stopped batches slept until their last pause was over replay so."""


class BatchWork:
    """Does the tasks of a batch; how each of them ends is a result, and no failure of the run.

    Args:
        order: Of the batch.
        began: When it was begun.
        report: Called when the stage has to be sent the progress.
        on_record: Called whenever the table is shown how far the batch is.
    """

    def __init__(
        self,
        order: TaskBatchInput,
        began: datetime,
        report: Callable[[], None],
        on_record: Callable[[], None] = lambda: None,
    ) -> None:
        self._order = order
        self._began = began
        self._report_now = report
        self._on_record = on_record
        self.waiting = Waiting(on_change=self._report_wait)
        self._later_tasks = LaterTasks()
        self._wait: JobWait | None = None
        self._waits_reported = 0
        self._window = asyncio.Semaphore(order.window)
        self._counts = TaskCounts(total=order.tasks)
        self._lines: list[str] = []
        self._blobs: list[str] = []
        self._running: set[int] = set()
        self._recorded = 0
        self._shown = 0, 0
        self._reported = 0
        self._stopped = self._failing = False
        self._failure: str | None = None
        self._questions: dict[str, Question] = {}

    async def run(self) -> None:
        """Do the tasks; when the run is cancelled, none is begun and those in progress end."""
        recording = asyncio.create_task(self._record_periodically())
        try:
            await self._work()
        except asyncio.CancelledError:
            self._stopped = True
        recording.cancel()
        recording.add_done_callback(_ignore_result)

    def stop(self) -> None:
        """Begin no further task; those in progress are finished."""
        self._stopped = True

    @property
    def progress(self) -> BatchProgress:
        """How far it is."""
        return BatchProgress(
            batch=self._order.batch,
            counts=self._counts,
            failing=self._failing,
            awaits=self._wait,
        )

    def recording(self, lines: int = 0, blobs: int = 0) -> BatchRecording:
        """What has ended, without so much of it as the table shows already."""
        return BatchRecording(
            order=self._order,
            lines=tuple(self._lines[lines:]),
            blobs=tuple(self._blobs[blobs:]),
            processing=tuple(sorted(self._running)),
        )

    def end(self, counts: TaskCounts | None = None) -> BatchEnd:
        """How it has ended.

        Args:
            counts: Of its tasks; None: as they are known here, where one that was never begun is
                in the total alone.
        """
        return BatchEnd(
            counts=counts or self._counts,
            failure=self._failure,
            questions=tuple(self._questions.values())[:NAMED],
        )

    async def _work(self) -> None:
        size = self._order.definition.tasks_per_activity
        async with asyncio.TaskGroup() as working:
            for positions in groups(range(self._order.tasks), size):
                working.create_task(self._do(working, positions, {}))

    async def _do(
        self, working: asyncio.TaskGroup, positions: Sequence[int], tries: dict[int, int]
    ) -> None:
        """Do some tasks, one after another, and see to those that are to be done again."""
        while positions:
            async with self._window:
                if self._is_stopped:
                    return
                self._running.update(positions)
                try:
                    result = await self._run(tuple(positions), tries)
                except FailureError as error:
                    if not is_cancelled_exception(error):
                        self._failure, self._stopped = explain(error)[:300], True
                    return
                finally:
                    self._running.difference_update(positions)
            self._add_result(result)
            tried = set(positions) - set(result.rest)
            self._later_tasks.begun(tried, result.again, result.again_why)
            self._report_wait()
            for seconds in sorted({each.seconds for each in result.again}):
                due = [each for each in result.again if each.seconds == seconds]
                working.create_task(self._later(working, seconds, due))
            positions = result.rest

    async def _later(
        self, working: asyncio.TaskGroup, seconds: float, due: Sequence[TaskAgain]
    ) -> None:
        events = workflow.info().get_current_history_length()
        await self._pause(pause(seconds, events), f"{len(due)} tasks are done again")
        tries = {each.position: each.tries for each in due}
        await self._do(working, [each.position for each in due], tries)

    async def _pause(self, seconds: float, summary: str) -> None:
        """Wait, but no longer than until the batch begins no further task."""
        if not workflow.patched(_STOP_ENDS_PAUSES):
            await workflow.sleep(seconds, summary=summary)
            return
        with suppress(TimeoutError):
            await workflow.wait_condition(
                lambda: self._is_stopped, timeout=seconds, timeout_summary=summary
            )

    async def _run(self, positions: tuple[int, ...], tries: dict[int, int]) -> GroupResult:
        order = TaskGroupInput(
            job_id=self._order.job_id,
            ref=self._order.ref,
            batch=self._order.batch,
            positions=positions,
            timeout_seconds=self._order.definition.timeout_minutes * 60,
            tries=tries,
        )

        async def run() -> GroupResult:
            return await workflow.execute_activity_method(
                TaskGroups.run_tasks,
                order,
                task_queue=self._order.definition.lane.value,
                start_to_close_timeout=LONGEST
                + timedelta(seconds=order.timeout_seconds * len(positions)),
                heartbeat_timeout=policies.LONG["heartbeat_timeout"],
                retry_policy=policies.BACKOFF,
                cancellation_type=policies.LONG["cancellation_type"],
            )

        async def blame(failure: FailureError) -> None:
            nonlocal order
            if order.give_up or failure_type(failure) != UNAVAILABLE:
                raise failure
            # What it needs answers whenever it is asked: the task itself is at fault.
            order = order.model_copy(update={"give_up": True})

        return await self.waiting.retried(run, blame)

    def _add_result(self, result: GroupResult) -> None:
        self._counts = self._counts.plus(
            TaskCounts(completed=result.completed, failed=result.failed, cancelled=result.cancelled)
        )
        if result.lines:
            self._lines.append(result.lines)
        if result.blob is not None:
            self._blobs += [f"{result.blob}-{n}.jsonl" for n in range(result.blobs)]
        for question in result.questions:
            self._questions.setdefault(question.parameter, question)
        is_failing = result.failed > len(result.questions)
        if is_failing and self._order.definition.on_failure is OnFailure.FAIL_FAST:
            self._stopped = True
        self._report(is_failing)

    def _report(self, is_failing: bool) -> None:
        """Report progress to the stage at some points, and at once that a task has failed."""
        part = self._counts.done * REPORTS // max(self._counts.total, 1)
        is_first = is_failing and not self._failing
        self._failing = self._failing or is_failing
        is_long = workflow.now() - self._began >= QUICK
        is_new = self._reported < part < REPORTS
        if is_first or (is_new and is_long and self._order.reports):
            self._reported = part
            self._report_now()

    def _report_wait(self) -> None:
        """Report to the stage that a wait has begun or ended."""
        wait = wait_of(self.waiting.current) or self._later_tasks.wait
        if (wait is None) == (self._wait is None) or self._waits_reported >= MOST_CHANGES:
            return
        if not workflow.patched(REPORTED):
            return
        self._wait, self._waits_reported = wait, self._waits_reported + 1
        self._report_now()

    async def _record_periodically(self) -> None:
        """Show in the table how far a batch is that takes long."""
        wait = RECORDED_EVERY
        while True:
            await workflow.sleep(wait, summary="show progress")
            self._on_record()
            if self._counts.done > self._recorded or self._running:
                self._recorded = self._counts.done
                with failures_logged("progress not recorded"):
                    lines, blobs = len(self._lines), len(self._blobs)
                    await workflow.execute_activity_method(
                        BatchRecords.record_tasks,
                        self.recording(*self._shown),
                        start_to_close_timeout=timedelta(seconds=30),
                        retry_policy=RetryPolicy(maximum_attempts=1),
                    )
                    self._shown = lines, blobs
            wait = min(wait * 2, RECORDED_AT_LEAST_EVERY)

    @property
    def _is_stopped(self) -> bool:
        return self._stopped or workflow.cancellation_reason() is not None


def _ignore_result(recording: asyncio.Task[None]) -> None:
    """Ignore how a progress report ends that was still being written."""
    if not recording.cancelled():
        recording.exception()


@workflow.defn(name=TASK_BATCH)
class TaskBatch:
    """Does the tasks of a batch and puts their results together; reports to its stage."""

    @workflow.init
    def __init__(self, order: TaskBatchInput) -> None:
        self._work = BatchWork(order, workflow.info().start_time, self._report)

    @workflow.run
    async def run(self, order: TaskBatchInput) -> BatchEnd:
        """Do the tasks; a cancelled batch ends as well, with what it has."""
        await self._work.run()
        end = await self._work.waiting.done_despite_cancel(self._close)
        await workflow.wait_condition(workflow.all_handlers_finished)
        return self._work.end(end.counts)

    async def _close(self) -> BatchEnd:
        return await workflow.execute_activity_method(
            BatchRecords.close_batch,
            self._work.recording(),
            summary="results of the batch",
            **policies.LONG,
        )

    def _report(self) -> None:
        asyncio.create_task(self._report_to_stage())  # noqa: RUF006 - the run keeps its tasks

    async def _report_to_stage(self) -> None:
        parent = workflow.info().parent
        if parent is None:
            return
        stage = workflow.get_external_workflow_handle(parent.workflow_id, run_id=parent.run_id)
        with failures_logged("the stage was not sent the progress of its batch"):
            await stage.signal("progress", self._work.progress)

    @workflow.signal(name="stop")
    def stop(self) -> None:
        """Begin no further task; those in progress are finished."""
        self._work.stop()
