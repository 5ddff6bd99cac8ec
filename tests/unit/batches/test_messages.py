"""Events of batches are read strictly: anything else is refused, by the names on the wire."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.batches.messages import DOCUMENT, STARTED, enveloped, raw_of, refused
from workers.batches.messages import read_case_event, read_document_event
from workers.shared.services.bodies import INVALID_MESSAGE, MALFORMED_BODY, UNKNOWN_EVENT_TYPE
from workflows.batches.events import (
    CASE_EVENT,
    EVENT_TYPES,
    MESSAGE_BYTES,
    PASSED_ON_BYTES,
    BatchEndFinished,
    CancelMode,
    CaseEvent,
    ImportCancelled,
    JobFinished,
    JobStarted,
    RedriveRequested,
    with_fields_of,
)
from workflows.batches.loads import (
    CANARY,
    AttachedFile,
    DocumentAttachments,
    DocumentEvent,
    DocumentProcessed,
    DocumentRelations,
    Relation,
    RelationKind,
)
from workflows.batches.names import LARGEST_ID, Timings
from workflows.shared.contracts import body_of, names_of_fields

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
    "slowAfter": 10,
}


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
                    slow_after=10,
                ),
            ),
        ),
        ({**STARTED, "eventType": "JOB_FINISHED"}, JobFinished(case_id=7, batch_id=3)),
        ({**STARTED, "eventType": "IMPORT_CANCELLED"}, ImportCancelled(case_id=7, batch_id=3)),
        (
            # Remarks of other systems are no reason to reject their message.
            {**STARTED, "eventType": "IMPORT_CANCELLED", "reason": 600 * "x", "by": {"id": 7}},
            ImportCancelled(case_id=7, batch_id=3, reason=500 * "x"),
        ),
        (
            {**STARTED, "eventType": "IMPORT_CANCELLED", "mode": "partial"},
            ImportCancelled(case_id=7, batch_id=3, mode=CancelMode.PARTIAL),
        ),
        ({**STARTED, "eventType": "BATCH_END_FINISHED"}, BatchEndFinished(case_id=7, batch_id=3)),
        ({**STARTED, "eventType": "REDRIVE_REQUESTED"}, RedriveRequested(case_id=7, batch_id=3)),
        # As publishers of the system that is replaced write ids, and with what they add.
        (
            {**STARTED, "caseId": "7", "batchId": " 3", "status": "SUCCESS"},
            JobStarted(case_id=7, batch_id=3, passed_on='{"status": "SUCCESS"}'),
        ),
        ({**STARTED, "caseId": LARGEST_ID}, JobStarted(case_id=LARGEST_ID, batch_id=3)),
    ],
)
def test_every_case_event_is_read(body: dict[str, Any], event: CaseEvent) -> None:
    assert read_case_event(raw_of(body)) == event
    assert read_case_event(b"\xef\xbb\xbf" + raw_of(body)) == event
    assert read_case_event(enveloped(raw_of(body))) == event


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
    assert refused(read_case_event, wrap(canary)).reason == UNKNOWN_EVENT_TYPE


TAGGED = raw_of({**DOCUMENT, "tags": ["HERE"]})


@pytest.mark.parametrize(
    ("raw", "reason", "says"),
    [
        (b"", MALFORMED_BODY, "not JSON"),
        (b"[1]", MALFORMED_BODY, "not a JSON object"),
        (b"\xff\xfe{}", MALFORMED_BODY, "not UTF-8: byte 0"),
        (b"[" * 200_000, MALFORMED_BODY, "nested too deeply"),
        (b"{" + b" " * MESSAGE_BYTES, MALFORMED_BODY, "at most 262144"),
        (b'{"eventType":"X","eventType":"Y"}', MALFORMED_BODY, "'eventType' appears twice"),
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
def test_a_refusal_names_what_is_wrong(raw: bytes, reason: str, says: str) -> None:
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
        ('{"a": 1, "a": 2}', MALFORMED_BODY, "'a' appears twice"),
        (enveloped(raw_of(STARTED)).decode(), UNKNOWN_EVENT_TYPE, "eventType is missing"),
    ],
)
def test_an_envelope_is_no_way_around_the_checks(message: Any, reason: str, says: str) -> None:
    said = refused(read_case_event, raw_of({"Type": "Notification", "Message": message}))
    assert said.reason == reason
    assert says in said.description


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"event_type": "JOB_STARTED", "case_id": 7, "batch_id": 3}, "eventType is missing"),
        ({"eventType": "JOB_STARTED", "case_id": 7, "batch_id": 3}, "caseId: Field required"),
        ({**STARTED, "event_type": "JOB_FINISHED"}, "eventType: "),
        ({**STARTED, "caseId": True, "batchId": False}, "caseId: Input should be a valid integer"),
        ({**STARTED, "caseId": "1_0"}, "caseId: Input should be a valid integer"),
        (
            {**STARTED, "eventType": "JOB_FINISHED", "documents": True},
            "documents: Input should be a valid integer",
        ),
        ({**STARTED, "timings": {"maxRedrives": 21}}, "timings.maxRedrives: "),
        ({**STARTED, "timings": {"poll": 0}}, "timings.poll: "),
        ({**STARTED, "eventType": "IMPORT_CANCELLED", "mode": "all"}, "mode: "),
    ],
)
def test_only_the_names_and_values_of_the_wire_count(body: dict[str, Any], says: str) -> None:
    assert says in refused(read_case_event, raw_of(body)).description


def test_names_of_our_own_side_change_nothing() -> None:
    body = {**STARTED, "case_id": 8, "batch_id": 9, "timings": {"max_redrives": 20}}
    event = read_case_event(raw_of(body))
    assert event.model_copy(update={"passed_on": None}) == JobStarted(
        case_id=7, batch_id=3, timings=Timings()
    )


@pytest.mark.parametrize("kind", EVENT_TYPES)
def test_fields_of_a_case_event_that_are_not_used_are_kept_to_be_passed_on(kind: str) -> None:
    more = {"user": {"id": 9}, "passedOn": ["x"], "case_id": None, "größe": 1.5}
    event = read_case_event(raw_of({**STARTED, "eventType": kind, **more}))
    assert event.passed_on is not None
    assert json.loads(event.passed_on) == more
    assert CASE_EVENT.validate_json(CASE_EVENT.dump_json(event)) == event


@pytest.mark.parametrize(
    ("kind", "name", "known"),
    [
        ("IMPORT_CANCELLED", "Mode", "mode"),
        ("JOB_FINISHED", "DOCUMENTS", "documents"),
        ("JOB_STARTED", "Timings", "timings"),
        ("REDRIVE_REQUESTED", "with_failed", "withFailed"),
    ],
)
def test_a_field_that_decides_something_and_is_spelt_otherwise_is_refused(
    kind: str, name: str, known: str
) -> None:
    body = {**STARTED, "eventType": kind, name: None}
    said = refused(read_case_event, raw_of(body))
    assert (said.reason, said.description) == (INVALID_MESSAGE, f"'{name}' is spelt {known}")
    values = {"mode": "partial", "documents": 3, "timings": {}, "withFailed": True}
    assert read_case_event(raw_of({**body, known: values[known]})).passed_on is not None
    remark = read_case_event(raw_of({**STARTED, "eventType": "IMPORT_CANCELLED", "Reason": "x"}))
    assert remark.passed_on == '{"Reason": "x"}'


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"tag": ["urgent"]}, "tag"),
        ({"case_id": 1}, "case_id"),
        ({"relations": [{"relatedId": "a", "Kind": "reply"}]}, "relations.0.Kind"),
    ],
)
def test_a_document_event_with_an_unknown_field_is_refused(
    fields: dict[str, Any], where: str
) -> None:
    said = refused(read_document_event, raw_of({**DOCUMENT, **fields}))
    assert said.reason == INVALID_MESSAGE
    assert said.description == f"{where}: Extra inputs are not permitted"


def test_a_dead_letter_that_docflow_sends_to_itself_is_read() -> None:
    event = read_document_event(raw_of({**DOCUMENT, "relations": [{"relatedId": "a"}]}))
    assert event is not None
    assert read_document_event(body_of(event)) == event


def test_entries_of_timings_that_are_no_times_are_passed_on() -> None:
    event = read_case_event(raw_of({**STARTED, "timings": {"poll": 5, "polll": 6, "settel": 7}}))
    assert isinstance(event, JobStarted) and event.timings == Timings(poll=5)
    assert event.passed_on is not None
    assert json.loads(event.passed_on) == {"timings": {"polll": 6, "settel": 7}}
    kept = with_fields_of(event, None)
    assert kept is not None
    names = ["JOB_STARTED.timings.polll", "JOB_STARTED.timings.settel"]
    assert list(names_of_fields(json.loads(kept))) == names
    known = read_case_event(raw_of({**STARTED, "timings": {"poll": 5}}))
    assert known.passed_on is None


def test_fields_to_be_passed_on_have_a_limit() -> None:
    said = refused(read_case_event, raw_of({**STARTED, "list": "x" * PASSED_ON_BYTES}))
    assert said.reason == INVALID_MESSAGE
    assert "passes on have 49,164 bytes; at most 49,152 are accepted" in said.description


def test_a_message_names_as_many_relations_or_attachments_as_it_holds() -> None:
    where = {"caseId": 7, "batchId": 3, "documentId": "D-1"}
    for kind, field, one in (
        ("BATCH_DOCUMENT_RELATIONS", "relations", {"relatedId": "a"}),
        ("BATCH_ATTACHMENTS", "attachments", {"blobName": "a", "filename": "a"}),
    ):
        size = len(json.dumps(one, separators=(",", ":"))) + 1
        body = {**where, "eventType": kind, field: [one] * ((MESSAGE_BYTES - 120) // size)}
        raw = json.dumps(body, separators=(",", ":")).encode()
        assert MESSAGE_BYTES - 100 < len(raw) <= MESSAGE_BYTES
        event = read_document_event(raw)
        assert event is not None and len(getattr(event, field)) == len(body[field])


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
def test_the_largest_bodies_do_not_take_for_ever(raw: bytes) -> None:
    # Each takes well under a second; an expression or a loop that goes back over what it has
    # read takes minutes.
    assert len(raw) <= MESSAGE_BYTES
    began = time.process_time()
    refused(read_document_event, raw)
    assert time.process_time() - began < 10
