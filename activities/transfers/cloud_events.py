"""Events as they arrive: what they are known by, and whether they are CloudEvents that say enough.

An event whose JSON cannot be read, or that breaks the rules of CloudEvents 1.0, is invalid; one
that lacks a field without which no route can be found is garbage.
"""

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NoReturn, cast

from cloudevents.core.exceptions import CloudEventValidationError
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

from workflows.transfers.events import (
    ACCOUNT,
    CHAIN,
    DEPTH,
    EVENT_BYTES,
    LARGEST_ORGANISATION,
    ORGANISATION,
    VISITED,
    FileNotice,
    TransferStatus,
    transfer_id_of,
)

ATTRIBUTES: Final = ("id", "source", "type", "subject")
"""Attributes of CloudEvents that a route is looked up by, and the id."""
REQUIRED: Final = ("specversion", *ATTRIBUTES)
_LONGEST: Final = 500
_MOMENT: Final = "2026-03-01T10:00:00Z"
_DIGITS: Final = 19
_REASON: Final = 500
_LAST_YEAR: Final = 9999


class NoEvent(Exception):
    """A message that nothing can be done with; its text says why.

    Attributes:
        status: `Invalid` or `Garbage`.
    """

    def __init__(self, status: TransferStatus, reason: str) -> None:
        super().__init__(reason[:_REASON])
        self.status = status


@dataclass(frozen=True, slots=True)
class EventHead:
    """What a message is known by, whether or not it is an event."""

    transfer_id: str
    digest: str
    """SHA-256 of the canonical event; of the text, where it is none."""
    account_id: str | None = None
    """None: it names none."""
    organisation_id: int | None = None
    """None: it names none, or nothing that could be one."""
    name: str | None = None
    """Source and id, for people; None: it lacks one of them."""


