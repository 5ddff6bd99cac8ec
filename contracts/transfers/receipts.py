"""Receipts: what was done with the files of a transfer, chained by hash."""

from datetime import datetime
from typing import Final

from pydantic import Field

from contracts.answers import Person
from contracts.base import Contract
from contracts.blobs import BlobRef
from contracts.transfers.names import Sentence, TransferId

LINES: Final = 10_000


def _is_absent(value: object) -> bool:
    return value is None


class ReceiptFile(Contract):
    """One file in one step."""

    name: str = Field(max_length=1_024)
    place: str = Field(default="", max_length=2_048)
    """Where it was read from or written to, without any secret."""
    size: int
    sha256_before: str | None = Field(default=None, max_length=64)
    sha256_after: str | None = Field(default=None, max_length=64)
    verdict: Sentence | None = None
    """Of a signature or a scan."""
    guarantee: str | None = Field(default=None, max_length=100)


class ReceiptStep(Contract):
    """One action."""

    transfer_id: TransferId
    index: int
    action: str = Field(max_length=50)
    configured_by: Person | None = None
    """Who wrote the settings, as far as they say."""
    at: datetime
    files: tuple[ReceiptFile, ...] = Field(default=(), max_length=LINES)
    remarks: tuple[Sentence, ...] = Field(default=(), max_length=10)
    # Left out where there is none, so that hashes of earlier releases stay what they were.
    outcome: str | None = Field(default=None, max_length=20, exclude_if=_is_absent)
    """`skipped`, `failed` or `done before`; None: it was carried out."""
    reason: Sentence | None = Field(default=None, exclude_if=_is_absent)
    """Why it was not carried out."""
    decided_by: Person | None = Field(default=None, exclude_if=_is_absent)
    """Who has decided that; None: no person."""
    previous: str = Field(max_length=64)
    """SHA-256 of the step before it; of the first one, of the event."""
    sha256: str = Field(max_length=64)
    """Of this step: of its canonical JSON without this field."""


class Receipt(Contract):
    """All steps of a transfer, in order.

    The hashes of the steps cover `transfer_id`, `event` and `steps`; other fields are covered by
    the SHA-256 of the whole receipt, which the row of the transfer keeps.
    """

    transfer_id: TransferId
    event: str = Field(max_length=64)
    """SHA-256 of the canonical event."""
    resent_from: TransferId | None = None
    resent_from_sha256: str | None = Field(default=None, max_length=64)
    """Of the last step of that transfer's receipt."""
    redriven_from: TransferId | None = Field(default=None, exclude_if=_is_absent)
    """The failed transfer that this one has carried out anew."""
    redriven_from_sha256: str | None = Field(default=None, max_length=64, exclude_if=_is_absent)
    """Of the last step of that transfer's receipt."""
    kept: BlobRef | None = None
    """Files of the kept copy, lines of `StagedFile`; None: none was kept."""
    steps: tuple[ReceiptStep, ...] = Field(default=(), max_length=100)
    sha256: str = Field(max_length=64)
    """Of the last step."""
