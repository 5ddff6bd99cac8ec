"""Runs of transfers: what workflows and activities are given, and what they return."""

from datetime import datetime
from typing import Any, Final

from pydantic import Field

from contracts.answers import Person, Retry
from contracts.base import Contract
from contracts.blobs import BlobRef
from contracts.transfers.events import FileNotice
from contracts.transfers.names import (
    PartnerName,
    QueueName,
    RuleName,
    Sentence,
    SettingsJobName,
    TransferId,
    TransferStatus,
    transfer_id_of,
)
from contracts.transfers.routes import RouteRemark
from contracts.transfers.settings import ACTIONS, Action, ReadFile, SettingsJob

REMARKS: Final = 10
INLINE_STEP: Final = 2_048
"""Characters of a receipt's step that stands in history: one file, named and hashed."""
PARK_SECONDS: Final = 14 * 24 * 3600


class FileEventOrder(Contract):
    """Input of `FileEvent`: the event as it arrived; its body is checked within the run."""

    transfer_id: TransferId
    body: str = Field(max_length=64 * 1024, repr=False)
    """JSON in structured mode; of an event in binary mode, what that would be."""
    digest: str = Field(max_length=64)
    """SHA-256 of the canonical event."""
    arrived: datetime
    way_in: str = Field(max_length=100)
    """`event-hub`, `api`, `submit`, `watch`, `fire-event` or the name of a queue."""
    park_for_seconds: int = PARK_SECONDS
    notices: bool = False


class Manifest(Contract):
    """The files of a run between two actions; they are listed in a blob, one JSON line each."""

    files: int = 0
    bytes: int = 0
    blob: BlobRef | None = None
    """Lines of `StagedFile`; None: there are no files yet."""


class FileJobOrder(Contract):
    """Input of `FileJob`: a routed event."""

    transfer_id: TransferId
    queue: QueueName
    event: FileNotice
    digest: str = Field(max_length=64)
    arrived: datetime
    way_in: str = Field(max_length=100)
    resent_from: TransferId | None = None
    """The transfer whose kept copy is sent again; `transfer_id` is that of `resend_id` then."""
    resend_to: PartnerName | None = None
    """A partner instead of the one that the settings name."""
    resend: int = 0
    """How often it was sent again; 0: it is the event's own run."""
    redriven_from: TransferId | None = None
    """The failed transfer that it carries out anew; `transfer_id` is that of `redrive_id` then."""
    done_before: tuple[tuple[int, str], ...] = Field(default=(), max_length=ACTIONS)
    """Place and name of actions with effects that the failed one has done: none is repeated."""
    done_where: tuple[tuple[int, str], ...] = Field(default=(), max_length=ACTIONS)
    """Place of those actions, and the partner or queue that they sent to: one that sends elsewhere
    by now is carried out."""
    read_before: tuple[tuple[int, str], ...] = Field(default=(), max_length=ACTIONS)
    """Place of actions that read what was written then, and the digest of what they have read."""
    files: Manifest = Manifest()
    """What it begins with: the kept copy."""
    park_for_seconds: int = PARK_SECONDS
    notices: bool = False


class TransferPlan(Contract):
    """What a run will do: read once, kept in the run."""

    job: SettingsJob
    settings: BlobRef | None = None
    """The version of `jobsettings.json` that it is from."""
    names: tuple[dict[str, str], ...] = Field(default=(), max_length=ACTIONS)
    """Of each action, its templates with everything but the file's own name resolved: by the name
    of the field (`path`), and of the entry where the field has several (`data.orderId`)."""
    sequence: str | None = Field(default=None, max_length=1_024)
    remarks: tuple[Sentence, ...] = Field(default=(), max_length=REMARKS)
    """Keys of the settings that nothing reads, and what else a person should know."""
    inline_receipt: bool = False
    """Short steps of its receipt come with the results of actions, and where there are few files
    the worker of the run puts it together. False: a plan of an earlier release."""


