"""What a stage as a whole has found, what a job type makes of all of them, and the row of a job."""

import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Final

from temporalio import activity

from activities.failures import translate_failures
from activities.heartbeat import BoundedHeartbeater
from activities.jobs.contexts import JobPorts
from activities.jobs.task_batches import write_batch
from contracts.jobs import (
    FAILED_TASKS_LISTED,
    NAMED,
    FailedName,
    FailedTask,
    FinishedTask,
    JobOrder,
    JobRecord,
    JobRecorded,
    JobRecording,
    JobStatus,
    JsonObject,
    SmallStageTally,
    StageClosed,
    StageOrder,
    StageTally,
    TaskCounts,
    TaskStatus,
    task_id,
)
from domain.errors import RuleViolation

RESULT_BYTES: Final = 100_000
"""Of the aggregated result of a stage, as JSON."""
JOB_RESULT_BYTES: Final = 1_000_000
"""Of the result that a job type makes of a whole job, as JSON."""


class StageClosing:
    """Aggregates stages and writes the rows of jobs.

    Args:
        ports: What activities of jobs share.
    """

    def __init__(self, ports: JobPorts) -> None:
        self._ports = ports

    @activity.defn(name="jobs.close_small_stage")
    @translate_failures
    async def close_small_stage(self, work: SmallStageTally) -> StageClosed:
        """Put the results of the only batch of a stage together, then close the stage.

        Raises:
            ApplicationError: As `jobs.close_stage`.
        """
        async with BoundedHeartbeater("aggregated the results of the stage"):
            await write_batch(self._ports, work.batch)
            return await self._closed(work)

    @activity.defn(name="jobs.close_stage")
    @translate_failures
    async def close_stage(self, work: StageTally) -> StageClosed:
        """Count the tasks of a stage, name those that failed, and aggregate its results.

        Tasks that were never begun are cancelled.

        Raises:
            ApplicationError: The job type refuses, finds more than a stage may, or its aggregation
                lost too many workers.
        """
        async with BoundedHeartbeater("aggregated the results of the stage"):
            return await self._closed(work)

    async def _closed(self, work: StageTally) -> StageClosed:
        order = work.order
        job_id, ref = order.job.job_id, order.ref
        tally = _Tally(order)

        async def own() -> AsyncIterator[FinishedTask]:
            async for each in self._ports.folders.whole_results(job_id, ref):
                yield each

        async for each in self._ports.folders.results(job_id, ref):
            tally.add(each)
        left = work.tasks - tally.counts.total
        if left:
            await self._ports.store.cancel_tasks(job_id, order.job.attempt, order.stage)
        result: JsonObject = {}
        if work.aggregate:
            job_type = self._ports.job_type(order.job)
            context = await self._ports.stage_context(order, own)
            result = await job_type.aggregate(order.definition, context)
            _refuse_long(f"the aggregated result of stage {order.stage}", result)
        await self._ports.folders.put_stage_result(job_id, ref, result, tally.failed)
        names = [_name(each) for each in tally.failed[:NAMED]]
        counts = tally.counts.plus(TaskCounts(total=left, cancelled=left))
        return StageClosed(counts=counts, failed=tuple(names))

    @activity.defn(name="jobs.make_result")
    @translate_failures
    async def make_result(self, recording: JobRecording) -> None:
        """Have the job type make the result of a job, which `jobs.record` reads.

        Apart from that, because the server repeats a local activity for ever whose worker crashes.

        Raises:
            ApplicationError: The job type refuses, finds more than a job may, or lost too many
                workers.
        """
        job = recording.job
        async with BoundedHeartbeater("made the result of the job"):
            result = await self._made(recording)
            _refuse_long("the result of the job", result, JOB_RESULT_BYTES)
            await self._ports.folders.put_job_result(job.job_id, job.attempt, result)

    @activity.defn(name="jobs.record")
    @translate_failures
    async def record(self, recording: JobRecording) -> JobRecorded | None:
        """Write the row of a job; one of an older attempt changes nothing.

        Returns:
            None in histories of earlier releases.
        """
        job, folders = recording.job, self._ports.folders
        results: dict[str, JsonObject] = {}
        failed: list[FailedTask] = []
        for ref in recording.stages:
            results[str(ref.stage)], of_stage = await folders.stage_end(job.job_id, ref)
            failed += of_stage
        await self._ports.store.put_job(
            JobRecord(
                job_id=job.job_id,
                job_type=job.definition.job_type,
                status=recording.status,
                stage=recording.stage,
                total_stages=job.definition.total_stages,
                parameters=job.parameters,
                stage_results=results,
                result_data=await self._result(recording, results),
                error_details=recording.reason and recording.reason[:1_500],
                created_at=recording.began_at,
                updated_at=datetime.now(UTC),
                attempt=job.attempt,
                version=job.definition.version,
                project=job.project,
                alias=job.alias,
                failed_tasks=tuple(failed[:FAILED_TASKS_LISTED]),
                failed_count=recording.failed_count,
            )
        )
        return JobRecorded(makes_result=self._makes_result(job))

    async def _result(
        self, recording: JobRecording, results: Mapping[str, JsonObject]
    ) -> JsonObject:
        job = recording.job
        if recording.status is not JobStatus.COMPLETED:
            return {}
        if not self._ports.job_type(job).has_own_result():
            return results.get(str(job.definition.total_stages), {})
        found = await self._ports.folders.job_result(job.job_id, job.attempt)
        # The end of a job that an earlier release began makes its result here.
        return await self._made(recording) if found is None else found

    async def _made(self, recording: JobRecording) -> JsonObject:
        job, folders = recording.job, self._ports.folders
        order = StageOrder(job=job, stage=job.definition.total_stages, done=recording.stages)
        last = next((ref for ref in recording.stages if ref.stage == order.stage), None)

        async def previous() -> AsyncIterator[FinishedTask]:
            if last is not None:
                async for each in folders.whole_results(job.job_id, last):
                    yield each

        context = await self._ports.stage_context(order, previous)
        return await self._ports.job_type(job).result(context)

    def _makes_result(self, job: JobOrder) -> bool:
        found = self._ports.types.get(job.definition.job_type)
        return found is not None and found.has_own_result()


