"""Runs of jobs: how they are asked for, what they are called, orders, tasks and results."""

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final, cast

from pydantic import ConfigDict, Field, StringConstraints

from workflows.jobs.definitions import (
    STAGES,
    TASKS_PER_BATCH,
    JobTypeName,
    ShownName,
    StageDefinition,
    StageName,
    TaskIndex,
    WorkflowDefinition,
)
from workflows.jobs.records import (
    InputIdentity,
    JobId,
    JobStatus,
    JsonObject,
    TaskStatus,
    Text,
    WebhookReceiver,
)
from workflows.shared.contracts import AuthoredContract, BlobName, Contract, Retry
from workflows.shared.errors import RuleViolation

MESSAGE_BYTES: Final = 256 * 1024
"""A request that is longer is refused."""
WEBHOOK_URLS: Final = 10


class WebhookParameters(Contract):
    """Who is notified when a job has ended, as its request says; the secret is not passed on."""

    webhook_url: str | tuple[str, ...] | None = None
    webhook_secret: str | None = Field(default=None, min_length=1, max_length=500, repr=False)
    webhook_secret_name: str | None = Field(default=None, max_length=100)
    """A secret in the settings, instead of one that travels with the request."""
    webhook_retry_count: int = Field(default=3, ge=0, le=20)
    webhook_timeout_seconds: int = Field(default=30, ge=1, le=120)


class JobQueueMessage(Contract):
    """A message of the queue, as the system that docflow replaces sends it."""

    job_id: ShownName = Field(min_length=1, max_length=200)
    """Foreign: kept as the job's alias."""
    job_type: JobTypeName
    stage: int = 1
    """Above 1 it asks to continue a job of the other system, which cannot be done here."""
    parameters: JsonObject = Field(repr=False)
    """Those of the job, with those of its webhook, whose secret no log may show."""
    stage_results: JsonObject = Field(default_factory=dict)
    timestamp: datetime | None = None


class JobRequest(Contract):
    """The same by HTTP or on the command line; an unknown field is a mistake."""

    # FastAPI builds what it checks a body with when the application is made.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=False)

    job_type: JobTypeName
    parameters: JsonObject = Field(default_factory=dict, repr=False)
    """Those of the job, with those of its webhook, whose secret no log may show."""
    project: ShownName | None = Field(default=None, max_length=128)
    """Fairness: work of one project does not hold that of another up. None: of the type."""
    alias: ShownName | None = Field(default=None, max_length=200)
    limit: int | None = Field(default=None, ge=1)
    """A trial run: every stage begins with no more than this many tasks."""
    rerun: bool = False
    """Do it again although it was done: another attempt of the same job."""


class PlannedTask(AuthoredContract):
    """A task to be done, as the plan of its stage says."""

    index: TaskIndex
    parameters: JsonObject = Field(default_factory=dict)


class FinishedTask(Contract):
    """A task at its end, as later stages read it."""

    index: TaskIndex
    ordinal: int
    status: TaskStatus
    parameters: JsonObject = Field(default_factory=dict)
    result: JsonObject = Field(default_factory=dict)
    """In blobs without content when it is too long; job types are given it whole."""
    next_stage_params: JsonObject = Field(default_factory=dict)
    large_result: str | None = None
    """Name of the blob with a long result."""
    error: Text | None = None
    attempts: int = 1


class JobWait(Contract):
    """A wait that ends by itself."""

    what: Annotated[str, Field(max_length=400)]
    """It follows "waits for", and says why."""
    since: datetime
    outage: Annotated[str, Field(max_length=200)] | None = None
    """Workflow id of the outage that is waited for; None: tasks are tried again later."""


JOB: Final = "Job"
STAGE: Final = "Stage"
TASK_BATCH: Final = "TaskBatch"
"""Names of the workflow types."""
PARK_SECONDS: Final = 14 * 24 * 3600
LINES_CHARACTERS: Final = 6_000
"""Finished tasks that an activity returns by itself; more go through a blob."""
LINE_BYTES: Final = 2_000
"""For each task on average, so that those of a batch fit into one input."""
NAMED: Final = 5
"""Failed tasks and questions that stand in results and answers."""
WEBHOOKS: Final = 10

Sentence = Annotated[str, Field(max_length=300)]
ParameterName = Annotated[str, Field(max_length=100)]
Position = Annotated[int, Field(ge=0, lt=TASKS_PER_BATCH)]
"""Place of a task in its batch."""


