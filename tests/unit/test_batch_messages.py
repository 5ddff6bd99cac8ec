"""Events of batches are read strictly: what is none is refused, by the names on the wire."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.batches import (
    CANARY,
    DOCUMENT_EVENT,
    EVENT_TYPES,
    JOB_EVENT,
    LARGEST_ID,
    MESSAGE_BYTES,
    AttachedFile,
    BatchEndFinished,
    CancelMode,
    DocumentAttachments,
    DocumentEvent,
    DocumentProcessed,
    DocumentRelations,
    ImportCancelled,
    JobEvent,
    JobFinished,
    JobStarted,
    RedriveRequested,
    Relation,
    RelationKind,
    Timings,
)
from workers.bridges.batch_reading import read_document_event, read_job_event
from workers.bridges.bodies import RefusedMessage
from workers.bridges.verdicts import (
    DESCRIPTION_LIMIT,
    INVALID_MESSAGE,
    MALFORMED_BODY,
    UNKNOWN_EVENT_TYPE,
)

Read = Callable[[bytes], JobEvent | DocumentEvent | None]
READERS: tuple[Read, ...] = (read_job_event, read_document_event)

STARTED = {"eventType": "JOB_STARTED", "caseId": 7, "batchId": 3}
DOCUMENT = {
    "eventType": "DOCUMENT_PROCESSED",
    "caseId": 7,
    "batchId": 3,
    "documentId": "D-1",
    "blobName": "cases/7/letter.pdf",
}
EVERY_TIME = {
    "settle": 1,
    "poll": 2,
    "hold": 3,
    "maxRedrives": 4,
    "grace": 5,
    "stuckAfter": 6,
    "delivery": 7,
    "end": 8,
    "patience": 9,
}


def raw_of(body: Any) -> bytes:
    return json.dumps(body).encode()


def enveloped(raw: bytes) -> bytes:
    """As SNS delivers it where raw delivery is off."""
    return raw_of(
        {
            "Type": "Notification",
            "MessageId": "4e1e0b8a",
            "TopicArn": "arn:aws:sns:eu-central-1:000000000000:documents",
            "Message": raw.decode(),
            "Timestamp": "2026-01-01T00:00:00.000Z",
            "MessageAttributes": {"eventType": {"Type": "String", "Value": "X"}},
        }
    )


def refused(read: Read, raw: bytes) -> RefusedMessage:
    with pytest.raises(RefusedMessage) as caught:
        read(raw)
    said = caught.value
    assert said.reason in {MALFORMED_BODY, UNKNOWN_EVENT_TYPE, INVALID_MESSAGE}
    assert 0 < len(said.description) <= DESCRIPTION_LIMIT
    assert said.description.isprintable()
    return said


@pytest.mark.parametrize(
    ("body", "event"),
    [
        (STARTED, JobStarted(case_id=7, batch_id=3)),
        (
            {**STARTED, "timings": EVERY_TIME},
            JobStarted(
                case_id=7,
                batch_id=3,
                timings=Timings(
                    settle=1,
                    poll=2,
                    hold=3,
                    max_redrives=4,
                    grace=5,
                    stuck_after=6,
                    delivery=7,
                    end=8,
                    patience=9,
                ),
            ),
        ),
        ({**STARTED, "eventType": "JOB_FINISHED"}, JobFinished(case_id=7, batch_id=3)),
        ({**STARTED, "eventType": "IMPORT_CANCELLED"}, ImportCancelled(case_id=7, batch_id=3)),
        (
            {**STARTED, "eventType": "IMPORT_CANCELLED", "mode": "partial"},
            ImportCancelled(case_id=7, batch_id=3, mode=CancelMode.PARTIAL),
        ),
        ({**STARTED, "eventType": "BATCH_END_FINISHED"}, BatchEndFinished(case_id=7, batch_id=3)),
        ({**STARTED, "eventType": "REDRIVE_REQUESTED"}, RedriveRequested(case_id=7, batch_id=3)),
        # As publishers of the system that is replaced write ids, and with what they add.
        (
            {**STARTED, "caseId": "7", "batchId": " 3", "status": "SUCCESS"},
            JobStarted(case_id=7, batch_id=3),
        ),
        ({**STARTED, "caseId": LARGEST_ID}, JobStarted(case_id=LARGEST_ID, batch_id=3)),
    ],
)
def test_every_job_event_is_read(body: dict[str, Any], event: JobEvent) -> None:
    assert read_job_event(raw_of(body)) == event
    assert read_job_event(b"\xef\xbb\xbf" + raw_of(body)) == event
    assert read_job_event(enveloped(raw_of(body))) == event


@pytest.mark.parametrize(
    ("body", "event"),
    [
        (
            DOCUMENT,
            DocumentProcessed(
                case_id=7, batch_id=3, document_id="D-1", blob_name="cases/7/letter.pdf"
            ),
        ),
        (
            {
                **DOCUMENT,
                "filename": "Letter.pdf",
                "tags": [" urgent ", "invoice"],
                "relations": [{"relatedId": "D-2", "kind": "reply"}, {"relatedId": "D-3"}],
            },
            DocumentProcessed(
                case_id=7,
                batch_id=3,
                document_id="D-1",
                blob_name="cases/7/letter.pdf",
                filename="Letter.pdf",
                tags=("urgent", "invoice"),
                relations=(
                    Relation(related_id="D-2", kind=RelationKind.REPLY),
                    Relation(related_id="D-3", kind=RelationKind.RELATED),
                ),
            ),
        ),
        (
            {
                "eventType": "BATCH_DOCUMENT_RELATIONS",
                "caseId": 7,
                "batchId": 3,
                "documentId": "D-1",
                "relations": [{"relatedId": "D-2", "kind": "version"}],
            },
            DocumentRelations(
                case_id=7,
                batch_id=3,
                document_id="D-1",
                relations=(Relation(related_id="D-2", kind=RelationKind.VERSION),),
            ),
        ),
        (
            {
                "eventType": "BATCH_ATTACHMENTS",
                "caseId": 7,
                "batchId": 3,
                "documentId": "D-1",
                "attachments": [{"blobName": "cases/7/plan.docx", "filename": "plan.docx"}],
            },
            DocumentAttachments(
                case_id=7,
                batch_id=3,
                document_id="D-1",
                attachments=(AttachedFile(blob_name="cases/7/plan.docx", filename="plan.docx"),),
            ),
        ),
    ],
)
def test_every_document_event_is_read(body: dict[str, Any], event: DocumentEvent) -> None:
    assert read_document_event(raw_of(body)) == event
    assert read_document_event(enveloped(raw_of(body))) == event


@pytest.mark.parametrize("wrap", [lambda raw: raw, enveloped])
def test_a_canary_is_no_document(wrap: Callable[[bytes], bytes]) -> None:
    canary = raw_of({"eventType": CANARY, "caseId": 7, "batchId": 3, "messageId": "m"})
    assert read_document_event(wrap(canary)) is None
    assert refused(read_job_event, wrap(canary)).reason == UNKNOWN_EVENT_TYPE


ids = st.integers(1, LARGEST_ID)
names = (
    st.text(min_size=1, max_size=40)
    .map(lambda text: "".join(mark for mark in text if mark.isprintable() and mark not in "/\\"))
    .map(lambda text: text.strip() or "x")
)


def made(contract: type[Any], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """`st.builds` would look at the names on the wire, and make up values for them."""
    return st.fixed_dictionaries(fields).map(lambda values: contract(**values))


relations = st.lists(
    made(Relation, related_id=names, kind=st.sampled_from(RelationKind)), min_size=1, max_size=4
).map(tuple)
job_events = st.one_of(
    made(
        JobStarted,
        case_id=ids,
        batch_id=ids,
        timings=st.none() | made(Timings, poll=st.integers(1, 86_400)),
    ),
    made(ImportCancelled, case_id=ids, batch_id=ids, mode=st.sampled_from(CancelMode)),
    *(
        made(kind, case_id=ids, batch_id=ids)
        for kind in (JobFinished, BatchEndFinished, RedriveRequested)
    ),
)
document_events = st.one_of(
    made(
        DocumentProcessed,
        case_id=ids,
        batch_id=ids,
        document_id=names,
        blob_name=names.filter(lambda name: name not in (".", "..")),
        filename=st.none() | names,
        tags=st.lists(names, max_size=3).map(tuple),
        relations=relations,
    ),
    made(DocumentRelations, case_id=ids, batch_id=ids, document_id=names, relations=relations),
)


@settings(max_examples=200, deadline=None)
@given(event=job_events, ascii_only=st.booleans(), wrap=st.booleans())
def test_a_job_event_comes_through_as_it_was_sent(
    event: JobEvent, ascii_only: bool, wrap: bool
) -> None:
    body = JOB_EVENT.dump_python(event, mode="json", by_alias=True)
    raw = json.dumps(body, ensure_ascii=ascii_only).encode()
    assert read_job_event(enveloped(raw) if wrap else raw) == event


@settings(max_examples=200, deadline=None)
@given(event=document_events, ascii_only=st.booleans(), wrap=st.booleans())
def test_a_document_event_comes_through_as_it_was_sent(
    event: DocumentEvent, ascii_only: bool, wrap: bool
) -> None:
    body = DOCUMENT_EVENT.dump_python(event, mode="json", by_alias=True)
    raw = json.dumps(body, ensure_ascii=ascii_only).encode()
    assert read_document_event(enveloped(raw) if wrap else raw) == event


@settings(max_examples=200, deadline=None)
@given(raw=st.binary(max_size=200).filter(lambda raw: b"eventType" not in raw))
@pytest.mark.parametrize("read", READERS)
def test_arbitrary_bytes_are_refused(read: Read, raw: bytes) -> None:
    assert refused(read, raw).reason in {MALFORMED_BODY, UNKNOWN_EVENT_TYPE}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(value=JSON, wrap=st.booleans())
@pytest.mark.parametrize("read", READERS)
def test_arbitrary_json_is_refused(read: Read, value: Any, wrap: bool) -> None:
    raw = raw_of(value)
    said = refused(read, enveloped(raw) if wrap else raw)
    assert said.reason in {MALFORMED_BODY, UNKNOWN_EVENT_TYPE}


NO_ID = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**17), 0),
    st.integers(min_value=LARGEST_ID + 1, max_value=10**18),
    st.floats(1.1, 1.9),
    st.text("abc -.", max_size=10),
    st.lists(st.integers(0, 9), max_size=2),
    st.dictionaries(st.text("abc", max_size=3), st.integers(0, 9), max_size=2),
)
NO_NAME = st.sampled_from(["", 7, None, [], {}, True, "x" * 1025, "a/../b"])


@settings(max_examples=200, deadline=None)
@given(data=st.data(), wrap=st.booleans())
def test_one_broken_field_is_named_as_on_the_wire(data: st.DataObject, wrap: bool) -> None:
    read, whole = data.draw(
        st.sampled_from([(read_job_event, STARTED), (read_document_event, DOCUMENT)])
    )
    field = data.draw(st.sampled_from([name for name in whole if name != "eventType"]))
    body = {name: value for name, value in whole.items() if name != field}
    if data.draw(st.booleans()):
        body[field] = data.draw(NO_ID if field in ("caseId", "batchId") else NO_NAME)
    said = refused(read, enveloped(raw_of(body)) if wrap else raw_of(body))
    assert said.reason == INVALID_MESSAGE
    assert said.description.startswith(f"{field}: ")


@settings(max_examples=200, deadline=None)
@given(data=st.data(), wrap=st.booleans())
def test_a_cut_event_is_malformed(data: st.DataObject, wrap: bool) -> None:
    raw = enveloped(raw_of(STARTED)) if wrap else raw_of(STARTED)
    cut = data.draw(st.integers(0, len(raw) - 1))
    assert refused(read_job_event, raw[:cut]).reason == MALFORMED_BODY


PUBLISHED = ("LOADER_STARTED", "BATCH_END_START", "LOADER_FINISHED")


@settings(max_examples=200, deadline=None)
@given(value=JSON.filter(lambda value: value not in EVENT_TYPES) | st.sampled_from(PUBLISHED))
def test_an_unknown_event_type_is_named(value: Any) -> None:
    said = refused(read_job_event, raw_of({**STARTED, "eventType": value}))
    assert said.reason in {UNKNOWN_EVENT_TYPE, MALFORMED_BODY}
    if said.reason == UNKNOWN_EVENT_TYPE:
        assert said.description.startswith("eventType ")
        assert "JOB_STARTED" in said.description


TAGGED = raw_of({**DOCUMENT, "tags": ["HERE"]})


@pytest.mark.parametrize(
    ("raw", "reason", "says"),
    [
        (b"", MALFORMED_BODY, "not JSON"),
        (b"[1]", MALFORMED_BODY, "not a JSON object"),
        (b"\xff\xfe{}", MALFORMED_BODY, "not UTF-8: byte 0"),
        (b"[" * 200_000, MALFORMED_BODY, "nested too deeply"),
        (b"{" + b" " * MESSAGE_BYTES, MALFORMED_BODY, "at most 262144"),
        (b'{"eventType":"X","eventType":"Y"}', MALFORMED_BODY, "'eventType' stands there twice"),
        (TAGGED.replace(b"7,", b"NaN,", 1), MALFORMED_BODY, "NaN is not a number"),
        (TAGGED.replace(b"7,", b"1e999,", 1), MALFORMED_BODY, "too large"),
        (TAGGED.replace(b"7,", b"9" * 5000 + b",", 1), MALFORMED_BODY, "too many digits"),
        (TAGGED.replace(b"HERE", b"\\ud800"), MALFORMED_BODY, "not JSON"),
        (TAGGED.replace(b"HERE", b"\\u0000"), MALFORMED_BODY, "NUL"),
        (TAGGED.replace(b'"HERE"', b'" "'), INVALID_MESSAGE, "tags.0: "),
        (raw_of({**DOCUMENT, "tags": ["x"] * 101}), INVALID_MESSAGE, "tags: "),
        (raw_of({**DOCUMENT, "documentId": "a/b"}), INVALID_MESSAGE, "without slashes"),
        (raw_of({**DOCUMENT, "documentId": "a\u202eb"}), INVALID_MESSAGE, "printable"),
        (raw_of({**DOCUMENT, "blobName": "../x"}), INVALID_MESSAGE, "blobName: "),
        (
            raw_of({**DOCUMENT, "relations": [{"relatedId": 7}]}),
            INVALID_MESSAGE,
            "relations.0.relatedId: ",
        ),
        (
            raw_of({**DOCUMENT, "eventType": "BATCH_ATTACHMENTS", "attachments": [{}]}),
            INVALID_MESSAGE,
            "attachments.0.blobName: Field required; attachments.0.filename: Field required",
        ),
    ],
)
def test_a_refusal_says_what_is_wrong(raw: bytes, reason: str, says: str) -> None:
    said = refused(read_document_event, raw)
    assert said.reason == reason
    assert says in said.description


@pytest.mark.parametrize(
    ("message", "reason", "says"),
    [
        (None, MALFORMED_BODY, "Message"),
        ({"eventType": "JOB_STARTED"}, MALFORMED_BODY, "Message"),
        ("\ud800", MALFORMED_BODY, "not UTF-8"),
        ('{"eventType": "\\u0000"}', MALFORMED_BODY, "NUL"),
        ('{"a": 1, "a": 2}', MALFORMED_BODY, "'a' stands there twice"),
        (enveloped(raw_of(STARTED)).decode(), UNKNOWN_EVENT_TYPE, "eventType is missing"),
    ],
)
def test_an_envelope_is_no_way_around_the_checks(message: Any, reason: str, says: str) -> None:
    said = refused(read_job_event, raw_of({"Type": "Notification", "Message": message}))
    assert said.reason == reason
    assert says in said.description


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"event_type": "JOB_STARTED", "case_id": 7, "batch_id": 3}, "eventType is missing"),
        ({"eventType": "JOB_STARTED", "case_id": 7, "batch_id": 3}, "caseId: Field required"),
        ({**STARTED, "event_type": "JOB_FINISHED"}, "eventType: "),
        ({**STARTED, "caseId": True, "batchId": False}, "caseId: Input should be a valid integer"),
        ({**STARTED, "timings": {"maxRedrives": 21}}, "timings.maxRedrives: "),
        ({**STARTED, "timings": {"poll": 0}}, "timings.poll: "),
        ({**STARTED, "eventType": "IMPORT_CANCELLED", "mode": "all"}, "mode: "),
    ],
)
def test_only_the_names_and_values_of_the_wire_count(body: dict[str, Any], says: str) -> None:
    assert says in refused(read_job_event, raw_of(body)).description


def test_names_of_our_own_side_change_nothing() -> None:
    body = {**STARTED, "case_id": 8, "batch_id": 9, "timings": {"max_redrives": 20}}
    event = read_job_event(raw_of(body))
    assert event == JobStarted(case_id=7, batch_id=3, timings=Timings())


def test_a_refusal_repeats_no_values() -> None:
    secret = "AccountKey=c2VjcmV0"
    said = refused(
        read_document_event,
        raw_of({**DOCUMENT, "caseId": secret, "filename": [secret], "tags": {secret: 1}}),
    )
    assert "filename" in said.description
    assert secret not in said.description


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a":"' + b"\\\\" * (MESSAGE_BYTES // 2 - 8) + b'"}',
        b"{" + b",".join(b'"%x":1' % number for number in range(28_000)) + b',"0":1}',
        enveloped(b'{"a":' + b"9" * (MESSAGE_BYTES - 500) + b"}"),
        raw_of({**DOCUMENT, "tags": [7] * 60_000}),
    ],
    ids=["backslashes", "fields", "digits", "problems"],
)
def test_the_largest_bodies_do_not_block_the_loop(raw: bytes) -> None:
    assert len(raw) <= MESSAGE_BYTES
    began = time.process_time()
    refused(read_document_event, raw)
    assert time.process_time() - began < 1.0
