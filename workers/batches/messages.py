"""From the body of a batch's event, as it came from outside, to one that may be trusted."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from workers.shared.services.bodies import (
    INVALID_MESSAGE,
    MALFORMED_BODY,
    UNKNOWN_EVENT_TYPE,
    RefusedMessage,
    invalid,
    kind_of,
    object_of,
    shown,
    text_of,
)
from workflows.batches.events import (
    CASE_EVENT,
    EVENT_TYPES,
    MESSAGE_BYTES,
    PASSED_ON_BYTES,
    CaseEvent,
)
from workflows.batches.loads import (
    CANARY,
    DOCUMENT_EVENT,
    DOCUMENT_EVENT_TYPES,
    DocumentEvent,
)
from workflows.shared.contracts import unknown_fields

_IDS: Final = ("caseId", "batchId")
_COUNTED: Final = "JOB_FINISHED"
_PASSED_ON: Final = "passedOn"
_REMARKS: Final = frozenset({"reason", "by", _PASSED_ON})
"""Fields that decide nothing."""

Event = TypeVar("Event")


def read_case_event(raw: bytes) -> CaseEvent:
    """Check a body of the case-events queue and turn it into an event.

    Fields that docflow does not use are kept in the event, to be passed on.

    Raises:
        RefusedMessage: It is not one; reason and description explain why.
    """
    text, data = _unwrapped(raw)
    _kind(data, EVENT_TYPES)
    # docflow's own name for what is passed on is a name like any other on the wire.
    own = {name: value for name, value in data.items() if name != _PASSED_ON}
    text = json.dumps(own) if len(own) < len(data) else text
    event = _checked(CASE_EVENT, text, data)
    unknown = unknown_fields(_checked(CASE_EVENT, text, data, extra="allow"))
    if _PASSED_ON in data:
        unknown[_PASSED_ON] = data[_PASSED_ON]
    _refuse_misspelt(unknown, type(event), data)
    passed_on = json.dumps(unknown) if unknown else None
    if passed_on and len(passed_on) > PASSED_ON_BYTES:
        raise RefusedMessage(
            INVALID_MESSAGE,
            f"the fields that docflow does not use and passes on have {len(passed_on):,} bytes; at "
            f"most {PASSED_ON_BYTES:,} are accepted",
        )
    return event.model_copy(update={"passed_on": passed_on})


def _refuse_misspelt(
    names: Iterable[str], contract: type[BaseModel], data: Mapping[str, Any]
) -> None:
    """Refuse a name that differs from a known one by capitals and underscores alone.

    Without it, a cancel would stop more than was meant, and a count would not be held against what
    is loaded.

    Raises:
        RefusedMessage: There is one, and the known name is missing.
    """
    known = {field.alias or name for name, field in contract.model_fields.items()} - _REMARKS
    missing = {_folded(name): name for name in known if name not in data}
    wrong = [(name, missing[_folded(name)]) for name in names if _folded(name) in missing]
    if wrong:
        raise RefusedMessage(
            INVALID_MESSAGE, "; ".join(f"{shown(name)} is spelt {known}" for name, known in wrong)
        )


def _folded(name: str) -> str:
    return name.replace("_", "").casefold()


def read_document_event(raw: bytes) -> DocumentEvent | None:
    """Check a body of a batch's queue and turn it into an event.

    A field that docflow does not know is refused: with `tag` for `tags` they would be lost.

    Returns:
        The event; None: it is a canary, which has done its work by arriving.

    Raises:
        RefusedMessage: It is not one; reason and description explain why.
    """
    text, data = _unwrapped(raw)
    if _kind(data, (*DOCUMENT_EVENT_TYPES, CANARY)) == CANARY:
        return None
    return _checked(DOCUMENT_EVENT, text, data, extra="forbid")


def _unwrapped(raw: bytes) -> tuple[str, dict[str, Any]]:
    """A body, out of the envelope that SNS puts around it where raw delivery is off."""
    text = text_of(raw, MESSAGE_BYTES)
    data = object_of(text)
    if "eventType" in data or data.get("Type") != "Notification":
        return text, data
    inside = data.get("Message")
    if not isinstance(inside, str):
        raise RefusedMessage(
            MALFORMED_BODY, "Message, the body inside the notification, is missing or not text"
        )
    # Escapes of JSON can spell what no UTF-8 can: it is refused there as it would be here.
    text = text_of(inside.encode("utf-8", "surrogatepass"), MESSAGE_BYTES)
    return text, object_of(text)


def _kind(data: dict[str, Any], known: Sequence[str]) -> str:
    return kind_of(data, "eventType", known, UNKNOWN_EVENT_TYPE)


def _checked(
    contract: TypeAdapter[Event],
    text: str,
    data: dict[str, Any],
    extra: Literal["allow", "forbid", "ignore"] = "ignore",
) -> Event:
    # `true` would pass as 1, and `1_0` as 10, and name a case by accident.
    numbers = (*_IDS, "documents") if data["eventType"] == _COUNTED else _IDS
    wrong = [
        name
        for name in numbers
        if isinstance(value := data.get(name), bool) or (isinstance(value, str) and "_" in value)
    ]
    if wrong:
        raise RefusedMessage(
            INVALID_MESSAGE, "; ".join(f"{name}: Input should be a valid integer" for name in wrong)
        )
    try:
        return contract.validate_json(text, extra=extra, by_alias=True, by_name=False)
    except ValidationError as error:
        raise invalid(error) from error
