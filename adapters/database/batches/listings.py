"""Batches, documents of one, and the messages that are recorded as failed, for people."""

from datetime import datetime
from typing import Any, Final

from sqlalchemy import Select, and_, or_, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.batches.document_counts import counts_of
from adapters.database.models.batches import batches, documents, failed_messages
from adapters.ports import BatchView, DocumentView, FailedMessage
from contracts.batches import BatchKey, DocumentCounts, DocumentState, LoaderStatus
from domain.batches.events import NOT_KNOWN
from domain.batches.passed_on import names_of_fields

NEWEST_FIRST: Final = (
    batches.c.updated_at.desc(),
    batches.c.case_id.desc(),
    batches.c.batch_id.desc(),
)
"""The order in which batches are listed; those of one call changed at the same moment."""


def is_later(before: datetime, behind: BatchKey | None) -> Any:
    """Whether a batch comes later in the list than one that changed at a moment.

    Args:
        before: The moment, UTC.
        behind: That batch; None: what changed at the moment does not come later.
    """
    at, case, batch = batches.c.updated_at, batches.c.case_id, batches.c.batch_id
    if behind is None:
        return at < before
    same_case = and_(case == behind.case_id, batch < behind.batch_id)
    return and_(at <= before, or_(at < before, case < behind.case_id, same_case))


async def views_of(connection: AsyncConnection, chosen: Select[Any]) -> list[BatchView]:
    """Rows of batches, with their documents by state."""
    rows = (await connection.execute(chosen)).all()
    keys = [BatchKey(case_id=row.case_id, batch_id=row.batch_id) for row in rows]
    counts = await counts_of(connection, keys)
    return [_view(row, key, counts[key]) for row, key in zip(rows, keys, strict=True)]


async def documents_of(
    connection: AsyncConnection, key: BatchKey, state: DocumentState | None, after: str, limit: int
) -> list[DocumentView]:
    """Documents of a batch by id, beginning behind one; None: in any state."""
    columns, original = documents.c, documents.alias()
    same_bytes = and_(
        original.c.case_id == columns.case_id, original.c.document_id == columns.duplicate_of
    )
    query = (
        select(documents, original.c.state.label("original_state"))
        .outerjoin(original, same_bytes)
        .where(
            columns.case_id == key.case_id,
            columns.batch_id == key.batch_id,
            columns.document_id > after,
        )
    )
    if state is not None:
        query = query.where(columns.state == state.value)
    rows = await connection.execute(query.order_by(columns.document_id).limit(limit))
    return [_document(row) for row in rows]


async def failed_messages_of(
    connection: AsyncConnection, key: BatchKey, after: tuple[str, str], limit: int
) -> list[FailedMessage]:
    """Messages of a batch that are recorded as failed, by document and key, behind one."""
    columns = failed_messages.c
    order = (columns.document_id, columns.message_key)
    query = (
        select(failed_messages)
        .where(columns.case_id == key.case_id, columns.batch_id == key.batch_id)
        .where(tuple_(*order) > tuple_(*after))
        .order_by(*order)
        .limit(limit)
    )
    return [
        FailedMessage(
            document_id=row.document_id,
            message_key=row.message_key,
            event_type=row.event_type,
            reason=row.reason,
            body=row.message,
            failed_at=row.failed_at,
        )
        for row in await connection.execute(query)
    ]


def _view(row: Any, key: BatchKey, counts: DocumentCounts) -> BatchView:
    return BatchView(
        key=key,
        status=LoaderStatus(row.loader_status),
        reason=row.reason if row.known else row.reason or NOT_KNOWN,
        updated_at=row.updated_at,
        documents=counts,
        dead_letters=row.dead_letters,
        known=row.known,
        lost=row.lost,
        unused_fields=names_of_fields(row.passed_on),
        unannounced=row.unannounced_since is not None and LoaderStatus(row.loader_status).terminal,
    )


def _document(row: Any) -> DocumentView:
    blob_name: str | None = row.blob_name
    return DocumentView(
        document_id=row.document_id,
        state=DocumentState(row.state),
        filename=row.filename or (blob_name and blob_name.rpartition("/")[2]),
        reason=row.reason,
        failed_event=row.failed_event,
        duplicate_of=row.duplicate_of,
        notes=row.notes,
        updated_at=row.updated_at,
        parent_id=row.parent_id,
        original_state=row.original_state and DocumentState(row.original_state),
    )
