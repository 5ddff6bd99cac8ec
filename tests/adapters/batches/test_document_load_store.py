"""Documents of batches in their tables, on SQLite and on PostgreSQL."""

import asyncio
import random
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from sqlalchemy import select, update

from activities.batches.document_store import SqlLoadStore
from adapters.database.engine import Database
from adapters.database.models.batches import documents, process_checkpoints
from adapters.ports.documents import Attached, Extracted
from tests.support.batches.tables import (
    ATTACHED,
    FILES,
    FIRST,
    PLAIN,
    RELATED,
    SECOND,
    THIRD,
    SqlBatchTables,
    document,
    load,
    source,
)
from workflows.batches.loads import (
    AttachedFile,
    DocumentAttachments,
    DocumentProcessed,
    DocumentRelations,
    DocumentState,
    LoadStep,
    Relation,
    RelationKind,
    message_key,
)
from workflows.batches.runs import DocumentCounts


async def test_checkpoints_are_those_of_a_message_until_they_are_forgotten(
    loads: SqlLoadStore,
) -> None:
    event = document("a")
    await loads.save_source(event, source("f"))
    other = event.model_copy(update={"blob_name": "in/other"})
    assert (await loads.facts(event)).done == {LoadStep.DEDUPE}
    assert (await loads.facts(other)).done == frozenset()
    later = event.model_copy(update={"sent_at": datetime(2026, 1, 2, tzinfo=UTC)})
    assert (await loads.facts(later)).done == {LoadStep.DEDUPE}, "its time is none of its content"
    await loads.save_relations(RELATED, RELATED.relations)
    await loads.forget(event)
    assert (await loads.facts(event)).done == frozenset()
    assert (await loads.facts(RELATED)).done == {LoadStep.RELATIONS}
    # Its bytes are free.
    assert await loads.save_source(document("b"), source("f")) is None


async def test_checkpoints_of_a_release_that_had_one_for_each_kind_still_count(
    tables: SqlBatchTables, loads: SqlLoadStore
) -> None:
    event = document("a")
    await loads.save_source(event, source("f"))
    async with tables.database.transaction() as connection:
        old = {"message_key": "", "digest": message_key(event)}
        await connection.execute(update(process_checkpoints).values(**old))
        await connection.execute(update(documents).values(message_key=None))
    assert (await loads.facts(event)).done == {LoadStep.DEDUPE}
    other = event.model_copy(update={"blob_name": "in/other"})
    assert (await loads.facts(other)).done == frozenset()


async def test_a_duplicate_has_the_tags_and_relations_of_its_message(
    tables: SqlBatchTables, loads: SqlLoadStore
) -> None:
    await load(loads, document("a"), source("a"))
    copy = document("b").model_copy(
        update={"tags": ("mine",), "relations": (Relation(related_id="z"),)}
    )
    assert await load(loads, copy, source("a")) == "a"
    assert await tables.tags() == [("b", "mine")]
    assert await tables.relations() == [("b", "z", RelationKind.RELATED)]


async def test_every_message_of_a_kind_counts(tables: SqlBatchTables, loads: SqlLoadStore) -> None:
    await load(loads, document("a"), source("a"))
    more = RELATED.model_copy(update={"relations": (Relation(related_id="c"),)})
    file = Attached("y.txt", source("y"))
    named = ATTACHED.model_copy(
        update={"attachments": (AttachedFile(blob_name="in/x", filename="copy.txt"),)}
    )
    for _ in range(2):
        for event in (RELATED, more):
            await loads.save_relations(event, event.relations)
        await loads.save_attachments(ATTACHED, FILES)
        await loads.save_attachments(named, [Attached("copy.txt", source("x")), file])
    assert [row[1] for row in await tables.relations()] == ["b", "c"]
    assert await tables.attachments() == [
        ("a", "in/x", "copy.txt"),
        ("a", "in/x", "x.txt"),
        ("a", "in/y", "y.txt"),
    ]