def head_of(body: str) -> EventHead:
    """What a message is known by; never fails."""
    try:
        event = _object_of(body)
    except NoEvent:
        digest = hashlib.sha256(body.encode(errors="surrogatepass")).hexdigest()
        return EventHead(transfer_id_of("", digest), digest)
    text = json.dumps(event, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    digest = hashlib.sha256(text.encode()).hexdigest()
    source, id = event.get("source"), event.get("id")
    account = _data_of(event).get(ACCOUNT)
    account = account if isinstance(account, str) and account else None
    organisation: int | None = None
    with suppress(NoEvent):
        organisation = _organisation_of(event)
    if not (isinstance(source, str) and source and isinstance(id, str) and id):
        return EventHead(transfer_id_of("", digest), digest, account, organisation)
    return EventHead(transfer_id_of(source, id), digest, account, organisation, f"{source} {id}")


def with_organisation(body: str, organisation_id: int) -> str:
    """A message that names its organisation; one that is no event stays as it is."""
    try:
        event = _object_of(body)
    except NoEvent:
        return body
    return json.dumps({**event, ORGANISATION: organisation_id}, ensure_ascii=False)


def read_event(body: str, arrived: datetime) -> FileNotice:
    """Check an event.

    Args:
        body: JSON in structured mode.
        arrived: Taken for its time where it has none.

    Raises:
        NoEvent: It is invalid, or garbage.
    """
    event = _object_of(body)
    data = _data_of(event)
    missing = [name for name in REQUIRED if event.get(name) in (None, "")]
    if data.get(ACCOUNT) in (None, ""):
        missing.append(f"data.{ACCOUNT}")
    if missing:
        raise NoEvent(TransferStatus.GARBAGE, f"the event lacks {' and '.join(missing)}")
    parsed = _parsed(event)
    account = data[ACCOUNT]
    if not isinstance(account, str):
        _refuse(f"data.{ACCOUNT} is not text")
    values = {name: cast(str, event[name]) for name in ATTRIBUTES} | {"accountId": account}
    for name, value in values.items():
        if len(value) > _LONGEST:
            _refuse(f"{name} has {len(value):,} characters; {_LONGEST} are accepted")
    time = parsed.get_time() if "time" in event else None
    if time is not None and not 1 < time.year < _LAST_YEAR:
        # Names may use the day before and after, in any zone.
        _refuse(f"its time is of the year {time.year}; 2 to {_LAST_YEAR - 1} are accepted")
    return FileNotice(
        id=values["id"],
        source=values["source"],
        type=values["type"],
        subject=values["subject"],
        account_id=account,
        organisation_id=_organisation_of(event),
        time=(time or arrived).astimezone(UTC),
        time_given=time is not None,
        data=data,
        depth=_depth_of(event),
        visited=_visited_of(event),
    )


def _parsed(event: Mapping[str, Any]) -> CloudEvent:
    """The event, by the rules of CloudEvents 1.0."""
    time = event.get("time")
    if "time" in event and not isinstance(time, str):
        _refuse("time is not text")
    attributes = {name: value for name, value in event.items() if name not in ("data",)}
    try:
        read = JSONFormat().read(CloudEvent, json.dumps(attributes))
    except CloudEventValidationError as error:
        problems = [str(each) for found in error.errors.values() for each in found]
        camel = ACCOUNT in event and "; accountId belongs into data"
        _refuse(f"it is not a CloudEvent: {'; '.join(problems)}{camel or ''}")
    except (ValueError, OverflowError) as error:
        # With a good time it is read, or refused for what else is wrong.
        if "time" in event and time != _MOMENT and _parsed({**event, "time": _MOMENT}):
            _refuse(f"time is {ascii(time)[:60]}, and no date and time as {_MOMENT}")
        _refuse(f"it is not a CloudEvent: {error}")
    assert isinstance(read, CloudEvent)
    return read


def _object_of(body: str) -> dict[str, Any]:
    """The JSON object of a message.

    Raises:
        NoEvent: It is none, or readers of JSON would disagree about it.
    """
    try:
        size = len(body.encode())
    except UnicodeEncodeError:
        _refuse("the message is not UTF-8")
    if size > EVENT_BYTES:
        _refuse(f"the message has {size:,} bytes; {EVENT_BYTES:,} are accepted")
    try:
        event = json.loads(
            body,
            object_pairs_hook=_without_repeats,
            parse_constant=_no_number,
            parse_float=_finite,
            parse_int=_bounded,
        )
        # Halves of surrogate pairs can be written as escapes.
        json.dumps(event, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        _refuse(f"it is not JSON: {error.msg} at line {error.lineno} column {error.colno}")
    except RecursionError:
        _refuse("it is nested too deeply")
    except UnicodeEncodeError:
        _refuse("it holds half of a surrogate pair")
    if not isinstance(event, dict):
        _refuse("it is not a JSON object { ... }")
    return cast(dict[str, Any], event)


def _data_of(event: Mapping[str, Any]) -> dict[str, Any]:
    """The data, as an object; empty where there is none."""
    data = event.get("data")
    return cast(dict[str, Any], data) if isinstance(data, dict) else {}


def _organisation_of(event: Mapping[str, Any]) -> int | None:
    if event.get(ORGANISATION) is None:
        return None
    organisation = _whole_number(event, ORGANISATION)
    if not 1 <= organisation <= LARGEST_ORGANISATION:
        _refuse(f"{ORGANISATION} is not the id of an organisation")
    return organisation


def _depth_of(event: Mapping[str, Any]) -> int:
    return _whole_number(event, DEPTH)


def _whole_number(event: Mapping[str, Any], name: str) -> int:
    number = event.get(name, 0)
    # Extensions may be sent as texts.
    if isinstance(number, str) and number.isdecimal() and len(number) < _DIGITS:
        number = int(number)
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        _refuse(f"{name} is not a whole number")
    return number


def _visited_of(event: Mapping[str, Any]) -> tuple[str, ...]:
    visited = event.get(VISITED, "")
    if not isinstance(visited, str):
        _refuse(f"{VISITED} is not text")
    found = tuple(visited.split())
    if len(found) > CHAIN or any(len(each) > 200 for each in found):
        _refuse(f"{VISITED} names more than {CHAIN} visits")
    return found


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        _refuse("a field appears twice")
    return found


def _no_number(text: str) -> NoReturn:
    _refuse(f"{text} is not a number of JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        _refuse("a number is too large")
    return number


def _bounded(text: str) -> int:
    if len(text) > _DIGITS:
        _refuse("a number has too many digits")
    return int(text)


def _refuse(reason: str) -> NoReturn:
    raise NoEvent(TransferStatus.INVALID, reason)