class StageRef(Contract):
    """A stage as it was run: names the folder of its plan and results."""

    stage: int
    attempt: int
    round: int = 0
    """How often it was begun anew in the same attempt."""


class TaskCounts(Contract):
    """What became of tasks."""

    total: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0

    @property
    def done(self) -> int:
        """Tasks that have ended."""
        return self.completed + self.failed + self.cancelled

    def plus(self, other: "TaskCounts") -> "TaskCounts":
        """Both together."""
        return TaskCounts(
            total=self.total + other.total,
            completed=self.completed + other.completed,
            failed=self.failed + other.failed,
            cancelled=self.cancelled + other.cancelled,
        )


class Question(Contract):
    """A parameter that a person has to give."""

    parameter: ParameterName
    question: Sentence


class JobInput(Contract):
    """Input of a job: everything that was decided when it was submitted."""

    job_id: JobId
    definition: WorkflowDefinition
    """As it was then: another release does not change an open job."""
    parameters: JsonObject = Field(default_factory=dict)
    """Without the secrets of webhooks."""
    inputs: tuple[InputIdentity, ...] = ()
    attempt: int = 1
    project: str | None = Field(default=None, max_length=128)
    organisation_id: int | None = None
    """Organisation that it belongs to, and what it makes; None: the installation."""
    alias: str | None = Field(default=None, max_length=200)
    limit: int | None = Field(default=None, ge=1)
    restart_from: int | None = None
    """Stage that is done again; what the attempt before had of it and of those before is kept."""
    kept: tuple[StageRef, ...] = Field(default=(), max_length=STAGES)
    """Stages of attempts before, up to the one that is done again."""
    kept_counts: tuple[TaskCounts, ...] = Field(default=(), max_length=STAGES)
    """Of those, in their order; shorter: it was not known."""
    webhooks: tuple[WebhookReceiver, ...] = Field(default=(), max_length=WEBHOOKS)
    park_for_seconds: int = PARK_SECONDS
    notices: bool = False


class JobRetry(Retry):
    """Do the failed stage again; its good tasks are kept unless parameters change."""

    parameters: JsonObject | None = None
    """Corrected ones of the job, which are added to those it has."""


class StageInput(Contract):
    """Input of a stage, and of the activities that plan and close it."""

    job: JobInput
    stage: int
    round: int = 0
    done: tuple[StageRef, ...] = Field(default=(), max_length=STAGES)
    """Stages before it."""
    redo: StageRef | None = None
    """The same stage as it was run before: its good tasks are kept."""

    @property
    def definition(self) -> StageDefinition:
        """Of the stage."""
        return self.job.definition.stage(self.stage)

    @property
    def ref(self) -> StageRef:
        """Where its plan and results lie."""
        return StageRef(stage=self.stage, attempt=self.job.attempt, round=self.round)


class StagePlan(Contract):
    """Result of `jobs.plan_stage`; the tasks lie in a blob for each batch."""

    tasks: int = 0
    """To be done."""
    kept: int = 0
    """More that need not be done again."""
    question: Question | None = None


class TaskBatchInput(Contract):
    """Input of a batch, and of the activities that record and close it."""

    job_id: JobId
    ref: StageRef
    definition: StageDefinition
    batch: int
    tasks: int
    window: int
    """Activities at once."""
    reports: bool = True
    """It reports progress to its stage, besides at its end."""


class TaskGroupInput(Contract):
    """Input of `jobs.run_tasks`."""

    job_id: JobId
    ref: StageRef
    batch: int
    positions: tuple[Position, ...] = Field(max_length=TASKS_PER_BATCH)
    timeout_seconds: int
    """Of one attempt at one task."""
    tries: dict[int, int] = Field(default_factory=dict[int, int])
    """Position to the failed attempts before."""
    give_up: bool = False
    """What the first task cannot use is counted as its own failure: it was waited for in vain."""


class TaskAgain(Contract):
    """A task that is to be done again later."""

    position: Position
    seconds: float = Field(ge=0, le=86_400)
    tries: int = Field(default=0, ge=0, le=1_000)
    """Failed attempts so far; asking again because something is not ready counts as none."""


