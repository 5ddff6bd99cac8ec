"""What the pages call things, and what is shown as good or bad."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from contracts.spreadsheets import MappingStatus, Outcome, SpreadsheetState
from workers.gateway.pages.renderer import plural


@dataclass(frozen=True, slots=True)
class Badge:
    """A word, and the tone it is shown in."""

    text: str
    tone: str = ""
    """`good`, `warn`, `bad`, `info` or nothing in particular."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of an import's life as it is shown above its page."""

    title: str
    place: str
    """`past`, `now`, `next` or `ended`."""


_S = SpreadsheetState

STATES: Final[Mapping[SpreadsheetState, Badge]] = {
    _S.UPLOADED: Badge("Uploaded"),
    _S.COLUMN_MAPPING: Badge("Columns", "info"),
    _S.CELL_MAPPING: Badge("Values", "info"),
    _S.PROCESSING: Badge("Processing", "info"),
    _S.COMPLETED: Badge("Completed", "good"),
    _S.FAILED: Badge("Failed", "bad"),
    _S.CANCELLED: Badge("Cancelled", "warn"),
    _S.TERMINATED: Badge("Terminated", "bad"),
}

WAITING: Final[Mapping[str, str]] = {
    state: f"{STATES[state].text} to map" for state in (_S.COLUMN_MAPPING, _S.CELL_MAPPING)
}
"""What the inbox says of an import that waits for a mapping."""

COLUMN_STATUS: Final[Mapping[MappingStatus, Badge]] = {
    MappingStatus.AUTO_MATCHED: Badge("Matched", "good"),
    MappingStatus.MANUAL_MATCHED: Badge("Chosen", "info"),
    MappingStatus.UNMATCHED: Badge("Open", "warn"),
    MappingStatus.IGNORED: Badge("Left out"),
}

VALUE_STATUS: Final[Mapping[MappingStatus, Badge]] = {
    **COLUMN_STATUS,
    MappingStatus.IGNORED: Badge("Left empty"),
}

OUTCOMES: Final[Mapping[Outcome, Badge]] = {
    Outcome.CREATED: Badge("Created", "good"),
    Outcome.UPDATED: Badge("Updated", "info"),
    Outcome.SKIPPED: Badge("Skipped"),
    Outcome.ERROR: Badge("Error", "bad"),
}


@dataclass(frozen=True, slots=True)
class Delimiter:
    """What may stand between two cells of a text file."""

    character: str
    title: str


DELIMITERS: Final[Mapping[str, Delimiter]] = {
    "comma": Delimiter(",", "Comma"),
    "semicolon": Delimiter(";", "Semicolon"),
    "tab": Delimiter("\t", "Tab"),
    "bar": Delimiter("|", "Vertical bar"),
}

ENCODINGS: Final[Sequence[str]] = (
    "utf-8",
    "utf-16",
    "cp1252",
    "iso-8859-15",
    "cp1250",
    "cp437",
    "mac_roman",
)

DECISIONS: Final[Mapping[str, str]] = {
    "column": "Column",
    "value": "Value",
    "confirm": "Confirmed",
    "start": "Started",
    "layout": "Read differently",
    "reassign": "Reassigned",
    "cancel": "Cancelled",
    "retry": "Tried again",
    "undo": "Undone",
}

_STEPS: Final[Mapping[str, str]] = {
    "make the status row": "Prepare the import",
    "read the top of the file": "Read the top of the file",
    "put the rows aside": "Read all rows of the file",
    "collect values": "Collect the values",
    "check the rows": "Check the rows",
    "confirm the rows": "Confirm the rows",
    "process rows": "Process the rows",
    "write the error report": "Write the error report",
    "record the end": "Save how the import has ended",
}


def step_title(step: str) -> str:
    """What a step is called; those without a title of their own save where the import stands."""
    return _STEPS.get(step, "Save where the import stands")


def speed(rows_per_second: float) -> str:
    """How many rows a second, or a minute where there is less than one."""
    if rows_per_second < 1:
        return f"{plural(max(1, round(rows_per_second * 60)), 'row')} a minute"
    return f"{plural(round(rows_per_second), 'row')} a second"


def length(seconds: int) -> str:
    """A length of time in its largest unit, rounded up."""
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds > size:
            return plural(-(-seconds // size), unit)
    return "a minute" if seconds > _MOMENT else "a few seconds"


_MOMENT: Final = 20
"""Seconds."""
_ROAD: Final = (_S.UPLOADED, _S.COLUMN_MAPPING, _S.CELL_MAPPING, _S.PROCESSING, _S.COMPLETED)
_TITLES: Final = ("Uploaded", "Columns", "Values", "Processing", "Done")


def steps(state: SpreadsheetState, panel: str = "") -> Sequence[Step]:
    """The steps of an import, with the one that it has reached; the review where it is there.

    One that failed or was cancelled shows its end only: how far it had come is not known.
    """
    if state not in _ROAD:
        return (Step(_TITLES[0], "past"), Step(STATES[state].text, "ended"))
    reached = _ROAD.index(state)
    titles: list[str] = list(_TITLES)
    if panel == "review":
        reached += 1
        titles.insert(reached, "Review")
    if state is _S.COMPLETED:
        reached = len(_ROAD)
    return tuple(
        Step(title, "past" if place < reached else "now" if place == reached else "next")
        for place, title in enumerate(titles)
    )


def type_title(name: str, titles: Mapping[str, str]) -> str:
    """What an import type is called; its name in plain words where it is no longer declared."""
    return titles.get(name) or name.replace("_", " ").capitalize()
