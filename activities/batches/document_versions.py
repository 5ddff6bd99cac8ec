"""What a document was before a later message replaced it, and messages that could not be loaded."""

import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, and_, delete, literal, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.models.batches import (
    doc_dedupe,
    document_messages,
    document_tags,
    document_texts,
    document_versions,
    documents,
    failed_messages,
    process_checkpoints,
)
from adapters.database.records import clean
from workflows.batches.loads import (
    DocumentEvent,
    DocumentProcessed,
    DocumentState,
    LoadStep,
    message_key,
)
from workflows.shared.contracts import BlobRef, body_of

_READ: Final = (
    *("media_type", "title", "author", "created_at", "modified_at", "pages", "metadata"),
    *("notes", "truncated"),
)
"""Columns of `documents` that follow from the bytes alone."""


async def current(connection: AsyncConnection, event: DocumentEvent) -> Any:
    """The row of a document, locked; None: there is none."""
    query = select(documents).where(_of(documents, event.case_id, event.document_id))
    return (await connection.execute(query.with_for_update())).one_or_none()


def is_of_another(row: Any, event: DocumentProcessed) -> bool:
    """Whether a document is that of another message."""
    return row is not None and row.message_key not in (None, message_key(event))


def is_superseded(row: Any, event: DocumentProcessed) -> bool:
    """Whether a document is that of a message that was sent later."""
    if not is_of_another(row, event):
        return False
    return row.sent_at is not None and event.sent_at is not None and row.sent_at > event.sent_at


async def replace(
    connection: AsyncConnection, event: DocumentProcessed, sha256: str, row: Any
) -> None:
    """Keep what a document was by another message or with other bytes, before it is replaced.

    A duplicate of the bytes that are replaced takes the document's place, with its text.

    Args:
        connection: Of the transaction.
        event: The message that replaces it.
        sha256: Of the new bytes.
        row: The document as it is; None: there is none.
    """
    if row is None or row.blob_name is None:
        return
    other_bytes = row.sha256 != sha256
    if not other_bytes and row.message_key in (None, message_key(event)):
        return
    own = _of(document_texts, event.case_id, event.document_id)
    text = await connection.scalar(select(document_texts.c.text).where(own))
    tags = await connection.scalars(
        select(document_tags.c.tag)
        .where(_of(document_tags, event.case_id, event.document_id))
        .order_by(document_tags.c.tag)
    )
    kept = {
        name: getattr(row, name)
        for name in ("batch_id", "blob_name", "filename", "etag", "sha256", "size", "sent_at")
    }
    read = row.media_type is not None
    await _keep(
        connection,
        event,
        version=_version(row.message_key, row.sha256),
        media_type=row.media_type,
        title=row.title,
        tags=json.dumps(list(tags)),
        text=text if other_bytes and read else None,
        **kept,
    )
    if other_bytes:
        await _hand_over(connection, event, row, text if read else None)
        await connection.execute(delete(document_texts).where(own))


async def keep_late(connection: AsyncConnection, event: DocumentProcessed, source: BlobRef) -> None:
    """Keep the file of a message whose document is that of a later one."""
    await _keep(
        connection,
        event,
        version=_version(message_key(event), source.sha256),
        batch_id=event.batch_id,
        blob_name=source.name,
        filename=None if event.filename is None else clean(event.filename),
        etag=source.etag,
        sha256=source.sha256,
        size=source.size,
        sent_at=event.sent_at,
        tags=json.dumps([clean(tag) for tag in event.tags]),
    )


async def _keep(connection: AsyncConnection, event: DocumentEvent, **values: Any) -> None:
    where = {"case_id": event.case_id, "document_id": event.document_id}
    values["kept_at"] = datetime.now(UTC)
    await connection.execute(
        insert(document_versions).values(**where, **values).on_conflict_do_nothing()
    )


