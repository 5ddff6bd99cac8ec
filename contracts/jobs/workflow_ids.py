"""Workflow ids of jobs and their parts."""

from contracts.jobs.runs import StageRef


def job_workflow_id(job_id: str) -> str:
    """Workflow id of a job; all its attempts have it."""
    return f"job/{job_id}"


def stage_workflow_id(job_id: str, ref: StageRef) -> str:
    """Workflow id of a stage."""
    again = f".{ref.round}" if ref.round else ""
    return f"job/{job_id}/{ref.attempt}/{ref.stage}{again}"


def batch_workflow_id(job_id: str, ref: StageRef, batch: int) -> str:
    """Workflow id of a batch."""
    return f"{stage_workflow_id(job_id, ref)}/{batch}"
