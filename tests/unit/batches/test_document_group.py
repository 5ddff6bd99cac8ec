"""Messages that are loaded together: real tables, real readers, blobs and queues in memory."""

import asyncio
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from activities.batches.document_group import AT_ONCE, SMALL_BYTES
from adapters.files.texts.pool import FileTexts
from adapters.ports.errors import Throttled, Unavailable
from stack.sample_files import Letter, mail
from tests.support.batches.document_loading import KEY, DocumentLoading, document_loading
from tests.support.files.hostile_documents import WRITTEN_AT
from tests.support.waiting import eventually
from workflows.batches.loads import (
    AttachedFile,
    DocumentAttachments,
    DocumentGroupInput,
    DocumentLoadInput,
    DocumentProcessed,
    DocumentRelations,
    DocumentState,
    GroupEnd,
    GroupOutcome,
    GroupProgress,
    Relation,
)
from workflows.shared.contracts import BlobRef
from workflows.shared.dependencies import Dependency

pytestmark = pytest.mark.asyncio(loop_scope="module")

SENT = {"case_id": KEY.case_id, "batch_id": KEY.batch_id, "document_id": "D-0"}


async def send(loading: DocumentLoading, number: int, **fields: Any) -> DocumentProcessed:
    return await loading.send(f"D-{number}", b"words of %d" % number, f"{number}.txt", **fields)


def ends(outcomes: Any) -> list[GroupEnd]:
    return [outcome.end for outcome in outcomes]