class GroupResult(Contract):
    """Result of `jobs.run_tasks`: what became of each of its tasks."""

    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    lines: str = Field(default="", max_length=LINES_CHARACTERS)
    """A `FinishedTask` as JSON in each line, without parameters."""
    blob: BlobName | None = None
    """Begins the names of the blobs that hold lines too long to travel, up to a number."""
    blobs: int = 0
    """How many there are."""
    again: tuple[TaskAgain, ...] = Field(default=(), max_length=TASKS_PER_BATCH)
    again_why: Sentence = ""
    """Why the first of them is done again."""
    rest: tuple[Position, ...] = Field(default=(), max_length=TASKS_PER_BATCH)
    """Not begun: what the first of them needs does not answer."""
    questions: tuple[Question, ...] = Field(default=(), max_length=3)


class GroupCursor(Contract):
    """Heartbeat of `jobs.run_tasks`: what is done, and how far the current task is."""

    done: int = 0
    """Positions of the order, from the first."""
    attempt: int = 1
    """Of the activity, that ended the last of them."""
    result: GroupResult = GroupResult()
    progress: float = 0.0
    message: Sentence = ""


class BatchRecording(Contract):
    """Input of `jobs.record_tasks` and of `jobs.close_batch`."""

    order: TaskBatchInput
    lines: tuple[str, ...] = ()
    """Of finished tasks, as `GroupResult` has them."""
    blobs: tuple[BlobName, ...] = ()
    """With more of them."""
    processing: tuple[Position, ...] = ()
    """In progress at the moment."""
    cancelled: bool = False
    """At the end: tasks without a result were cancelled."""


class BatchProgress(Contract):
    """Signal of a batch to its stage."""

    batch: int
    counts: TaskCounts
    failing: bool = False
    """A task has failed, by more than a question."""
    awaits: JobWait | None = None
    """What the batch waits for."""


class BatchEnd(Contract):
    """Result of a batch."""

    counts: TaskCounts
    failure: Sentence | None = None
    """Why its tasks could not be worked on at all."""
    questions: tuple[Question, ...] = Field(default=(), max_length=NAMED)


class FailedName(Contract):
    """A failed task, in a result."""

    task_id: Annotated[str, StringConstraints(max_length=120)]
    reason: Sentence


class StageTally(Contract):
    """Input of `jobs.close_stage`."""

    order: StageInput
    tasks: int
    """That were planned."""
    aggregate: bool = True
    """False: the stage is not used, so only its tasks are counted."""


class SmallStageTally(StageTally):
    """Input of `jobs.close_small_stage`."""

    batch: BatchRecording
    """Its only batch, whose results are not put together yet."""


class StageClosed(Contract):
    """Result of `jobs.close_stage`; the aggregated result lies in a blob."""

    counts: TaskCounts
    failed: tuple[FailedName, ...] = Field(default=(), max_length=NAMED)


class StageEnd(Contract):
    """Result of a stage."""

    ref: StageRef
    counts: TaskCounts
    skipped: bool = False
    """There was nothing to do."""
    failure: Sentence | None = None
    """Why it cannot be used: its plan or its aggregation failed, or tasks did."""
    questions: tuple[Question, ...] = Field(default=(), max_length=NAMED)
    failed: tuple[FailedName, ...] = Field(default=(), max_length=NAMED)
    cancelled: bool = False


class StageState(StrEnum):
    """Where a stage stands."""

    WAITING = "waiting"
    """Its turn has not come."""
    RUNNING = "running"
    COMPLETED = "completed"
    SKIPPED = "skipped"
    FAILED = "failed"
    CANCELLED = "cancelled"


class StageView(Contract):
    """How far a stage is."""

    stage: int
    name: StageName
    state: StageState = StageState.WAITING
    ref: StageRef | None = None
    """None: it has not begun."""
    counts: TaskCounts = TaskCounts()
    began_at: datetime | None = None
    ended_at: datetime | None = None
    rate: float | None = None
    """Tasks a second."""
    estimated_end: datetime | None = None


class StageProgress(Contract):
    """Signal of a stage to its job."""

    view: StageView
    awaits: JobWait | None = None
    """What the stage waits for."""


class JobRecording(Contract):
    """Input of `jobs.record`: the row of a job is written anew from it and from its stages."""

    job: JobInput
    status: JobStatus
    stage: int = 0
    stages: tuple[StageRef, ...] = Field(default=(), max_length=STAGES)
    """Those that have ended."""
    failed_count: int = 0
    began_at: datetime
    reason: Annotated[str, Field(max_length=2_000)] | None = None


class JobResult(Contract):
    """Result of a job, and detail of its failure."""

    job_id: JobId
    attempt: int
    status: JobStatus
    stages: tuple[StageView, ...] = Field(default=(), max_length=STAGES)
    failed_count: int = 0
    failed: tuple[FailedName, ...] = Field(default=(), max_length=NAMED)
    reason: Annotated[str, Field(max_length=2_000)] | None = None


