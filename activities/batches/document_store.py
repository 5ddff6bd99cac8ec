"""Documents of batches: each step's rows and its checkpoint in one transaction."""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import and_, case, not_, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from activities.batches import document_rows, document_versions
from adapters.database.engine import Database
from adapters.database.models.batches import (
    document_relations,
    document_texts,
    documents,
    process_checkpoints,
)
from adapters.database.records import clean
from adapters.ports.documents import Attached, Extracted, LoadInfo, Superseded, WholeDocument
from workflows.batches.loads import (
    STEPS,
    DocumentAttachments,
    DocumentEvent,
    DocumentProcessed,
    DocumentState,
    Family,
    LoadStep,
    Relation,
    message_key,
)
from workflows.batches.names import DocumentId
from workflows.shared.contracts import BlobRef

NewDocument = tuple[DocumentProcessed, WholeDocument]


async def save_new_documents(
    connection: AsyncConnection, found: Sequence[NewDocument]
) -> frozenset[DocumentId]:
    """Write those of them that are new, with bytes that are new, and their checkpoints.

    Rows of each table are written in one order for all, and the tables in the order in which a
    document that is written by itself writes them, so that no two writers wait for each other.

    Args:
        connection: Of the transaction.
        found: Of one batch, each with its message; no document twice.

    Returns:
        What was written; of the others there is nothing but a claim of their bytes.
    """
    events = [event for event, _ in found]
    await document_rows.lock(connection, *events)
    known = await begun(connection, events)
    new = [one for one in found if one[0].document_id not in known]
    free = await document_rows.claim_all(
        connection, [(event, whole.source.sha256 or "") for event, whole in new]
    )
    free_ones = sorted(
        (one for one in new if one[0].document_id in free), key=lambda one: one[0].document_id
    )
    if free_ones:
        await _write(connection, free_ones)
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


async def _write(connection: AsyncConnection, found: Sequence[NewDocument]) -> None:
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
    await document_rows.note_empty_files(
        connection, case_id, [event.document_id for event in events]
    )
    await document_rows.write_all(
        connection, [(event, whole.source.etag) for event, whole in found]
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
    await document_rows.add_to_threads(connection, case_id, threads)
    await document_rows.add_tags(connection, [(event, whole.tags) for event, whole in found])
    related = [
        (event.document_id, one.related_id, one.kind.value)
        for event in events
        for one in event.relations
    ]
    related += await document_rows.relations(
        connection, case_id, [id for id, thread in threads.items() if thread]
    )
    await add_relations(connection, case_id, related)
    await document_versions.forget_failures(connection, events)


async def add_relations(
    connection: AsyncConnection,
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
        **document_rows.place_of(event),
    }


def columns_of_text(event: DocumentProcessed, extracted: Extracted) -> dict[str, Any]:
    """What was read of a document, but for its text."""
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
        "notes": clean("\n".join(filter(None, extracted.notes))) or None,
        "updated_at": datetime.now(UTC),
    }


