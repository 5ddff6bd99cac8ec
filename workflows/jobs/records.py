"""Jobs and tasks as tables show them, what they have made, and who is notified."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import Field, StringConstraints, ValidationError

from workflows.jobs.definitions import JobTypeName, TaskIndex, TaskTypeName
from workflows.shared.contracts import Contract

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
    organisation_id: int | None = None
    """Organisation that it belongs to; None: the installation."""
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
    kept: bool = False
    """Its result is from before the job was restarted or the stage retried; it was not redone."""


def task_id(job_id: str, stage: int, index: str) -> str:
    """How people name a task; two jobs may share it, so it is not a key."""
    return f"{job_id[:8]}-{stage}-{index}"


class JobRecorded(Contract):
    """Result of `jobs.record`."""

    makes_result: bool = False
    """The job type makes the result of the job: `jobs.make_result` has to precede its end."""


ROWS: Final = "rows"
"""In the result of a stage: how many rows it has brought."""
BYTES: Final = "bytes"
"""In the result of a stage: the size of the files that it has read."""
OUTPUTS: Final = "outputs"
"""Key in the result of a job."""
FILES: Final = 500
"""That a page lists."""
NOTES: Final = 40
"""The same."""
NOTE_CHARACTERS: Final = 250

Uri = Annotated[str, Field(pattern=r"^(bronze|silver|gold)://.+", max_length=2_048)]
"""Tier, and name of a blob in its container: `silver://name`."""

OutputNote = Annotated[str, Field(max_length=NOTE_CHARACTERS)]


class OutputFile(Contract):
    """A file to download."""

    uri: Uri
    title: str = Field(max_length=200)
    media_type: str = Field(default="application/octet-stream", max_length=100)
    size: int | None = None
    """Bytes."""


class JobOutputs(Contract):
    """Preview, footprint, files, and what people should know of them."""

    preview: Uri | None = None
    """A PNG."""
    footprint: JsonObject | None = None
    """A GeoJSON geometry in degrees."""
    files: tuple[OutputFile, ...] = Field(default=(), max_length=FILES)
    notes: tuple[OutputNote, ...] = Field(default=(), max_length=NOTES)
    """What was left out or done to the data."""

    @classmethod
    def shown(cls, notes: Sequence[str]) -> tuple[str, ...]:
        """The first of some notes, within their bounds; the last one says how many are left out."""
        found = [_cut(each) for each in notes]
        if len(found) > NOTES:
            found[NOTES - 1 :] = [f"and {len(found) - NOTES + 1:,} more"]
        return tuple(found)

    @classmethod
    def of(cls, result: dict[str, Any]) -> "JobOutputs":
        """Those that a result names; none where it names none that can be shown."""
        try:
            return cls.model_validate(result.get(OUTPUTS, {}))
        except ValidationError:
            return cls()


def _cut(note: str) -> str:
    return note if len(note) <= NOTE_CHARACTERS else f"{note[: NOTE_CHARACTERS - 1]}…"


WEBHOOK_DELIVERY: Final = "WebhookDelivery"
"""Name of the workflow type."""
DELIVER_WEBHOOK: Final = "jobs.deliver_webhook"
"""Name of the activity that makes one attempt: `WebhookInput` in, `WebhookAttempt` out."""
WEBHOOK_PREFIX: Final = "job-webhook"
"""What the workflow ids of deliveries begin with, up to the slash."""

Reference = Annotated[str, StringConstraints(max_length=200)]


class WebhookReceiver(Contract):
    """One receiver of a job, as it stands in histories: without any secret."""

    url: str = Field(max_length=2_048)
    secret: Reference | None = None
    """Names the secret where it is kept; None: the messages are not signed."""
    retry_count: int = Field(default=3, ge=0, le=20)
    timeout_seconds: int = Field(default=30, ge=1, le=120)
    """Of one attempt."""


class WebhookInput(Contract):
    """Input of `WebhookDelivery`, and with the number of the attempt of `jobs.deliver_webhook`."""

    job_id: JobId
    attempt: int
    """Of the job; its record has the results that are sent."""
    status: JobStatus
    ended_at: datetime
    receiver: WebhookReceiver
    number: int = 0
    """Place of the receiver among those of the job, from 0."""
    redelivery: int = 0
    """How often a person has asked for it again; 0: the job itself has."""
    delivery_attempt: int = 1
    """Attempt of this delivery, from 1."""

    @property
    def message_id(self) -> str:
        """The same for every attempt, so that receivers recognise what came before."""
        return f"msg_{self.job_id[:32]}_{self.attempt}_{self.status.lower()}_{self.number}"


class WebhookAttempt(Contract):
    """Result of `jobs.deliver_webhook`; a receiver that refuses or fails is not a failure of it."""

    delivered: bool
    final: bool = False
    """Not delivered, and another attempt cannot help (refused address, 410 Gone)."""
    counted: bool = True
    """False: nothing was sent (the circuit of the host is open); it uses up no attempt."""
    retry_after: float | None = None
    """Seconds until the next attempt, where the receiver or the circuit says so."""
    status_code: int | None = None
    problem: Text | None = None


class WebhookEnd(Contract):
    """Result of `WebhookDelivery`."""

    delivered: bool
    attempts: int
    problem: Text | None = None


def webhook_delivery_id(order: WebhookInput) -> str:
    """Workflow id of a delivery."""
    again = f"/{order.redelivery}" if order.redelivery else ""
    return f"{WEBHOOK_PREFIX}/{order.job_id}/{order.attempt}/{order.number}{again}"