async def test_a_document_is_failed_until_each_message_that_failed_is_loaded(
    tables: SqlBatchTables, loads: SqlLoadStore
) -> None:
    await load(loads, document("a"), source("a"))
    other = ATTACHED.model_copy(
        update={"attachments": (AttachedFile(blob_name="in/y", filename="y.txt"),)}
    )
    for event, reason in ((ATTACHED, "in/x is missing"), (other, "in/y is missing")):
        await loads.fail(event, reason)
    await loads.save_attachments(other, [Attached("y.txt", source("y"))])
    assert await tables.state("a") == (DocumentState.FAILED, "in/x is missing")
    await loads.save_attachments(ATTACHED, FILES)
    assert await tables.state("a") == (DocumentState.LOADED, None)


async def test_every_step_leaves_its_checkpoint_and_is_done_once(
    tables: SqlBatchTables, loads: SqlLoadStore
) -> None:
    event = document("a")
    assert (await loads.facts(event)).state is None
    for content in ("a", "b"):
        assert await loads.save_source(event, source(content)) is None
    for text in ("first", "a second run must not write this"):
        await loads.save_text(event, Extracted("text/plain", text))
    for tags in (["One"], ["Two"]):
        await loads.save_tags(event, tags)
    for related in ("b", "c"):
        await loads.save_relations(event, [Relation(related_id=related)])
    assert (await loads.facts(event)).state is DocumentState.LOADING
    for files in (FILES, [Attached("y.txt", source("y"))]):
        await loads.save_attachments(event, files)
    facts = await loads.facts(event)
    assert facts.done == frozenset(LoadStep)
    assert (facts.state, facts.source) == (DocumentState.LOADED, source("a"))
    assert await tables.text("a") == "first"
    assert await tables.tags() == [("a", "One")]
    assert await tables.relations() == [("a", "b", RelationKind.RELATED)]
    assert await tables.attachments() == [("a", "in/x", "x.txt")]


async def test_a_late_second_attempt_at_the_source_takes_nothing_back(loads: SqlLoadStore) -> None:
    assert await load(loads, document("a"), source("f")) is None
    assert await loads.save_source(document("a"), source("f")) is None
    assert (await loads.facts(document("a"))).state is DocumentState.LOADED
    assert await load(loads, document("b"), source("f")) == "a"
    assert await loads.save_source(document("b"), source("f")) == "a"


async def test_the_same_bytes_are_kept_once_in_a_case(loads: SqlLoadStore) -> None:
    assert await load(loads, document("a"), source("f")) is None
    assert await load(loads, document("b"), source("f")) == "a"
    # Also for what comes in a later batch, and for a copy of the copy there.
    assert await load(loads, document("c", SECOND), source("f")) == "a"
    assert await load(loads, document("d", SECOND), source("f")) == "a"
    other = DocumentProcessed(case_id=8, batch_id=1, document_id="e", blob_name="in/e")
    assert await load(loads, other, source("f")) is None
    facts = await loads.facts(document("b"))
    assert (facts.state, facts.duplicate_of) == (DocumentState.DUPLICATE, "a")


async def test_bytes_of_a_document_that_never_got_loaded_are_not_relied_on(
    loads: SqlLoadStore,
) -> None:
    """Its batch was cancelled halfway: the text of its copies would never be seen."""
    assert await loads.save_source(document("a"), source("f")) is None
    assert await load(loads, document("b", SECOND), source("f")) is None
    assert await load(loads, document("c", THIRD), source("f")) == "b"


async def test_a_document_is_no_duplicate_of_its_own_copy(loads: SqlLoadStore) -> None:
    assert await load(loads, document("a"), source("f")) is None
    assert await load(loads, document("copy", SECOND), source("f")) == "a"
    assert await load(loads, document("a", SECOND), source("f")) is None
    facts = await loads.facts(document("a", SECOND))
    assert (facts.state, facts.duplicate_of) == (DocumentState.LOADED, None)


