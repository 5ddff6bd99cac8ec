"""Messages of a batch that are delivered again and again, in groups that overlap."""

import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

from tests.support.batches.document_loading import KEY, DocumentLoading
from tests.support.files.hostile_documents import WRITTEN_AT
from workflows.batches.loads import DocumentEvent, DocumentProcessed, DocumentRelations, Relation

DELIVERIES, REDRIVES = 4, 2
FULL = 10
TABLES = {
    "documents": ("document_id", "state", "blob_name", "sha256", "message_key"),
    "document_texts": ("document_id", "text"),
    "document_tags": ("document_id", "tag"),
    "document_relations": ("document_id", "related_id", "kind"),
    "document_versions": ("document_id", "blob_name", "sha256"),
    "process_checkpoints": ("document_id", "message_key", "event_type"),
    "failed_messages": ("document_id",),
}


async def messages(put: Callable[[str, bytes], Awaitable[Any]], count: int) -> list[DocumentEvent]:
    """Documents with up to three versions each, and relations of every fifth.

    Args:
        put: Keeps the file of a document under a name.
        count: Of messages.
    """
    events: list[DocumentEvent] = []
    for number in range(count):
        document = f"D-{number * 2 // 5}"
        where = {"case_id": KEY.case_id, "batch_id": KEY.batch_id, "document_id": document}
        if number % 5 == 4:
            related = (Relation(related_id=f"R-{number}"),)
            events.append(DocumentRelations(**where, relations=related))
            continue
        name = f"in/{number}"
        await put(name, b"words of %d" % number)
        events.append(
            DocumentProcessed(
                **where,
                blob_name=name,
                filename="words.txt",
                tags=(f"t-{number}",),
                sent_at=WRITTEN_AT + timedelta(minutes=number),
            )
        )
    return events


def groups_of_one_pass(
    events: Sequence[DocumentEvent], dice: random.Random, smallest: int = 1
) -> Iterator[Sequence[DocumentEvent]]:
    """Every message one to four times, in any order, and some of them in another group too.

    Args:
        events: Of the batch.
        dice: Chooses.
        smallest: Of the messages of a group that are its own.
    """
    delivered = [event for event in events for _ in range(dice.randint(1, DELIVERIES))]
    dice.shuffle(delivered)
    while delivered:
        size = dice.randint(smallest, FULL)
        group, delivered = delivered[:size], delivered[size:]
        yield [*group, *dice.sample(events, FULL - size)]


async def rows(loading: DocumentLoading) -> dict[str, list[tuple[Any, ...]]]:
    """What loading the messages has left in the tables."""
    return {
        table: sorted(set(await loading.rows(table, *columns))) for table, columns in TABLES.items()
    }
