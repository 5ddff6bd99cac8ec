"""Documents of batches: each step's rows and its checkpoint in one transaction."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import and_, case, not_, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.batches import (
    attached_files,
    checkpoints,
    claims,
    families,
    mail_threads,
    new_documents,
    tag_rows,
    versions,
)
from adapters.database.codec import clean
from adapters.database.engine import Database
from adapters.database.models.batches import (
    document_texts,
    documents,
)
from adapters.ports import Attached, Extracted, LoadFacts, Superseded, WholeDocument
from contracts.batches import (
    STEPS,
    DocumentAttachments,
    DocumentEvent,
    DocumentId,
    DocumentProcessed,
    DocumentState,
    LoadStep,
    Relation,
    message_key,
)
from contracts.blobs import BlobRef
from domain.batches.families import Family


class SqlLoadStore:
    """Tables of documents; every method raises `Unavailable` when the database is down."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._insert = database.insert

    async def facts(self, event: DocumentEvent) -> LoadFacts:
        """How far the load of a message is."""
        async with self._database.reading() as connection:
            known = await checkpoints.of(connection, event)
            row = (await connection.execute(select(documents).where(_is(event)))).one_or_none()
        return _facts(event, known, row)

    async def begun(self, events: Sequence[DocumentProcessed]) -> frozenset[DocumentId]:
        """Documents that a message of the case has brought, or that a load has begun."""
        async with self._database.reading() as connection:
            return await new_documents.begun(connection, events)

    async def forget(self, event: DocumentProcessed) -> None:
        """Remove the checkpoints of a message; the bytes of its document are free."""
        async with self._locked(event) as connection:
            await checkpoints.forget(connection, event)
            await claims.release(connection, event)

    async def save_source(self, event: DocumentProcessed, source: BlobRef) -> DocumentId | None:
        """The checkpoint `dedupe`; the document of the case that has the same bytes, or None."""
        async with self._locked(event) as connection:
            if not await self._check(connection, event, LoadStep.DEDUPE, source.etag):
                return await connection.scalar(select(documents.c.duplicate_of).where(_is(event)))
            row = await versions.current(connection, event)
            superseded = versions.is_superseded(row, event)
            if superseded:
                await self._write_version(connection, event, source)
                first = None
            else:
                first = await self._write_source(connection, event, source, row)
        if superseded:
            raise Superseded
        return first

    async def save_version(self, event: DocumentProcessed, source: BlobRef) -> None:
        """The checkpoint `dedupe` of a message whose document is that of a later one."""
        async with self._locked(event) as connection:
            if await self._check(connection, event, LoadStep.DEDUPE, source.etag):
                await self._write_version(connection, event, source)

    async def save_whole(
        self, event: DocumentProcessed, whole: WholeDocument
    ) -> DocumentState | None:
        """The checkpoints of all steps; None: there are others than those that were seen."""
        source = whole.source
        async with self._locked(event) as connection:
            known = await checkpoints.of(connection, event)
            if (known.steps, known.etag) != (whole.seen.done, whole.seen.etag):
                return None
            if known.steps:
                await checkpoints.forget(connection, event)
                await claims.release(connection, event)
            row = await versions.current(connection, event)
            if versions.is_superseded(row, event):
                await self._check(connection, event, LoadStep.DEDUPE, source.etag)
                await self._write_version(connection, event, source)
                return DocumentState.SUPERSEDED
            if await self._write_source(connection, event, source, row) is not None:
                await self._check(connection, event, LoadStep.DEDUPE, source.etag)
                return DocumentState.DUPLICATE
            await checkpoints.write(connection, self._insert, event, LoadStep, source.etag)
            await self._write_text(connection, event, whole.extracted)
            await tag_rows.save(connection, self._insert, event, whole.tags)
            await self._write_relations(connection, event, event.relations)
            await self._write_loaded(connection, event)
        return DocumentState.LOADED

    async def save_new(
        self, found: Sequence[tuple[DocumentProcessed, WholeDocument]]
    ) -> Sequence[DocumentState | None]:
        """The checkpoints of all steps of documents that are new; None: of one that is not."""
        async with self._database.transaction() as connection:
            written = await new_documents.save(connection, self._insert, found)
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
                await tag_rows.save(connection, self._insert, event, tags)

        await self._once(event, LoadStep.TAGS, write)

    async def save_relations(self, event: DocumentEvent, relations: Sequence[Relation]) -> None:
        """The checkpoint `relations`; mails that answer each other are found by message id."""

        async def write(connection: AsyncConnection) -> None:
            await self._write_relations(connection, event, relations)
            if not isinstance(event, DocumentProcessed):
                await families.note_unused_fields(connection, event)

        await self._once(event, LoadStep.RELATIONS, write)

    async def family(self, event: DocumentEvent) -> Family:
        """Where the document stands in its family, and how large that is."""
        async with self._database.reading() as connection:
            return await families.family_of(connection, event)

    async def save_attachments(
        self,
        event: DocumentProcessed | DocumentAttachments,
        files: Sequence[Attached],
        note: str | None = None,
    ) -> None:
        """The checkpoint `attachments`; the document is `loaded` when it is its last step."""

        async def write(connection: AsyncConnection) -> None:
            await attached_files.save(connection, self._insert, event, files)
            await families.note_empty_files(connection, event.case_id, [event.document_id])
            if note is not None:
                await families.add_note(connection, event, note)
            if not isinstance(event, DocumentProcessed):
                await families.note_unused_fields(connection, event)
            if STEPS[event.event_type] == tuple(LoadStep):
                await self._write_loaded(connection, event)

        await self._once(event, LoadStep.ATTACHMENTS, write)

    async def keep_attachments(
        self, event: DocumentProcessed | DocumentAttachments, files: Sequence[Attached]
    ) -> None:
        """Record some of the files, as others of the message are missing; no checkpoint."""
        async with self._locked(event) as connection:
            await attached_files.save(connection, self._insert, event, files)

    async def fail(self, event: DocumentEvent, reason: str, *, is_final: bool = True) -> None:
        """Record that a message could not be loaded, and keep it unless it is a dead letter."""
        values = {
            "batch_id": event.batch_id,
            "state": DocumentState.FAILED.value,
            "reason": clean(reason),
            "failed_event": event.event_type,
            "updated_at": datetime.now(UTC),
            **families.place_of(event),
        }
        async with self._locked(event) as connection:
            if is_final:
                await versions.record_failure(connection, self._insert, event, reason)
            row = await versions.current(connection, event)
            if isinstance(event, DocumentProcessed) and versions.is_superseded(row, event):
                return
            # A document with the same bytes is not a duplicate of this one; it would have to claim
            # them again.
            await checkpoints.forget(connection, event, LoadStep.DEDUPE)
            await claims.release(connection, event)
            await self._upsert_document(connection, event, values)

    async def _write_source(
        self, connection: AsyncConnection, event: DocumentProcessed, source: BlobRef, row: Any
    ) -> DocumentId | None:
        """The document with its file; the one that has the same bytes, or None."""
        assert source.sha256 is not None
        await versions.replace(connection, self._insert, event, source.sha256, row)
        first = await claims.claim(connection, self._insert, event, source.sha256)
        state = DocumentState.LOADING if first is None else DocumentState.DUPLICATE
        values: dict[str, Any] = {
            **new_documents.columns_of_file(event, source),
            "state": state.value,
            "duplicate_of": first,
        }
        await self._upsert_document(connection, event, values, _failures_of_others(event))
        if first is not None:
            # It is read no further: what its message says of it is said of itself.
            await tag_rows.save(connection, self._insert, event, event.tags)
            await self._write_relations(connection, event, event.relations)
            await families.note_unused_fields(connection, event)
            await versions.forget_failures(connection, [event])
        return first

    async def _write_version(
        self, connection: AsyncConnection, event: DocumentProcessed, source: BlobRef
    ) -> None:
        await versions.keep_late(connection, self._insert, event, source)
        await self._write_relations(connection, event, event.relations)
        await versions.forget_failures(connection, [event])

    async def _write_text(
        self, connection: AsyncConnection, event: DocumentProcessed, extracted: Extracted
    ) -> None:
        read = new_documents.columns_of_text(event, extracted)
        await connection.execute(update(documents).where(_is(event)).values(**read))
        await families.note_empty_files(connection, event.case_id, [event.document_id])
        text = {"text": clean(extracted.text)}
        await connection.execute(
            self._insert(document_texts)
            .values(case_id=event.case_id, document_id=event.document_id, **text)
            .on_conflict_do_update(index_elements=["case_id", "document_id"], set_=text)
        )
        await mail_threads.save(connection, self._insert, event, extracted.thread)

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
        await versions.forget_failures(connection, [event])

    async def _has_document(self, connection: AsyncConnection, event: DocumentProcessed) -> bool:
        """Whether a document is still that of this message."""
        row = await versions.current(connection, event)
        return not versions.is_of_another(row, event)

    async def _write_relations(
        self, connection: AsyncConnection, event: DocumentEvent, relations: Sequence[Relation]
    ) -> None:
        found = [(event.document_id, one.related_id, one.kind.value) for one in relations]
        found += await mail_threads.relations(connection, event.case_id, [event.document_id])
        await new_documents.add_relations(connection, self._insert, event.case_id, found)

    async def _upsert_document(
        self,
        connection: AsyncConnection,
        event: DocumentEvent,
        values: Mapping[str, Any],
        updates: Mapping[str, Any] | None = None,
    ) -> None:
        await connection.execute(
            self._insert(documents)
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
        await versions.forget_failures(connection, [event])
        other = await versions.other_failure(connection, event)
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
        return await checkpoints.write(connection, self._insert, event, (step,), etag)

    @asynccontextmanager
    async def _locked(self, event: DocumentEvent) -> AsyncGenerator[AsyncConnection]:
        """A transaction that is the only one to write about the document."""
        async with self._database.transaction() as connection:
            await checkpoints.lock(connection, event)
            yield connection


def _is(event: DocumentEvent) -> Any:
    columns = documents.c
    return and_(columns.case_id == event.case_id, columns.document_id == event.document_id)


def _facts(event: DocumentEvent, known: checkpoints.Checkpoints, row: Any) -> LoadFacts:
    done = known.steps
    if isinstance(event, DocumentProcessed) and (
        versions.is_superseded(row, event)
        or (LoadStep.DEDUPE in done and versions.is_of_another(row, event))
    ):
        return LoadFacts(None, done, superseded=True, etag=known.etag)
    if row is None or row.batch_id != event.batch_id:
        return LoadFacts(None, done, etag=known.etag)
    source = None
    if row.blob_name is not None:
        source = BlobRef(name=row.blob_name, size=row.size, sha256=row.sha256, etag=row.etag)
    state = DocumentState(row.state)
    return LoadFacts(state, done, source, row.duplicate_of, etag=known.etag)


def _failures_of_others(event: DocumentProcessed) -> dict[str, Any]:
    """The reasons kept for relations or attachments that failed in this very batch."""
    forgotten = or_(
        documents.c.batch_id != event.batch_id, documents.c.failed_event == event.event_type
    )
    return {
        column.name: case((forgotten, None), else_=column)
        for column in (documents.c.reason, documents.c.failed_event)
    }
