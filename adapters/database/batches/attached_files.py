"""Files that belong to documents: the same blob under two names is two of them."""

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import and_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.batches.keys import key_text
from adapters.database.codec import clean
from adapters.database.models.batches import attachments
from adapters.ports import Attached
from contracts.batches import DocumentEvent


async def save(
    connection: AsyncConnection,
    insert: Callable[..., Any],
    event: DocumentEvent,
    files: Sequence[Attached],
) -> None:
    """Record files of a document; what is recorded already is brought up to date.

    Args:
        connection: Of the transaction.
        insert: Of the dialect.
        event: The message that names them, or whose document they were found in.
        files: Where they are, and what they are called.
    """
    mine = and_(
        attachments.c.case_id == event.case_id, attachments.c.document_id == event.document_id
    )
    query = select(attachments.c.blob_key, attachments.c.filename).where(mine)
    names = {key: name for key, name in await connection.execute(query)}
    rows: dict[str, dict[str, Any]] = {}
    for file in files:
        filename, key = clean(file.filename), key_text(file.blob.name)
        if names.setdefault(key, filename) != filename:
            # No name of a blob has a line break.
            key = key_text(f"{file.blob.name}\n{filename}")
        rows[key] = {
            "blob_name": file.blob.name,
            "filename": filename,
            "size": file.blob.size,
            "sha256": file.blob.sha256,
        }
    if not rows:
        return
    where = {"case_id": event.case_id, "document_id": event.document_id}
    statement = insert(attachments)
    changed = {name: statement.excluded[name] for name in next(iter(rows.values()))}
    await connection.execute(
        statement.on_conflict_do_update(index_elements=[*where, "blob_key"], set_=changed),
        # In one order for all, so that no two writers wait for each other.
        [{**where, "blob_key": key, **values} for key, values in sorted(rows.items())],
    )
