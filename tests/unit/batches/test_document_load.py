"""The steps of one document: real tables, real readers, blobs and queues in memory."""

from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.batches.document_load import folder_of
from adapters.ports.errors import Denied, Unavailable
from stack.sample_documents import sample_documents
from stack.sample_files import Letter, mail, pdf
from tests.support.batches.document_loading import (
    KEY,
    NAMES,
    DocumentLoading,
    attachments_of,
    failure_of,
)
from tests.support.files.hostile_documents import WRITTEN_AT
from workflows.batches.loads import (
    DOCUMENT_EVENT,
    DocumentProcessed,
    DocumentRelations,
    LoadStep,
    Relation,
)
from workflows.shared.contracts import BlobRef
from workflows.shared.errors import MISSING_BLOB, PERMANENT, TRANSIENT, UNREADABLE_DOCUMENT

pytestmark = pytest.mark.asyncio(loop_scope="module")

REPLY = Letter(
    message_id="reply@site.example",
    sender="b@site.example",
    recipient="a@site.example",
    subject="Re: gate",
    sent_at=WRITTEN_AT,
    lines=["the answer"],
    answers=("question@site.example",),
    files={"plan.pdf": b"the plan", "Größe.txt": b"10 m"},
)
QUESTION = Letter(
    "question@site.example", "a@site.example", "b@site.example", "gate", WRITTEN_AT, ["how wide?"]
)
PLAN = pdf("Plan", "Anna", WRITTEN_AT, [["the plan"]])


async def test_a_corrected_file_of_a_loaded_document_is_loaded(loading: DocumentLoading) -> None:
    event = await loading.send("M-1", mail(REPLY), "reply.eml")
    await loading.load(event)
    await loading.put("in/other", mail(QUESTION))
    other = event.model_copy(update={"blob_name": "in/other", "filename": "question.eml"})
    outcomes = await loading.load(other)
    assert not any(outcome.resumed for outcome in outcomes.values())
    assert await loading.rows("documents", "state", "blob_name", "title") == [
        ("loaded", "in/other", "gate")
    ]
    assert await loading.rows("document_versions", "blob_name", "text") == [
        ("in/M-1", "the answer")
    ]
    # What was inside the first file is there still.
    assert len(await loading.rows("attachments", "blob_name")) == 2
    assert (await loading.take(LoadStep.DEDUPE, event)).resumed


async def test_a_blob_that_was_replaced_is_loaded_when_its_message_comes_again(
    loading: DocumentLoading,
) -> None:
    event = await loading.send("M-1", mail(QUESTION))
    await loading.load(event)
    again = await loading.send("M-1", mail(REPLY))
    assert again == event
    outcomes = await loading.load(again)
    assert not any(outcome.resumed for outcome in outcomes.values())
    assert await loading.rows("documents", "state", "title") == [("loaded", "Re: gate")]
    assert await loading.rows("document_versions", "title") == [("gate",)]
    assert all(outcome.resumed for outcome in (await loading.load(again)).values())


async def test_a_late_older_file_is_kept_as_a_version(loading: DocumentLoading) -> None:
    newer = await loading.send("M-1", mail(REPLY), sent_at=WRITTEN_AT)
    await loading.load(newer)
    await loading.put("in/older", mail(QUESTION))
    sent = WRITTEN_AT - timedelta(days=1)
    older = newer.model_copy(update={"blob_name": "in/older", "sent_at": sent})
    for resumed in (False, True):
        outcome = (await loading.load(older))[LoadStep.DEDUPE]
        assert (outcome.superseded, outcome.resumed) == (True, resumed)
    assert await loading.rows("documents", "state", "title") == [("loaded", "Re: gate")]
    assert await loading.rows("document_versions", "blob_name") == [("in/older",)]


async def test_other_relations_of_a_document_are_added(loading: DocumentLoading) -> None:
    where = {"case_id": KEY.case_id, "batch_id": KEY.batch_id, "document_id": "M-1"}
    for related in ("M-2", "M-3"):
        event = DocumentRelations(**where, relations=(Relation(related_id=related),))
        await loading.load(event)
    assert await loading.rows("document_relations", "related_id") == [("M-2",), ("M-3",)]


