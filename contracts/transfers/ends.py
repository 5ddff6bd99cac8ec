"""What actions at far ends tell while they work, and leave for their next attempt."""

from datetime import datetime
from typing import Final

from pydantic import Field

from contracts.base import Contract
from contracts.blobs import BlobRef
from contracts.transfers.names import PartnerName, Sentence
from contracts.transfers.runs import Manifest

WARNINGS: Final = 20
"""Keys that one step tells of."""


class TransferProgress(Contract):
    """Heartbeat of an action at a far end."""

    files: int = 0
    """That are done."""
    bytes: int = 0
    """Of the file that is not."""


class ReadCursor(Contract):
    """How far a `ReadFile` has come: another attempt goes on from there."""

    listing: str = Field(max_length=64)
    """SHA-256 of the files that were found: of other ones nothing counts any more."""
    seen: datetime
    """When they were first found so."""
    done: int = 0
    files: Manifest = Manifest()
    """Those that are done."""
    partial: BlobRef | None = None
    """The beginning of the next one."""


class NamingNote(Contract):
    """That a file is about to get its name at a far end, or has it."""

    wanted: str = Field(max_length=1_024)
    path: str = Field(default="", max_length=1_024)
    """Empty: the name was not given after all."""
    sha256: str = Field(max_length=64)
    done: bool = False


class KeyWarningsOrder(Contract):
    """Input of the run that tells people of keys that expire, and of its step."""

    notices: bool = True
    skip: int = Field(default=0, ge=0)
    """Keys that the run has been told of."""


class KeyWarning(Contract):
    """A key that expires, or has."""

    partner: PartnerName
    key: str = Field(max_length=100)
    """Fingerprint, with what kind of key it is."""
    ends: datetime
    step: int
    """30, 14 or 7 days before; 0: it has expired."""
    sentence: Sentence


class KeyWarnings(Contract):
    """Result of `transfers.expiring_keys`: the next of them."""

    warnings: tuple[KeyWarning, ...] = Field(default=(), max_length=WARNINGS)
    """None: there are no more."""


class KeysTold(Contract):
    """Result of a run that tells people of keys that expire."""

    keys: int
