"""Fields of case events that docflow does not use: kept by the type of their event, passed on."""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, cast

from contracts.batches import Announcement, CaseEvent

_BEFORE_THE_END: Final = ("JOB_STARTED", "JOB_FINISHED", "REDRIVE_REQUESTED")
_SOURCES: Final[Mapping[str, Sequence[str]]] = MappingProxyType(
    {
        Announcement.LOADER_STARTED: ("JOB_STARTED", "REDRIVE_REQUESTED"),
        Announcement.BATCH_END_START: _BEFORE_THE_END,
        Announcement.LOADER_FINISHED: (*_BEFORE_THE_END, "BATCH_END_FINISHED", "IMPORT_CANCELLED"),
    }
)
"""Events that lead to an announcement, as they follow each other in whatever order they arrive."""


def with_fields_of(event: CaseEvent, kept: str | None) -> str | None:
    """What is kept of a batch's events, with those of one more.

    Args:
        event: Its fields take the place of those of an earlier event of its type.
        kept: The column as it is.
    """
    if event.passed_on is None:
        return kept
    fields: dict[str, Any] = json.loads(kept) if kept else {}
    return json.dumps({**fields, event.event_type: json.loads(event.passed_on)})


def names_of_fields(kept: str | None) -> Sequence[str]:
    """What docflow does not use of a batch's events, for people: `JOB_STARTED.timings.polll`."""
    by_type: dict[str, dict[str, Any]] = json.loads(kept) if kept else {}
    return tuple(
        f"{kind}.{name}"
        for kind, fields in by_type.items()
        for field, value in fields.items()
        for name in _names(field, value)
    )


def _names(field: str, value: Any) -> Sequence[str]:
    if field != "timings" or not isinstance(value, dict):
        return (field,)
    return tuple(f"{field}.{name}" for name in cast(dict[str, Any], value))


def fields_for(announcement: Announcement, kept: str | None) -> Mapping[str, Any]:
    """The fields of the events that lead to it; of two of one name, that of the later event."""
    by_type: dict[str, dict[str, Any]] = json.loads(kept) if kept else {}
    sources = _SOURCES[announcement]
    return {name: value for kind in sources for name, value in by_type.get(kind, {}).items()}
