"""Which document of a case came first with some bytes."""

from collections.abc import Callable
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


async def release(connection: AsyncConnection, event: DocumentEvent) -> None:
    """Let another document of the batch have the bytes of a document."""
    mine = and_(
        doc_dedupe.c.case_id == event.case_id,
        doc_dedupe.c.batch_id == event.batch_id,
        doc_dedupe.c.document_id == event.document_id,
    )
    await connection.execute(delete(doc_dedupe).where(mine))
