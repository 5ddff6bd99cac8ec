"""`jobs.record_tasks` and `jobs.close_batch`: rows and results of the tasks of a batch."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from temporalio import activity

from activities.failures import translate_failures
from activities.heartbeat import BoundedHeartbeater
from activities.jobs.contexts import JobPorts
from activities.jobs.rows import task_record
from contracts.jobs import (
    BatchEnd,
    BatchRecording,
    FinishedTask,
    PlanLine,
    TaskCounts,
    TaskRecord,
    TaskStatus,
)


class BatchRecords:
    """Writes what became of the tasks of a batch, all at once.

    Args:
        ports: What activities of jobs share.
    """

    def __init__(self, ports: JobPorts) -> None:
        self._ports = ports

    @activity.defn(name="jobs.record_tasks")
    @translate_failures
    async def record_tasks(self, recording: BatchRecording) -> None:
        """Show in the table how far a batch is; nothing depends on it."""
        plan = await _plan(self._ports, recording)
        finished = await _finished(self._ports, recording)
        now = datetime.now(UTC)
        rows = [
            _row(recording, line, now, finished.get(line.ordinal), TaskStatus.PROCESSING)
            for position, line in enumerate(plan)
            if line.ordinal in finished or position in recording.processing
        ]
        await self._ports.store.put_tasks(rows)

    @activity.defn(name="jobs.close_batch")
    @translate_failures
    async def close_batch(self, recording: BatchRecording) -> BatchEnd:
        """Write the results of a batch, in the order of its plan, and its rows."""
        async with BoundedHeartbeater("put the results of a batch together"):
            return BatchEnd(counts=counts_of(await write_batch(self._ports, recording)))


async def write_batch(ports: JobPorts, recording: BatchRecording) -> Sequence[FinishedTask]:
    """Write the results of a batch, in the order of its plan, and its rows."""
    order = recording.order
    plan = await _plan(ports, recording)
    finished = await _finished(ports, recording)
    ended = [_end_of(line, finished) for line in plan]
    await ports.folders.put_results(order.job_id, order.ref, order.batch, ended)
    now = datetime.now(UTC)
    await ports.store.put_tasks(
        [_row(recording, line, now, end, end.status) for line, end in zip(plan, ended, strict=True)]
    )
    return ended


async def _plan(ports: JobPorts, recording: BatchRecording) -> Sequence[PlanLine]:
    order = recording.order
    return await ports.folders.plan(order.job_id, order.ref, order.batch)


async def _finished(ports: JobPorts, recording: BatchRecording) -> Mapping[int, FinishedTask]:
    """Finished tasks by ordinal."""
    # A line ends with a line feed alone: JSON may hold what else `splitlines` takes for an end.
    lines = [line for text in recording.lines for line in text.split("\n") if line]
    lines += [line async for line in ports.folders.lines(recording.blobs)]
    tasks = map(FinishedTask.model_validate_json, lines)
    return {task.ordinal: task for task in tasks}


def _row(
    recording: BatchRecording,
    line: PlanLine,
    now: datetime,
    finished: FinishedTask | None,
    status: TaskStatus,
) -> TaskRecord:
    order = recording.order
    status = finished.status if finished else status
    return task_record(order.job_id, order.ref, order.definition, line, status, now, finished)


def _end_of(line: PlanLine, finished: Mapping[int, FinishedTask]) -> FinishedTask:
    """How a task has ended; one without a result was never begun, or stopped."""
    found = finished.get(line.ordinal)
    if found is None:
        found = FinishedTask(
            index=line.task.index,
            ordinal=line.ordinal,
            status=TaskStatus.CANCELLED,
            error="it was cancelled before it had ended",
        )
    return found.model_copy(update={"parameters": line.task.parameters})


def counts_of(tasks: Sequence[FinishedTask]) -> TaskCounts:
    """How many tasks ended in which way."""
    states = [task.status for task in tasks]
    return TaskCounts(
        total=len(states),
        completed=states.count(TaskStatus.COMPLETED),
        failed=states.count(TaskStatus.FAILED),
        cancelled=states.count(TaskStatus.CANCELLED),
    )
