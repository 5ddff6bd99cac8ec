"""What the runs of cases and batches decide, do and report."""

from datetime import datetime
from typing import Annotated, Final

from pydantic import Field, StringConstraints

from workflows.batches.events import CancelMode, CaseEvent
from workflows.batches.names import (
    BatchKey,
    BatchPlan,
    Id,
    LoaderStatus,
    Phase,
    Purpose,
    QueueDepth,
    Resource,
    ResourceState,
    Timings,
    ValidationOutcome,
)
from workflows.shared.contracts import Answer, Contract
from workflows.shared.dependencies import Dependency

CloudName = Annotated[str, StringConstraints(pattern=r"^[!-~]+$", max_length=512)]
"""An ARN, or what another cloud has in its place."""


class ResourceRow(Contract):
    """One line of the table that a run shows."""

    resource: Resource
    state: ResourceState
    since: datetime | None = None
    """When it came into this state; None: a release that kept no times noted it."""
    name: CloudName | None = None
    """What the cloud calls it, where that does not follow from the batch."""


class StepInput(Contract):
    """What every step of provisioning and teardown is given."""

    key: BatchKey
    plan: BatchPlan
    keep_dead_letters: bool = True
    """A dead-letter queue that is not empty stays."""
    delivery: int = 15 * 60
    """Seconds that the filter policy may take to work."""
    subscription: CloudName | None = None
    """Where it is looked whether everything is there; None: the subscription is not looked for."""


class CanaryCheckInput(Contract):
    """One look for a canary."""

    key: BatchKey
    plan: BatchPlan
    canary: Annotated[str, Field(max_length=200)]
    """Its message id."""
    send: bool
    """It is published first."""


class DeliverySeen(Contract):
    """What the look found."""

    arrived: bool


class StepDone(Contract):
    """What a step did to its resource."""

    state: ResourceState
    note: Annotated[str, Field(max_length=500)] | None = None
    name: CloudName | None = None
    """What the cloud calls what was made, where that does not follow from the batch."""


OPEN_BATCHES: Final = 1_000
"""Batches of one case that wait at once."""
DEPTHS_KEPT: Final = 10
"""Polls that the run's details show."""
LEFT_ALONE: Final = 50
"""Batches that the sweeper left alone, by name; the log has them all."""
LOSS: Final = 150
"""Characters that say what was lost."""
EMPTY: Final = "EMPTY"
"""Outcome of a batch that is complete and had no document."""

Reason = Annotated[str, StringConstraints(max_length=2000)]


class CaseInput(Contract):
    """Input of a case's run."""

    case_id: Id
    timings: Timings = Timings()
    """For every batch that brings none of its own."""
    idle: int = Field(default=3600, ge=1)
    """Seconds without anything to do after which the run ends; the next event starts another."""
    watch: int = Field(default=300, ge=1)
    """Seconds between two looks at a batch that an earlier run of the case started."""
    inbox: tuple[CaseEvent, ...] = Field(default=(), max_length=1_000)
    """Events taken and not yet noted when the run before this one ended."""
    running: Id | None = None
    """The batch that the run before this one started."""
    taken: int = 0
    """Events so far."""
    finished: int = 0
    """Batches so far."""


class EventAccepted(Contract):
    """Answer to an event."""

    events: int
    """How many the case has accepted, with this one."""
    running: Id | None = None


class NoteEvents(Contract):
    """Events to record."""

    case_id: Id
    events: tuple[CaseEvent, ...] = Field(default=(), max_length=1_000)
    """In the order of arrival; none: only read the waiting batches."""
    running: Id | None = None
    """Batch whose run is checked."""


class WaitingBatch(Contract):
    """A batch of a case that is not done."""

    batch_id: Id
    status: LoaderStatus
    purpose: Purpose | None = None
    """What was requested; None: the batch is known, but not started yet."""
    timings: Timings | None = None
    since: datetime
    """Since when it has been as it is, UTC."""
    skipped: bool = False
    """It blocked its case for too long, and no longer does until it is started."""
    open_run: bool = False
    """It is in `processing`, and a run of it is open in Temporal."""
    cancelled: CancelMode | None = None
    """It is in `processing`, and was cancelled since."""


class WaitingBatches(Contract):
    """The batches of a case that are not done, lowest id first."""

    batches: tuple[WaitingBatch, ...] = Field(default=(), max_length=OPEN_BATCHES)
    running_open: bool = False
    """The run of the checked batch is open."""


class SkipBatch(Contract):
    """A batch that no longer blocks its case."""

    key: BatchKey
    reason: Reason


class BatchAttention(Contract):
    """Why people are asked to look at an open batch."""

    key: BatchKey
    reason: Reason | None = None
    """None: they no longer are."""


