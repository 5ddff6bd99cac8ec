"""What batches ask of a cloud, of Temporal and of their tables.

What batches ask of the topic that documents are published to.

What tables and queues hold of batches: facts for decisions, views for people.

What batches ask of a cloud, of Temporal and of their tables.

Every `ensure`, `set`, `allow` and `attach` may be called again and finds its work done or half
done; every delete returns whether there was anything, and a resource that is gone is not an error.

Leases: how much of a limited resource each run has, and who waits for it in which order.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from workflows.batches.events import Announcement, CancelMode, CaseEvent, Publication
from workflows.batches.loads import DocumentState
from workflows.batches.names import BatchKey, BatchPlan, LoaderStatus, Names, QueueDepth
from workflows.batches.runs import Closing, DocumentCounts, Redriven, WaitingBatches
from workflows.batches.validation import FoundResource


class BatchTopic(Protocol):
    """The topic that documents of all batches are published to."""

    async def subscribe(self, names: Names, plan: BatchPlan, key: BatchKey) -> str:
        """Subscribe the queue to the events of its batch; what the cloud calls the subscription.

        Raises:
            NoRoom: The topic has no room for another filter policy.
        """
        ...

    async def is_subscribed(self, subscription: str) -> bool:
        """Whether a subscription is still there, by its name; true where it may not be read."""
        ...

    async def unsubscribe(self, names: Names, plan: BatchPlan) -> bool:
        """Take every subscription of the queue away."""
        ...

    async def publish(self, plan: BatchPlan, publication: Publication) -> None:
        """Publish an announcement."""
        ...

    async def send_canary(self, plan: BatchPlan, key: BatchKey, message_id: str) -> None:
        """Publish a message that only the batch's own queue is subscribed to."""
        ...

    def found(self, prefix: str, topic_arn: str) -> AsyncIterator[FoundResource]:
        """Subscriptions of the queues of every batch of an installation."""
        ...


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


class BatchQueues(Protocol):
    """The queue of a batch, and its dead letters."""

    async def ensure_dead_letters(self, names: Names, plan: BatchPlan, owner: str) -> None:
        """Make the dead-letter queue.

        Raises:
            NotYet: A queue of that name was deleted less than 60 s ago.
            Denied: The cloud refuses.
        """
        ...

    async def ensure_queue(
        self, names: Names, plan: BatchPlan, owner: str, visibility: int
    ) -> None:
        """Make the queue.

        Args:
            names: Of the batch.
            plan: Of the batch.
            owner: Id of the run that makes it.
            visibility: Seconds that a received message stays hidden.

        Raises:
            NotYet: A queue of that name was deleted less than 60 s ago.
            Denied: The cloud refuses.
        """
        ...

    async def set_redrive_policy(self, names: Names, plan: BatchPlan) -> None:
        """Send what was received too often to the dead letters, and let nothing else go there."""
        ...

    async def allow_topic(self, names: Names, plan: BatchPlan) -> None:
        """Let the topic, and no other, send to the queue."""
        ...

    async def has_proof(self, queue: str, message_id: str) -> bool:
        """Look for a canary in the queue, and take canaries out of it.

        Any other message of the batch that came through the subscription proves delivery as well,
        and stays.
        """
        ...

    async def depth(self, queue: str) -> QueueDepth | None:
        """Messages by state; None: there is no such queue."""
        ...

    async def redrive(self, names: Names) -> Redriven:
        """Move all dead letters back, each message once; continues a move in progress.

        Raises:
            NotYet: A move is under way.
        """
        ...

    async def send(self, names: Names, bodies: Sequence[str]) -> None:
        """Put messages into the queue; one that is sent again is there twice.

        Raises:
            Denied: There is no such queue.
        """
        ...

    async def dead_letter(self, names: Names, body: str, reason: str, deduplication: str) -> None:
        """Put a message among the dead letters.

        Args:
            names: Of the batch.
            body: As it came.
            reason: Why, for people; goes with it as an attribute.
            deduplication: The same for the same message, however often it is put there.

        Raises:
            Denied: There is no such queue any more.
        """
        ...

    async def dead_letters(self, names: Names, most: int) -> Sequence[QueuedDeadLetter]:
        """Look at dead letters, which stay where they are; none where there is no such queue."""
        ...

    async def delete_queue(self, queue: str, owner: str) -> bool:
        """Delete a queue with everything in it.

        Raises:
            Denied: It is not this owner's.
        """
        ...

    def found(self, prefix: str) -> AsyncIterator[FoundResource]:
        """Queues of every batch of an installation."""
        ...


