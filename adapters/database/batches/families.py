"""Where documents stand in their families, and how large these are."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final

from sqlalchemy import and_, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.codec import clean
from adapters.database.models.batches import attachments, documents
from contracts.batches import DocumentEvent, DocumentId, DocumentProcessed
from domain.batches.families import Family

_EMPTY: Final = "empty files: "
_NAMED: Final = 10
"""Empty files of a document whose names its notes have."""


def place_of(event: DocumentEvent) -> dict[str, Any]:
    """Columns of a document that say where it was found; none for one that was sent."""
    found_in = event.found_in if isinstance(event, DocumentProcessed) else None
    if found_in is None:
        return {}
    return {
        "parent_id": found_in.parent_id,
        "family_id": found_in.family_id,
        "depth": found_in.depth,
    }


async def family_of(connection: AsyncConnection, event: DocumentEvent) -> Family:
    """The family of a document, without the files of this very document."""
    family_id, depth = await _place(connection, event)
    of_family = and_(
        documents.c.case_id == event.case_id,
        or_(documents.c.family_id == family_id, documents.c.document_id == family_id),
        documents.c.document_id != event.document_id,
    )
    belongs = and_(
        attachments.c.case_id == documents.c.case_id,
        attachments.c.document_id == documents.c.document_id,
    )
    query = (
        select(func.count(), func.coalesce(func.sum(attachments.c.size), 0))
        .select_from(documents.join(attachments, belongs))
        .where(of_family)
    )
    count, size = (await connection.execute(query)).one()
    return Family(family_id, depth, count, int(size))


async def add_note(connection: AsyncConnection, event: DocumentEvent, note: str) -> None:
    """Add what is not read of a document's files to the notes of the document."""
    mine = and_(documents.c.case_id == event.case_id, documents.c.document_id == event.document_id)
    notes = await connection.scalar(select(documents.c.notes).where(mine).with_for_update())
    lines = dict.fromkeys((*(notes or "").split("\n"), clean(note)))
    await connection.execute(
        update(documents).where(mine).values(notes="\n".join(filter(None, lines)))
    )


def unused_fields(event: DocumentEvent) -> str | None:
    """Note about the fields of a message that are not used; None: there are none."""
    if not event.unknown_fields:
        return None
    names = ", ".join(" ".join(name.split()) for name in event.unknown_fields)
    return f"fields of its {event.event_type} that are not used: {names}"


async def note_unused_fields(connection: AsyncConnection, event: DocumentEvent) -> None:
    """Name them in the notes of the document."""
    if (note := unused_fields(event)) is not None:
        await add_note(connection, event, note)


async def note_empty_files(
    connection: AsyncConnection, case_id: int, ids: Iterable[DocumentId]
) -> None:
    """Name empty files of documents in their notes, whichever came first, file or document."""
    files, rows = attachments.c, documents.c
    query = (
        select(files.document_id, files.filename)
        .where(files.case_id == case_id, files.document_id.in_(ids), files.size == 0)
        .order_by(files.document_id, files.filename)
    )
    empty = defaultdict[DocumentId, list[str]](list)
    for document_id, filename in await connection.execute(query):
        empty[document_id].append(" ".join(filename.split()))
    for document_id, names in empty.items():
        mine = and_(rows.case_id == case_id, rows.document_id == document_id)
        notes = await connection.scalar(select(rows.notes).where(mine).with_for_update())
        others = [line for line in (notes or "").split("\n") if not line.startswith(_EMPTY)]
        lines = filter(None, (*others, _named(names)))
        await connection.execute(update(documents).where(mine).values(notes="\n".join(lines)))


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED:,} others" if len(names) > _NAMED else ""
    return f"{_EMPTY}{', '.join(names[:_NAMED])}{more}"


async def _place(connection: AsyncConnection, event: DocumentEvent) -> tuple[str, int]:
    if isinstance(event, DocumentProcessed) and event.found_in is not None:
        return event.found_in.family_id, event.found_in.depth
    query = select(documents.c.family_id, documents.c.depth).where(
        documents.c.case_id == event.case_id, documents.c.document_id == event.document_id
    )
    row = (await connection.execute(query)).one_or_none()
    if row is None or row.family_id is None:
        return event.document_id, 0
    return row.family_id, row.depth
