"""What is an event, what is garbage, and what is invalid."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activities.transfers.cloud_events import NoEvent, head_of, read_event
from tests.support.chaos import examples
from tests.support.transfers.events import ARRIVED, an_event
from workflows.transfers.events import EVENT_BYTES, TransferStatus, file_of, transfer_id_of
from workflows.transfers.watches import SeenFile, Watch, file_event_body


def refused(body: Any) -> tuple[TransferStatus, str]:
    text = body if isinstance(body, str) else json.dumps(body)
    head_of(text)
    with pytest.raises(NoEvent) as raised:
        read_event(text, ARRIVED)
    return raised.value.status, str(raised.value)


def test_an_event_is_read() -> None:
    event = read_event(json.dumps(an_event()), ARRIVED)
    assert (event.id, event.account_id, event.subject) == ("e-1", "TMS001", "File Upload")
    assert event.time_given
    assert event.data["fileName"] == "orders.csv"


def test_an_event_without_a_time_has_that_of_its_arrival() -> None:
    event = an_event()
    del event["time"]
    read = read_event(json.dumps(event), ARRIVED)
    assert (read.time, read.time_given) == (ARRIVED, False)


@pytest.mark.parametrize("field", ["specversion", "id", "source", "type", "subject"])
@pytest.mark.parametrize("value", [None, ""])
def test_garbage_names_the_field_that_is_missing(field: str, value: str | None) -> None:
    assert refused(an_event(**{field: value})) == (
        TransferStatus.GARBAGE,
        f"the event lacks {field}",
    )


@pytest.mark.parametrize("data", [None, {}, [], "TMS001", {"accountid": "TMS001"}])
def test_an_event_without_an_account_is_garbage(data: Any) -> None:
    event = an_event()
    event["data"] = data
    assert refused(event) == (TransferStatus.GARBAGE, "the event lacks data.accountId")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("", "it is not JSON"),
        ("[]", "not a JSON object"),
        ('"text"', "not a JSON object"),
        ('{"id": "1", "id": "2"}', "appears twice"),
        ('{"id": NaN}', "NaN is not a number"),
        ('{"id": 1e999}', "too large"),
        ('{"id": ' + "9" * 20 + "}", "too many digits"),
        ('{"id": "\\ud800"}', "surrogate"),
        ("[" * 100_000, "bytes|nested"),
        (an_event(id=7), "it is not a CloudEvent"),
        (an_event(specversion="0.3"), "specversion"),
        (an_event(time=7), "time is not text"),
        (an_event(time="yesterday"), "time is 'yesterday', and no date and time as 2026"),
        (an_event(time="2026-03-01T10:00:00"), "timezone"),
        (an_event(time="0001-01-01T00:00:00+23:00"), "its time is of the year 1; 2 to 9998"),
        (an_event(time="9999-12-31T23:59:59-23:00"), "its time is of the year 9999; 2 to 9998"),
        (an_event(accountId="TMS001"), "accountId belongs into data"),
        (an_event(data={"accountId": 7}), "data.accountId is not text"),
        (an_event(subject="x" * 501), "subject has 501 characters"),
        (an_event(docflowdepth="deep"), "docflowdepth is not a whole number"),
        (an_event(docfloworganisation="club"), "docfloworganisation is not a whole number"),
        (an_event(docfloworganisation=0), "docfloworganisation is not the id of an organisation"),
        (an_event(docflowvisited=" ".join("abcdefghijklmnopqrstuvwxyz1234567")), "docflowvisited"),
        (an_event(data={"x": "y" * EVENT_BYTES}), "bytes; 65,536 are accepted"),
    ],
)
def test_what_is_no_event_is_invalid_and_says_why(body: Any, said: str) -> None:
    status, reason = refused(body)
    assert status is TransferStatus.INVALID
    with pytest.raises(AssertionError, match=said):
        raise AssertionError(reason)


def test_an_id_is_unique_per_source_only() -> None:
    one, other = head_of(json.dumps(an_event())), head_of(json.dumps(an_event(source="Other")))
    assert one.transfer_id == transfer_id_of("TMS.Route", "e-1") != other.transfer_id


def test_the_same_event_has_the_same_digest_however_it_is_written() -> None:
    event = an_event()
    turned = json.dumps(dict(reversed(event.items())), indent=2)
    assert head_of(json.dumps(event)) == head_of(turned)
    assert head_of(json.dumps(event)).digest != head_of(json.dumps(an_event(type="Other"))).digest


def test_what_is_no_json_is_known_by_its_text() -> None:
    assert head_of("x") == head_of("x")
    assert head_of("x").transfer_id != head_of("y").transfer_id


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ({"fileName": "a.csv"}, "a.csv"),
        ({"path": "in/2026/a.csv"}, "a.csv"),
        ({"url": "https://x/in/a.csv"}, "a.csv"),
        ({"fileName": "c:\\in\\a.csv"}, "a.csv"),
        ({"fileName": 7}, None),
        ({}, None),
    ],
)
def test_the_file_that_an_event_is_about(data: dict[str, Any], name: str | None) -> None:
    event = an_event()
    event["data"] = {"accountId": "A", **data}
    assert file_of(read_event(json.dumps(event), ARRIVED)) == name


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
ALMOST = st.fixed_dictionaries(
    {},
    optional={
        name: st.sampled_from(["1.0", "a", "", "2026-03-01T10:00:00Z"]) | JSON_VALUES
        for name in ("specversion", "id", "source", "type", "subject", "time", "accountId")
    }
    | {"data": JSON_VALUES | st.fixed_dictionaries({"accountId": st.text()})},
)


@given(st.text(max_size=200) | JSON_VALUES.map(json.dumps) | ALMOST.map(json.dumps))
@settings(max_examples=examples(300))
def test_whatever_comes_is_an_event_or_says_what_is_wrong(body: str) -> None:
    head = head_of(body)
    assert len(head.transfer_id) == len(head.digest) == 64
    try:
        event = read_event(body, ARRIVED)
    except NoEvent as error:
        assert error.status in (TransferStatus.INVALID, TransferStatus.GARBAGE)
        assert str(error)
    else:
        assert head.transfer_id == transfer_id_of(event.source, event.id)


def test_events_of_a_watch_belong_to_its_organisation() -> None:
    watch = Watch(name="acme", partner="acme", path="*.csv", account_id="A", organisation_id=3)
    body = file_event_body(watch, SeenFile(path="a.csv", size=1, since=ARRIVED))
    assert read_event(body, ARRIVED).organisation_id == 3
