"""The import intake refuses invalid messages, and says what is wrong with them."""

import asyncio
import json
import logging
import re
import time
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from tests.support.chaos import examples
from tests.support.memory.rejected import MemoryRejectedMessages
from workers.imports.intake import ImportIntake, summary
from workers.imports.messages import read_message
from workers.shared.services.bodies import (
    DESCRIPTION_LIMIT,
    INVALID_MESSAGE,
    MALFORMED_BODY,
    UNKNOWN_DOCUMENT_TYPE,
    Abandon,
    DeadLetter,
)
from workflows.imports.messages import MESSAGE_BYTES, DocumentType
from workflows.shared import contracts

FILE = {"blob_name": "incoming/equipment.xlsx"}
FIELDS: dict[DocumentType, dict[str, Any]] = {
    DocumentType.MTO: {**FILE, "service_id": "S1"},
    DocumentType.ESTIMATION_MASTER: {**FILE, "service_id": "S1"},
    DocumentType.SCHEDULE_EXTRACTION: {
        **FILE,
        "extraction_id": "X1",
        "primavera_project_id": "PLANT",
    },
    DocumentType.SCHEDULE_PROJECT_EXTRACTION: FILE,
    DocumentType.SCHEDULE_UPLOAD: {
        "temp_blob_name": "temp/plan.xer",
        "target_blob_name": "plans/plan.xer",
    },
    DocumentType.SCHEDULE_DELETE_ALL: {"activity_ids": ["A100"]},
    DocumentType.SCHEDULE_FILL_LEVEL: {"payload": {"level": 3, "value": "North"}},
    DocumentType.SCHEDULE_CLEAR_LEVEL: {"payload": {"level": 3}},
    DocumentType.SCHEDULE_FILL_COLUMN: {"payload": {"column": "area", "value": "North"}},
    DocumentType.EQUIPMENT: FILE,
    DocumentType.MATERIAL: FILE,
    DocumentType.CREW: FILE,
    DocumentType.CREW_MEMBER: FILE,
    DocumentType.CREW_TRADE: FILE,
    DocumentType.ESTIMATION_MASTER_DELETE: {"service_id": "S1"},
    DocumentType.MTO_DELETE: {"service_id": "S1"},
}
REQUIRED = {
    kind: sorted(
        {"task_id", "project_id", *fields}
        - {"activity_ids", "temp_blob_name", "extraction_id", "primavera_project_id"}
    )
    for kind, fields in FIELDS.items()
}


def body_of(kind: DocumentType, **changes: Any) -> dict[str, Any]:
    return {
        "document_type": kind.value,
        "task_id": "T1",
        "project_id": "P1",
        **FIELDS[kind],
        **changes,
    }


def raw_of(kind: DocumentType, **changes: Any) -> bytes:
    return json.dumps(body_of(kind, **changes)).encode()


@pytest.mark.parametrize("kind", list(DocumentType))
def test_a_message_that_is_recorded_after_its_start_can_be_read_again(kind: DocumentType) -> None:
    message = read_message(raw_of(kind))
    assert read_message(contracts.body_of(message)) == message


class NoTemporal:
    """Stands where a client stands when nothing may be started."""

    async def start_workflow(self, *_: Any, **__: Any) -> NoReturn:
        raise AssertionError("a refused message was started")


class FailingTemporal:
    def __init__(self, status: RPCStatusCode, message: str) -> None:
        self._error = RPCError(message, status, b"")

    async def start_workflow(self, *_: Any, **__: Any) -> NoReturn:
        raise self._error


def intake(client: object, rejected: MemoryRejectedMessages | None = None) -> ImportIntake:
    return ImportIntake(
        cast(Client, client), rejected or MemoryRejectedMessages(), queue="import-queue"
    )


@pytest.fixture(scope="module")
def run() -> Iterator[Callable[..., Any]]:
    with asyncio.Runner() as runner:
        yield runner.run


