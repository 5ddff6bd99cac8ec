"""Documents of batches: each step's rows and its checkpoint in one transaction."""

import json
import unicodedata
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import and_, case, delete, not_, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.batches import mail_threads
from adapters.database.batches.keys import key_text
from adapters.database.codec import clean
from adapters.database.engine import Database
from adapters.database.models.batches import (
    attachments,
    doc_dedupe,
    document_relations,
    document_tags,
    document_texts,
    documents,
    process_checkpoints,
    tag_dedupe,
)
from adapters.ports import Attached, Extracted, LoadFacts
from contracts.batches import (
    STEPS,
    DocumentAttachments,
    DocumentEvent,
    DocumentId,
    DocumentProcessed,
    DocumentState,
    LoadStep,
    Relation,
)
from contracts.blobs import BlobRef
from contracts.origins import digest_of


class SqlLoadStore:
    """Tables of documents; every method raises `Unavailable` when the database is down."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._insert = sqlite.insert if database.dialect == "sqlite" else postgresql.insert

    async def facts(self, event: DocumentEvent) -> LoadFacts:
        """How far a load is."""
        async with self._database.reading() as connection:
            columns = process_checkpoints.c.step, process_checkpoints.c.digest
            steps = await connection.execute(select(*columns).where(_checkpoints(event)))
            row = (await connection.execute(select(documents).where(_is(event)))).one_or_none()
        digests = {LoadStep(step): digest for step, digest in steps}
        done = frozenset(digests)
        digest = next((digests[step] for step in LoadStep if step in done), None)
        if row is None or row.batch_id != event.batch_id:
            return LoadFacts(None, done, digest=digest)
        source = None
        if row.blob_name is not None:
            source = BlobRef(name=row.blob_name, size=row.size, sha256=row.sha256, etag=row.etag)
        return LoadFacts(DocumentState(row.state), done, source, row.duplicate_of, digest)

    async def forget(self, event: DocumentEvent) -> None:
        """Remove the checkpoints of an event; the bytes of its document are free."""
        async with self._database.transaction() as connection:
            await connection.execute(delete(process_checkpoints).where(_checkpoints(event)))
            await connection.execute(delete(doc_dedupe).where(_claims(event)))

    async def save_source(self, event: DocumentProcessed, source: BlobRef) -> DocumentId | None:
        """The checkpoint `dedupe`; the document of the case that has the same bytes, or None."""
        assert source.sha256 is not None
        async with self._database.transaction() as connection:
            if not await self._check(connection, event, LoadStep.DEDUPE):
                return await connection.scalar(select(documents.c.duplicate_of).where(_is(event)))
            first = await self._claim(connection, event, source.sha256)
            state = DocumentState.LOADING if first is None else DocumentState.DUPLICATE
            values: dict[str, Any] = {
                "batch_id": event.batch_id,
                "state": state.value,
                "blob_name": source.name,
                "filename": None if event.filename is None else clean(event.filename),
                "etag": source.etag,
                "sha256": source.sha256,
                "size": source.size,
                "duplicate_of": first,
                "updated_at": datetime.now(UTC),
            }
            await self._upsert_document(connection, event, values, _failures_of_others(event))
        return first

    async def save_text(self, event: DocumentProcessed, extracted: Extracted) -> None:
        """The checkpoint `extract`: document, text, and the mail's message ids."""

        async def write(connection: AsyncConnection) -> None:
            await connection.execute(
                update(documents).where(_is(event)).values(**_columns_of(extracted))
            )
            text = {"text": clean(extracted.text)}
            await connection.execute(
                self._insert(document_texts)
                .values(case_id=event.case_id, document_id=event.document_id, **text)
                .on_conflict_do_update(index_elements=["case_id", "document_id"], set_=text)
            )
            await mail_threads.save(connection, self._insert, event, extracted.thread)

        await self._once(event, LoadStep.EXTRACT, write)

    async def save_tags(self, event: DocumentProcessed, tags: Sequence[str]) -> None:
        """The checkpoint `tags`; the same tag in other cases or spaces is the same tag."""

        async def write(connection: AsyncConnection) -> None:
            await connection.execute(delete(document_tags).where(_belongs(document_tags, event)))
            for key, tag in sorted({_tag_key(tag): clean(tag) for tag in reversed(tags)}.items()):
                await self._write_tag(connection, event, key, tag)

        await self._once(event, LoadStep.TAGS, write)

    async def save_relations(self, event: DocumentEvent, relations: Sequence[Relation]) -> None:
        """The checkpoint `relations`; mails that answer each other are found by message id."""

        async def write(connection: AsyncConnection) -> None:
            found = [(event.document_id, one.related_id, one.kind.value) for one in relations]
            found += await mail_threads.relations(connection, event)
            for document_id, related_id, kind in sorted(set(found)):
                await connection.execute(
                    self._insert(document_relations)
                    .values(
                        case_id=event.case_id,
                        document_id=document_id,
                        related_id=related_id,
                        kind=kind,
                    )
                    .on_conflict_do_nothing()
                )

        await self._once(event, LoadStep.RELATIONS, write)

    async def save_attachments(
        self, event: DocumentProcessed | DocumentAttachments, files: Sequence[Attached]
    ) -> None:
        """The checkpoint `attachments`; the document is `loaded` when it is its last step."""

        async def write(connection: AsyncConnection) -> None:
            for file in files:
                values = {
                    "blob_name": file.blob.name,
                    "filename": clean(file.filename),
                    "size": file.blob.size,
                    "sha256": file.blob.sha256,
                }
                await connection.execute(
                    self._insert(attachments)
                    .values(
                        case_id=event.case_id,
                        document_id=event.document_id,
                        blob_key=key_text(file.blob.name),
                        **values,
                    )
                    .on_conflict_do_update(
                        index_elements=["case_id", "document_id", "blob_key"], set_=values
                    )
                )
            if STEPS[event.event_type] == tuple(LoadStep):
                failed = documents.c.failed_event.is_not(None)
                state = case((failed, DocumentState.FAILED.value), else_=DocumentState.LOADED.value)
                await connection.execute(
                    update(documents)
                    .where(_is(event))
                    .values(state=state, updated_at=datetime.now(UTC))
                )

        await self._once(event, LoadStep.ATTACHMENTS, write)

    async def fail(self, event: DocumentEvent, reason: str) -> None:
        """Record that a document could not be loaded, permanently."""
        values = {
            "batch_id": event.batch_id,
            "state": DocumentState.FAILED.value,
            "reason": clean(reason),
            "failed_event": event.event_type,
            "updated_at": datetime.now(UTC),
        }
        async with self._database.transaction() as connection:
            # A document with the same bytes is not a duplicate of this one; it would have to claim
            # them again.
            dedupe = process_checkpoints.c.step == LoadStep.DEDUPE.value
            await connection.execute(delete(process_checkpoints).where(_checkpoints(event), dedupe))
            await connection.execute(delete(doc_dedupe).where(_claims(event)))
            await self._upsert_document(connection, event, values)

    async def _claim(
        self, connection: AsyncConnection, event: DocumentProcessed, sha256: str
    ) -> DocumentId | None:
        """Who has these bytes; None: this document has them now."""
        await connection.execute(
            self._insert(doc_dedupe)
            .values(
                case_id=event.case_id,
                batch_id=event.batch_id,
                sha256=sha256,
                document_id=event.document_id,
            )
            .on_conflict_do_nothing()
        )
        first = await connection.scalar(
            select(doc_dedupe.c.document_id).where(
                doc_dedupe.c.case_id == event.case_id,
                doc_dedupe.c.batch_id == event.batch_id,
                doc_dedupe.c.sha256 == sha256,
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

    async def _write_tag(
        self, connection: AsyncConnection, event: DocumentProcessed, key: str, tag: str
    ) -> None:
        batch = {"case_id": event.case_id, "batch_id": event.batch_id, "tag_key": key}
        await connection.execute(
            self._insert(tag_dedupe).values(**batch, tag=tag).on_conflict_do_nothing()
        )
        spelling = await connection.scalar(
            select(tag_dedupe.c.tag).where(
                *(tag_dedupe.c[name] == value for name, value in batch.items())
            )
        )
        await connection.execute(
            self._insert(document_tags)
            .values(case_id=event.case_id, document_id=event.document_id, tag_key=key, tag=spelling)
            .on_conflict_do_nothing()
        )

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
        async with self._database.transaction() as connection:
            if await self._check(connection, event, step):
                await write(connection)
                await self._recover(connection, event)

    async def _recover(self, connection: AsyncConnection, event: DocumentEvent) -> None:
        """A document that failed because of its relations or attachments is no longer failed."""
        if isinstance(event, DocumentProcessed):
            return
        failed = documents.c.state == DocumentState.FAILED.value
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
            .where(_is(event), documents.c.failed_event == event.event_type, is_there)
            .values(state=state, reason=None, failed_event=None)
        )

    async def _check(
        self, connection: AsyncConnection, event: DocumentEvent, step: LoadStep
    ) -> bool:
        """Write a checkpoint; False: it is there already."""
        done = await connection.execute(
            self._insert(process_checkpoints)
            .values(
                case_id=event.case_id,
                batch_id=event.batch_id,
                document_id=event.document_id,
                event_type=event.event_type,
                step=step.value,
                done_at=datetime.now(UTC),
                digest=digest_of(event),
            )
            .on_conflict_do_nothing()
            .returning(process_checkpoints.c.step)
        )
        return done.scalar_one_or_none() is not None


def _is(event: DocumentEvent) -> Any:
    return _belongs(documents, event)


def _belongs(table: Any, event: DocumentEvent) -> Any:
    return and_(table.c.case_id == event.case_id, table.c.document_id == event.document_id)


def _checkpoints(event: DocumentEvent) -> Any:
    return _belongs(process_checkpoints, event) & and_(
        process_checkpoints.c.batch_id == event.batch_id,
        process_checkpoints.c.event_type == event.event_type,
    )


def _claims(event: DocumentEvent) -> Any:
    return _belongs(doc_dedupe, event) & (doc_dedupe.c.batch_id == event.batch_id)


def _failures_of_others(event: DocumentProcessed) -> dict[str, Any]:
    """The reasons kept for relations or attachments that failed in this very batch."""
    forgotten = or_(
        documents.c.batch_id != event.batch_id, documents.c.failed_event == event.event_type
    )
    return {
        column.name: case((forgotten, None), else_=column)
        for column in (documents.c.reason, documents.c.failed_event)
    }


def _tag_key(tag: str) -> str:
    return key_text(" ".join(unicodedata.normalize("NFKC", tag).casefold().split()))


def _columns_of(extracted: Extracted) -> dict[str, Any]:
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
        "notes": clean("\n".join(extracted.notes)) or None,
        "updated_at": datetime.now(UTC),
    }
