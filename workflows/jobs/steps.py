"""Steps of jobs as workflows call them; `activities.jobs` carries them out."""

from temporalio import activity

from workflows.jobs.records import JobRecorded
from workflows.jobs.runs import (
    BatchEnd,
    BatchRecording,
    GroupResult,
    JobRecording,
    JobRetentionInput,
    JobRetentionResult,
    SmallStageTally,
    StageClosed,
    StageInput,
    StagePlan,
    StageTally,
    TaskGroupInput,
)


class StageClosing:
    """Aggregates stages and writes the rows of jobs."""

    @activity.defn(name="jobs.close_small_stage")
    async def close_small_stage(self, work: SmallStageTally) -> StageClosed: ...

    @activity.defn(name="jobs.close_stage")
    async def close_stage(self, work: StageTally) -> StageClosed: ...

    @activity.defn(name="jobs.make_result")
    async def make_result(self, recording: JobRecording) -> None: ...

    @activity.defn(name="jobs.record")
    async def record(self, recording: JobRecording) -> JobRecorded | None: ...


class JobRetentionSteps:
    """Removes what is no longer kept."""

    @activity.defn(name="jobs.remove_superseded")
    async def remove_superseded(self, order: JobRetentionInput) -> JobRetentionResult: ...

    @activity.defn(name="jobs.remove_expired")
    async def remove_expired(self, order: JobRetentionInput) -> JobRetentionResult: ...


class TaskGroups:
    """Does tasks."""

    @activity.defn(name="jobs.run_tasks")
    async def run_tasks(self, order: TaskGroupInput) -> GroupResult: ...


class BatchRecords:
    """Writes what became of the tasks of a batch, all at once."""

    @activity.defn(name="jobs.record_tasks")
    async def record_tasks(self, recording: BatchRecording) -> None: ...

    @activity.defn(name="jobs.close_batch")
    async def close_batch(self, recording: BatchRecording) -> BatchEnd: ...


class StagePlanning:
    """Plans stages."""

    @activity.defn(name="jobs.plan_stage")
    async def plan_stage(self, order: StageInput) -> StagePlan: ...