def refused(run: Callable[..., Any], raw: bytes) -> DeadLetter:
    rejected = MemoryRejectedMessages()
    verdict = run(intake(NoTemporal(), rejected).accept(raw, 0, "m1"))
    assert isinstance(verdict, DeadLetter)
    assert verdict.reason in {MALFORMED_BODY, UNKNOWN_DOCUMENT_TYPE, INVALID_MESSAGE}
    assert 0 < len(verdict.description) <= DESCRIPTION_LIMIT
    assert verdict.description.isprintable()
    [row] = run(rejected.list())
    assert (row.queue, row.message_id) == ("import-queue", "m1")
    assert (row.reason, row.description) == (verdict.reason, verdict.description)
    return verdict


def is_message(raw: bytes) -> bool:
    """Whether arbitrary bytes look enough like a message to be left to the other tests."""
    return b"document_type" in raw


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner),
    max_leaves=12,
)
NO_KEY = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.lists(st.text(max_size=3), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
    st.just(""),
    st.just("x" * 129),
    st.text(max_size=10).map(lambda text: f"/{text}"),
    st.text(max_size=10).map(lambda text: f"{text} \x00"),
)


@settings(max_examples=examples(100), deadline=None)
@given(raw=st.binary(max_size=200).filter(lambda raw: not is_message(raw)))
def test_arbitrary_bytes_are_refused(run: Callable[..., Any], raw: bytes) -> None:
    assert refused(run, raw).reason in {MALFORMED_BODY, UNKNOWN_DOCUMENT_TYPE}


@settings(max_examples=examples(100), deadline=None)
@given(value=JSON, encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))
def test_arbitrary_json_is_refused(run: Callable[..., Any], value: Any, encoding: str) -> None:
    raw = json.dumps(value).encode(encoding)
    assert refused(run, raw).reason in {MALFORMED_BODY, UNKNOWN_DOCUMENT_TYPE}


@settings(max_examples=examples(100), deadline=None)
@given(data=st.data())
def test_one_broken_field_is_named(run: Callable[..., Any], data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(DocumentType))
    field = data.draw(st.sampled_from(REQUIRED[kind]))
    body = body_of(kind)
    if data.draw(st.booleans()):
        del body[field]
    else:
        body[field] = data.draw(NO_KEY)
        if field in ("primavera_project_id", "blob_name", "target_blob_name"):
            body[field] = data.draw(st.sampled_from(["", 7, None, [], "x" * 1025]))
    raw = json.dumps(body).encode()
    verdict = refused(run, raw)
    if verdict.reason == INVALID_MESSAGE:
        assert field in verdict.description
    else:
        assert verdict.reason == MALFORMED_BODY


@settings(max_examples=examples(75), deadline=None)
@given(kind=st.sampled_from(DocumentType), data=st.data())
def test_a_cut_message_is_malformed(
    run: Callable[..., Any], kind: DocumentType, data: st.DataObject
) -> None:
    raw = raw_of(kind)
    cut = data.draw(st.integers(0, len(raw) - 1))
    assert refused(run, raw[:cut]).reason == MALFORMED_BODY


@settings(max_examples=examples(75), deadline=None)
@given(value=JSON.filter(lambda value: value not in list(DocumentType)))
def test_an_unknown_document_type_is_named(run: Callable[..., Any], value: Any) -> None:
    raw = json.dumps({**body_of(DocumentType.EQUIPMENT), "document_type": value}).encode()
    verdict = refused(run, raw)
    assert verdict.reason in {UNKNOWN_DOCUMENT_TYPE, MALFORMED_BODY}
    if verdict.reason == UNKNOWN_DOCUMENT_TYPE:
        assert "document_type" in verdict.description
        assert "equipment" in verdict.description


FILL = raw_of(DocumentType.SCHEDULE_FILL_LEVEL, filters={"area": "HERE"})


