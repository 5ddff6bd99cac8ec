"""What batches ask of a cloud, of Temporal and of their tables.

What batches ask of a cloud, of Temporal and of their tables.

Every `ensure`, `set`, `allow` and `attach` may be called again and finds its work done or half
done; every delete returns whether there was anything, and a resource that is gone is not an error.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from workflows.batches.events import CancelMode
from workflows.batches.loads import DocumentState
from workflows.batches.names import BatchKey, LoaderStatus
from workflows.batches.runs import DocumentCounts


@dataclass(frozen=True, slots=True)
class BatchFacts:
    """What the tables hold about a batch."""

    status: LoaderStatus
    reason: str | None = None
    job_finished: bool = False
    documents: int | None = None
    """How many JOB_FINISHED said."""
    end_finished: bool = False
    dead_letters: int = 0
    lost: str | None = None
    """What an earlier run of it lost with a queue that was deleted."""
    cancelled: CancelMode | None = None
    concurrency: int | None = None
    """Of its case: `max_processing_daemons`."""
    processing: Sequence[tuple[int, datetime]] = ()
    """Other batches of the case in `processing`: id, and when that was set (UTC)."""
    unannounced: bool = False
    """It has ended, and LOADER_FINISHED has not been published."""


@dataclass(frozen=True, slots=True)
class BatchView:
    """A batch as a person sees it."""

    key: BatchKey
    status: LoaderStatus
    reason: str | None
    updated_at: datetime
    documents: DocumentCounts
    dead_letters: int
    known: bool = True
    """It was started, or is expected; else only stray events name it."""
    lost: str | None = None
    """Which queue was deleted by someone else, with documents that no row counts."""
    unused_fields: Sequence[str] = ()
    """Fields of its events that docflow does not use, and passes on."""
    unannounced: bool = False
    """It has ended, and LOADER_FINISHED has not been published."""


@dataclass(frozen=True, slots=True)
class DocumentView:
    """A document as a person sees it."""

    document_id: str
    state: DocumentState
    filename: str | None
    """Its blob's name where its owner gave none; None: no file of it is known."""
    reason: str | None
    """Why it failed."""
    failed_event: str | None
    """Type of the message that could not be loaded."""
    duplicate_of: str | None
    notes: str | None
    """What could not be read of it, a line each."""
    updated_at: datetime
    parent_id: str | None = None
    """The document that it was found in; None: its sender announced it."""
    original_state: DocumentState | None = None
    """Where the document stands that has the same bytes; None: there is none."""


@dataclass(frozen=True, slots=True)
class FailedMessage:
    """A message that is recorded as failed, as it came."""

    document_id: str
    message_key: str
    event_type: str
    reason: str
    body: str
    failed_at: datetime


@dataclass(frozen=True, slots=True)
class QueuedDeadLetter:
    """A message in a dead-letter queue."""

    body: str
    reason: str | None
    """None: it was received too often without being settled."""
    sent_at: datetime | None
    """When it was sent to the batch, or became a dead letter."""


@dataclass(frozen=True, slots=True)
class SourceFunction:
    """The function that every batch's own is cloned from."""

    timeout: int
    """Seconds."""
    role: str
    """Name of its role."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What a run needs of one resource."""

    resource: str
    units: int
    """More than there are at all count as all of them."""
    limit: int
    """Units that there are."""


@dataclass(frozen=True, slots=True)
class LeaseWait:
    """A run that waits for a resource."""

    resource: str
    position: int
    """Among those that wait for it, from 1."""