class SqlLoadStore:
    """Tables of documents; every method raises `Unavailable` when the database is down.

    Each `save` writes its rows and the checkpoint of its step in one transaction, and does nothing
    when the checkpoint stands there already.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def facts(self, event: DocumentEvent) -> LoadInfo:
        """How far the load of a message is."""
        async with self._database.reading() as connection:
            known = await document_rows.of(connection, event)
            row = (await connection.execute(select(documents).where(_is(event)))).one_or_none()
        return _facts(event, known, row)

    async def begun(self, events: Sequence[DocumentProcessed]) -> frozenset[DocumentId]:
        """Documents of which something is stored, or that a load has begun.

        Args:
            events: Messages of one batch.
        """
        async with self._database.reading() as connection:
            return await begun(connection, events)

    async def forget(self, event: DocumentProcessed) -> None:
        """Remove the checkpoints of a message; the bytes of its document are free."""
        async with self._locked(event) as connection:
            await document_rows.forget(connection, event)
            await document_rows.release(connection, event)

    async def save_source(self, event: DocumentProcessed, source: BlobRef) -> DocumentId | None:
        """The checkpoint `dedupe`: who else of the case has the same bytes?

        The first to come keeps them; a failed document keeps none, nor does one of an earlier
        batch that was never loaded. What the document was by another message is kept as a version,
        and a duplicate of that takes its place. A duplicate gets the tags and relations of its
        message.

        Args:
            event: The document.
            source: With its sha256.

        Returns:
            The document that has them; None: this one has them now.

        Raises:
            Superseded: A later message was loaded since the facts were read; see `save_version`.
        """
        async with self._locked(event) as connection:
            if not await self._check(connection, event, LoadStep.DEDUPE, source.etag):
                return await connection.scalar(select(documents.c.duplicate_of).where(_is(event)))
            row = await document_versions.current(connection, event)
            superseded = document_versions.is_superseded(row, event)
            if superseded:
                await self._write_version(connection, event, source)
                first = None
            else:
                first = await self._write_source(connection, event, source, row)
        if superseded:
            raise Superseded
        return first

    async def save_version(self, event: DocumentProcessed, source: BlobRef) -> None:
        """The checkpoint `dedupe` of a message whose document is that of a later one.

        Its file is kept as a version; its relations count.
        """
        async with self._locked(event) as connection:
            if await self._check(connection, event, LoadStep.DEDUPE, source.etag):
                await self._write_version(connection, event, source)

    async def save_whole(
        self, event: DocumentProcessed, whole: WholeDocument
    ) -> DocumentState | None:
        """The checkpoints of all steps, with their rows, in one transaction.

        What it leaves is what the steps leave one after the other.

        Returns:
            `loaded`, `duplicate` or `superseded`; None, and nothing is written: another load of the
            message wrote checkpoints after `whole.seen`, so that its file may be a newer one.
        """
        source = whole.source
        async with self._locked(event) as connection:
            known = await document_rows.of(connection, event)
            if (known.steps, known.etag) != (whole.seen.done, whole.seen.etag):
                return None
            if known.steps:
                await document_rows.forget(connection, event)
                await document_rows.release(connection, event)
            row = await document_versions.current(connection, event)
            if document_versions.is_superseded(row, event):
                await self._check(connection, event, LoadStep.DEDUPE, source.etag)
                await self._write_version(connection, event, source)
                return DocumentState.SUPERSEDED
            if await self._write_source(connection, event, source, row) is not None:
                await self._check(connection, event, LoadStep.DEDUPE, source.etag)
                return DocumentState.DUPLICATE
            await document_rows.write(connection, event, LoadStep, source.etag)
            await self._write_text(connection, event, whole.extracted)
            await document_rows.save_tags(connection, event, whole.tags)
            await self._write_relations(connection, event, event.relations)
            await self._write_loaded(connection, event)
        return DocumentState.LOADED

    async def save_new(
        self, found: Sequence[tuple[DocumentProcessed, WholeDocument]]
    ) -> Sequence[DocumentState | None]:
        """The checkpoints of all steps of new documents, with their rows, in one transaction.

        What it leaves is what `save_whole` leaves one after the other.

        Args:
            found: Of one batch, each with its message; no document twice.

        Returns:
            `loaded` for each; None, and nothing is stored of it: it is not new, or another
            document has its bytes, and it has to be saved by itself.
        """
        async with self._database.transaction() as connection:
            written = await save_new_documents(connection, found)
        return [
            DocumentState.LOADED if event.document_id in written else None for event, _ in found
        ]

    async def save_text(self, event: DocumentProcessed, extracted: Extracted) -> None:
        """The checkpoint `extract`: document, text, and the mail's message ids."""

        async def write(connection: AsyncConnection) -> None:
            if await self._has_document(connection, event):
                await self._write_text(connection, event, extracted)

        await self._once(event, LoadStep.EXTRACT, write)

    async def save_tags(self, event: DocumentProcessed, tags: Sequence[str]) -> None:
        """The checkpoint `tags`; the same tag in other cases or spaces is the same tag."""

        async def write(connection: AsyncConnection) -> None:
            if await self._has_document(connection, event):
                await document_rows.save_tags(connection, event, tags)

        await self._once(event, LoadStep.TAGS, write)

    async def save_relations(self, event: DocumentEvent, relations: Sequence[Relation]) -> None:
        """The checkpoint `relations`; mails that answer each other are found by message id."""

        async def write(connection: AsyncConnection) -> None:
            await self._write_relations(connection, event, relations)

        await self._once(event, LoadStep.RELATIONS, write)

    async def family(self, event: DocumentEvent) -> Family:
        """Where the document stands in its family, and how large that is without its own files."""
        async with self._database.reading() as connection:
            return await document_rows.family_of(connection, event)

    async def save_attachments(
        self,
        event: DocumentProcessed | DocumentAttachments,
        files: Sequence[Attached],
        note: str | None = None,
    ) -> None:
        """The checkpoint `attachments`; the document is `loaded` when it is its last step.

        Args:
            event: The message.
            files: Those that it names, or that were found in its document.
            note: What is not read of them; added to those of the document.
        """

        async def write(connection: AsyncConnection) -> None:
            await document_rows.save_attached_files(connection, event, files)
            await document_rows.note_empty_files(connection, event.case_id, [event.document_id])
            if note is not None:
                await document_rows.add_note(connection, event, note)
            if STEPS[event.event_type] == tuple(LoadStep):
                await self._write_loaded(connection, event)

        await self._once(event, LoadStep.ATTACHMENTS, write)

    async def keep_attachments(
        self, event: DocumentProcessed | DocumentAttachments, files: Sequence[Attached]
    ) -> None:
        """Record some of the files, as others of the message are missing; no checkpoint."""
        async with self._locked(event) as connection:
            await document_rows.save_attached_files(connection, event, files)

    async def fail(self, event: DocumentEvent, reason: str, *, is_final: bool = True) -> None:
        """Record that a message could not be loaded, and keep it unless it is a dead letter.

        The document is `failed` until each message of it that failed has been loaded; one that
        is that of a later message stays as it is.

        Args:
            event: The message.
            reason: Why, for people.
            is_final: False: it becomes a dead letter, which keeps it for another pass.
        """
        values = {
            "batch_id": event.batch_id,
            "state": DocumentState.FAILED.value,
            "reason": clean(reason),
            "failed_event": event.event_type,
            "updated_at": datetime.now(UTC),
            **document_rows.place_of(event),
        }
        async with self._locked(event) as connection:
            if is_final:
                await document_versions.record_failure(connection, event, reason)
            row = await document_versions.current(connection, event)
            if isinstance(event, DocumentProcessed) and document_versions.is_superseded(row, event):
                return
            # A document with the same bytes is not a duplicate of this one; it would have to claim
            # them again.
            await document_rows.forget(connection, event, LoadStep.DEDUPE)
            await document_rows.release(connection, event)
            await self._upsert_document(connection, event, values)

    async def _write_source(
        self, connection: AsyncConnection, event: DocumentProcessed, source: BlobRef, row: Any
    ) -> DocumentId | None:
        """The document with its file; the one that has the same bytes, or None."""
        assert source.sha256 is not None
        await document_versions.replace(connection, event, source.sha256, row)
        first = await document_rows.claim(connection, event, source.sha256)
        state = DocumentState.LOADING if first is None else DocumentState.DUPLICATE
        values: dict[str, Any] = {
            **columns_of_file(event, source),
            "state": state.value,
            "duplicate_of": first,
        }
        await self._upsert_document(connection, event, values, _failures_of_others(event))
        if first is not None:
            # It is read no further: what its message says of it is said of itself.
            await document_rows.save_tags(connection, event, event.tags)
            await self._write_relations(connection, event, event.relations)
            await document_versions.forget_failures(connection, [event])
        return first

    async def _write_version(
        self, connection: AsyncConnection, event: DocumentProcessed, source: BlobRef
    ) -> None:
        await document_versions.keep_late(connection, event, source)
        await self._write_relations(connection, event, event.relations)
        await document_versions.forget_failures(connection, [event])

    async def _write_text(
        self, connection: AsyncConnection, event: DocumentProcessed, extracted: Extracted
    ) -> None:
        read = columns_of_text(event, extracted)
        await connection.execute(update(documents).where(_is(event)).values(**read))
        await document_rows.note_empty_files(connection, event.case_id, [event.document_id])
        text = {"text": clean(extracted.text)}
        await connection.execute(
            insert(document_texts)
            .values(case_id=event.case_id, document_id=event.document_id, **text)
            .on_conflict_do_update(index_elements=["case_id", "document_id"], set_=text)
        )
        await document_rows.save_thread(connection, event, extracted.thread)

    async def _write_loaded(self, connection: AsyncConnection, event: DocumentEvent) -> None:
        """The last step of a document: it is `loaded`, unless another of its messages failed."""
        failed = documents.c.failed_event.is_not(None)
        state = case((failed, DocumentState.FAILED.value), else_=DocumentState.LOADED.value)
        key = documents.c.message_key
        await connection.execute(
            update(documents)
            .where(_is(event), or_(key.is_(None), key == message_key(event)))
            .values(state=state, updated_at=datetime.now(UTC))
        )
        await document_versions.forget_failures(connection, [event])

    async def _has_document(self, connection: AsyncConnection, event: DocumentProcessed) -> bool:
        """Whether a document is still that of this message."""
        row = await document_versions.current(connection, event)
        return not document_versions.is_of_another(row, event)

    async def _write_relations(
        self, connection: AsyncConnection, event: DocumentEvent, relations: Sequence[Relation]
    ) -> None:
        found = [(event.document_id, one.related_id, one.kind.value) for one in relations]
        found += await document_rows.relations(connection, event.case_id, [event.document_id])
        await add_relations(connection, event.case_id, found)

    async def _upsert_document(
        self,
        connection: AsyncConnection,
        event: DocumentEvent,
        values: Mapping[str, Any],
        updates: Mapping[str, Any] | None = None,
    ) -> None:
        await connection.execute(
            insert(documents)
            .values(case_id=event.case_id, document_id=event.document_id, **values)
            .on_conflict_do_update(
                index_elements=["case_id", "document_id"], set_={**values, **(updates or {})}
            )
        )

    async def _once(
        self,
        event: DocumentEvent,
        step: LoadStep,
        write: Callable[[AsyncConnection], Awaitable[None]],
    ) -> None:
        """Write the rows of a step together with its checkpoint, unless that stands there."""
        async with self._locked(event) as connection:
            if await self._check(connection, event, step):
                await write(connection)
                await self._recover(connection, event)

    async def _recover(self, connection: AsyncConnection, event: DocumentEvent) -> None:
        """A document whose relations or attachments failed is not failed once all are loaded."""
        if isinstance(event, DocumentProcessed):
            return
        await document_versions.forget_failures(connection, [event])
        other = await document_versions.other_failure(connection, event)
        failed = documents.c.state == DocumentState.FAILED.value
        mine = and_(_is(event), documents.c.failed_event == event.event_type)
        if other is not None:
            await connection.execute(update(documents).where(mine).values(reason=other))
            return
        state = case(
            (not_(failed), documents.c.state),
            (documents.c.duplicate_of.is_not(None), DocumentState.DUPLICATE.value),
            else_=DocumentState.LOADED.value,
        )
        is_there = or_(
            not_(failed), documents.c.duplicate_of.is_not(None), documents.c.media_type.is_not(None)
        )
        await connection.execute(
            update(documents)
            .where(mine, is_there)
            .values(state=state, reason=None, failed_event=None)
        )

    async def _check(
        self,
        connection: AsyncConnection,
        event: DocumentEvent,
        step: LoadStep,
        etag: str | None = None,
    ) -> bool:
        """Write a checkpoint; False: it is there already."""
        return await document_rows.write(connection, event, (step,), etag)

    @asynccontextmanager
    async def _locked(self, event: DocumentEvent) -> AsyncGenerator[AsyncConnection]:
        """A transaction that is the only one to write about the document."""
        async with self._database.transaction() as connection:
            await document_rows.lock(connection, event)
            yield connection


