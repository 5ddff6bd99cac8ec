"""Documents that are written at once, on SQLite and on PostgreSQL."""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from activities.batches.document_store import SqlLoadStore
from adapters.ports.documents import LoadInfo, Superseded, WholeDocument
from tests.support.batches.tables import (
    FIRST,
    PLAIN,
    SECOND,
    SqlBatchTables,
    document,
    load,
    source,
)
from workflows.batches.loads import (
    DocumentProcessed,
    DocumentState,
    LoadStep,
    Relation,
    message_key,
)
from workflows.batches.names import BatchKey
from workflows.shared.contracts import BlobRef

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


def message(name: str, number: int = 0, key: BatchKey = FIRST, **fields: Any) -> DocumentProcessed:
    """One of the messages of a document; a larger number was sent later."""
    values = {"sent_at": MOMENT + timedelta(minutes=number), **fields}
    return document(name, key).model_copy(update=values)


async def save(
    loads: SqlLoadStore, event: DocumentProcessed, content: str, seen: LoadInfo | None = None
) -> DocumentState | None:
    file = source(content)
    extracted = replace(PLAIN, text=content, thread=[f"<{content}@x>"])
    seen = seen or await loads.facts(event)
    return await loads.save_whole(event, WholeDocument(file, extracted, event.tags, seen))


async def by_steps(loads: SqlLoadStore, event: DocumentProcessed, content: str) -> None:
    if (await loads.facts(event)).superseded:
        await loads.save_version(event, source(content))
        return
    extracted = replace(PLAIN, text=content, thread=[f"<{content}@x>"])
    await load(loads, event, source(content), extracted, event.relations)


async def rows(tables: SqlBatchTables) -> Sequence[Any]:
    return [
        *[await tables.text(name) for name in "abc"],
        *[await tables.state(name) for name in "abc"],
        await tables.tags(),
        await tables.relations(),
        await tables.versions(),
    ]


async def _empty(tables: SqlBatchTables) -> None:
    async with tables.database.transaction() as connection:
        for table in (
            *("documents", "document_texts", "document_tags", "document_relations"),
            *("document_versions", "document_messages", "doc_dedupe", "tag_dedupe"),
            "process_checkpoints",
        ):
            await connection.exec_driver_sql(f"DELETE FROM {table}")


def story(dice: random.Random, key: BatchKey) -> list[tuple[DocumentProcessed, str]]:
    """Messages of three documents that replace and repeat each other."""
    related = (Relation(related_id="x"),)
    events = [
        message(
            name, number, key, blob_name=f"in/{number}", tags=(f"t{number}",), relations=related
        )
        for name in "abc"
        for number in range(3)
    ]
    dice.shuffle(events)
    return [(event, dice.choice("123")) for event in events]


async def test_what_is_written_at_once_is_what_the_steps_write(
    tables: SqlBatchTables, loads: SqlLoadStore
) -> None:
    messages = story(random.Random(7), FIRST)
    for event, content in messages:
        await by_steps(loads, event, content)
    expected = await rows(tables)
    facts = [await loads.facts(event) for event, _ in messages]
    await _empty(tables)
    for event, content in messages:
        assert await save(loads, event, content) is not None
    assert await rows(tables) == expected
    assert [await loads.facts(event) for event, _ in messages] == facts


async def test_a_later_message_that_came_meanwhile_stays_current(
    tables: SqlBatchTables, loads: SqlLoadStore
) -> None:
    early, late, between = (
        message("a"),
        message("a", 2, blob_name="in/late"),
        message("a", 1, tags=("t",)),
    )
    seen = await loads.facts(early)
    assert await save(loads, late, "b") is DocumentState.LOADED
    assert await save(loads, early, "a", seen) is DocumentState.SUPERSEDED
    with pytest.raises(Superseded):
        await loads.save_source(between, source("c"))
    assert await tables.text("a") == "b"
    assert [name for _, name, _ in await tables.versions()] == ["in/a", "in/c"]
    for event in (early, between):
        assert (await loads.facts(event)).superseded


async def test_a_file_that_another_load_of_the_message_has_read_since_is_left_alone(
    tables: SqlBatchTables, loads: SqlLoadStore
) -> None:
    event = message("a")
    before = await loads.facts(event)
    assert await save(loads, event, "b") is DocumentState.LOADED
    assert await save(loads, event, "a", before) is None
    assert await tables.text("a") == "b"
    seen = await loads.facts(event)
    assert (seen.done, seen.etag) == (frozenset(LoadStep), "1")


async def test_a_file_that_was_replaced_is_read_anew_under_the_same_message(
    tables: SqlBatchTables, loads: SqlLoadStore
) -> None:
    event = message("a")
    for content in "ab":
        assert await save(loads, event, content) is DocumentState.LOADED
    assert await tables.text("a") == "b"
    assert await tables.versions() == [("a", "in/a", "a")]
    # The bytes that it had are free.
    assert await save(loads, message("c"), "a") is DocumentState.LOADED


