"""Heartbeats of actions at endpoints, and what they leave for their next attempt."""

from datetime import datetime

from pydantic import Field

from contracts.base import Contract
from contracts.blobs import BlobRef
from contracts.transfers.runs import Manifest


class TransferProgress(Contract):
    """Heartbeat of an action at an endpoint."""

    files: int = 0
    """That are done."""
    bytes: int = 0
    """Of the file that is not."""


class ReadCursor(Contract):
    """How far a `ReadFile` has come: another attempt continues from there."""

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
    """That a file is about to get its name at an endpoint, or has it."""

    wanted: str = Field(max_length=1_024)
    path: str = Field(default="", max_length=1_024)
    """Empty: the name was not given after all."""
    sha256: str = Field(max_length=64)
    done: bool = False
