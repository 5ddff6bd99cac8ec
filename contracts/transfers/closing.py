"""What ends a transfer: its receipt, and the copy that is kept of what was written."""

from datetime import date
from typing import Final

from pydantic import Field

from contracts.base import Contract
from contracts.blobs import BlobRef
from contracts.transfers.runs import FileJobOrder, Manifest
from contracts.transfers.settings import ACTIONS

KEEP: Final = "Keep"
"""Action of the receipt's step that names the kept copy."""


class ReceiptOrder(Contract):
    """Input of `transfers.receipt`."""

    job: FileJobOrder
    steps: tuple[BlobRef, ...] = Field(default=(), max_length=ACTIONS)
    """Those of the actions that were done, in order."""
    kept: BlobRef | None = None
    """Files of the kept copy."""


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


def receipt_blob(transfer_id: str) -> str:
    """Name of the blob that holds the receipt of a transfer."""
    return f"receipts/{transfer_id[:2]}/{transfer_id}.json"