class JobView(Contract):
    """Result of the query `status` of a job."""

    job_id: JobId
    attempt: int
    status: JobStatus
    stage: int = 0
    stages: tuple[StageView, ...] = Field(default=(), max_length=STAGES)
    reason: Annotated[str, Field(max_length=2_000)] | None = None
    questions: tuple[Question, ...] = Field(default=(), max_length=NAMED)
    next_steps: Sentence | None = None
    waiting_since: datetime | None = None
    failed: tuple[FailedName, ...] = Field(default=(), max_length=NAMED)
    awaits: JobWait | None = None
    """What it waits for without a person."""


class TaskPlace(Contract):
    """Where a finished task stands."""

    ref: StageRef
    batch: int
    position: int


class PlanLine(Contract):
    """A task in the plan of its batch, as a blob holds it."""

    ordinal: int
    task: PlannedTask
    predecessor: FinishedTask | None = None
    """Of the same index in the stage that this one depends on, where it is short."""
    predecessor_at: TaskPlace | None = None
    """Where it is, when it is long."""


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


JOB_RETENTION: Final = "JobRetention"
"""Name of the workflow type."""
JOB_RETENTION_SCHEDULE: Final = "job-retention"
"""Id of its schedule."""
NAMED_REMOVED: Final = 20
"""Jobs and files that a result names."""
Removed = Annotated[str, Field(max_length=400)]


class JobRetentionInput(Contract):
    """Input of the retention of jobs."""

    dry_run: bool = False
    """Say what would be removed, and remove nothing."""
    most: int = Field(default=1_000, ge=1)
    """Jobs, and notes of superseded files, of one run; the next run takes the rest."""


class JobRetentionResult(Contract):
    """What was removed, or would be."""

    jobs: int = 0
    """Jobs whose tasks, plans, results and webhooks were removed."""
    kept: int = 0
    """Those of them whose record stays, because the catalogue has items of theirs."""
    files: int = 0
    """Files in silver and gold: superseded ones, and leftovers of jobs."""
    named: tuple[Removed, ...] = Field(default=(), max_length=NAMED_REMOVED)
    """The first of them."""

    def plus(self, other: "JobRetentionResult") -> "JobRetentionResult":
        """Both together."""
        return JobRetentionResult(
            jobs=self.jobs + other.jobs,
            kept=self.kept + other.kept,
            files=self.files + other.files,
            named=(*self.named, *other.named)[:NAMED_REMOVED],
        )


def job_id(
    definition: WorkflowDefinition, parameters: JsonObject, inputs: Sequence[InputIdentity]
) -> str:
    """SHA-256 over what a job is to do, in lower-case hex.

    Args:
        definition: Its type and version count.
        parameters: As validated, with defaults, and without those of webhooks.
        inputs: What they are now; their order is of no account.

    Raises:
        RuleViolation: A parameter holds what JSON or UTF-8 does not have.
    """
    content = {
        "job_type": definition.job_type,
        "version": definition.version,
        "parameters": parameters,
        "inputs": sorted(_identity(each) for each in inputs),
    }
    return hashlib.sha256(canonical(content).encode()).hexdigest()


def canonical(content: object) -> str:
    """JSON in one way: keys sorted, no white space, 1.0 written as 1.

    Raises:
        RuleViolation: A number is NaN or infinite, or a text holds half a surrogate pair.
    """
    try:
        text = json.dumps(
            _plain(content),
            sort_keys=True,
            separators=(",", ":"),
            ensure_ascii=False,
            allow_nan=False,
        )
        text.encode()
    except UnicodeEncodeError as error:
        raise RuleViolation(
            "a parameter holds half a surrogate pair, which is not a character"
        ) from error
    except ValueError as error:
        raise RuleViolation("a parameter is NaN or infinite, which JSON does not have") from error
    return text


def _plain(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        fields = cast(dict[object, object], value)
        return {str(key): _plain(each) for key, each in fields.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in cast(Sequence[object], value)]
    return value


def _identity(each: InputIdentity) -> list[str]:
    """URI, size, and sha256 where it is known, else the etag."""
    if each.sha256 is not None:
        return [each.uri, str(each.size), f"sha256:{each.sha256}"]
    return [each.uri, str(each.size), f"etag:{each.etag}"]