class StagedFile(Contract):
    """One file of a run in the staging area."""

    name: str = Field(max_length=1_024)
    """As it will be written: its folders within an archive included."""
    blob: BlobRef
    """Its sha256 and size are of the plain bytes, whether or not they are encrypted at rest."""
    source: str | None = Field(default=None, max_length=1_024)
    """Path at the partner that it was read from."""
    source_size: int | None = None
    source_changed: datetime | None = None
    source_tag: str | None = Field(default=None, max_length=256)
    """Etag, where the protocol has one."""
    scanned: Sentence | None = None
    signed_by: str | None = Field(default=None, max_length=64)


class ActionOrder(Contract):
    """Input of the activity of one action."""

    job: FileJobOrder
    plan_zone: str = Field(default="UTC", max_length=64)
    index: int = Field(ge=0, lt=ACTIONS)
    round: int = 0
    """How often a person has had it tried again."""
    action: Action
    settings_job: SettingsJobName | None = None
    configured_by: Person | None = None
    names: dict[str, str] = Field(default_factory=dict[str, str])
    """Of its templates, resolved; as in the plan."""
    files: Manifest = Manifest()
    previous: str = Field(default="", max_length=64)
    """SHA-256 of the receipt's step before it; of the event where it is the first."""
    inline_step: bool = False
    """A short step of the receipt may come with the result."""


class ActionResult(Contract):
    """Result of the activity of one action."""

    files: Manifest
    """For the next action."""
    step: BlobRef | None = None
    """Its `ReceiptStep`."""
    inline_step: str = Field(default="", max_length=INLINE_STEP)
    """The same as JSON, where it is short: no blob is written then."""
    step_sha256: str = Field(default="", max_length=64)
    remarks: tuple[Sentence, ...] = Field(default=(), max_length=REMARKS)
    guarantee: str | None = Field(default=None, max_length=100)
    """Of what was written."""
    infected: Sentence | None = None
    """Signature and file: the run ends as failed, nothing is written on."""
    fired: tuple[TransferId, ...] = Field(default=(), max_length=REMARKS)


class EventRoute(Contract):
    """Which queue an event goes to."""

    queue: QueueName | None = None
    """None: no rule matches, or see `problem`."""
    rule: RuleName | None = None
    """None: a person named the queue."""
    priority: int | None = None
    """Of the queue, for Temporal: 1 to 5, the lowest first; None: its default."""
    problem: Sentence | None = None
    """Why the queue of the rule cannot be used."""
    others: tuple[RouteRemark, ...] = Field(default=(), max_length=10)
    """The nearest rules, where none matches."""
    rules: int = 0
    """How many there were."""


class Reception(Contract):
    """Result of `transfers.receive`: an event that was checked, and where it goes."""

    status: TransferStatus
    reason: Sentence | None = None
    """What is wrong with it; of one that has succeeded, when it was carried out before."""
    event: FileNotice | None = None
    """None: it is invalid, or garbage, or was carried out before."""
    route: EventRoute | None = None
    refused: Sentence | None = None
    """Another event came with its source and id: this one is recorded as rejected."""
    digest: str | None = Field(default=None, max_length=64)
    """Of that other event."""


class RouteOrder(Contract):
    """Input of `transfers.route`: look again where an event goes."""

    transfer_id: TransferId
    event: FileNotice
    digest: str = Field(max_length=64)
    at: datetime
    queue: QueueName | None = None
    """Named by a person; None: by the rules."""
    by: Person | None = None
    reason: Sentence | None = None


class StatusOrder(Contract):
    """Input of `transfers.record`: a transfer enters a state."""

    transfer_id: TransferId
    status: TransferStatus
    at: datetime
    run: str = Field(max_length=200)
    """Workflow id of the run that closes it."""
    digest: str = Field(max_length=64)
    event: FileNotice | None = None
    queue: QueueName | None = None
    job: SettingsJobName | None = None
    file: str | None = Field(default=None, max_length=1_024)
    reason: Sentence | None = None
    by: Person | None = None


class LoadOrder(Contract):
    """Input of `transfers.load_plan`; the job has begun then."""

    job: FileJobOrder
    at: datetime
    plan: TransferPlan | None = None
    """What it has done so far was done by this plan; None: it begins."""
    index: int = Field(default=0, ge=0, lt=ACTIONS)
    """Of the action that failed."""
    settings: bool = False
    """Read `jobsettings.json` again: actions before that one have to be the same still."""
    action: dict[str, Any] | None = None
    """The action that failed, with corrected settings."""