class _Tally:
    """Counts the tasks of a stage."""

    def __init__(self, order: StageOrder) -> None:
        self._order = order
        self._statuses = Counter[TaskStatus]()
        self.failed: list[FailedTask] = []

    @property
    def counts(self) -> TaskCounts:
        """What has become of them."""
        return TaskCounts(
            total=self._statuses.total(),
            completed=self._statuses[TaskStatus.COMPLETED],
            failed=self._statuses[TaskStatus.FAILED],
            cancelled=self._statuses[TaskStatus.CANCELLED],
        )

    def add(self, task: FinishedTask) -> None:
        """Count one more."""
        self._statuses[task.status] += 1
        if task.status is TaskStatus.FAILED and len(self.failed) < FAILED_TASKS_LISTED:
            stage = self._order.stage
            self.failed.append(
                FailedTask(
                    task_id=task_id(self._order.job.job_id, stage, task.index),
                    stage=stage,
                    task_index=task.index,
                    reason=task.error or "no reason given",
                )
            )


def _refuse_long(what: str, result: JsonObject, most: int = RESULT_BYTES) -> None:
    try:
        size = len(json.dumps(result, allow_nan=False).encode())
    except (TypeError, ValueError) as error:
        raise RuleViolation(f"{what} is not JSON: {error}") from error
    if size > most:
        raise RuleViolation(
            f"{what} has {size:,} bytes; {most:,} "
            "are the most: keep what is long in a blob, and its name in the result"
        )


def _name(failed: FailedTask) -> FailedName:
    return FailedName(task_id=failed.task_id[:120], reason=failed.reason[:300])
