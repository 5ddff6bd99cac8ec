"""Versions and duplicates of documents in their tables, on SQLite and on PostgreSQL."""

from dataclasses import replace
from datetime import UTC, datetime

from activities.batches.document_store import SqlLoadStore
from tests.support.batches.tables import (
    FIRST,
    PLAIN,
    SECOND,
    SqlBatchTables,
    document,
    load,
    source,
)
from workflows.batches.loads import DocumentState, LoadStep, Relation, RelationKind
from workflows.batches.runs import DocumentCounts


async def test_a_corrected_file_replaces_a_document_and_what_it_was_is_kept(
    tables: SqlBatchTables, loads: SqlLoadStore
) -> None:
    await load(loads, document("a"), source("a"), replace(PLAIN, text="wrong"))
    corrected = document("a").model_copy(update={"blob_name": "in/corrected", "tags": ("new",)})
    for _ in range(2):
        await load(loads, corrected, source("b"), replace(PLAIN, text="right"))
        # The first message comes again: it was loaded.
        assert (await loads.facts(document("a"))).done == frozenset(LoadStep)
    assert await tables.text("a") == "right"
    assert await tables.tags() == [("a", "new")]
    assert await tables.versions() == [("a", "in/a", "wrong")]
    assert await tables.batches.counts(FIRST) == DocumentCounts(loaded=1)


async def test_a_duplicate_takes_the_place_of_bytes_that_are_replaced(
    tables: SqlBatchTables, loads: SqlLoadStore
) -> None:
    thread = ["<1@x>"]
    await load(loads, document("a"), source("a"), replace(PLAIN, text="same", thread=thread))
    for copy in ("b", "c"):
        assert await load(loads, document(copy), source("a")) == "a"
    corrected = document("a").model_copy(update={"blob_name": "in/corrected"})
    await load(loads, corrected, source("d"), replace(PLAIN, text="other"))
    assert (await tables.state("b"))[0] is DocumentState.LOADED
    assert (await loads.facts(document("c"))).duplicate_of == "b"
    assert (await tables.text("a"), await tables.text("b")) == ("other", "same")
    assert await load(loads, document("e"), source("a")) == "b"
    answer = replace(PLAIN, thread=["<2@x>", *thread])
    await load(loads, document("f"), source("f"), answer)
    assert await tables.relations() == [("f", "b", RelationKind.REPLY)]


async def test_a_duplicate_that_was_another_document_before_gets_the_text_of_its_bytes(
    tables: SqlBatchTables, loads: SqlLoadStore
) -> None:
    await load(loads, document("b"), source("b"), replace(PLAIN, text="former", thread=["<b@x>"]))
    await load(loads, document("a"), source("a"), replace(PLAIN, text="same", thread=["<a@x>"]))
    same = document("b").model_copy(update={"blob_name": "in/same"})
    assert await load(loads, same, source("a")) == "a"
    assert await tables.text("b") is None
    corrected = document("a").model_copy(update={"blob_name": "in/corrected"})
    await load(loads, corrected, source("d"), replace(PLAIN, text="other"))
    assert (await tables.text("a"), await tables.text("b")) == ("other", "same")
    for answer, question, content in (("c", "<a@x>", "e"), ("d", "<b@x>", "f")):
        thread = [f"<{answer}@x>", question]
        await load(loads, document(answer), source(content), replace(PLAIN, thread=thread))
    assert await tables.relations() == [("c", "b", RelationKind.REPLY)]


async def test_a_duplicate_of_what_was_replaced_before_it_was_read_is_to_be_sent_again(
    tables: SqlBatchTables, loads: SqlLoadStore
) -> None:
    await loads.save_source(document("a"), source("a"))
    assert await load(loads, document("b"), source("a")) == "a"
    corrected = document("a").model_copy(update={"blob_name": "in/corrected"})
    await load(loads, corrected, source("d"), replace(PLAIN, text="other"))
    assert await tables.state("b") == (
        DocumentState.FAILED,
        "it had the same bytes as a, which was replaced before these were read: send it again",
    )
    await load(loads, document("b"), source("a"), replace(PLAIN, text="same"))
    assert await tables.state("b") == (DocumentState.LOADED, None)
    assert (await tables.text("a"), await tables.text("b")) == ("other", "same")


async def test_an_older_message_never_becomes_current(
    tables: SqlBatchTables, loads: SqlLoadStore
) -> None:
    day = datetime(2026, 1, 2, tzinfo=UTC)
    newer = document("a").model_copy(update={"blob_name": "in/new", "sent_at": day})
    older = document("a").model_copy(
        update={
            "sent_at": day.replace(day=1),
            "tags": ("old",),
            "relations": (Relation(related_id="z"),),
        }
    )
    await load(loads, newer, source("b"), replace(PLAIN, text="new"))
    assert (await loads.facts(older)).superseded
    for _ in range(2):
        await loads.save_version(older, source("a"))
    await loads.fail(older, "it is damaged")
    assert await tables.versions() == [("a", "in/a", None)]
    assert await tables.relations() == [("a", "z", RelationKind.RELATED)]
    in_another = older.model_copy(update={"batch_id": SECOND.batch_id})
    await loads.save_version(in_another, source("c"))
    assert await tables.batches.counts(SECOND) == DocumentCounts(superseded=1)
    assert await tables.batches.counts(FIRST) == DocumentCounts(loaded=1)
    assert (await tables.state("a"), await tables.text("a")) == (
        (DocumentState.LOADED, None),
        "new",
    )
    # A worker that was thought dead writes what it has read.
    await loads.save_text(older, replace(PLAIN, text="old"))
    await loads.save_tags(older, older.tags)
    assert (await tables.text("a"), await tables.tags()) == ("new", [])
