"""Made-up events of batches: what fits comes through, what does not is refused."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.batches.messages import (
    DOCUMENT,
    READERS,
    STARTED,
    Read,
    enveloped,
    raw_of,
    refused,
)
from tests.support.chaos import examples
from workers.batches.messages import read_case_event, read_document_event
from workers.shared.services.bodies import INVALID_MESSAGE, MALFORMED_BODY, UNKNOWN_EVENT_TYPE
from workflows.batches.events import (
    CASE_EVENT,
    EVENT_TYPES,
    BatchEndFinished,
    CancelMode,
    CaseEvent,
    ImportCancelled,
    JobFinished,
    JobStarted,
    RedriveRequested,
)
from workflows.batches.loads import (
    DOCUMENT_EVENT,
    DocumentEvent,
    DocumentProcessed,
    DocumentRelations,
    Relation,
    RelationKind,
)
from workflows.batches.names import LARGEST_ID, Timings

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
case_events = st.one_of(
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


@settings(max_examples=examples(50), deadline=None)
@given(event=case_events, ascii_only=st.booleans(), wrap=st.booleans())
def test_a_case_event_arrives_as_it_was_sent(
    event: CaseEvent, ascii_only: bool, wrap: bool
) -> None:
    body = CASE_EVENT.dump_python(event, mode="json", by_alias=True, exclude={"passed_on"})
    raw = json.dumps(body, ensure_ascii=ascii_only).encode()
    assert read_case_event(enveloped(raw) if wrap else raw) == event


@settings(max_examples=examples(50), deadline=None)
@given(event=document_events, ascii_only=st.booleans(), wrap=st.booleans())
def test_a_document_event_arrives_as_it_was_sent(
    event: DocumentEvent, ascii_only: bool, wrap: bool
) -> None:
    body = DOCUMENT_EVENT.dump_python(event, mode="json", by_alias=True)
    raw = json.dumps(body, ensure_ascii=ascii_only).encode()
    assert read_document_event(enveloped(raw) if wrap else raw) == event


@settings(max_examples=examples(50), deadline=None)
@given(raw=st.binary(max_size=200).filter(lambda raw: b"eventType" not in raw))
@pytest.mark.parametrize("read", READERS)
def test_arbitrary_bytes_are_refused(read: Read, raw: bytes) -> None:
    assert refused(read, raw).reason in {MALFORMED_BODY, UNKNOWN_EVENT_TYPE}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner),
    max_leaves=12,
)


@settings(max_examples=examples(50), deadline=None)
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


@settings(max_examples=examples(50), deadline=None)
@given(data=st.data(), wrap=st.booleans())
def test_one_broken_field_is_named_as_on_the_wire(data: st.DataObject, wrap: bool) -> None:
    read, whole = data.draw(
        st.sampled_from([(read_case_event, STARTED), (read_document_event, DOCUMENT)])
    )
    field = data.draw(st.sampled_from([name for name in whole if name != "eventType"]))
    body = {name: value for name, value in whole.items() if name != field}
    if data.draw(st.booleans()):
        body[field] = data.draw(NO_ID if field in ("caseId", "batchId") else NO_NAME)
    said = refused(read, enveloped(raw_of(body)) if wrap else raw_of(body))
    assert said.reason == INVALID_MESSAGE
    assert said.description.startswith(f"{field}: ")


@settings(max_examples=examples(50), deadline=None)
@given(data=st.data(), wrap=st.booleans())
def test_a_cut_event_is_malformed(data: st.DataObject, wrap: bool) -> None:
    raw = enveloped(raw_of(STARTED)) if wrap else raw_of(STARTED)
    cut = data.draw(st.integers(0, len(raw) - 1))
    assert refused(read_case_event, raw[:cut]).reason == MALFORMED_BODY


PUBLISHED = ("LOADER_STARTED", "BATCH_END_START", "LOADER_FINISHED")


@settings(max_examples=examples(50), deadline=None)
@given(value=JSON.filter(lambda value: value not in EVENT_TYPES) | st.sampled_from(PUBLISHED))
def test_an_unknown_event_type_is_named(value: Any) -> None:
    said = refused(read_case_event, raw_of({**STARTED, "eventType": value}))
    assert said.reason in {UNKNOWN_EVENT_TYPE, MALFORMED_BODY}
    if said.reason == UNKNOWN_EVENT_TYPE:
        assert said.description.startswith("eventType ")
        assert "JOB_STARTED" in said.description
