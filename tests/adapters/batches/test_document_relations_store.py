"""Relations and attachments of documents in their tables, on SQLite and on PostgreSQL."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from activities.batches.document_store import SqlLoadStore
from adapters.ports.documents import Attached
from tests.support.batches.tables import (
    ATTACHED,
    FILES,
    PLAIN,
    RELATED,
    SqlBatchTables,
    document,
    load,
    source,
)
from workflows.batches.loads import AttachedFile, DocumentState, LoadStep, Relation, RelationKind


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
async def test_mails_that_answer_each_other_are_related_in_any_order_of_arrival(
    tables: SqlBatchTables, loads: SqlLoadStore, order: Sequence[str]
) -> None:
    threads = {"a": ["<1@x>"], "b": ["<2@x>", "<1@x>"]}
    for id in order:
        await load(loads, document(id), source(id), replace(PLAIN, thread=threads[id]))
    assert await tables.relations() == [("b", "a", RelationKind.REPLY)]


async def test_a_mail_that_names_its_own_id_answers_no_copy_of_itself(
    tables: SqlBatchTables, loads: SqlLoadStore
) -> None:
    for id, thread in (("a", ["<1@x>"]), ("b", ["<1@x>", "<1@x>", "<2@x>"]), ("c", ["<2@x>"])):
        await load(loads, document(id), source(id), replace(PLAIN, thread=thread))
    assert await tables.relations() == [("b", "c", RelationKind.REPLY)]


async def test_mails_of_the_same_moment_are_related(
    tables: SqlBatchTables, loads: SqlLoadStore
) -> None:
    ids = [f"<{number}@x>" for number in range(6)]

    async def bring(number: int) -> None:
        mail = replace(PLAIN, thread=[ids[number], *ids[:number]])
        await load(loads, document(f"{number}"), source(f"{number}"), mail)

    await asyncio.gather(*(bring(number) for number in range(len(ids))))
    assert await tables.relations() == [
        (f"{mail}", f"{answered}", RelationKind.REPLY)
        for mail in range(len(ids))
        for answered in range(mail)
    ]


async def test_relations_and_attachments_of_their_own_messages_are_added(
    tables: SqlBatchTables, loads: SqlLoadStore
) -> None:
    await load(loads, document("a"), source("a"))
    for _ in range(2):
        await loads.save_relations(RELATED, RELATED.relations)
        await loads.save_attachments(ATTACHED, FILES)
    assert await tables.relations() == [("a", "b", RelationKind.RELATED)]
    assert await tables.attachments() == [("a", "in/x", "x.txt")]
    assert (await loads.facts(RELATED)).done == {LoadStep.RELATIONS}
    assert (await loads.facts(document("a"))).state is DocumentState.LOADED


async def test_hundreds_of_relations_and_attachments_of_one_message_are_all_recorded(
    tables: SqlBatchTables, loads: SqlLoadStore
) -> None:
    await load(loads, document("a"), source("a"))
    names = [f"in/{number:04}" for number in range(1_500)]
    event = ATTACHED.model_copy(
        update={"attachments": tuple(AttachedFile(blob_name=name, filename="x") for name in names)}
    )
    files = [Attached("x", source("x").model_copy(update={"name": name})) for name in names]
    related = tuple(Relation(related_id=name[3:]) for name in names)
    for _ in range(2):
        await loads.save_attachments(event, files)
        await loads.save_relations(RELATED.model_copy(update={"relations": related}), related)
    assert [name for _, name, _ in await tables.attachments()] == names
    assert [related for _, related, _ in await tables.relations()] == [name[3:] for name in names]