async def test_files_that_are_there_are_attached_although_others_are_missing(
    loading: DocumentLoading,
) -> None:
    await loading.put("in/1.txt", b"one")
    with pytest.raises(ApplicationError) as raised:
        await loading.load(attachments_of("in/0.txt", "in/1.txt", "in/2.txt"))
    kind, message = failure_of(raised.value)
    assert kind == MISSING_BLOB
    assert message == "; ".join(
        f"in/{number}.txt is not in the blob store; upload it there, and try again with "
        "`docflow batch redrive --with-failed`"
        for number in (0, 2)
    )
    assert await loading.rows("attachments", "blob_name") == [("in/1.txt",)]
    for name in ("in/0.txt", "in/2.txt"):
        await loading.put(name, b"late")
    await loading.load(attachments_of("in/0.txt", "in/1.txt", "in/2.txt"))
    assert len(await loading.rows("attachments", "blob_name")) == 3


async def test_what_an_unfinished_load_of_another_message_did_is_done_anew(
    loading: DocumentLoading,
) -> None:
    event = await loading.send("M-1", mail(QUESTION), "question.eml")
    first = await loading.take(LoadStep.DEDUPE, event)
    await loading.take(LoadStep.EXTRACT, event, first.source)
    # Its run was terminated; the message was corrected.
    await loading.put("in/corrected", mail(REPLY))
    corrected = event.model_copy(update={"blob_name": "in/corrected", "filename": "reply.eml"})
    outcomes = await loading.load(corrected)
    assert not any(outcome.resumed for outcome in outcomes.values())
    assert await loading.rows("documents", "state", "blob_name", "title") == [
        ("loaded", "in/corrected", "Re: gate")
    ]


async def test_a_mail_is_loaded_with_all_its_parts(loading: DocumentLoading) -> None:
    event = await loading.send("M-1", mail(REPLY), "reply.eml", tags=("Urgent",))
    outcomes = await loading.load(event)
    assert not any(outcome.resumed for outcome in outcomes.values())
    assert await loading.rows("documents", "document_id", "state", "media_type", "title") == [
        ("M-1", "loaded", "message/rfc822", "Re: gate")
    ]
    assert await loading.rows("document_texts", "document_id", "text") == [("M-1", "the answer")]
    assert await loading.rows("document_tags", "tag") == [
        ("Urgent",),
        ("has:attachments",),
        ("type:mail",),
        ("year:2024",),
    ]
    folder = f"batches/7/3/M-1/{sha256(mail(REPLY)).hexdigest()[:16]}/attachments"
    assert await loading.rows("attachments", "blob_name", "filename", "size") == [
        (f"{folder}/0001-plan.pdf", "plan.pdf", 8),
        (f"{folder}/0002-Größe.txt", "Größe.txt", 4),
    ]
    assert await loading.get(f"{folder}/0002-Größe.txt") == b"10 m"


@pytest.mark.parametrize("first", [QUESTION, REPLY])
async def test_mails_that_answer_each_other_are_related_in_any_order_of_arrival(
    loading: DocumentLoading, first: Letter
) -> None:
    second = REPLY if first is QUESTION else QUESTION
    for letter in (first, second):
        await loading.load(await loading.send(letter.message_id, mail(letter)))
    assert await loading.rows("document_relations", "document_id", "related_id", "kind") == [
        ("reply@site.example", "question@site.example", "reply")
    ]


async def test_a_step_that_is_done_is_not_done_again(loading: DocumentLoading) -> None:
    event = await loading.send("M-1", mail(REPLY))
    first = await loading.load(event)
    before = await _everything(loading)
    # Neither the document nor what was found in it is looked at again.
    empty = DocumentLoading(loading.folder, loading.database, loading.texts)
    second = await empty.load(event)
    assert all(outcome.resumed for outcome in second.values())
    assert second[LoadStep.DEDUPE].source == first[LoadStep.DEDUPE].source
    assert await _everything(loading) == before


async def _everything(loading: DocumentLoading) -> list[Any]:
    return [
        await loading.rows("documents", "document_id", "state", "sha256"),
        await loading.rows("document_texts", "document_id", "text"),
        await loading.rows("document_tags", "document_id", "tag"),
        await loading.rows("attachments", "document_id", "blob_name", "sha256"),
    ]