def _is(event: DocumentEvent) -> Any:
    columns = documents.c
    return and_(columns.case_id == event.case_id, columns.document_id == event.document_id)


def _facts(event: DocumentEvent, known: document_rows.Checkpoints, row: Any) -> LoadInfo:
    done = known.steps
    if isinstance(event, DocumentProcessed) and (
        document_versions.is_superseded(row, event)
        or (LoadStep.DEDUPE in done and document_versions.is_of_another(row, event))
    ):
        return LoadInfo(None, done, superseded=True, etag=known.etag)
    if row is None or row.batch_id != event.batch_id:
        return LoadInfo(None, done, etag=known.etag)
    source = None
    if row.blob_name is not None:
        source = BlobRef(name=row.blob_name, size=row.size, sha256=row.sha256, etag=row.etag)
    state = DocumentState(row.state)
    return LoadInfo(state, done, source, row.duplicate_of, etag=known.etag)


def _failures_of_others(event: DocumentProcessed) -> dict[str, Any]:
    """The reasons kept for relations or attachments that failed in this very batch."""
    forgotten = or_(
        documents.c.batch_id != event.batch_id, documents.c.failed_event == event.event_type
    )
    return {
        column.name: case((forgotten, None), else_=column)
        for column in (documents.c.reason, documents.c.failed_event)
    }
