"""Jobs and tasks as the tables `app.jobs` and `app.tasks` show them."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import Field, StringConstraints

from contracts.base import Contract
from contracts.jobs.definitions import JobTypeName, TaskIndex, TaskTypeName

JobId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
"""SHA-256 of what the job is to do, in lower-case hex."""
LARGEST_INTEGER: Final = (1 << 31) - 1
"""That a column of the tables holds."""
JsonObject = dict[str, Any]
"""Parameters and results: what JSON can hold."""
Text = Annotated[str, Field(max_length=1_500)]

FAILED_TASKS_LISTED: Final = 50
"""Failed tasks that a job names; the table of tasks has all of them."""
RESULT_BYTES: Final = 1_000_000
"""A task's result that is longer goes to the blob store (`DOCFLOW_JOBS_RESULT_BYTES`)."""


class JobStatus(StrEnum):
    """Where a job stands."""

    QUEUED = "QUEUED"
    PROCESSING = "PROCESSING"
    PARKED = "PARKED"
    """It waits for a person."""
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    TERMINATED = "TERMINATED"


class TaskStatus(StrEnum):
    """Where a task stands."""

    QUEUED = "QUEUED"
    PROCESSING = "PROCESSING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class InputIdentity(Contract):
    """Which bytes a job reads: part of its id, so a new file under an old name is a new job."""

    uri: str = Field(max_length=2_048)
    """`bronze://name`, in the container of the tier."""
    size: int = Field(ge=0)
    etag: str | None = Field(default=None, max_length=256)
    sha256: str | None = Field(default=None, max_length=64)


class FailedTask(Contract):
    """A task that a job names as failed."""

    task_id: str = Field(max_length=200)
    stage: int
    task_index: TaskIndex
    reason: Text


class JobRecord(Contract):
    """One job, at its newest attempt."""

    job_id: JobId
    job_type: JobTypeName
    status: JobStatus
    stage: int = 0
    """The stage that runs, from 1; 0: none has begun."""
    total_stages: int
    parameters: JsonObject
    stage_results: dict[str, JsonObject] = Field(default_factory=dict)
    """Number of a stage to its aggregated result."""
    result_data: JsonObject = Field(default_factory=dict)
    error_details: Text | None = None
    created_at: datetime
    updated_at: datetime
    attempt: int = 1
    version: int = 1
    """Of the definition."""
    project: str | None = None
    alias: str | None = None
    """The id that a foreign system gave it."""
    failed_tasks: tuple[FailedTask, ...] = Field(default=(), max_length=FAILED_TASKS_LISTED)
    failed_count: int = 0
    """All that failed, also those that are not listed."""


class TaskRecord(Contract):
    """One task of one attempt."""

    task_id: str = Field(max_length=200)
    """`{job_id[:8]}-{stage}-{task_index}`: shown to people, and no key."""
    parent_job_id: JobId
    attempt: int = 1
    stage: int
    task_index: TaskIndex
    ordinal: int
    """Its place in the stage, from 0."""
    task_type: TaskTypeName
    status: TaskStatus
    parameters: JsonObject
    result_data: JsonObject = Field(default_factory=dict)
    next_stage_params: JsonObject = Field(default_factory=dict)
    """Handed to the tasks that follow it."""
    large_metadata_path: str | None = None
    """Blob with the result, where it is too long for the table."""
    error_details: Text | None = None
    heartbeat: datetime | None = None
    retry_count: int = 0
    created_at: datetime
    updated_at: datetime


def task_id(job_id: str, stage: int, index: str) -> str:
    """How people name a task; two jobs may share it, so it is not a key."""
    return f"{job_id[:8]}-{stage}-{index}"


class JobRecorded(Contract):
    """Result of `jobs.record`."""

    makes_result: bool = False
    """The job type makes the result of the job: `jobs.make_result` has to precede its end."""
