"""What batches ask of a cloud, of Temporal and of their tables.

Every `ensure`, `set`, `allow` and `attach` may be called again and finds its work done or half
done; every delete returns whether there was anything, and a resource that is gone is not an error.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from workflows.batches.events import CancelMode
from workflows.batches.names import LoaderStatus


@dataclass(frozen=True, slots=True)
class BatchInfo:
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
