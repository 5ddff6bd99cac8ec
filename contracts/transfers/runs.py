"""Runs of transfers: what workflows and activities are given, and what they return."""

from datetime import datetime
from typing import Any, Final

from pydantic import Field

from contracts.answers import Person, Retry
from contracts.base import Contract
from contracts.blobs import BlobRef
from contracts.transfers.events import FileNotice
from contracts.transfers.names import (
    QueueName,
    Sentence,
    SettingsJobName,
    TransferId,
    TransferStatus,
)
from contracts.transfers.settings import ACTIONS, Action, SettingsJob

REMARKS: Final = 10
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


class FileJobOrder(Contract):
    """Input of `FileJob`: a routed event."""

    transfer_id: TransferId
    queue: QueueName
    event: FileNotice
    digest: str = Field(max_length=64)
    arrived: datetime
    way_in: str = Field(max_length=100)
    resent_from: TransferId | None = None
    """The transfer whose kept copy is sent again."""
    resend_to: str | None = Field(default=None, max_length=63)
    """A partner instead of the one that the settings name."""
    resend: int = 0
    """How often it was sent again; 0: it is the event's own run."""
    park_for_seconds: int = PARK_SECONDS
    notices: bool = False


class TransferPlan(Contract):
    """What a run will do: read once, kept in the run."""

    job: SettingsJob
    settings: BlobRef | None = None
    """The version of `jobsettings.json` that it is from."""
    names: tuple[dict[str, str], ...] = Field(default=(), max_length=ACTIONS)
    """Of each action, its templates with everything but the file's own name resolved."""
    sequence: str | None = Field(default=None, max_length=1_024)


class Manifest(Contract):
    """The files of a run between two actions; they are listed in a blob, one JSON line each."""

    files: int = 0
    bytes: int = 0
    blob: BlobRef | None = None
    """Lines of `StagedFile`; None: there are no files yet."""


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
    names: dict[str, str] = Field(default_factory=dict[str, str])
    """Of its templates, resolved."""
    files: Manifest = Manifest()
    previous: str = Field(default="", max_length=64)
    """SHA-256 of the receipt's step before it; of the event where it is the first."""


class ActionResult(Contract):
    """Result of the activity of one action."""

    files: Manifest
    """For the next action."""
    step: BlobRef | None = None
    """Its `ReceiptStep`."""
    step_sha256: str = Field(default="", max_length=64)
    remarks: tuple[Sentence, ...] = Field(default=(), max_length=REMARKS)
    guarantee: str | None = Field(default=None, max_length=100)
    """Of what was written."""
    infected: Sentence | None = None
    """Signature and file: the run ends as failed, nothing is written on."""
    fired: tuple[TransferId, ...] = Field(default=(), max_length=REMARKS)


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

    action: str = Field(max_length=50)
    state: str = Field(max_length=20)
    """`done`, `running`, `waiting`, `parked`, `skipped`, `failed` or `open`."""
    files: int = 0
    bytes: int = 0
    note: Sentence | None = None


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


def file_job_id(order: FileJobOrder, *, child: bool) -> str:
    """Id of a `FileJob`: the transfer's own where its message was routed already."""
    own = transfer_workflow_id(order.transfer_id)
    again = f"/resend-{order.resend}" if order.resend else ""
    return f"{own}/job{again}" if child or again else own
