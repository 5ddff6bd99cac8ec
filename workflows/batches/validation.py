"""Whether a batch may be built, and which resources are orphans: facts in, decision out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from workflows.batches.names import (
    FEWEST_AT_ONCE,
    MOST_AT_ONCE,
    BatchKey,
    LoaderStatus,
    Purpose,
    Resource,
    ValidationOutcome,
    names_of,
)
from workflows.batches.runs import StepInput, Validation, WaitingBatch

WORKFLOW_TAG = "docflow:workflow"
"""Tag of every resource that takes tags; its value is the id of the run that made it."""


@dataclass(frozen=True, slots=True)
class FoundResource:
    """Something that exists in the cloud and is called as docflow would call it."""

    key: BatchKey
    resource: Resource
    name: str
    made_at: datetime | None = None
    """UTC, where the cloud reports it."""
    owner: str | None = None
    """Value of its `WORKFLOW_TAG`; None where a kind of resource takes no tags."""
    details: Mapping[str, str] = field(default_factory=dict[str, str])
    """What an operator wants to know: state, memory, concurrency, depth; what it costs by."""


def delivery_failure(work: StepInput) -> str:
    """Why a batch cannot be loaded whose canaries do not arrive, and where to look."""
    queue = names_of(work.plan.prefix, work.key).queue
    return (
        f"nothing that was published to {work.plan.topic_arn} has reached the queue {queue} "
        f"within {work.delivery} s: look at the filter policy of its subscription "
        f"(filter scope {work.plan.filter_scope}), at the policy of the queue, and at the key of "
        "an encrypted topic or queue"
    )


ASK_AGAIN: Final = timedelta(seconds=60)
"""Between two looks at a batch that is really loading: its end cannot be foreseen."""
TAGGED: Final = frozenset({Resource.QUEUE, Resource.DEAD_LETTERS, Resource.FUNCTION})
"""Kinds of resources that carry the tag of the run that made them."""


def check_status(key: BatchKey, status: LoaderStatus, purpose: Purpose) -> Validation | None:
    """The first question: is there anything left to do?

    Returns:
        Why the batch is left alone; None: the next question decides.
    """
    if status is LoaderStatus.CANCELLED:
        return Validation(
            outcome=ValidationOutcome.SKIP_CANCELLED, reason=f"{key} has been cancelled"
        )
    if status is LoaderStatus.COMPLETE and not purpose.tries_again:
        return Validation(
            outcome=ValidationOutcome.SKIP_DUPLICATE, reason=f"{key} is complete already"
        )
    return None


def check_infrastructure(key: BatchKey, status: LoaderStatus, exists: bool) -> Validation | None:
    """The second question: is it built already?

    This run has built nothing yet, so whatever exists is another's: the lock is taken. A batch in
    `processing` of which nothing exists is this run's own, claimed by an earlier attempt, or was
    given up before anything was built.

    Returns:
        Why the batch is left alone; None: the next question decides.
    """
    if not exists:
        return None
    if status is LoaderStatus.PROCESSING:
        return Validation(
            outcome=ValidationOutcome.SKIP_DUPLICATE,
            reason=f"{key} is being loaded: its infrastructure exists",
        )
    return Validation(
        outcome=ValidationOutcome.SKIP_INCOMPLETE,
        reason=f"infrastructure of {key} exists although the batch is {status}: "
        "start it again when the sweeper has removed it",
    )


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Another batch of the case whose row is in `processing`."""

    batch_id: int
    since: datetime
    """UTC."""
    exists: bool
    """Its infrastructure is there."""
    is_running: bool
    """A run of it is open in Temporal."""

    def blocks_until(self, now: datetime, grace: timedelta) -> datetime | None:
        """When asking again makes sense; None: it is an orphan."""
        if self.exists or self.is_running:
            return now + ASK_AGAIN
        believed_until = self.since + grace
        return believed_until if believed_until > now else None


def check_sibling_batches(
    neighbours: Sequence[Neighbour], now: datetime, grace: timedelta
) -> Validation | None:
    """The third question: is another batch of the case loading?

    Args:
        neighbours: All others of the case in `processing`.
        now: UTC.
        grace: How long a lock without infrastructure is respected.

    Returns:
        What blocks the batch, and until when at least; None: all that are left are orphans.
    """
    blocking = [
        (until, neighbour)
        for neighbour in neighbours
        if (until := neighbour.blocks_until(now, grace)) is not None
    ]
    if not blocking:
        return None
    until, longest = max(blocking, key=lambda pair: (pair[0], pair[1].batch_id))
    why = (
        "its infrastructure exists"
        if longest.exists
        else "its run is open"
        if longest.is_running
        else f"it was claimed at {longest.since:%Y-%m-%d %H:%M:%S} UTC and may be starting"
    )
    others = f", and {len(blocking) - 1} more" if len(blocking) > 1 else ""
    return Validation(
        outcome=ValidationOutcome.BLOCKED,
        reason=f"batch {longest.batch_id} of the case is loading: {why}{others}",
        retry_at=until,
    )


def is_strange(found: FoundResource) -> bool:
    """Whether something with one of our names was made by another system."""
    if found.owner is None:
        return found.resource in TAGGED
    return found.owner != found.key.workflow_id


def is_young(made: Sequence[FoundResource], now: datetime, grace: timedelta) -> bool:
    """Whether anything of a batch was made so recently that its run may not be seen yet."""
    return any(found.made_at is not None and now - found.made_at <= grace for found in made)


def remaining_dlq(made: Sequence[FoundResource]) -> FoundResource | None:
    """The dead-letter queue, when nothing else of its batch exists."""
    kinds = {found.resource for found in made}
    return made[0] if kinds == {Resource.DEAD_LETTERS} else None


def waits_for(line: Sequence[WaitingBatch], batch_id: int) -> list[WaitingBatch]:
    """Batches that have to be done, or passed over, before one may begin.

    Args:
        line: The batches of the case that are not done.
        batch_id: The one that waits.

    Returns:
        Those that are loading, and those with a lower number that are not passed over; none for one
        that is loading itself, or done.
    """
    mine = {batch.batch_id: batch for batch in line}.get(batch_id)
    if mine is None or mine.status is LoaderStatus.PROCESSING:
        return []
    return [
        batch
        for batch in line
        if batch.batch_id != batch_id
        and (
            batch.status is LoaderStatus.PROCESSING
            or (batch.batch_id < batch_id and (batch.purpose is not None or not batch.skipped))
        )
    ]


def waited_for_by(line: Sequence[WaitingBatch], batch_id: int) -> list[int]:
    """Numbers of the batches that wait for one."""
    return [
        batch.batch_id
        for batch in line
        if any(other.batch_id == batch_id for other in waits_for(line, batch.batch_id))
    ]


def effective_concurrency(wanted: int) -> int:
    """What a batch runs with where its case has `wanted`, which another program may have written.

    An event source mapping takes no other `MaximumConcurrency`.
    """
    return min(max(wanted, FEWEST_AT_ONCE), MOST_AT_ONCE)
