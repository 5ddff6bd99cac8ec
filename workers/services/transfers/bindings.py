"""CloudEvents as HTTP carries them, made JSON in structured mode: one form for all ways in.

Source: CloudEvents 1.0, "HTTP Protocol Binding".
"""

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

from contracts.transfers import EVENT_BYTES
from workers.services.transfers.errors import EventTooLarge, UnsupportedEvent

STRUCTURED: Final = "application/cloudevents+json"
BATCH: Final = "application/cloudevents-batch+json"
_PREFIX: Final = "ce-"


def structured(headers: Mapping[str, str], body: bytes) -> str:
    """An event in structured mode.

    Args:
        headers: Names in lower case.
        body: Of the request.

    Raises:
        EventTooLarge: The event is longer than one may be.
        UnsupportedEvent: It is a batch, or an event in another format than JSON.
    """
    if len(body) > EVENT_BYTES:
        raise EventTooLarge(f"an event has at most {EVENT_BYTES:,} bytes")
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type == BATCH:
        raise UnsupportedEvent("batches are not accepted: send one event per request")
    if media_type.startswith("application/cloudevents") and media_type != STRUCTURED:
        raise UnsupportedEvent(f"events are accepted as {STRUCTURED}, or in binary mode")
    attributes = {
        name.removeprefix(_PREFIX): unquote(value)
        for name, value in headers.items()
        if name.startswith(_PREFIX)
    }
    text = body.decode("utf-8-sig", errors="backslashreplace")
    if media_type == STRUCTURED or not attributes:
        return text
    event: dict[str, Any] = {**attributes, "datacontenttype": media_type or "application/json"}
    if body:
        event["data"] = _data(text)
    return json.dumps(event, ensure_ascii=False)


def _data(text: str) -> Any:
    """JSON where it is some; what is none stays text, and the check of the event refuses it."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