@pytest.mark.parametrize(
    ("raw", "reason", "says"),
    [
        (b"", MALFORMED_BODY, "not JSON"),
        (b"[1]", MALFORMED_BODY, "not a JSON object"),
        (b"\xff\xfe{}", MALFORMED_BODY, "not UTF-8: byte 0"),
        (b"[" * 200_000, MALFORMED_BODY, "nested too deeply"),
        (b'{"a":' * 500 + b"1" + b"}" * 500, UNKNOWN_DOCUMENT_TYPE, "missing"),
        (b'{"document_type":7}', UNKNOWN_DOCUMENT_TYPE, "document_type is not a string; known"),
        (b"{" + b" " * MESSAGE_BYTES, MALFORMED_BODY, "at most 262144"),
        (b'{"a":1,"a":2}', MALFORMED_BODY, "'a' appears twice"),
        (FILL.replace(b'"HERE"', b"NaN"), MALFORMED_BODY, "NaN is not a number"),
        (FILL.replace(b'"HERE"', b"-Infinity"), MALFORMED_BODY, "-Infinity is not"),
        (FILL.replace(b'"HERE"', b"1e999"), MALFORMED_BODY, "too large"),
        (FILL.replace(b'"HERE"', b"9" * 5000), MALFORMED_BODY, "too many digits"),
        (FILL.replace(b"HERE", b"\\ud800"), MALFORMED_BODY, "not JSON"),
        (FILL.replace(b"HERE", b"\\u0000"), MALFORMED_BODY, "NUL"),
        (FILL.replace(b"area", b"colour"), INVALID_MESSAGE, "colour"),
        (raw_of(DocumentType.EQUIPMENT, strategy="append"), INVALID_MESSAGE, "idempotency_key"),
        (raw_of(DocumentType.EQUIPMENT, blob_name="../x"), INVALID_MESSAGE, "blob_name: "),
        (
            raw_of(DocumentType.SCHEDULE_FILL_LEVEL, payload={"level": 11, "value": "x"}),
            INVALID_MESSAGE,
            "payload.level: ",
        ),
    ],
)
def test_a_refusal_names_what_is_wrong(
    run: Callable[..., Any], raw: bytes, reason: str, says: str
) -> None:
    verdict = refused(run, raw)
    assert verdict.reason == reason
    assert says in verdict.description


def test_an_escaped_backslash_before_u0000_is_no_nul() -> None:
    raw = FILL.replace(b"HERE", b"\\\\u0000")
    assert "\\\\u0000" in raw.decode()
    assert read_message(raw).model_dump()["filters"] == {"area": "\\u0000"}


def test_a_byte_order_mark_is_accepted() -> None:
    assert read_message(b"\xef\xbb\xbf" + raw_of(DocumentType.EQUIPMENT)).task_id == "T1"


def test_a_refusal_repeats_no_values(run: Callable[..., Any]) -> None:
    secret = "AccountKey=c2VjcmV0"
    raw = raw_of(DocumentType.EQUIPMENT, project_id=secret, filename=[secret], encoding=secret)
    verdict = refused(run, raw)
    assert "project_id" in verdict.description
    assert secret not in verdict.description


def test_a_thousand_problems_fit_the_limit(run: Callable[..., Any]) -> None:
    raw = raw_of(DocumentType.SCHEDULE_DELETE_ALL, activity_ids=[7] * 1000)
    verdict = refused(run, raw)
    assert "activity_ids.0: " in verdict.description
    assert re.search(r"; and \d+ more$", verdict.description)
    assert verdict.description.count(";") == 20


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a":"' + b"\\\\" * (MESSAGE_BYTES // 2 - 8) + b'"}',
        b"{" + b",".join(b'"%x":1' % number for number in range(28_000)) + b',"0":1}',
        b'{"a":' + b"9" * (MESSAGE_BYTES - 10) + b"}",
        raw_of(DocumentType.SCHEDULE_DELETE_ALL, activity_ids=[7] * 60_000),
    ],
    ids=["backslashes", "fields", "digits", "problems"],
)
def test_the_largest_bodies_do_not_take_for_ever(run: Callable[..., Any], raw: bytes) -> None:
    # Each takes well under a second; an expression or a loop that goes back over what it has
    # read takes minutes.
    assert len(raw) <= MESSAGE_BYTES
    began = time.process_time()
    refused(run, raw)
    assert time.process_time() - began < 10