@dataclass(frozen=True, slots=True)
class SourceFunction:
    """The function that every batch's own is cloned from."""

    timeout: int
    """Seconds."""
    role: str
    """Name of its role."""


class BatchFunctions(Protocol):
    """The function of a batch, and what feeds it."""

    async def source(self, plan: BatchPlan) -> SourceFunction:
        """Facts of the function to clone.

        Raises:
            Denied: There is none of that name.
        """
        ...

    async def exists(self, function: str) -> bool:
        """Whether there is such a function."""
        ...

    async def clone(self, names: Names, plan: BatchPlan, key: BatchKey, owner: str) -> None:
        """Make the batch's function from the source.

        Raises:
            NotYet: It is not `Active` yet.
            Denied: It failed to become active, or the cloud refuses.
        """
        ...

    async def attach(self, names: Names, plan: BatchPlan) -> None:
        """Let the queue invoke the function: one mapping, reporting partial failures.

        Raises:
            NotYet: The mapping is not `Enabled` yet.
        """
        ...

    async def is_fed(self, names: Names) -> bool:
        """Whether a mapping feeds the function; false: none does, or someone has disabled it."""
        ...

    async def detach(self, names: Names) -> bool:
        """Delete every mapping between the queue and the function.

        Raises:
            NotYet: A mapping is in use; or it is not gone yet.
        """
        ...

    async def reserve(self, names: Names, plan: BatchPlan) -> None:
        """Reserve the function's concurrency.

        Raises:
            NoRoom: Less than 100 would stay unreserved.
        """
        ...

    async def delete(self, function: str, owner: str) -> bool:
        """Delete a function, and its reservation with it.

        Raises:
            Denied: It is not this owner's.
        """
        ...

    def found(self, prefix: str) -> AsyncIterator[FoundResource]:
        """Functions, mappings and reservations of every batch of an installation."""
        ...


class BatchGrants(Protocol):
    """What functions may do: inline policies of their role."""

    async def grant_once(self, plan: BatchPlan, role: str) -> None:
        """Allow the secrets and database users of the plan to the role, for all batches together.

        One policy that stays; nothing is changed where it is there.

        Raises:
            Denied: The role's policies would become too large, or the cloud refuses.
        """
        ...

    async def grant(self, names: Names, plan: BatchPlan, role: str) -> None:
        """Allow the batch's queue, and the secrets and database users of the plan, for one batch.

        Raises:
            Denied: The role's policies would become too large, or the cloud refuses.
        """
        ...

    async def revoke(self, names: Names, role: str) -> bool:
        """Take it back."""
        ...

    def found(self, prefix: str, role: str) -> AsyncIterator[FoundResource]:
        """Policies of every batch of an installation."""
        ...


class OpenRuns(Protocol):
    """The open runs in Temporal."""

    async def is_open(self, workflow_id: str) -> bool:
        """Whether a run of that id is open."""
        ...

    async def open_loads(self, key: BatchKey) -> int:
        """Loads of a batch that are open, of groups and of documents; late by a second or two."""
        ...

    async def cancel_loads(self, key: BatchKey) -> int:
        """Ask the open loads of a batch to stop, groups as well; how many were asked."""
        ...


