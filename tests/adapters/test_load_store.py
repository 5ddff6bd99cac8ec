"""Documents of batches in their tables, on SQLite and PostgreSQL."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import select

from adapters.database import Database
from adapters.database.batches import SqlBatchStore, SqlLoadStore
from adapters.database.models import batches as models
from adapters.ports import Attached, Extracted
from contracts.batches import (
    AttachedFile,
    BatchKey,
    DocumentAttachments,
    DocumentCounts,
    DocumentProcessed,
    DocumentRelations,
    DocumentState,
    LoadStep,
    Relation,
    RelationKind,
)
from contracts.blobs import BlobRef

BATCH = BatchKey(case_id=7, batch_id=1)
NEXT = BatchKey(case_id=7, batch_id=2)


@pytest.fixture
def loads(database: Database) -> SqlLoadStore:
    return SqlLoadStore(database)


def document(id: str, key: BatchKey = BATCH) -> DocumentProcessed:
    return DocumentProcessed(
        case_id=key.case_id, batch_id=key.batch_id, document_id=id, blob_name=f"in/{id}"
    )


def source(content: str) -> BlobRef:
    return BlobRef(name=f"in/{content}", size=9, sha256=content * 64, etag="1")


async def _load(loads: SqlLoadStore, event: DocumentProcessed, extracted: Extracted) -> None:
    assert await loads.save_source(event, source(event.document_id)) is None
    await loads.save_text(event, extracted)
    await loads.save_tags(event, [])
    await loads.save_relations(event, event.relations)
    await loads.save_attachments(event, [])


async def _rows(database: Database, table: Any, *columns: str) -> list[tuple[Any, ...]]:
    query = select(*(table.c[name] for name in columns)).order_by(*table.primary_key.columns)
    async with database.reading() as connection:
        return [tuple(row) for row in await connection.execute(query)]


async def test_every_step_leaves_its_checkpoint_and_is_done_once(
    loads: SqlLoadStore, database: Database
) -> None:
    event = document("a")
    assert (await loads.facts(event)).state is None
    assert await loads.save_source(event, source("a")) is None
    assert await loads.save_source(event, source("a")) is None
    for text in ("first", "a second run must not write this"):
        await loads.save_text(event, Extracted("text/plain", text))
    for tags in (["One"], ["Two"]):
        await loads.save_tags(event, tags)
    await loads.save_relations(event, [Relation(related_id="b")])
    await loads.save_relations(event, [Relation(related_id="c")])
    before = await loads.facts(event)
    assert before.state is DocumentState.LOADING
    await loads.save_attachments(event, [Attached("x.txt", source("x"))])
    facts = await loads.facts(event)
    assert facts.done == frozenset(LoadStep)
    assert (facts.state, facts.source) == (DocumentState.LOADED, source("a"))
    assert await _rows(database, models.document_texts, "text") == [("first",)]
    assert await _rows(database, models.document_tags, "tag") == [("One",)]
    assert await _rows(database, models.document_relations, "related_id") == [("b",)]
    assert await _rows(database, models.attachments, "filename") == [("x.txt",)]


async def test_the_same_bytes_are_kept_once_in_a_case(loads: SqlLoadStore) -> None:
    assert await loads.save_source(document("a"), source("f")) is None
    assert await loads.save_source(document("b"), source("f")) == "a"
    # Also for what comes in a later batch, and for a copy of the copy there.
    assert await loads.save_source(document("c", NEXT), source("f")) == "a"
    assert await loads.save_source(document("d", NEXT), source("f")) == "a"
    other = DocumentProcessed(case_id=8, batch_id=1, document_id="e", blob_name="in/e")
    assert await loads.save_source(other, source("f")) is None
    assert (await loads.facts(document("b"))).duplicate_of == "a"


async def test_loads_of_the_same_moment_agree_who_was_first(loads: SqlLoadStore) -> None:
    events = [document(f"d{number}") for number in range(8)]
    firsts = await asyncio.gather(*(loads.save_source(event, source("f")) for event in events))
    (winner,) = (
        event.document_id for event, first in zip(events, firsts, strict=True) if not first
    )
    assert set(firsts) == {None, winner}


async def test_a_failed_document_keeps_no_bytes(loads: SqlLoadStore, database: Database) -> None:
    assert await loads.save_source(document("a"), source("f")) is None
    await loads.fail(document("a"), "it cannot be read\x00")
    await loads.fail(document("a"), "it cannot be read")
    assert await loads.save_source(document("b"), source("f")) is None
    counts = await SqlBatchStore(database).counts(BATCH)
    assert counts == DocumentCounts(failed=1, loading=1)
    assert (await loads.facts(document("a"))).state is DocumentState.FAILED


async def test_a_document_of_a_later_batch_begins_anew(loads: SqlLoadStore) -> None:
    await _load(loads, document("a"), Extracted("text/plain", "old"))
    later = document("a", NEXT)
    facts = await loads.facts(later)
    assert (facts.state, facts.done) == (None, frozenset())
    await _load(loads, later, Extracted("text/plain", "new"))
    assert (await loads.facts(later)).state is DocumentState.LOADED


async def test_what_a_document_says_of_itself_is_kept(
    loads: SqlLoadStore, database: Database
) -> None:
    made = datetime(2024, 3, 4, 5, 6, tzinfo=UTC)
    extracted = Extracted(
        "application/pdf",
        "page\x00 one",
        truncated=True,
        title="Plan",
        author="Ann",
        created_at=made,
        pages=3,
        metadata={"producer": "x\x00"},
        notes=["a picture was not read"],
    )
    await _load(loads, document("a"), extracted)
    columns = ("title", "author", "created_at", "pages", "truncated", "notes")
    (row,) = await _rows(database, models.documents, *columns)
    assert row == ("Plan", "Ann", made, 3, True, "a picture was not read")
    ((text,),) = await _rows(database, models.document_texts, "text")
    assert "\x00" not in text


async def test_twenty_megabytes_of_text_go_in(loads: SqlLoadStore, database: Database) -> None:
    long = "lorem ipsum " * (20_000_000 // 12)
    await _load(loads, document("a"), Extracted("text/plain", long))
    ((text,),) = await _rows(database, models.document_texts, "text")
    assert len(text) == len(long)


async def test_the_same_tag_is_written_in_one_way(loads: SqlLoadStore, database: Database) -> None:
    for id, tags in (("a", ["Site  Diary", "urgent"]), ("b", ["site diary", "URGENT ", "URGENT"])):
        await loads.save_source(document(id), source(id))
        await loads.save_tags(document(id), tags)
    assert await _rows(database, models.document_tags, "document_id", "tag") == [
        ("a", "Site  Diary"),
        ("a", "urgent"),
        ("b", "Site  Diary"),
        ("b", "urgent"),
    ]


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
async def test_mails_that_answer_each_other_are_related_whichever_comes_first(
    loads: SqlLoadStore, database: Database, order: tuple[str, str]
) -> None:
    threads = {"a": ["<1@x>"], "b": ["<2@x>", "<1@x>"]}
    for id in order:
        await loads.save_source(document(id), source(id))
        mail = Extracted("message/rfc822", "", thread=threads[id])
        await loads.save_text(document(id), mail)
        await loads.save_relations(document(id), [])
    columns = ("document_id", "related_id", "kind")
    assert await _rows(database, models.document_relations, *columns) == [
        ("b", "a", RelationKind.REPLY)
    ]


async def test_relations_and_attachments_of_their_own_messages_are_added(
    loads: SqlLoadStore, database: Database
) -> None:
    await _load(loads, document("a"), Extracted("text/plain", ""))
    where = {"case_id": 7, "batch_id": 1, "document_id": "a"}
    related = DocumentRelations(**where, relations=(Relation(related_id="b"),))
    file = AttachedFile(blob_name="in/x", filename="x.txt")
    attached = DocumentAttachments(**where, attachments=(file,))
    for _ in range(2):
        await loads.save_relations(related, related.relations)
        await loads.save_attachments(attached, [Attached("x.txt", source("x"))])
    assert await _rows(database, models.document_relations, "related_id") == [("b",)]
    assert await _rows(database, models.attachments, "filename") == [("x.txt",)]
    assert (await loads.facts(related)).done == {LoadStep.RELATIONS}
    assert (await loads.facts(document("a"))).state is DocumentState.LOADED


async def test_what_a_batch_no_longer_needs_is_forgotten(
    loads: SqlLoadStore, database: Database
) -> None:
    store = SqlBatchStore(database)
    for event in (document("a"), document("b", NEXT)):
        await _load(loads, event, Extracted("text/plain", ""))
    assert await store.truncate(BATCH) == 1 + len(LoadStep)
    assert await store.truncate(BATCH) == 0
    assert (await loads.facts(document("a"))).state is DocumentState.LOADED
    assert (await loads.facts(document("b", NEXT))).done == frozenset(LoadStep)