@pytest.mark.parametrize("last", [1, 2, 3])
async def test_what_was_found_is_kept_as_a_whole_or_found_again(
    loading: DocumentLoading, monkeypatch: pytest.MonkeyPatch, last: int
) -> None:
    uploads: list[str] = []
    upload = loading.blobs.upload

    async def fail_at_last(source: Path, name: str, *, overwrite: bool = True) -> BlobRef:
        uploads.append(name)
        if len(uploads) == last:
            raise Unavailable("the blob store is away")
        return await upload(source, name, overwrite=overwrite)

    event = await loading.send("M-1", mail(REPLY))
    source = (await loading.take(LoadStep.DEDUPE, event)).source
    with monkeypatch.context() as patched:
        patched.setattr(loading.blobs, "upload", fail_at_last)
        with pytest.raises(ApplicationError) as raised:
            await loading.take(LoadStep.EXTRACT, event, source)
    assert failure_of(raised.value)[0] == TRANSIENT
    assert await loading.rows("document_texts", "text") == []
    outcomes = await loading.load(event)
    assert [step for step, outcome in outcomes.items() if outcome.resumed] == [LoadStep.DEDUPE]
    assert len(await loading.rows("attachments", "blob_name")) == 2
    assert await loading.rows("documents", "state") == [("loaded",)]


async def test_of_the_same_bytes_only_the_first_are_kept(loading: DocumentLoading) -> None:
    await loading.load(await loading.send("D-1", PLAN))
    outcomes = await loading.load(await loading.send("D-2", PLAN))
    assert [outcome.duplicate_of for outcome in outcomes.values()] == ["D-1"]
    assert await loading.rows("documents", "document_id", "state", "duplicate_of") == [
        ("D-1", "loaded", None),
        ("D-2", "duplicate", "D-1"),
    ]
    again = await loading.take(LoadStep.DEDUPE, await loading.send("D-2", PLAN))
    assert (again.duplicate_of, again.resumed) == ("D-1", True)


async def test_a_document_that_is_not_there_is_named(loading: DocumentLoading) -> None:
    event = await loading.send("D-1", PLAN)
    await loading.blobs.delete(event.blob_name)
    with pytest.raises(ApplicationError) as raised:
        await loading.load(event)
    assert failure_of(raised.value)[0] == MISSING_BLOB
    assert "in/D-1 is not in the blob store" in raised.value.message


async def test_an_unreadable_document_is_reported_with_the_reason(loading: DocumentLoading) -> None:
    with pytest.raises(ApplicationError) as raised:
        await loading.load(await loading.send("D-1", PLAN[:500]))
    assert failure_of(raised.value)[0] == UNREADABLE_DOCUMENT
    assert raised.value.non_retryable


async def test_a_file_that_is_replaced_meanwhile_is_refused(loading: DocumentLoading) -> None:
    event = await loading.send("D-1", PLAN)
    source = (await loading.take(LoadStep.DEDUPE, event)).source
    await loading.put(event.blob_name, b"something else")
    with pytest.raises(ApplicationError) as raised:
        await loading.take(LoadStep.EXTRACT, event, source)
    assert failure_of(raised.value)[0] == PERMANENT
    assert "in/D-1 was replaced" in raised.value.message


@pytest.mark.parametrize("step", [LoadStep.TAGS, LoadStep.ATTACHMENTS])
async def test_findings_of_other_bytes_are_not_used(
    loading: DocumentLoading, step: LoadStep
) -> None:
    event = await loading.send("M-1", mail(REPLY))
    source = (await loading.take(LoadStep.DEDUPE, event)).source
    assert source is not None
    await loading.take(LoadStep.EXTRACT, event, source)
    with pytest.raises(ApplicationError) as other_bytes:
        await loading.take(step, event, source.model_copy(update={"sha256": "00" * 32}))
    folder = f"batches/7/3/M-1/{source.sha256[:16] if source.sha256 else ''}"
    await loading.blobs.delete(f"{folder}/extract.json")
    with pytest.raises(ApplicationError) as nothing:
        await loading.take(step, event, source)
    for raised in (other_bytes, nothing):
        assert failure_of(raised.value)[0] == PERMANENT
        assert "--with-failed" in raised.value.message


