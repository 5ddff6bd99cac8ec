"""What hangs on documents of batches: checkpoints, claims, tags, families, threads of mails."""

import hashlib
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import and_, delete, func, or_, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.bulk.engine import advisory_lock_key
from adapters.database.models.batches import (
    attachments,
    doc_dedupe,
    document_messages,
    document_tags,
    documents,
    process_checkpoints,
    tag_dedupe,
)
from adapters.database.records import clean
from adapters.ports.documents import Attached
from workflows.batches.loads import (
    DocumentEvent,
    DocumentProcessed,
    DocumentState,
    Family,
    LoadStep,
    RelationKind,
    message_key,
)
from workflows.batches.names import DocumentId

LONGEST: Final = 200
"""Characters that go into a key as they are; PostgreSQL indexes 2,704 bytes of all its columns."""


def key_text(text: str) -> str:
    """Text that stands for another in a key: the same for the same, and never too long."""
    text = clean(text)
    if len(text) <= LONGEST:
        return text
    return hashlib.sha256(text.encode()).hexdigest()


_LOCK: Final = text(
    "SELECT pg_advisory_xact_lock(key) FROM"
    " (SELECT unnest(CAST(:keys AS bigint[])) AS key ORDER BY 1) AS ordered"
)


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The steps of a message that are done."""

    steps: frozenset[LoadStep]
    etag: str | None = None
    """Of the file that `dedupe` has read; None: not read, or by a release that did not store it."""


async def lock(connection: AsyncConnection, *events: DocumentEvent) -> None:
    """Let one transaction at a time write what concerns documents of a case."""
    names = [f"document {event.case_id}/{event.document_id}" for event in events]
    await acquire_locks(connection, names)


async def acquire_locks(connection: AsyncConnection, names: Iterable[str]) -> None:
    """Take the locks of these names, in one order for all, until the transaction ends."""
    keys = sorted(map(advisory_lock_key, names))
    await connection.execute(_LOCK, {"keys": keys})


async def of(connection: AsyncConnection, event: DocumentEvent) -> Checkpoints:
    """Those of a message."""
    columns = process_checkpoints.c
    query = select(columns.step, columns.etag).where(of_message(event))
    found = {LoadStep(step): etag for step, etag in await connection.execute(query)}
    return Checkpoints(frozenset(found), found.get(LoadStep.DEDUPE))


async def write(
    connection: AsyncConnection,
    event: DocumentEvent,
    steps: Iterable[LoadStep],
    etag: str | None = None,
) -> bool:
    """Record steps as done; False: they are recorded already.

    Args:
        connection: Of the transaction.
        event: The message.
        steps: Of the message.
        etag: Of the file that was read.
    """
    rows = _rows(event, steps, etag)
    written = await connection.execute(
        insert(process_checkpoints)
        .values(rows)
        .on_conflict_do_nothing()
        .returning(process_checkpoints.c.step)
    )
    return bool(written.all())


async def write_all(
    connection: AsyncConnection,
    done: Iterable[tuple[DocumentEvent, str | None]],
) -> None:
    """Record all steps of messages as done, each with the etag of the file that was read."""
    rows = [row for event, etag in done for row in _rows(event, LoadStep, etag)]
    await connection.execute(insert(process_checkpoints).on_conflict_do_nothing(), rows)


def _rows(
    event: DocumentEvent, steps: Iterable[LoadStep], etag: str | None
) -> list[dict[str, Any]]:
    of_message: dict[str, Any] = {
        "case_id": event.case_id,
        "batch_id": event.batch_id,
        "document_id": event.document_id,
        "event_type": event.event_type,
        "message_key": message_key(event),
        "etag": etag,
        "done_at": datetime.now(UTC),
    }
    return [{**of_message, "step": step.value} for step in steps]


async def forget(
    connection: AsyncConnection, event: DocumentEvent, step: LoadStep | None = None
) -> None:
    """Remove those of a message; only that of one step where it is given."""
    mine = of_message(event)
    if step is not None:
        mine &= process_checkpoints.c.step == step.value
    await connection.execute(delete(process_checkpoints).where(mine))


def of_message(event: DocumentEvent) -> Any:
    """Rows of a message; of releases that had one for each kind, those that it wrote."""
    columns, key = process_checkpoints.c, message_key(event)
    return and_(
        columns.case_id == event.case_id,
        columns.batch_id == event.batch_id,
        columns.document_id == event.document_id,
        columns.event_type == event.event_type,
        or_(columns.message_key == key, and_(columns.message_key == "", columns.digest == key)),
    )


async def claim(
    connection: AsyncConnection, event: DocumentProcessed, sha256: str
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
    found: Sequence[tuple[DocumentProcessed, str]],
) -> frozenset[DocumentId]:
    """Documents of a batch that have bytes which no other document of the case has.

    Args:
        connection: Of the transaction.
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


