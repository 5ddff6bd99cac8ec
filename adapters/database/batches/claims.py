"""Which document of a case came first with some bytes."""

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import and_, delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.models.batches import doc_dedupe, documents
from contracts.batches import DocumentEvent, DocumentId, DocumentProcessed, DocumentState


async def claim(
    connection: AsyncConnection, insert: Callable[..., Any], event: DocumentProcessed, sha256: str
) -> DocumentId | None:
    """The document that has these bytes; None: this one has them now."""
    of_batch = {"case_id": event.case_id, "batch_id": event.batch_id, "sha256": sha256}
    await connection.execute(
        insert(doc_dedupe)
        .values(**of_batch, document_id=event.document_id)
        .on_conflict_do_nothing()
    )
    first = await connection.scalar(
        select(doc_dedupe.c.document_id).where(
            *(doc_dedupe.c[name] == value for name, value in of_batch.items())
        )
    )
    if first != event.document_id:
        # It may be a duplicate itself, of a document of an earlier batch: even of this one.
        original = await connection.scalar(
            select(documents.c.duplicate_of).where(
                documents.c.case_id == event.case_id, documents.c.document_id == first
            )
        )
        return None if original == event.document_id else original or first
    # Documents of earlier batches of the case; what never got loaded there has no text.
    return await connection.scalar(
        select(documents.c.document_id)
        .where(
            documents.c.case_id == event.case_id,
            documents.c.sha256 == sha256,
            documents.c.document_id != event.document_id,
            documents.c.state == DocumentState.LOADED.value,
        )
        .order_by(documents.c.document_id)
        .limit(1)
    )


async def claim_all(
    connection: AsyncConnection,
    insert: Callable[..., Any],
    found: Sequence[tuple[DocumentProcessed, str]],
) -> frozenset[DocumentId]:
    """Documents of a batch that have bytes which no other document of the case has.

    Args:
        connection: Of the transaction.
        insert: Of the dialect.
        found: Documents without rows, each with the SHA-256 of its bytes.
    """
    if not found:
        return frozenset()
    first = found[0][0]
    batch = {"case_id": first.case_id, "batch_id": first.batch_id}
    rows = sorted((sha256, event.document_id) for event, sha256 in found)
    await connection.execute(
        insert(doc_dedupe).on_conflict_do_nothing(),
        [{**batch, "sha256": sha256, "document_id": id} for sha256, id in rows],
    )
    hashes = [sha256 for sha256, _ in rows]
    claimed = await connection.execute(
        select(doc_dedupe.c.sha256, doc_dedupe.c.document_id).where(
            doc_dedupe.c.case_id == first.case_id,
            doc_dedupe.c.batch_id == first.batch_id,
            doc_dedupe.c.sha256.in_(hashes),
        )
    )
    loaded = await connection.scalars(
        select(documents.c.sha256).where(
            documents.c.case_id == first.case_id,
            documents.c.sha256.in_(hashes),
            documents.c.state == DocumentState.LOADED.value,
        )
    )
    earlier = set(loaded)
    mine = set(rows) & {(sha256, id) for sha256, id in claimed}
    return frozenset(id for sha256, id in mine if sha256 not in earlier)


async def release(connection: AsyncConnection, event: DocumentEvent) -> None:
    """Let another document of the batch have the bytes of a document."""
    mine = and_(
        doc_dedupe.c.case_id == event.case_id,
        doc_dedupe.c.batch_id == event.batch_id,
        doc_dedupe.c.document_id == event.document_id,
    )
    await connection.execute(delete(doc_dedupe).where(mine))
