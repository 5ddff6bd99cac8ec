"""What was read of documents, as people see it, and when the documents of a batch moved."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from sqlalchemy import Select, and_, func, select

from activities.batches.records import FailedMessage
from activities.batches.store import failed_messages_of
from adapters.database.engine import Database
from adapters.database.models.batches import (
    attachments,
    batches,
    document_relations,
    document_tags,
    document_texts,
    documents,
    failed_messages,
)
from adapters.database.records import record_of
from workflows.batches.loads import DocumentState
from workflows.batches.names import BatchKey

MOST_NAMED = 200
"""Tags, attachments and relations of a document that are named."""
_EXTRACT = (
    *("document_id", "media_type", "title", "author", "pages", "size", "sha256"),
    *("created_at", "modified_at", "notes", "truncated"),
)


@dataclass(frozen=True, slots=True)
class DocumentExtract:
    """What was read of a document."""

    document_id: str
    media_type: str | None
    title: str | None
    author: str | None
    pages: int | None
    size: int | None
    sha256: str | None
    created_at: datetime | None
    modified_at: datetime | None
    notes: str | None
    truncated: bool
    """Its text was too long to be kept whole."""
    text_bytes: int | None
    """Of its text; None: none was read."""


@dataclass(frozen=True, slots=True)
class WholeExtract:
    """All that is shown of one document."""

    extract: DocumentExtract
    state: DocumentState
    filename: str | None
    reason: str | None
    parent_id: str | None
    duplicate_of: str | None
    updated_at: datetime
    text: str
    """Its beginning."""
    is_cut: bool
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    tags: Sequence[str] = ()
    attachments: Sequence[tuple[str, int]] = ()
    """File name and bytes."""
    relations: Sequence[tuple[str, str]] = ()
    """Kind, and the id of the other document."""
    messages: Sequence[FailedMessage] = ()
    """Those of it that could not be loaded."""


@dataclass(frozen=True, slots=True)
class BatchMoment:
    """Something that happened to a batch or to its documents, as the tables know it."""

    at: datetime
    what: str
    """`created`, `job_finished`, `end_finished`, `ended`; `first` or `last` with a state."""
    state: DocumentState | None = None
    documents: int = 0
    """How many are in the state by now."""


class SqlExtracts:
    """Reads what was extracted; every method raises `Unavailable` when the database is down."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def heads(self, case_id: int, ids: Sequence[str]) -> Mapping[str, DocumentExtract]:
        """What was read of some documents of a case, without their texts."""
        query = _extracts().where(
            documents.c.case_id == case_id, documents.c.document_id.in_(list(ids))
        )
        async with self._database.reading() as connection:
            rows = (await connection.execute(query)).mappings()
            return {row["document_id"]: _extract(row) for row in rows}

    async def whole(self, key: BatchKey, document_id: str, characters: int) -> WholeExtract | None:
        """One document of a batch; None: the batch has no such document.

        Args:
            key: The batch.
            document_id: Of the document.
            characters: Of its text that are shown.
        """
        own = documents.c
        more = ("state", "filename", "blob_name", "reason", "parent_id", "duplicate_of")
        query = _extracts(
            *(own[name] for name in (*more, "metadata", "updated_at")),
            func.substr(document_texts.c.text, 1, characters + 1).label("beginning"),
        ).where(
            own.case_id == key.case_id,
            own.batch_id == key.batch_id,
            own.document_id == document_id,
        )

        def of_it(table: Any, *columns: str) -> Select[*tuple[Any, ...]]:
            named: list[Any] = [table.c[name] for name in columns]
            mine = and_(table.c.case_id == key.case_id, table.c.document_id == document_id)
            return select(*named).where(mine).order_by(*named).limit(MOST_NAMED)

        failed = of_it(failed_messages, "message_key").with_only_columns(failed_messages)
        async with self._database.reading() as connection:
            row = (await connection.execute(query)).mappings().one_or_none()
            if row is None:
                return None
            tags = (await connection.execute(of_it(document_tags, "tag"))).scalars()
            files = await connection.execute(of_it(attachments, "filename", "size"))
            related = await connection.execute(of_it(document_relations, "kind", "related_id"))
            lost = (await connection.execute(failed)).mappings()
            text: str = row["beginning"] or ""
            blob: str | None = row["blob_name"]
            return WholeExtract(
                _extract(row),
                DocumentState(row["state"]),
                row["filename"] or (blob and blob.rpartition("/")[2]),
                row["reason"],
                row["parent_id"],
                row["duplicate_of"],
                row["updated_at"],
                text[:characters],
                len(text) > characters,
                _metadata(row["metadata"]),
                list(tags),
                [(each.filename, each.size) for each in files],
                [(each.kind, each.related_id) for each in related],
                [
                    record_of(FailedMessage, each, body=each["message"], at=each["failed_at"])
                    for each in lost
                ],
            )

    async def failed(self, key: BatchKey, limit: int) -> Sequence[FailedMessage]:
        """Messages of a batch that are recorded as failed, by document."""
        async with self._database.reading() as connection:
            return await failed_messages_of(connection, key, ("", ""), limit)

    async def moments(self, key: BatchKey) -> Sequence[BatchMoment]:
        """When a batch was asked for, its documents moved, and it ended, the first first."""
        own = documents.c
        moved = (
            select(own.state, func.count(), func.min(own.updated_at), func.max(own.updated_at))
            .where(own.case_id == key.case_id, own.batch_id == key.batch_id)
            .group_by(own.state)
        )
        names = ("created_at", "job_finished_at", "end_finished_at")
        times = select(*(batches.c[name] for name in names)).where(
            batches.c.case_id == key.case_id, batches.c.batch_id == key.batch_id
        )
        found: list[BatchMoment] = []
        async with self._database.reading() as connection:
            row = (await connection.execute(times)).mappings().one_or_none()
            for name in () if row is None else names:
                at: datetime | None = None if row is None else row[name]
                if at is not None:
                    found.append(BatchMoment(at, name.removesuffix("_at")))
            for state, number, first, last in await connection.execute(moved):
                found.append(BatchMoment(first, "first", DocumentState(state), number))
                if number > 1:
                    found.append(BatchMoment(last, "last", DocumentState(state), number))
        return sorted(found, key=lambda each: each.at)


def _extracts(*more: Any) -> Select[*tuple[Any, ...]]:
    text = document_texts.c
    belongs = and_(text.case_id == documents.c.case_id, text.document_id == documents.c.document_id)
    # The length in bytes is known without reading the text.
    size = func.octet_length(text.text).label("text_bytes")
    columns: list[Any] = [documents.c[name] for name in _EXTRACT]
    return select(*columns, size, *more).select_from(documents.outerjoin(document_texts, belongs))


def _extract(row: Mapping[Any, Any]) -> DocumentExtract:
    return DocumentExtract(**{name: row[name] for name in (*_EXTRACT, "text_bytes")})


def _metadata(text: str | None) -> Mapping[str, Any]:
    try:
        found: object = json.loads(text or "{}")
    except ValueError:
        return {}
    return cast("Mapping[str, Any]", found) if isinstance(found, dict) else {}
