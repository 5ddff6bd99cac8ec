"""Attached files become documents of the family, as deep and as many as a family may have."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.batches.document_load import folder_of
from stack.sample_files import Letter, mail
from tests.support.batches.document_loading import KEY, DocumentLoading
from tests.support.transfers.archives import zip_of
from workflows.batches import loads
from workflows.batches.loads import (
    FAMILY_DEPTH,
    DocumentAttachments,
    DocumentProcessed,
    Family,
    FoundIn,
    Relation,
    RelationKind,
    member_id,
    members,
    message_key,
)
from workflows.shared.contracts import BlobRef

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROOT = Family("D1", 0)
RTF = rb"{\rtf1\ansi Gr\'f6\'dfe\par}"
INNER = Letter(
    "inner@site.example",
    "Anna <anna@site.example>",
    "ben@site.example",
    "inner",
    datetime(2024, 3, 4, 10, 30, tzinfo=UTC),
    ["inner words"],
    files={"all.zip": zip_of({"minutes.rtf": RTF, "empty.txt": b""})},
)
OUTER = replace(
    INNER,
    message_id="outer@site.example",
    subject="outer",
    lines=["outer words"],
    files={"inner.eml": mail(INNER), "note.txt": b"a note"},
)


def _files(*sizes: int) -> list[tuple[str, BlobRef]]:
    return [(f"{n}.txt", BlobRef(name=f"in/{n}", size=size)) for n, size in enumerate(sizes)]


async def test_each_file_is_announced_with_its_parent() -> None:
    found = members(KEY, "D1", ROOT, _files(3, 4))
    assert found.note is None
    first, second = found.messages
    assert (first.blob_name, first.filename, first.key) == ("in/0", "0.txt", KEY)
    assert first.found_in == FoundIn(parent_id="D1", family_id="D1", depth=1)
    assert first.relations == (Relation(related_id="D1", kind=RelationKind.ATTACHMENT),)
    assert first.document_id.startswith("D1.") and first.document_id != second.document_id
    # Sent twice, they are the same messages.
    again = members(KEY, "D1", ROOT, _files(3, 4)).messages
    assert [message_key(each) for each in again] == [message_key(each) for each in found.messages]


async def test_ids_of_members_differ_and_fit() -> None:
    long = "D" * 200
    ids = {
        member_id(parent, blob, name)
        for parent in (long, f"{long[:-1]}E")
        for blob in ("in/1", "in/2")
        for name in ("a", "b")
    }
    assert len(ids) == 8
    deep = long
    for _ in range(FAMILY_DEPTH):
        deep = member_id(deep, "in/1", "a")
        assert len(deep) <= 200
    event = DocumentProcessed(case_id=1, batch_id=1, document_id="D1.0a", blob_name="in/1")
    assert folder_of(event) == "batches/1/1/D1.0a"


async def test_what_a_sender_announces_keeps_its_key() -> None:
    event = DocumentProcessed(case_id=1, batch_id=1, document_id="D1", blob_name="in/1")
    assert "found_in" not in event.model_dump(exclude_defaults=True)
    assert message_key(event) == message_key(event.model_copy(update={"found_in": None}))


async def test_a_family_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loads, "FAMILY_DOCUMENTS", 5)
    monkeypatch.setattr(loads, "FAMILY_BYTES", 8 << 30)
    found = members(KEY, "D1", Family("D1", 0, documents=3), _files(1, 0, 1, 1))
    assert [message.blob_name for message in found.messages] == ["in/0", "in/2"]
    assert found.note == (
        "1 of its files are not read: a family has at most 5 files of together 8 GB"
    )
    full = members(KEY, "D1", Family("D1", 0, size=(8 << 30) - 1), _files(2, 1))
    assert [message.blob_name for message in full.messages] == ["in/1"]


async def test_files_that_are_nested_too_deep_are_named() -> None:
    found = members(KEY, "D1", Family("D1", FAMILY_DEPTH), _files(1, 1))
    assert not found.messages
    assert found.note == "its 2 files are not read: they are nested 9 deep"


async def test_files_within_files_become_documents_of_the_family(
    loading: DocumentLoading,
) -> None:
    found = await loading.load_family(await loading.send("D1", mail(OUTER), "outer.eml"))
    parents = {each.document_id: each.found_in for each in found}
    rows = await loading.rows(
        *("documents", "filename", "state", "parent_id", "family_id", "depth", "document_id")
    )
    by_name = {name: rest for name, *rest in rows}
    assert list(by_name) == ["all.zip", "inner.eml", "minutes.rtf", "note.txt", "outer.eml"]
    assert by_name["outer.eml"] == ["loaded", None, None, None, "D1"]
    above = "D1"
    for depth, name in enumerate(("inner.eml", "all.zip", "minutes.rtf"), start=1):
        *rest, document_id = by_name[name]
        assert rest == ["loaded", above, "D1", depth]
        place = parents[document_id]
        assert place is not None and place.depth == depth
        above = document_id
    words = dict(await loading.rows("document_texts", "document_id", "text"))
    assert words[above] == "Größe"
    assert words["D1"] == "outer words"
    relations = await loading.rows("document_relations", "document_id", "related_id", "kind")
    assert {(child, parent) for child, parent, kind in relations if kind == "attachment"} == {
        (each.document_id, each.found_in.parent_id) for each in found if each.found_in
    }
    notes = dict(await loading.rows("documents", "filename", "notes"))["all.zip"]
    assert notes == "empty files: empty.txt"
    views = {view.filename: view for view in await loading.batches.documents(KEY)}
    assert (views["outer.eml"].parent_id, views["note.txt"].parent_id) == (None, "D1")
    counts = await loading.batches.counts(KEY)
    assert (counts.total, counts.loaded, counts.found, counts.sent) == (5, 5, 4, 1)


async def test_a_message_that_comes_again_announces_nothing_again(
    loading: DocumentLoading,
) -> None:
    event = await loading.send("D1", mail(OUTER))
    await loading.load(event)
    assert len(loading.announced()) == 2
    await loading.load(event)
    assert loading.announced() == []


async def test_a_step_that_was_lost_after_sending_announces_the_same_again(
    loading: DocumentLoading, monkeypatch: pytest.MonkeyPatch
) -> None:
    event = await loading.send("D1", mail(OUTER))
    save = loading.store.save_attachments

    async def lost(*_: Any) -> None:
        raise ConnectionError

    monkeypatch.setattr(loading.store, "save_attachments", lost)
    with pytest.raises(ApplicationError):
        await loading.load(event)
    first = loading.announced()
    monkeypatch.setattr(loading.store, "save_attachments", save)
    await loading.load(event)
    assert loading.announced() == first


async def test_files_that_a_message_names_become_documents(loading: DocumentLoading) -> None:
    await loading.load(await loading.send("D1", b"the letter"))
    await loading.put("in/plan.txt", b"the plan")
    message = DocumentAttachments.model_validate(
        {
            "case_id": KEY.case_id,
            "batch_id": KEY.batch_id,
            "document_id": "D1",
            "attachments": [{"blob_name": "in/plan.txt", "filename": "plan.txt"}],
        }
    )
    (member,) = await loading.load_family(message)
    assert member.found_in == FoundIn(parent_id="D1", family_id="D1", depth=1)
    texts = await loading.rows("document_texts", "document_id", "text")
    assert texts == [("D1", "the letter"), (member.document_id, "the plan")]


async def test_empty_files_are_named_whether_they_come_before_their_document_or_after_it(
    loading: DocumentLoading,
) -> None:
    empty = [f"{number:02}.txt" for number in range(12)]
    for name in empty:
        await loading.put(f"in/{name}", b"")
    for document_id in ("D1", "D2", "D3"):
        message = DocumentAttachments.model_validate(
            {
                "case_id": KEY.case_id,
                "batch_id": KEY.batch_id,
                "document_id": document_id,
                "attachments": [{"blob_name": f"in/{name}", "filename": name} for name in empty],
            }
        )
        letter = await loading.send(document_id, f"the letter {document_id}".encode())
        if document_id == "D3":
            await loading.load_group(message)
            await loading.load_group(letter)
            continue
        for event in (message, letter) if document_id == "D2" else (letter, message):
            await loading.load(event)
    named = f"empty files: {', '.join(empty[:10])} and 2 others"
    assert await loading.rows("documents", "document_id", "notes") == [
        (document_id, named) for document_id in ("D1", "D2", "D3")
    ]


async def test_other_documents_of_the_family_count(
    loading: DocumentLoading, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loads, "FAMILY_DOCUMENTS", 3)
    found = await loading.load_family(await loading.send("D1", mail(OUTER)))
    assert [each.filename for each in found] == ["inner.eml", "note.txt", "all.zip"]
    notes = dict(await loading.rows("documents", "filename", "notes"))["all.zip"]
    assert notes is not None and "1 of its files are not read: a family has at most 3" in notes


async def test_a_member_that_cannot_be_read_fails_by_itself(loading: DocumentLoading) -> None:
    letter = replace(OUTER, files={"plan.pdf": b"%PDF-1.7 and no more"})
    await loading.load(await loading.send("D1", mail(letter)))
    (body,) = loading.announced()
    member = DocumentProcessed.model_validate_json(body)
    await loading.batches.start_pass(KEY, 1, final=True)
    await loading.give_up(member, "it is damaged")
    assert await loading.rows("documents", "state", "parent_id", "reason") == [
        ("failed", "D1", "extract: it is damaged"),
        ("loaded", None, None),
    ]
