"""Documents that are new, written together: a few statements for all of them."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.batches import (
    checkpoints,
    claims,
    families,
    mail_threads,
    tag_rows,
    versions,
)
from adapters.database.codec import clean
from adapters.database.models.batches import (
    document_relations,
    document_texts,
    documents,
    process_checkpoints,
)
from adapters.ports import Extracted, WholeDocument
from contracts.batches import (
    DocumentId,
    DocumentProcessed,
    DocumentState,
    message_key,
)
from contracts.blobs import BlobRef

Insert = Callable[..., Any]
NewDocument = tuple[DocumentProcessed, WholeDocument]


async def save(
    connection: AsyncConnection, insert: Insert, found: Sequence[NewDocument]
) -> frozenset[DocumentId]:
    """Write those of them that are new, with bytes that are new, and their checkpoints.

    Rows of each table are written in one order for all, and the tables in the order in which a
    document that is written by itself writes them, so that no two writers wait for each other.

    Args:
        connection: Of the transaction.
        insert: Of the dialect.
        found: Of one batch, each with its message; no document twice.

    Returns:
        What was written; of the others there is nothing but a claim of their bytes.
    """
    events = [event for event, _ in found]
    await checkpoints.lock(connection, *events)
    known = await begun(connection, events)
    new = [one for one in found if one[0].document_id not in known]
    free = await claims.claim_all(
        connection, insert, [(event, whole.source.sha256 or "") for event, whole in new]
    )
    free_ones = sorted(
        (one for one in new if one[0].document_id in free), key=lambda one: one[0].document_id
    )
    if free_ones:
        await _write(connection, insert, free_ones)
    return free


async def begun(
    connection: AsyncConnection, events: Sequence[DocumentProcessed]
) -> frozenset[DocumentId]:
    """Documents of which there is a row, or a checkpoint of their batch.

    Args:
        connection: To read on.
        events: Messages of one batch.
    """
    ids = [event.document_id for event in events]
    rows, steps = documents.c, process_checkpoints.c
    query = (
        select(rows.document_id)
        .where(rows.case_id == events[0].case_id, rows.document_id.in_(ids))
        .union(
            select(steps.document_id).where(
                steps.case_id == events[0].case_id,
                steps.batch_id == events[0].batch_id,
                steps.document_id.in_(ids),
            )
        )
    )
    return frozenset(await connection.scalars(query))


async def _write(connection: AsyncConnection, insert: Insert, found: Sequence[NewDocument]) -> None:
    events = [event for event, _ in found]
    case_id = events[0].case_id
    await connection.execute(
        insert(documents),
        [
            {
                "case_id": event.case_id,
                "document_id": event.document_id,
                **dict.fromkeys(("parent_id", "family_id", "depth")),
                **columns_of_file(event, whole.source),
                **columns_of_text(event, whole.extracted),
                "state": DocumentState.LOADED.value,
            }
            for event, whole in found
        ],
    )
    await families.note_empty_files(connection, case_id, [event.document_id for event in events])
    await checkpoints.write_all(
        connection, insert, [(event, whole.source.etag) for event, whole in found]
    )
    texts = insert(document_texts)
    await connection.execute(
        texts.on_conflict_do_update(
            index_elements=["case_id", "document_id"], set_={"text": texts.excluded.text}
        ),
        [
            {
                "case_id": event.case_id,
                "document_id": event.document_id,
                "text": clean(whole.extracted.text),
            }
            for event, whole in found
        ],
    )
    threads = {event.document_id: whole.extracted.thread for event, whole in found}
    await mail_threads.add(connection, insert, case_id, threads)
    await tag_rows.add(connection, insert, [(event, whole.tags) for event, whole in found])
    related = [
        (event.document_id, one.related_id, one.kind.value)
        for event in events
        for one in event.relations
    ]
    related += await mail_threads.relations(
        connection, case_id, [id for id, thread in threads.items() if thread]
    )
    await add_relations(connection, insert, case_id, related)
    await versions.forget_failures(connection, events)


async def add_relations(
    connection: AsyncConnection,
    insert: Insert,
    case_id: int,
    related: Sequence[tuple[str, str, str]],
) -> None:
    """Relate documents of a case: document, related one and kind."""
    names = ("document_id", "related_id", "kind")
    rows = [
        {"case_id": case_id, **dict(zip(names, row, strict=True))} for row in sorted(set(related))
    ]
    if rows:
        await connection.execute(insert(document_relations).on_conflict_do_nothing(), rows)


def columns_of_file(event: DocumentProcessed, source: BlobRef) -> dict[str, Any]:
    """What a message and its file say of a document."""
    return {
        "batch_id": event.batch_id,
        "blob_name": source.name,
        "filename": None if event.filename is None else clean(event.filename),
        "etag": source.etag,
        "sha256": source.sha256,
        "size": source.size,
        "message_key": message_key(event),
        "sent_at": event.sent_at,
        "updated_at": datetime.now(UTC),
        **families.place_of(event),
    }


def columns_of_text(event: DocumentProcessed, extracted: Extracted) -> dict[str, Any]:
    """What was read of a document, but for its text."""
    notes = filter(None, (*extracted.notes, families.unused_fields(event)))
    metadata = {clean(name): clean(value) for name, value in extracted.metadata.items()}
    return {
        "media_type": extracted.media_type,
        "title": None if extracted.title is None else clean(extracted.title),
        "author": None if extracted.author is None else clean(extracted.author),
        "created_at": extracted.created_at,
        "modified_at": extracted.modified_at,
        "pages": extracted.pages,
        "truncated": extracted.truncated,
        "metadata": json.dumps(metadata),
        "notes": clean("\n".join(notes)) or None,
        "updated_at": datetime.now(UTC),
    }
