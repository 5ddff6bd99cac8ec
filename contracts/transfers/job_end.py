"""What ends a transfer: its receipt, and the copy that is kept of what was written."""

from datetime import date, datetime

from pydantic import Field

from contracts.answers import Person
from contracts.base import Contract
from contracts.blobs import BlobRef
from contracts.transfers.events import FileNotice
from contracts.transfers.names import Sentence, SettingsJobName, TransferStatus
from contracts.transfers.receipts import ReceiptStep
from contracts.transfers.runs import FileJobOrder, Manifest
from contracts.transfers.settings import ACTIONS


class ReceiptOrder(Contract):
    """Input of `transfers.receipt`."""

    job: FileJobOrder
    steps: tuple[BlobRef, ...] = Field(default=(), max_length=ACTIONS)
    """Those of actions that were done, in order."""
    kept: BlobRef | None = None
    """Files of the kept copy."""
    outcomes: tuple[ReceiptStep, ...] = Field(default=(), max_length=2 * ACTIONS)
    """Of actions that were not carried out, and short ones of actions that were; each follows the
    step whose hash it names."""


class StoredReceipt(Contract):
    """Result of `transfers.receipt`."""

    blob: BlobRef
    steps: int
    sha256: str = Field(max_length=64)
    """Of the last step."""


class KeepOrder(Contract):
    """Input of `transfers.keep`: keep a copy of what was written, to send it again."""

    job: FileJobOrder
    files: Manifest
    days: int = Field(ge=1, le=3_650)


class KeptCopy(Contract):
    """Result of `transfers.keep`."""

    files: Manifest
    until: date
    """The last day on which it can be sent again."""


class KeptTransfer(KeptCopy):
    """What a row remembers of a transfer that can be sent again."""

    event: FileNotice
    """Names in the settings of its job may refer to it."""


class TransferClosing(Contract):
    """Input of `transfers.close`: the end of a job."""

    job: FileJobOrder
    status: TransferStatus
    at: datetime
    settings_job: SettingsJobName | None = None
    file: str | None = Field(default=None, max_length=1_024)
    reason: Sentence | None = None
    by: Person | None = None
    receipt: BlobRef | None = None
    kept: KeptCopy | None = None
    sequence: str | None = Field(default=None, max_length=1_024)
    """The key whose turn is over."""


class CopyRetentionOrder(Contract):
    """Input of the run that removes copies whose last day is over."""


class CopyRetentionResult(Contract):
    """Result of that run."""

    removed: int


def receipt_blob(transfer_id: str) -> str:
    """Name of the blob that holds the receipt of a transfer."""
    return f"receipts/{transfer_id[:2]}/{transfer_id}.json"