async def test_findings_of_a_release_that_kept_them_in_another_place_are_used(
    loading: DocumentLoading,
) -> None:
    event = await loading.send("M-1", mail(REPLY))
    source = (await loading.take(LoadStep.DEDUPE, event)).source
    assert source is not None and source.sha256 is not None
    await loading.take(LoadStep.EXTRACT, event, source)
    name = f"batches/7/3/M-1/{source.sha256[:16]}/extract.json"
    await loading.put("batches/7/3/M-1/extract.json", await loading.get(name))
    await loading.blobs.delete(name)
    await loading.take(LoadStep.ATTACHMENTS, event, source)
    assert len(await loading.rows("attachments", "filename")) == 2


async def test_a_step_of_another_event_is_refused(loading: DocumentLoading) -> None:
    relations = DocumentRelations.model_validate(
        {**KEY.model_dump(), "document_id": "D-1", "relations": [{"related_id": "D-2"}]}
    )
    for step in (LoadStep.DEDUPE, LoadStep.EXTRACT, LoadStep.TAGS, LoadStep.ATTACHMENTS):
        with pytest.raises(ApplicationError, match=f"{step} is not a step of BATCH_DOCUMENT"):
            await loading.take(step, relations)
    with pytest.raises(ApplicationError, match="relations is not a step of BATCH_ATTACHMENTS"):
        await loading.take(LoadStep.RELATIONS, attachments_of("in/1.jpg"))


async def test_a_dead_letter_is_shown_as_failed_until_another_pass_loads_it(
    loading: DocumentLoading,
) -> None:
    event = await loading.send("D-1", PLAN, "plan.pdf", tags=("A",))
    for _ in range(2):
        assert not (await loading.give_up(event)).final
    bodies = set(loading.cloud.queue(NAMES.dead_letters).messages)
    assert [DOCUMENT_EVENT.validate_json(body) for body in bodies] == [event]
    shown = [("failed", "extract: it is cut off")]
    assert await loading.rows("documents", "state", "reason") == shown
    assert await loading.rows("failed_messages", "document_id") == []
    await loading.load(event)
    assert await loading.rows("documents", "state", "reason") == [("loaded", None)]


async def test_on_the_final_pass_it_is_recorded_as_failed(loading: DocumentLoading) -> None:
    event = await loading.send("D-1", PLAN)
    await loading.batches.start_pass(KEY, 2, final=True)
    for _ in range(2):
        assert (await loading.give_up(event)).final
    assert loading.cloud.queue(NAMES.dead_letters).messages == []
    assert await loading.rows("documents", "document_id", "state", "reason") == [
        ("D-1", "failed", "extract: it is cut off")
    ]


async def test_without_a_queue_for_dead_letters_it_is_recorded_as_well(
    loading: DocumentLoading,
) -> None:
    loading.cloud.fail("dead_letter", Denied("there is no such queue"))
    assert (await loading.give_up(await loading.send("D-1", PLAN))).final
    assert await loading.rows("documents", "state") == [("failed",)]


@pytest.mark.parametrize(
    "document_id", [".", "..", "a b", "ä" * 200, "sha256-x", "what?*", "x" * 101, ".hidden"]
)
async def test_every_document_id_has_a_folder_of_its_own(
    loading: DocumentLoading, document_id: str
) -> None:
    event = DocumentProcessed(case_id=7, batch_id=3, document_id=document_id, blob_name="in/any")
    folder = folder_of(event)
    assert folder.startswith("batches/7/3/sha256-")
    BlobRef.model_validate({"name": f"{folder}/attachments/0001-x", "size": 0})
    other = event.model_copy(update={"document_id": folder.rpartition("/")[2]})
    assert folder_of(other) != folder


async def test_forty_sample_documents(loading: DocumentLoading, tmp_path: Path) -> None:
    documents = sample_documents(tmp_path / "samples")
    for document in documents:
        await loading.put(f"in/{document.document_id}", document.path.read_bytes())
        event = document.event(KEY, f"in/{document.document_id}")
        try:
            await loading.load(event)
        except ApplicationError as error:
            assert error.type == UNREADABLE_DOCUMENT
            await loading.store.fail(event, error.message)
    ends = dict(await loading.rows("documents", "document_id", "state"))
    assert ends == {document.document_id: document.ends.value for document in documents}
    replies = [row for row in await loading.rows("document_relations", "kind") if row == ("reply",)]
    # Every mail names all mails of its thread before it: threads of 4, 3, 3, and one from Outlook.
    assert len(replies) == 6 + 3 + 3 + 1