async def _hand_over(
    connection: AsyncConnection, event: DocumentEvent, row: Any, text: str | None
) -> None:
    """Let the first duplicate of a document have its former bytes."""
    case_id, document_id = event.case_id, event.document_id
    claimed = and_(
        doc_dedupe.c.case_id == case_id,
        doc_dedupe.c.document_id == document_id,
        doc_dedupe.c.sha256 == row.sha256,
    )
    copies = and_(
        documents.c.case_id == case_id,
        documents.c.duplicate_of == document_id,
        documents.c.sha256 == row.sha256,
    )
    heir = await connection.scalar(
        select(documents.c.document_id).where(copies).order_by(documents.c.document_id).limit(1)
    )
    if heir is None or text is None:
        await connection.execute(delete(doc_dedupe).where(claimed))
        await _leave_unread(connection, event, copies)
        return
    await connection.execute(update(doc_dedupe).where(claimed).values(document_id=heir))
    await connection.execute(update(documents).where(copies).values(duplicate_of=heir))
    await connection.execute(
        update(documents)
        .where(_of(documents, case_id, heir))
        .values(
            duplicate_of=None,
            state=DocumentState.LOADED.value,
            updated_at=datetime.now(UTC),
            **{name: getattr(row, name) for name in _READ},
        )
    )
    # What it was before it became a duplicate is a version of it.
    for table in (document_texts, document_messages):
        await connection.execute(delete(table).where(_of(table, case_id, heir)))
    await connection.execute(
        insert(document_texts).values(case_id=case_id, document_id=heir, text=text)
    )
    ids = document_messages.c
    thread = select(ids.case_id, literal(heir), ids.message_key, ids.own).where(
        _of(document_messages, case_id, document_id)
    )
    await connection.execute(
        insert(document_messages).from_select(
            ["case_id", "document_id", "message_key", "own"], thread
        )
    )


async def _leave_unread(
    connection: AsyncConnection, event: DocumentEvent, copies: ColumnElement[bool]
) -> None:
    """Say of duplicates that nothing was read of them: their original has other bytes by now."""
    reason = (
        f"it had the same bytes as {event.document_id}, which was replaced before these were read:"
        " send it again"
    )
    message = (documents.c.batch_id, documents.c.document_id, documents.c.message_key)
    steps = process_checkpoints.c
    # As after a failure: sent again, they are read.
    await connection.execute(
        delete(process_checkpoints).where(
            steps.case_id == event.case_id,
            steps.step == LoadStep.DEDUPE.value,
            tuple_(steps.batch_id, steps.document_id, steps.message_key).in_(
                select(*message).where(copies)
            ),
        )
    )
    await connection.execute(
        update(documents)
        .where(copies)
        .values(
            state=DocumentState.FAILED.value,
            reason=clean(reason),
            failed_event=DocumentProcessed.model_fields["event_type"].default,
            duplicate_of=None,
            updated_at=datetime.now(UTC),
        )
    )


async def record_failure(connection: AsyncConnection, event: DocumentEvent, reason: str) -> None:
    """Keep a message that could not be loaded, with the reason of its last attempt."""
    values = {"reason": clean(reason), "failed_at": datetime.now(UTC)}
    keys = ["case_id", "batch_id", "document_id", "message_key"]
    await connection.execute(
        insert(failed_messages)
        .values(
            case_id=event.case_id,
            batch_id=event.batch_id,
            document_id=event.document_id,
            message_key=message_key(event),
            event_type=event.event_type,
            message=clean(body_of(event).decode()),
            **values,
        )
        .on_conflict_do_update(index_elements=keys, set_=values)
    )


async def forget_failures(connection: AsyncConnection, events: Sequence[DocumentEvent]) -> None:
    """Forget that messages of one batch could not be loaded."""
    failed = failed_messages.c
    await connection.execute(
        delete(failed_messages).where(
            failed.case_id == events[0].case_id,
            failed.batch_id == events[0].batch_id,
            # The key stands for the whole message, its document included.
            failed.document_id.in_([event.document_id for event in events]),
            failed.message_key.in_([message_key(event) for event in events]),
        )
    )


async def other_failure(connection: AsyncConnection, event: DocumentEvent) -> str | None:
    """The reason of a message of this kind of the document that failed last; None: none did."""
    failed = failed_messages.c
    query = (
        select(failed.reason)
        .where(
            _of(failed_messages, event.case_id, event.document_id),
            failed.event_type == event.event_type,
        )
        .order_by(failed.failed_at.desc())
        .limit(1)
    )
    return await connection.scalar(query)


def _of(table: Any, case_id: int, document_id: str) -> Any:
    return and_(table.c.case_id == case_id, table.c.document_id == document_id)


def _version(key: str | None, sha256: str | None) -> str:
    """Stands for a message and its bytes; a release that kept no key knew the bytes alone."""
    return hashlib.sha256(f"{key or ''}/{sha256 or ''}".encode()).hexdigest()