async def test_every_message_of_a_group_is_loaded_and_its_file_read_once(
    loading: DocumentLoading, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, download = Counter[str](), loading.blobs.download

    async def counted(name: str, *rest: Any) -> BlobRef:
        read[name] += 1
        return await download(name, *rest)

    monkeypatch.setattr(loading.blobs, "download", counted)
    events = [await send(loading, number, tags=(f"tag {number}",)) for number in range(6)]
    related = DocumentRelations(**SENT, relations=(Relation(related_id="D-1"),))
    attached = DocumentAttachments(
        **SENT, attachments=(AttachedFile(blob_name="in/D-1", filename="one.txt"),)
    )
    outcomes = await loading.load_group(*events, related, attached)
    assert ends(outcomes) == [GroupEnd.DONE] * 8
    assert [each.state for each in outcomes] == [DocumentState.LOADED] * 6 + [None] * 2
    assert read == {f"in/D-{number}": 1 for number in range(6)}
    assert await loading.rows("document_texts", "document_id", "text") == [
        (f"D-{number}", f"words of {number}") for number in range(6)
    ]
    assert ("D-3", "tag 3") in await loading.rows("document_tags", "document_id", "tag")
    assert await loading.rows("document_relations", "document_id", "related_id") == [("D-0", "D-1")]
    assert await loading.rows("attachments", "filename") == [("one.txt",)]
    assert len(loading.announced()) == 1
    again = await loading.load_group(*events, related, attached)
    assert ends(again) == [GroupEnd.DONE] * 8
    assert sum(read.values()) == 6 and not loading.announced()


async def test_a_group_leaves_what_loads_of_their_own_leave(
    loading: DocumentLoading, tmp_path: Path, texts: FileTexts
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    tables = {
        "documents": ("document_id", "state", "sha256", "duplicate_of", "media_type", "notes"),
        "document_texts": ("document_id", "text"),
        "document_tags": ("document_id", "tag"),
        "document_versions": ("document_id", "blob_name", "text", "tags"),
        "doc_dedupe": ("sha256", "document_id"),
        "tag_dedupe": ("tag",),
        "process_checkpoints": ("document_id", "message_key", "step"),
    }
    async with document_loading(other, texts) as single:
        for into in (single, loading):
            first = await send(into, 0, sent_at=WRITTEN_AT, tags=("one",))
            await into.put("in/later", b"later words")
            later = first.model_copy(
                update={"blob_name": "in/later", "sent_at": WRITTEN_AT + timedelta(days=1)}
            )
            same = await into.send("D-1", b"later words", tags=("two",))
            if into is single:
                for event in (first, later, same):
                    await into.load(event)
            else:
                # In the order in which they were sent, whatever their order in the group.
                assert ends(await into.load_group(later, first)) == [GroupEnd.DONE] * 2
                assert ends(await into.load_group(same)) == [GroupEnd.DONE]
        for table, columns in tables.items():
            rows = await single.rows(table, *columns)
            assert rows and await loading.rows(table, *columns) == rows, table


async def test_what_is_large_or_damaged_or_holds_files_takes_a_load_of_its_own(
    loading: DocumentLoading,
) -> None:
    large = await loading.send("large", b"x" * (SMALL_BYTES + 1))
    damaged = await loading.send("damaged", b"%PDF-1.7 cut off")
    missing = (await send(loading, 1)).model_copy(update={"blob_name": "in/none"})
    files = {"plan.txt": b"the plan"}
    letter = Letter("m@x", "a@x", "b@x", "gate", WRITTEN_AT, ["see"], files=files)
    holds = await loading.send("holds", mail(letter))
    good = await send(loading, 2)
    begun = await send(loading, 3)
    await loading.store.save_source(begun, BlobRef(name="in/D-3", size=1, sha256="a" * 64))
    outcomes = await loading.load_group(large, damaged, missing, holds, good, begun)
    assert ends(outcomes) == [GroupEnd.SINGLE] * 4 + [GroupEnd.DONE, GroupEnd.SINGLE]
    reasons = [each.reason or "" for each in outcomes]
    for reason, part in zip(
        reasons,
        ("more than 1 MB", "damaged", "in/none is not", "files are inside", "", "has begun it"),
        strict=True,
    ):
        assert part in reason
    assert [name for name, _ in await loading.rows("document_texts", "document_id", "text")] == [
        "D-2"
    ]


@pytest.mark.parametrize("failure", [Unavailable, Throttled])
async def test_an_outage_is_an_outcome_and_the_others_are_loaded(
    loading: DocumentLoading, monkeypatch: pytest.MonkeyPatch, failure: Any
) -> None:
    download = loading.blobs.download

    async def failing(name: str, *rest: Any) -> BlobRef:
        if name == "in/D-1":
            raise failure("no answer", dependency=Dependency.BLOB_STORE)
        return await download(name, *rest)

    monkeypatch.setattr(loading.blobs, "download", failing)
    outcomes = await loading.load_group(await send(loading, 0), await send(loading, 1))
    assert ends(outcomes) == [GroupEnd.DONE, GroupEnd.OUTAGE]
    awaited = outcomes[1].awaited
    assert awaited is not None and awaited.dependency is Dependency.BLOB_STORE
    assert outcomes[1].reason == "no answer"


async def test_after_a_lost_worker_what_was_in_progress_takes_a_load_of_its_own(
    loading: DocumentLoading,
) -> None:
    events = [await send(loading, number) for number in range(4)]
    known = GroupOutcome(number=0, end=GroupEnd.DONE, state=DocumentState.LOADED)
    heartbeat = GroupProgress(outcomes=(known,), in_progress=(2,))
    outcomes = await loading.load_group(*events, attempt=2, heartbeat=heartbeat)
    done, single = GroupEnd.DONE, GroupEnd.SINGLE
    assert ends(outcomes) == [done, done, single, done]
    assert outcomes[0] == known
    assert [text for (text,) in await loading.rows("document_texts", "text")] == [
        "words of 1",
        "words of 3",
    ]
    assert ends(await loading.load_group(*events, attempt=3)) == [single] * 4


async def test_the_heartbeat_holds_outcomes_and_what_is_in_progress(
    loading: DocumentLoading, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[GroupProgress] = []
    waiting, released, download = list[str](), asyncio.Event(), loading.blobs.download

    async def held(name: str, *rest: Any) -> BlobRef:
        waiting.append(name)
        await released.wait()
        return await download(name, *rest)

    monkeypatch.setattr(loading.blobs, "download", held)
    events = [await send(loading, number) for number in range(AT_ONCE + 2)]
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, heartbeat_timeout=timedelta(milliseconds=2))
    environment.on_heartbeat = lambda *details: sent.extend(
        each for each in details if isinstance(each, GroupProgress)
    )
    order = DocumentGroupInput(
        key=KEY, loads=tuple(DocumentLoadInput(event=event) for event in events)
    )

    async def run() -> Any:
        return await environment.run(loading.groups().load_group, order)

    task = asyncio.create_task(run())

    async def begun() -> bool:
        # The first heartbeat may come after the first downloads.
        return bool(sent) and len(waiting) == AT_ONCE == len(sent[-1].in_progress)

    await eventually(begun)
    assert not sent[-1].outcomes
    released.set()

    async def ended() -> bool:
        return task.done()

    await eventually(ended)
    assert ends((await task).outcomes) == [GroupEnd.DONE] * len(events)


async def test_a_worker_that_stops_leaves_nothing_in_progress(
    loading: DocumentLoading, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[GroupProgress] = []
    begun = asyncio.Event()

    async def held(name: str, *rest: Any) -> BlobRef:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(loading.blobs, "download", held)
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, heartbeat_timeout=timedelta(seconds=2))
    environment.on_heartbeat = lambda *details: sent.extend(details)
    order = DocumentGroupInput(key=KEY, loads=(DocumentLoadInput(event=await send(loading, 0)),))

    async def run() -> Any:
        return await environment.run(loading.groups().load_group, order)

    task = asyncio.create_task(run())
    await begun.wait()
    environment.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sent[-1] == GroupProgress()


async def test_a_replaced_file_is_read_anew_when_its_message_comes_again(
    loading: DocumentLoading,
) -> None:
    event = await send(loading, 0)
    await loading.load_group(event)
    await loading.put("in/D-0", b"other words")
    assert ends(await loading.load_group(event)) == [GroupEnd.DONE]
    assert await loading.rows("document_texts", "text") == [("other words",)]
    assert await loading.rows("document_versions", "text") == [("words of 0",)]