def test_an_unavailable_database_gives_the_message_back(run: Callable[..., Any]) -> None:
    rejected = MemoryRejectedMessages()
    rejected.away = True
    verdict = run(intake(NoTemporal(), rejected).accept(b"not json", 0, "m1"))
    assert isinstance(verdict, Abandon)


@pytest.mark.parametrize(
    "status", [status for status in RPCStatusCode if status is not RPCStatusCode.OK]
)
def test_a_failing_temporal_gives_the_message_back(
    run: Callable[..., Any], status: RPCStatusCode
) -> None:
    failing = FailingTemporal(status, "Namespace default has no mapping for Pipeline")
    verdict = run(intake(failing).accept(raw_of(DocumentType.EQUIPMENT), 0, "m1"))
    assert isinstance(verdict, Abandon)
    assert status.name in verdict.reason


def test_a_message_that_temporal_never_takes_is_refused(run: Callable[..., Any]) -> None:
    failing = FailingTemporal(RPCStatusCode.INVALID_ARGUMENT, "Input exceeds size limit.")
    verdict = run(intake(failing).accept(raw_of(DocumentType.EQUIPMENT), 0, "m1"))
    assert isinstance(verdict, DeadLetter)
    assert "exceeds size limit" in verdict.description


@pytest.mark.parametrize(("earlier", "loud"), [(0, False), (6, False), (7, True), (9, True)])
def test_the_eighth_delivery_is_logged_as_an_error(
    run: Callable[..., Any], caplog: pytest.LogCaptureFixture, earlier: int, loud: bool
) -> None:
    run(intake(NoTemporal()).accept(b"not json", earlier, "m-17"))
    errors = [entry for entry in caplog.records if entry.levelno >= logging.ERROR]
    assert bool(errors) is loud
    assert all("m-17" in entry.getMessage() for entry in errors)


@pytest.mark.parametrize(
    ("kind", "changes", "sentence"),
    [
        (DocumentType.EQUIPMENT, {}, "Import of equipment.xlsx as equipment into project P1"),
        (
            DocumentType.CREW_MEMBER,
            {"filename": "People.csv"},
            "Import of People.csv as crew member into project P1",
        ),
        (DocumentType.SCHEDULE_UPLOAD, {}, "Upload of plan.xer as a schedule of project P1"),
        (
            DocumentType.MTO_DELETE,
            {},
            "Removal of the mto lines of service S1 from project P1",
        ),
        (
            DocumentType.SCHEDULE_DELETE_ALL,
            {},
            "Schedule delete all on 1 activities of project P1",
        ),
    ],
)
def test_a_run_is_summed_up_in_a_sentence(
    kind: DocumentType, changes: dict[str, Any], sentence: str
) -> None:
    assert summary(read_message(raw_of(kind, **changes))) == sentence


def test_a_summary_keeps_to_the_limit_of_the_server() -> None:
    message = read_message(
        raw_of(DocumentType.EQUIPMENT, filename="\u6f22" * 255, project_id="P" * 128)
    )
    assert len(summary(message).encode()) <= 400


@pytest.mark.parametrize("kind", DocumentType)
def test_every_document_type_is_read(kind: DocumentType) -> None:
    message = read_message(raw_of(kind))
    assert message.document_type is kind
    assert message.workflow_id == "import/P1/T1"
    assert kind.value.split("_")[0] in summary(message).lower()