async def save_attached_files(
    connection: AsyncConnection,
    event: DocumentEvent,
    files: Sequence[Attached],
) -> None:
    """Record files of a document; what is recorded already is brought up to date.

    Args:
        connection: Of the transaction.
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


async def save_tags(
    connection: AsyncConnection,
    event: DocumentEvent,
    tags: Sequence[str],
) -> None:
    """Give a document these tags and no others.

    Args:
        connection: Of the transaction.
        event: A message of the document.
        tags: As they came; the first spelling of a tag in its batch is written for all.
    """
    own = and_(
        document_tags.c.case_id == event.case_id,
        document_tags.c.document_id == event.document_id,
    )
    await connection.execute(delete(document_tags).where(own))
    await add_tags(connection, [(event, tags)])


async def add_tags(
    connection: AsyncConnection,
    tagged: Sequence[tuple[DocumentEvent, Sequence[str]]],
) -> None:
    """Give documents of one batch their tags; those that they have stay."""
    keys = {
        event.document_id: {_key(tag): clean(tag) for tag in reversed(tags)}
        for event, tags in tagged
    }
    spelled: dict[str, str] = {}
    for tags in keys.values():
        spelled = {**tags, **spelled}
    if not spelled:
        return
    first = tagged[0][0]
    batch = {"case_id": first.case_id, "batch_id": first.batch_id}
    await connection.execute(
        insert(tag_dedupe).on_conflict_do_nothing(),
        # In one order for all, so that no two writers wait for each other.
        [{**batch, "tag_key": key, "tag": tag} for key, tag in sorted(spelled.items())],
    )
    query = select(tag_dedupe.c.tag_key, tag_dedupe.c.tag).where(
        tag_dedupe.c.case_id == first.case_id,
        tag_dedupe.c.batch_id == first.batch_id,
        tag_dedupe.c.tag_key.in_(spelled),
    )
    known = {key: tag for key, tag in await connection.execute(query)}
    await connection.execute(
        insert(document_tags).on_conflict_do_nothing(),
        [
            {"case_id": first.case_id, "document_id": id, "tag_key": key, "tag": known[key]}
            for id, tags in sorted(keys.items())
            for key in sorted(tags)
        ],
    )


def _key(tag: str) -> str:
    return key_text(" ".join(unicodedata.normalize("NFKC", tag).casefold().split()))


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


async def save_thread(
    connection: AsyncConnection,
    event: DocumentEvent,
    thread: Sequence[str],
) -> None:
    """Keep a mail's own message id, and those that it answers.

    Args:
        connection: Of the transaction.
        event: The mail.
        thread: Its own message id, then the others; empty for what is not a mail.
    """
    mine = and_(
        document_messages.c.case_id == event.case_id,
        document_messages.c.document_id == event.document_id,
    )
    await connection.execute(delete(document_messages).where(mine))
    await add_to_threads(connection, event.case_id, {event.document_id: thread})


async def add_to_threads(
    connection: AsyncConnection,
    case_id: int,
    threads: Mapping[str, Sequence[str]],
) -> None:
    """Keep the message ids of mails of a case that have none yet, by document."""
    rows = [
        {"case_id": case_id, "document_id": id, "message_key": key, "own": place == 0}
        for id, thread in sorted(threads.items())
        for place, key in enumerate(dict.fromkeys(map(key_text, thread)))
    ]
    if not rows:
        return
    # Two mails that answer each other and are written at the same moment would not see each other.
    await acquire_locks(connection, {f"mail {case_id}/{row['message_key']}" for row in rows})
    await connection.execute(insert(document_messages), rows)


async def relations(
    connection: AsyncConnection, case_id: int, document_ids: Sequence[str]
) -> list[tuple[str, str, str]]:
    """Who answers whom, as far as these documents are part of it: document, related, kind.

    Whichever of two mails comes last finds the other.
    """
    if not document_ids:
        return []
    ours, theirs = document_messages.alias("ours"), document_messages.alias("theirs")
    query = (
        select(ours.c.document_id, ours.c.own, theirs.c.document_id)
        .join(
            theirs,
            and_(
                theirs.c.case_id == ours.c.case_id,
                theirs.c.message_key == ours.c.message_key,
                theirs.c.document_id != ours.c.document_id,
                theirs.c.own != ours.c.own,
            ),
        )
        .where(ours.c.case_id == case_id, ours.c.document_id.in_(document_ids))
    )
    reply = RelationKind.REPLY.value
    return [
        (other, mine, reply) if own else (mine, other, reply)
        for mine, own, other in await connection.execute(query)
    ]
