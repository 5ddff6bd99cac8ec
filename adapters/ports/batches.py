"""What batches ask of a cloud, of Temporal and of their tables.

Every `ensure`, `set`, `allow` and `attach` may be called again and finds its work done or half
done; every delete returns whether there was anything, and a resource that is gone is not an error.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from adapters.ports.batch_views import (
    BatchFacts,
    BatchView,
    DocumentView,
    FailedMessage,
    QueuedDeadLetter,
)
from contracts.batches import (
    Announcement,
    BatchKey,
    BatchPlan,
    CaseEvent,
    Closing,
    DocumentCounts,
    DocumentState,
    LoaderStatus,
    Names,
    QueueDepth,
    Redriven,
    WaitingBatches,
)
from domain.batches.resources import FoundResource


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