class CaseStatus(Contract):
    """Result of the `status` query of a case."""

    case_id: Id
    running: Id | None = None
    waiting: tuple[Id, ...] = Field(default=(), max_length=OPEN_BATCHES)
    unrecorded: tuple[Id, ...] = Field(default=(), max_length=1_000)
    """Batches of events that are accepted and not recorded yet."""
    events: int = 0
    finished: int = 0
    waiting_for: Dependency | None = None
    """What docflow itself needs and does not answer; the run continues when it does."""


class CaseResult(Contract):
    """Result of a case's run, when nothing was left to do."""

    events: int
    finished: int


class PolledDepth(Contract):
    """Depths of the queues at one moment."""

    at: datetime
    queue: QueueDepth
    dead_letters: QueueDepth
    loads: int = 0
    """Document loads that are open."""
    missing: tuple[Resource, ...] = Field(default=(), max_length=len(Resource))
    """What the batch was built with, and was deleted by someone else."""


class BatchProgress(Contract):
    """The state that a run passes on when it continues as a new one."""

    plan: BatchPlan
    phase: Phase
    resources: tuple[ResourceRow, ...] = Field(default=(), max_length=len(Resource))
    depths: tuple[PolledDepth, ...] = Field(default=(), max_length=DEPTHS_KEPT)
    lost: Annotated[str, Field(max_length=LOSS)] | None = None
    """Which queue was deleted by someone else, with what it held."""
    redrives: int = 0
    asked: int = 0
    """Passes that were requested beyond the plan's."""
    job_finished: bool = False
    end_finished: bool = False
    cancelled: CancelMode | None = None
    cancelled_because: Reason | None = None
    empty_since: datetime | None = None
    expected: int | None = None
    """Documents of the batch, as JOB_FINISHED said."""
    ended: bool = False
    """What follows the loading is done; the queues are looked at once more."""
    reason: Reason | None = None
    """What people read beside the phase."""
    slow_since: datetime | None = None
    """When the present phase began, of those that have a limit."""
    with_failed: bool = False
    """The next pass takes the documents that are recorded as failed along."""


class BatchInput(Contract):
    """Input of a batch's run."""

    key: BatchKey
    purpose: Purpose = Purpose.LOAD
    timings: Timings = Timings()
    notify: bool = True
    """Notify the case's run when this one ends."""
    progress: BatchProgress | None = None
    notices: bool = False
    """People are sent notices; an order of a release that had none asks for none."""
    cancelled: CancelMode | None = None
    """It was cancelled when no run of it was open any more, and is swept for that."""


class Validate(Contract):
    """What `batches.validate` is asked."""

    key: BatchKey
    purpose: Purpose
    grace: int
    """Seconds that a lock without a function is respected."""
    prepare: bool = False
    """Read the plan of a batch that may be built as well, and take its leases if there is room."""


class Validation(Contract):
    """What it answers."""

    outcome: ValidationOutcome
    reason: Reason | None = None
    retry_at: datetime | None = None
    """When asking again makes sense, UTC."""
    job_finished: bool = False
    """JOB_FINISHED came before the run began."""
    end_finished: bool = False
    documents: int | None = None
    """How many JOB_FINISHED said, when it came before the run began."""
    orphans: tuple[Id, ...] = Field(default=(), max_length=OPEN_BATCHES)
    """Batches that were found orphaned and set `in-complete`."""
    lost: Annotated[str, Field(max_length=LOSS)] | None = None
    """What an earlier run of the batch lost, where this one tries again what that one kept."""
    plan: BatchPlan | None = None
    """What it is built from; None: it is to be read by a step of its own."""
    leased: bool = False
    """It has what it needs of the limits of the account."""


class SweepInfo(Contract):
    """What the sweep of a batch has to know of its row."""

    processing: bool = False
    """It is in `processing`: its end has not been announced."""
    cancelled: CancelMode | None = None
    """It was cancelled."""
    unannounced: LoaderStatus | None = None
    """How it ended, where that has not been announced: its run was terminated after its end."""
    not_loaded: int = 0
    """Dead letters that it kept; where it lost a queue, one at least."""


class RedriveInput(Contract):
    """One pass over the dead letters."""

    key: BatchKey
    plan: BatchPlan
    number: int
    """From 1."""
    final: bool
    """Documents that fail again are recorded as failed."""
    with_failed: bool = False
    """Those that are recorded as failed are tried again too."""


class Redriven(Contract):
    """What a pass moved."""

    moved: int
    duplicates: int = 0
    """Dead letters that were the same message again, and left out."""