class TurnOrder(Contract):
    """Input of `transfers.take_turn`: runs of one key write one after the other."""

    transfer_id: TransferId
    key: str = Field(max_length=1_024)
    run: str = Field(max_length=200)
    """Workflow id of the run that waits."""
    arrived: datetime
    known: int | None = None
    """The position that is shown already; None: none is; -1: it ends at its turn only."""


class Turn(Contract):
    """Result of `transfers.take_turn`."""

    position: int
    """0: it is this run's turn; else how many are before it."""
    behind: str | None = Field(default=None, max_length=200)
    """Workflow id of the run whose turn it is."""


class SettleOrder(Contract):
    """Input of `transfers.settle_source`: what becomes of what one `ReadFile` has read."""

    job: FileJobOrder
    index: int = Field(ge=0, lt=ACTIONS)
    action: ReadFile
    names: dict[str, str] = Field(default_factory=dict[str, str])
    files: Manifest
    """As that action has read them."""
    succeeded: bool
    """False: the run has failed."""


class SettleResult(Contract):
    """Result of `transfers.settle_source`."""

    remarks: tuple[Sentence, ...] = Field(default=(), max_length=REMARKS)
    """What could not be done with a source; it stays where it is."""


class TransferRetry(Retry):
    """Try again from the failed action."""

    settings: bool = False
    """Read `jobsettings.json` again; else the run keeps what it has."""
    action: dict[str, Any] | None = None
    """The failed action with corrected settings; None: as it is."""


class TransferAssign(Contract):
    """Name the queue of an event that no rule matched."""

    queue: QueueName
    by: Person | None = None
    reason: str | None = Field(default=None, max_length=500)


class ActionView(Contract):
    """One action, as people see it."""

    action: str = Field(max_length=20)
    state: str = Field(max_length=10)
    """`done`, `running`, `waiting`, `parked`, `skipped`, `failed` or `open`."""
    files: int = 0
    bytes: int = 0
    note: str | None = Field(default=None, max_length=150)


class ActionDetail(Contract):
    """What else people see of one action, where they look at one transfer."""

    partner: PartnerName | None = None
    place: str | None = Field(default=None, max_length=100)
    """Path at the partner, queue or format that it works with."""
    failed_tries: int = 0
    begun: datetime | None = None
    """When it began, or was begun anew after an answer."""
    ended: datetime | None = None
    """When it was done, left out, or parked."""


class ActionDetails(Contract):
    """Result of the query `actions` of a job: one for each action of the query `status`."""

    actions: tuple[ActionDetail, ...] = Field(default=(), max_length=ACTIONS)


class TransferView(Contract):
    """Result of the query `status`, of both workflows."""

    transfer_id: TransferId
    status: TransferStatus
    queue: QueueName | None = None
    job: SettingsJobName | None = None
    account_id: str | None = Field(default=None, max_length=500)
    file: str | None = Field(default=None, max_length=1_024)
    actions: tuple[ActionView, ...] = Field(default=(), max_length=ACTIONS)
    reason: Sentence | None = None
    waiting_for: Sentence | None = None
    since: datetime | None = None
    receipt: BlobRef | None = None


def transfer_workflow_id(transfer_id: str) -> str:
    """Id of the run that takes an event."""
    return f"transfer/{transfer_id}"


def file_job_id(transfer_id: str) -> str:
    """Id of the run that carries out the job of an event, whether or not it was routed before."""
    return f"{transfer_workflow_id(transfer_id)}/job"


def resend_id(transfer_id: str, number: int) -> str:
    """The id of a transfer that sends the kept copy of another one again, the first time as 1."""
    return transfer_id_of(f"resend/{transfer_id}", str(number))


def redrive_id(transfer_id: str, number: int) -> str:
    """The id of a transfer that carries out a failed one anew, the first time as 1."""
    return transfer_id_of(f"redrive/{transfer_id}", str(number))
