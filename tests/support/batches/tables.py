"""Tables of batches, and a look at what stands in them."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select

from activities.batches.document_store import SqlLoadStore
from activities.batches.store import SqlBatchStore
from adapters.database.engine import Database
from adapters.database.models import batches as models
from adapters.ports.documents import Attached, Extracted
from workflows.batches.loads import (
    AttachedFile,
    DocumentAttachments,
    DocumentProcessed,
    DocumentRelations,
    DocumentState,
    Relation,
    RelationKind,
)
from workflows.batches.names import BatchKey, DocumentId
from workflows.shared.contracts import BlobRef

CASE = 7
FIRST, SECOND, THIRD = (BatchKey(case_id=CASE, batch_id=number) for number in (1, 2, 3))
PLAIN = Extracted("text/plain", "words")


class SqlBatchTables:
    """Both stores over the same tables; what is looked at is of case 7 unless told otherwise."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.loads = SqlLoadStore(database)
        self.batches = SqlBatchStore(database)

    async def text(self, document_id: str) -> str | None:
        rows = await self._rows(CASE, models.document_texts, "document_id", "text")
        return dict(rows).get(document_id)

    async def state(self, document_id: str) -> tuple[DocumentState, str | None]:
        rows = await self._rows(CASE, models.documents, "document_id", "state", "reason")
        return {id: (DocumentState(state), reason) for id, state, reason in rows}[document_id]

    async def tags(self, case: int = CASE) -> Sequence[tuple[str, str]]:
        return await self._rows(case, models.document_tags, "document_id", "tag")

    async def relations(self, case: int = CASE) -> Sequence[tuple[str, str, RelationKind]]:
        rows = await self._rows(
            case, models.document_relations, "document_id", "related_id", "kind"
        )
        return [(document, related, RelationKind(kind)) for document, related, kind in rows]

    async def attachments(self, case: int = CASE) -> Sequence[tuple[str, str, str]]:
        return await self._rows(case, models.attachments, "document_id", "blob_name", "filename")

    async def versions(self) -> Sequence[tuple[str, str, str | None]]:
        return await self._rows(CASE, models.document_versions, "document_id", "blob_name", "text")

    async def _rows(self, case: int, table: Any, *columns: str) -> list[Any]:
        query = select(*(table.c[name] for name in columns)).where(table.c.case_id == case)
        async with self.database.reading() as connection:
            return sorted(tuple(row) for row in await connection.execute(query))


def document(id: str, key: BatchKey = FIRST) -> DocumentProcessed:
    """DOCUMENT_PROCESSED."""
    return DocumentProcessed(
        case_id=key.case_id, batch_id=key.batch_id, document_id=id, blob_name=f"in/{id}"
    )


def source(content: str) -> BlobRef:
    """A file; its content is one hexadecimal digit."""
    return BlobRef(name=f"in/{content}", size=9, sha256=content * 64, etag="1")


async def load(
    store: SqlLoadStore,
    event: DocumentProcessed,
    content: BlobRef,
    extracted: Extracted = PLAIN,
    relations: Sequence[Relation] = (),
) -> DocumentId | None:
    """Take a document through all its steps; the document that has its bytes already, if any."""
    first = await store.save_source(event, content)
    if first is None:
        await store.save_text(event, extracted)
        await store.save_tags(event, event.tags)
        await store.save_relations(event, relations)
        await store.save_attachments(event, [])
    return first


WHERE = {"case_id": 7, "batch_id": 1, "document_id": "a"}
RELATED = DocumentRelations(**WHERE, relations=(Relation(related_id="b"),))
ATTACHED = DocumentAttachments(
    **WHERE, attachments=(AttachedFile(blob_name="in/x", filename="x.txt"),)
)
FILES = [Attached("x.txt", source("x"))]