async def test_loads_of_the_same_moment_agree_who_was_first(loads: SqlLoadStore) -> None:
    events = [document(f"d{number}") for number in range(8)]
    firsts = await asyncio.gather(*(loads.save_source(event, source("f")) for event in events))
    (winner,) = (
        event.document_id for event, first in zip(events, firsts, strict=True) if not first
    )
    assert set(firsts) == {None, winner}


async def test_a_failed_document_keeps_no_bytes(
    tables: SqlBatchTables, loads: SqlLoadStore
) -> None:
    assert await loads.save_source(document("a"), source("f")) is None
    for _ in range(2):
        await loads.fail(document("a"), "it cannot be read")
    assert await load(loads, document("b"), source("f")) is None
    assert await tables.batches.counts(FIRST) == DocumentCounts(failed=1, loaded=1)
    assert await tables.state("a") == (DocumentState.FAILED, "it cannot be read")
    # Should it come again after all, it asks anew who has them.
    assert await load(loads, document("a"), source("f")) == "b"
    assert await tables.state("a") == (DocumentState.DUPLICATE, None)


@pytest.mark.parametrize("event", [RELATED, ATTACHED], ids=lambda event: event.event_type)
@pytest.mark.parametrize("fails_first", [False, True])
async def test_what_failed_beside_a_document_is_reported_until_it_is_loaded(
    tables: SqlBatchTables,
    loads: SqlLoadStore,
    event: DocumentRelations | DocumentAttachments,
    fails_first: bool,
) -> None:
    if fails_first:
        await loads.fail(event, "in/x is not there")
    await load(loads, document("a"), source("a"))
    if not fails_first:
        await loads.fail(event, "in/x is not there")
    assert await tables.state("a") == (DocumentState.FAILED, "in/x is not there")
    await _bring(loads, event)
    assert await tables.state("a") == (DocumentState.LOADED, None)


async def test_what_failed_beside_a_duplicate_leaves_it_one(
    tables: SqlBatchTables, loads: SqlLoadStore
) -> None:
    await load(loads, document("0"), source("f"))
    await load(loads, document("a"), source("f"))
    await loads.fail(ATTACHED, "in/x is not there")
    await _bring(loads, ATTACHED)
    assert await tables.state("a") == (DocumentState.DUPLICATE, None)


async def test_one_thing_that_is_there_does_not_excuse_another(
    tables: SqlBatchTables, loads: SqlLoadStore
) -> None:
    await load(loads, document("a"), source("a"))
    await loads.fail(ATTACHED, "in/x is not there")
    await _bring(loads, RELATED)
    assert await tables.state("a") == (DocumentState.FAILED, "in/x is not there")


async def _bring(loads: SqlLoadStore, event: DocumentRelations | DocumentAttachments) -> None:
    if isinstance(event, DocumentRelations):
        await loads.save_relations(event, event.relations)
    else:
        await loads.save_attachments(event, FILES)


async def test_a_document_of_a_later_batch_begins_anew(
    tables: SqlBatchTables, loads: SqlLoadStore
) -> None:
    await load(loads, document("a"), source("a"), replace(PLAIN, text="old"))
    later = document("a", SECOND)
    facts = await loads.facts(later)
    assert (facts.state, facts.done) == (None, frozenset())
    await load(loads, later, source("b"), replace(PLAIN, text="new"))
    assert (await loads.facts(later)).state is DocumentState.LOADED
    assert await tables.text("a") == "new"
    assert await tables.batches.counts(FIRST) == DocumentCounts(superseded=1)
    assert await tables.batches.counts(SECOND) == DocumentCounts(loaded=1)


async def test_the_same_tag_is_written_in_one_way(
    tables: SqlBatchTables, loads: SqlLoadStore
) -> None:
    for id, tags in (("a", ["Site  Diary", "urgent"]), ("b", ["site diary", "URGENT ", "URGENT"])):
        await loads.save_source(document(id), source(id))
        await loads.save_tags(document(id), tags)
    assert await tables.tags() == [
        ("a", "Site  Diary"),
        ("a", "urgent"),
        ("b", "Site  Diary"),
        ("b", "urgent"),
    ]


