"""Rows of tasks, made from plans and results."""

from datetime import datetime

from contracts.jobs import (
    FinishedTask,
    PlanLine,
    StageDefinition,
    StageRef,
    TaskRecord,
    TaskStatus,
    task_id,
)


def task_record(
    job_id: str,
    ref: StageRef,
    stage: StageDefinition,
    line: PlanLine,
    status: TaskStatus,
    now: datetime,
    finished: FinishedTask | None = None,
) -> TaskRecord:
    """The row of a task.

    Args:
        job_id: Of its job.
        ref: Of its stage.
        stage: Its definition.
        line: Of the plan.
        status: Where it stands.
        now: When it was seen to stand there.
        finished: Its end, when it has ended.
    """
    return TaskRecord(
        task_id=task_id(job_id, ref.stage, line.task.index),
        parent_job_id=job_id,
        attempt=ref.attempt,
        stage=ref.stage,
        task_index=line.task.index,
        ordinal=line.ordinal,
        task_type=stage.task_type,
        status=status,
        parameters=line.task.parameters,
        result_data=finished.result if finished else {},
        next_stage_params=finished.next_stage_params if finished else {},
        large_metadata_path=finished.large_result if finished else None,
        error_details=finished.error if finished else None,
        heartbeat=now if status is TaskStatus.PROCESSING else None,
        retry_count=finished.attempts - 1 if finished else 0,
        created_at=now,
        updated_at=now,
    )
