"""What of a batch could not be loaded: its dead letters, and messages recorded as failed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from adapters.ports import BatchQueues, BatchStore, FailedMessage, QueuedDeadLetter
from contracts.batches import BatchKey, Names
from workers.services.batches.messages import read_document_event
from workers.services.bodies import RefusedMessage, printable

SHOWN: Final = 80
"""Characters of a body that cannot be read."""
_UNSETTLED: Final = "it was received too often without being settled; see the log of the function"


@dataclass(frozen=True, slots=True)
class Unloaded:
    """A message of a batch that is not loaded."""

    is_queued: bool
    """It is in the dead-letter queue; else it is recorded as failed."""
    document_id: str | None
    """None: the message cannot be read."""
    event_type: str | None
    reason: str
    at: datetime | None
    body: str


async def unloaded(
    queues: BatchQueues, store: BatchStore, key: BatchKey, names: Names, most: int
) -> list[Unloaded]:
    """Messages of a batch that are not loaded, those in the queue first.

    Args:
        queues: Of the cloud.
        store: Tables.
        key: The batch.
        names: Of its resources.
        most: Messages of each kind.

    Raises:
        PortError: The cloud or the database does not answer.
    """
    queued = await queues.dead_letters(names, most)
    recorded = await store.failed_messages(key, ("", ""), most)
    return [*map(_queued, queued), *map(_recorded, recorded)]


async def failed_without_message(store: BatchStore, key: BatchKey, failed: int) -> int:
    """How many failed documents have no message: a release that kept none recorded them.

    Args:
        store: Tables.
        key: The batch.
        failed: Its documents that are `failed`.
    """
    after, documents = ("", ""), set[str]()
    while page := await store.failed_messages(key, after, 1_000):
        documents.update(message.document_id for message in page)
        after = (page[-1].document_id, page[-1].message_key)
    return max(failed - len(documents), 0)


def rows_of(found: Sequence[Unloaded]) -> list[dict[str, str | None]]:
    """The same as JSON."""
    return [
        {
            "where": "dead-letter queue" if one.is_queued else "recorded as failed",
            "document_id": one.document_id,
            "event_type": one.event_type,
            "reason": one.reason,
            "at": one.at and one.at.isoformat(),
            "body": one.body,
        }
        for one in found
    ]


def _queued(letter: QueuedDeadLetter) -> Unloaded:
    document_id = event_type = None
    try:
        event = read_document_event(letter.body.encode("utf-8", "surrogatepass"))
    except RefusedMessage as refused:
        reason = letter.reason or f"{refused.reason}: {refused.description}"
    else:
        reason = letter.reason or _UNSETTLED
        if event is not None:
            document_id, event_type = event.document_id, event.event_type
    return Unloaded(True, document_id, event_type, reason, letter.sent_at, letter.body)


def _recorded(message: FailedMessage) -> Unloaded:
    return Unloaded(
        False,
        message.document_id,
        message.event_type,
        message.reason,
        message.failed_at,
        message.body,
    )


def beginning_of(body: str) -> str:
    """What a person sees of a body that cannot be read."""
    return printable(body if len(body) <= SHOWN else f"{body[:SHOWN]}...")