class DocumentCounts(Contract):
    """Documents of a batch by state."""

    loading: int = 0
    loaded: int = 0
    duplicate: int = 0
    failed: int = 0
    terminated: int = 0
    cancelled: int = 0
    """Not loaded, because the batch ended early."""
    superseded: int = 0
    """Brought by this batch, while another batch has the current file."""
    found: int = 0
    """Of all these, files that were found in other documents or named as attachments."""

    @property
    def sent(self) -> int:
        """Those that were announced by their sender."""
        return self.total - self.found

    @property
    def total(self) -> int:
        """All of them."""
        known = self.loading + self.loaded + self.duplicate + self.failed + self.terminated
        return known + self.cancelled + self.superseded


class Announce(Contract):
    """An announcement to publish."""

    key: BatchKey
    plan: BatchPlan
    event_type: Annotated[str, Field(max_length=64)]
    status: Annotated[str, Field(max_length=64)] = "SUCCESS"
    documents: DocumentCounts | None = None
    """Published with LOADER_FINISHED."""


class Closing(Contract):
    """How a batch ends, for its row."""

    key: BatchKey
    status: LoaderStatus
    reason: Reason | None = None
    dead_letters: int = 0
    only_processing: bool = False
    """A batch that is not in `processing` stays as it is."""
    lost: Annotated[str, Field(max_length=LOSS)] | None = None
    """Which queue was deleted by someone else, with what it held."""
    unbuilt: bool = False
    """Nothing was built: leases are released with the row, as no later step does it."""


class BatchResult(Contract):
    """Result of a batch's run."""

    key: BatchKey
    status: LoaderStatus
    validation: ValidationOutcome | None = None
    reason: Reason | None = None
    documents: DocumentCounts = DocumentCounts()
    redrives: int = 0
    dead_letters: int = 0
    """Still in the dead-letter queue, which was kept for them."""
    left: tuple[Resource, ...] = Field(default=(), max_length=len(Resource))
    """What could not be deleted."""
    outcome: Annotated[str, Field(max_length=64)] | None = None
    """See `outcome_of`."""


def outcome_of(status: LoaderStatus, counts: DocumentCounts | None, not_loaded: int) -> str:
    """How a batch ended, in one word for other services.

    SUCCESS; PARTIAL, where a complete batch has documents that are not loaded, messages that were
    kept as dead letters or lost, or documents that were not counted; EMPTY, where no document came;
    else its status in capitals.
    """
    if status is not LoaderStatus.COMPLETE:
        return status.upper()
    if counts is None or not_loaded:
        return "PARTIAL"
    if counts.failed or counts.terminated or counts.cancelled or counts.loading:
        return "PARTIAL"
    return "SUCCESS" if counts.total else EMPTY


class BatchStatus(Contract):
    """Result of the `status` query of a batch."""

    key: BatchKey
    phase: Phase
    validation: ValidationOutcome | None = None
    reason: Reason | None = None
    resources: tuple[ResourceRow, ...] = Field(default=(), max_length=len(Resource))
    depths: tuple[PolledDepth, ...] = Field(default=(), max_length=DEPTHS_KEPT)
    redrives: int = 0
    job_finished: bool = False
    end_finished: bool = False
    cancelled: CancelMode | None = None
    waiting_since: datetime | None = None
    next_steps: Annotated[str, Field(max_length=100)] | None = None
    waiting_for: Dependency | None = None
    """What docflow itself needs and does not answer; the run continues when it does."""
    documents: DocumentCounts | None = None
    """By state, once the batch has ended."""
    outcome: Annotated[str, Field(max_length=64)] | None = None
    """See `outcome_of`; None: it has not ended."""


class BatchAnswer(Answer):
    """Answer to a parked batch (`retry`, `skip`, `fail`)."""


class SweepInput(Contract):
    """Input of the sweeper."""

    grace: int = Field(default=15 * 60, ge=0)
    """Seconds that a resource without an open run is left alone."""
    most: int = Field(default=100, ge=1, le=200)
    """Batches swept in one run; the next one takes up the others."""


class Orphans(Contract):
    """Batches with resources and no open run."""

    keys: tuple[BatchKey, ...] = Field(default=(), max_length=200)
    more: bool = False
    not_ours: tuple[BatchKey, ...] = Field(default=(), max_length=LEFT_ALONE)
    """Batches that are left alone: something has one of our names and another owner's tag."""


class Swept(Contract):
    """Result of the sweeper."""

    batches: int = 0
    left: int = 0
    """Batches of which something could not be removed."""
    more: bool = False
    not_ours: tuple[BatchKey, ...] = Field(default=(), max_length=LEFT_ALONE)
    """Batches that were left alone: something has one of our names and another owner's tag."""