async def test_what_a_batch_no_longer_needs_is_forgotten(
    tables: SqlBatchTables, loads: SqlLoadStore
) -> None:
    first, second = (
        event.model_copy(update={"tags": ("x",)})
        for event in (document("a"), document("b", SECOND))
    )
    for event in (first, second):
        await load(loads, event, source(event.document_id))
    assert await tables.batches.truncate(FIRST) == 1 + 1 + len(LoadStep)
    assert await tables.batches.truncate(FIRST) == 0
    assert (await loads.facts(first)).state is DocumentState.LOADED
    assert (await loads.facts(second)).done == frozenset(LoadStep)


async def test_the_metadata_of_a_document_is_kept(database: Database) -> None:
    made = datetime(2024, 3, 4, 5, 6, tzinfo=UTC)
    extracted = Extracted(
        "application/pdf",
        "page\x00 one",
        truncated=True,
        title="Plan\ud800",
        author="Ann",
        created_at=made,
        pages=3,
        metadata={"producer": "x\x00"},
        notes=["a picture was not read"],
    )
    tables = SqlBatchTables(database)
    await load(tables.loads, document("a"), source("a"), extracted)
    names = ("title", "author", "created_at", "pages", "truncated", "notes", "metadata")
    async with database.reading() as connection:
        query = select(*(documents.c[name] for name in names))
        row = (await connection.execute(query)).one()
    metadata = '{"producer": "x\\ufffd"}'
    assert tuple(row) == (
        *("Plan\ufffd", "Ann", made, 3, True),
        *("a picture was not read", metadata),
    )
    assert await tables.text("a") == "page\ufffd one"
    await tables.loads.fail(document("a"), "cut off\x00")
    assert await tables.state("a") == (DocumentState.FAILED, "cut off\ufffd")


async def test_twenty_megabytes_of_text_are_loaded(database: Database) -> None:
    long = "lorem ipsum " * (20_000_000 // 12)
    tables = SqlBatchTables(database)
    await load(tables.loads, document("a"), source("a"), replace(PLAIN, text=long))
    assert await tables.text("a") == long


async def test_names_as_long_as_they_may_be_fit_into_every_key(database: Database) -> None:
    dice = random.Random(4)

    def name(characters: int) -> str:
        # Four bytes each, which no index can compress.
        return "".join(chr(dice.randint(0x20000, 0x2A6D0)) for _ in range(characters))

    tables, ids, blob, message = (
        SqlBatchTables(database),
        [name(200), name(200)],
        name(1024),
        name(500),
    )
    for id, thread in zip(ids, ([message], [name(500), message]), strict=True):
        event = document("a").model_copy(update={"document_id": id, "tags": (name(100),)})
        mail = Extracted("message/rfc822", "", thread=thread)
        await load(tables.loads, event, source(str(len(thread))), mail)
        files = [Attached(name(255), source("x").model_copy(update={"name": blob}))]
        attached = ATTACHED.model_copy(update={"document_id": id})
        for _ in range(2):
            await tables.loads.save_attachments(attached, files)
    assert await tables.relations() == [(ids[1], ids[0], RelationKind.REPLY)]
    assert sorted(row[:2] for row in await tables.attachments()) == sorted((id, blob) for id in ids)


async def test_writers_of_the_same_documents_and_tags_do_not_wait_for_each_other_forever(
    database: Database,
) -> None:
    store, names = SqlLoadStore(database), [f"tag {number}" for number in range(20)]

    async def bring(number: int) -> None:
        dice = random.Random(number)
        event = document(f"{number}")
        await store.save_source(event, source(f"{number % 3}"))
        await store.save_text(event, PLAIN)
        await store.save_tags(event, dice.sample(names, len(names)))
        await store.save_relations(
            event, [Relation(related_id=f"{other}") for other in dice.sample(range(8), 8)]
        )
        await store.save_attachments(event, [])

    await asyncio.gather(*(bring(number % 8) for number in range(24)))
    tables = SqlBatchTables(database)
    assert len(await tables.tags()) == 8 * len(names)
    assert len(await tables.relations()) == 8 * 8