async def test_writers_of_one_document_take_turns_and_the_latest_message_is_current(
    tables: SqlBatchTables, loads: SqlLoadStore
) -> None:
    events = [message("a", number, blob_name=f"in/{number}") for number in range(12)]
    contents = dict(zip(map(message_key, events), "0123456789ab", strict=True))
    tries = events * 3
    random.Random(7).shuffle(tries)

    async def bring(event: DocumentProcessed) -> None:
        await save(loads, event, contents[message_key(event)])

    await asyncio.gather(*map(bring, tries))
    assert await tables.text("a") == "b"
    versions = {name for _, name, _ in await tables.versions()}
    assert versions == {BlobRef(name=f"in/{c}", size=9).name for c in "0123456789a"}


async def test_a_document_of_an_earlier_batch_is_replaced(
    tables: SqlBatchTables, loads: SqlLoadStore
) -> None:
    assert await save(loads, message("a"), "a") is DocumentState.LOADED
    assert await save(loads, message("a", 1, SECOND), "b") is DocumentState.LOADED
    assert await save(loads, message("b", 1, SECOND), "b") is DocumentState.DUPLICATE
    assert await tables.text("a") == "b"


async def save_together(
    loads: SqlLoadStore, group: Sequence[tuple[DocumentProcessed, str]]
) -> Sequence[DocumentState | None]:
    """Save messages as a group does: what is not new by itself."""
    found = [
        (
            event,
            WholeDocument(
                source(content),
                replace(PLAIN, text=content, thread=[f"<{content}@x>"]),
                event.tags,
                LoadInfo(None, frozenset()),
            ),
        )
        for event, content in group
    ]
    states = await loads.save_new(found)
    return [
        state or await save(loads, event, content)
        for state, (event, content) in zip(states, group, strict=True)
    ]


async def test_new_documents_that_are_written_together_are_what_the_steps_write(
    tables: SqlBatchTables, loads: SqlLoadStore
) -> None:
    # The third has the bytes of the first; the second is written again by a later message.
    related = (Relation(related_id="x"),)
    group = [
        (message("a", tags=("Gate", " gate", "one")), "1"),
        (message("b", tags=("GATE",), relations=related), "2"),
        (message("c", tags=("two",), relations=related), "1"),
    ]
    later = (message("b", 1, blob_name="in/later"), "3")
    for event, content in (*group, later):
        await by_steps(loads, event, content)
    expected = await rows(tables)
    facts = [await loads.facts(event) for event, _ in (*group, later)]
    await _empty(tables)
    events = [event for event, _ in group]
    assert await loads.begun(events) == frozenset()
    states = await save_together(loads, group)
    assert states == [DocumentState.LOADED, DocumentState.LOADED, DocumentState.DUPLICATE]
    assert await loads.begun(events) == {"a", "b", "c"}
    assert await save_together(loads, [later]) == [DocumentState.LOADED]
    assert await rows(tables) == expected
    assert [await loads.facts(event) for event, _ in (*group, later)] == facts


async def test_groups_that_overlap_write_each_document_once(
    tables: SqlBatchTables, loads: SqlLoadStore
) -> None:
    dice = random.Random(3)
    contents = {f"d{number:02}": "0123456789abcdef"[number % 16] for number in range(24)}

    async def group() -> None:
        chosen = dice.sample(sorted(contents), 8)
        messages = [(message(name, tags=("x", name)), contents[name]) for name in chosen]
        found = [
            (
                event,
                WholeDocument(source(content), PLAIN, event.tags, LoadInfo(None, frozenset())),
            )
            for event, content in messages
        ]
        for state, (event, whole) in zip(await loads.save_new(found), found, strict=True):
            if state is None:
                seen = await loads.facts(event)
                await loads.save_whole(event, replace(whole, seen=seen))

    await asyncio.gather(*(group() for _ in range(12)))
    states = [(await tables.state(name))[0] for name in contents]
    assert Counter(states) == {DocumentState.LOADED: 16, DocumentState.DUPLICATE: 8}
    assert len(await tables.tags()) == 2 * len(contents)


async def test_mails_that_answer_each_other_find_each_other_at_the_same_moment(
    tables: SqlBatchTables, loads: SqlLoadStore
) -> None:
    async def write(name: str, content: str, *thread: str) -> None:
        event = message(name)
        mail = replace(PLAIN, text=name, thread=thread)
        whole = WholeDocument(
            BlobRef(name=f"in/{name}", size=9, sha256=f"{content:0>64}", etag="1"),
            mail,
            (),
            LoadInfo(None, frozenset()),
        )
        if content < "5":
            assert await loads.save_new([(event, whole)]) == [DocumentState.LOADED]
        else:
            assert await loads.save_whole(event, whole) is DocumentState.LOADED

    for number in range(10):
        asked, answered = f"<{number}@x>", f"<{number}@y>"
        await asyncio.gather(
            write(f"q{number}", f"{number}a", asked),
            write(f"r{number}", f"{9 - number}b", answered, asked),
        )
    assert len(await tables.relations()) == 10