class BatchStore(Protocol):
    """Tables of cases and batches; every method raises `Unavailable` when the database is down."""

    async def expect(self, keys: Sequence[BatchKey]) -> None:
        """Make rows of batches that will be started, so that their order is kept."""
        ...

    async def set_concurrency(self, case_id: int, most: int | None) -> None:
        """Set `max_processing_daemons` of a case; None: it has none of its own."""
        ...

    async def concurrency(self, case_id: int) -> int | None:
        """`max_processing_daemons` of a case; None: it has none of its own."""
        ...

    async def note(self, case_id: int, events: Sequence[CaseEvent]) -> WaitingBatches:
        """Write events down, in one transaction, and read who waits; writing twice is once.

        Only JOB_STARTED makes a batch: what other events say of one that is neither started nor
        expected is kept until it is, and nothing waits for it.

        JOB_STARTED asks for the batch to be loaded, unless it is complete or cancelled;
        one that is failed, skipped, in-complete or terminated waits again. REDRIVE_REQUESTED asks
        for another pass of one that is final and has dead letters, or whose failed documents it
        means as well. JOB_FINISHED and BATCH_END_FINISHED count for a batch that is not final;
        IMPORT_CANCELLED makes one that is not `processing` `cancelled`, also one that was unknown.
        `open_run` is left False.
        """
        ...

    async def facts(self, key: BatchKey) -> BatchFacts | None:
        """Everything that validation looks at; None: there is no such batch."""
        ...

    async def claim(self, key: BatchKey, orphans: Sequence[int]) -> bool:
        """Set a batch to `processing` and others of its case from there to `in-complete`.

        Returns:
            False, and nothing changed: another batch than these is in `processing` by now, or
            this one has been cancelled.
        """
        ...

    async def skip(self, key: BatchKey, reason: str) -> None:
        """Record that a batch no longer blocks its case, and forget what was requested.

        One that is in `processing` or final keeps the reason that it has.
        """
        ...

    async def start_pass(self, key: BatchKey, number: int, final: bool) -> None:
        """Note which pass over the dead letters is under way."""
        ...

    async def is_final_pass(self, key: BatchKey) -> bool:
        """Whether a document that fails now is recorded as failed."""
        ...

    async def close(self, closing: Closing) -> None:
        """Give a batch its final status, and forget what was noted for this run of it.

        LOADER_FINISHED is owed from then on, where something was built, or a sweep finds that the
        batch was cancelled.
        """
        ...

    async def announced(self, key: BatchKey) -> None:
        """Note that LOADER_FINISHED of a batch is published."""
        ...

    async def unannounced(self, before: datetime) -> Sequence[BatchKey]:
        """Batches that ended before a moment and whose end was not announced; the oldest 1,000."""
        ...

    async def stop_documents(self, key: BatchKey) -> DocumentCounts:
        """Close every document of an ended batch that is `loading`, with the reason.

        As `terminated` where the batch is, else as `cancelled`.

        Returns:
            The documents of the batch by state.
        """
        ...

    async def truncate(self, key: BatchKey) -> int:
        """Empty doc_dedupe, tag_dedupe and process_checkpoints of a batch, and release its leases.

        Returns:
            Rows removed of these tables.
        """
        ...

    async def counts(self, key: BatchKey) -> DocumentCounts:
        """Documents of a batch by state."""
        ...

    async def passed_on(self, key: BatchKey, announcement: Announcement) -> Mapping[str, Any]:
        """The fields that docflow does not use of the events that lead to an announcement.

        They stay until the batch is started again.
        """
        ...

    async def documents(
        self, key: BatchKey, state: DocumentState | None = None, after: str = "", limit: int = 100
    ) -> Sequence[DocumentView]:
        """Documents of a batch by id, beginning behind one."""
        ...

    async def failed_messages(
        self, key: BatchKey, after: tuple[str, str] = ("", ""), limit: int = 100
    ) -> Sequence[FailedMessage]:
        """Messages of a batch that are recorded as failed, by document id and key, behind one."""
        ...

    async def list(
        self,
        case_id: int | None = None,
        limit: int = 100,
        status: LoaderStatus | None = None,
        before: datetime | None = None,
        behind: BatchKey | None = None,
    ) -> Sequence[BatchView]:
        """Batches, the newest change first.

        Args:
            case_id: Only those of this case.
            limit: At most so many.
            status: Only those in it.
            before: Only those that changed earlier, UTC.
            behind: The last batch of a page, which changed at `before`: those of that very moment
                that come behind it as well.
        """
        ...

    async def get(self, key: BatchKey) -> BatchView | None:
        """One batch."""
        ...


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


class Leases(Protocol):
    """The leases of all runs; every method raises `Unavailable` when the database is down."""

    async def take(self, owner: str, claims: Sequence[Claim], keep: timedelta) -> LeaseWait | None:
        """Take leases, one resource after the other, in the order in which runs first asked.

        May be called again: a lease that the run has is renewed, and so is its place among those
        that wait. Who does not ask for `keep` loses that place.

        Args:
            owner: Workflow id of the run.
            claims: What it needs; the same resources in the same order for all runs.
            keep: How long a place is kept without being asked for.

        Returns:
            What the run waits for; None: it has all leases, until they are released.
        """
        ...

    async def waits(self, owner: str) -> LeaseWait | None:
        """What a run waits for; None: nothing."""
        ...
