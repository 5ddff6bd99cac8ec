"""What the pages call things, and what is shown as good or bad."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from babel.units import format_unit

from workers.shared.gateway.pages.renderer import N_, counted, gettext, language, localised
from workers.shared.text import Label as Badge
from workflows.spreadsheets.mappings import MappingStatus, Outcome, SpreadsheetState


@dataclass(frozen=True, slots=True)
class Step:
    """One step of an import's life as it is shown above its page."""

    title: str
    place: str
    """`past`, `now`, `next` or `ended`."""


_S = SpreadsheetState

STATES: Final[Mapping[SpreadsheetState, Badge]] = {
    _S.UPLOADED: Badge(N_("Uploaded")),
    _S.COLUMN_MAPPING: Badge(N_("Columns"), "info"),
    _S.CELL_MAPPING: Badge(N_("Values"), "info"),
    _S.PROCESSING: Badge(N_("Processing"), "info"),
    _S.COMPLETED: Badge(N_("Completed"), "good"),
    _S.FAILED: Badge(N_("Failed"), "bad"),
    _S.CANCELLED: Badge(N_("Cancelled"), "warn"),
    _S.TERMINATED: Badge(N_("Terminated"), "bad"),
}

WAITING: Final[Mapping[str, str]] = {
    _S.COLUMN_MAPPING: N_("Columns to map"),
    _S.CELL_MAPPING: N_("Values to map"),
}
"""What the inbox says of an import that waits for a mapping."""

COLUMN_STATUS: Final[Mapping[MappingStatus, Badge]] = {
    MappingStatus.AUTO_MATCHED: Badge(N_("Matched"), "good"),
    MappingStatus.MANUAL_MATCHED: Badge(N_("Chosen"), "info"),
    MappingStatus.UNMATCHED: Badge(N_("Open"), "warn"),
    MappingStatus.IGNORED: Badge(N_("Left out")),
}

VALUE_STATUS: Final[Mapping[MappingStatus, Badge]] = {
    **COLUMN_STATUS,
    MappingStatus.IGNORED: Badge(N_("Left empty")),
}

OUTCOMES: Final[Mapping[Outcome, Badge]] = {
    Outcome.CREATED: Badge(N_("Created"), "good"),
    Outcome.UPDATED: Badge(N_("Updated"), "info"),
    Outcome.SKIPPED: Badge(N_("Skipped")),
    Outcome.ERROR: Badge(N_("Error"), "bad"),
}


@dataclass(frozen=True, slots=True)
class Delimiter:
    """What may stand between two cells of a text file."""

    character: str
    title: str


DELIMITERS: Final[Mapping[str, Delimiter]] = {
    "comma": Delimiter(",", N_("Comma")),
    "semicolon": Delimiter(";", N_("Semicolon")),
    "tab": Delimiter("\t", N_("Tab")),
    "bar": Delimiter("|", N_("Vertical bar")),
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
    "column": N_("Column"),
    "value": N_("Value"),
    "confirm": N_("Confirmed"),
    "start": N_("Started"),
    "layout": N_("Read differently"),
    "reassign": N_("Reassigned"),
    "cancel": N_("Cancelled"),
    "retry": N_("Tried again"),
    "undo": N_("Undone"),
}

_STEPS: Final[Mapping[str, str]] = {
    "make the status row": N_("Prepare the upload"),
    "read the top of the file": N_("Read the top of the file"),
    "put the rows aside": N_("Read all rows of the file"),
    "collect values": N_("Collect the values"),
    "check the rows": N_("Check the rows"),
    "confirm the rows": N_("Confirm the rows"),
    "process rows": N_("Process the rows"),
    "write the error report": N_("Write the error report"),
    "record the end": N_("Save how the upload has ended"),
}


def step_title(step: str) -> str:
    """What a step is called; those without a title of their own save where the import stands."""
    return localised(_STEPS.get(step, N_("Save where the upload stands")))


def speed(rows_per_second: float) -> str:
    """How many rows a second, or a minute where there is less than one."""
    if rows_per_second < 1:
        per_minute = max(1, round(rows_per_second * 60))
        return counted("%(count)s row a minute", "%(count)s rows a minute", per_minute)
    return counted("%(count)s row a second", "%(count)s rows a second", round(rows_per_second))


def length(seconds: int) -> str:
    """A length of time in its largest unit, rounded up."""
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds > size:
            return format_unit(-(-seconds // size), f"duration-{unit}", locale=language().locale)
    return gettext("a minute") if seconds > _MOMENT else gettext("a few seconds")


_MOMENT: Final = 20
"""Seconds."""
_ROAD: Final = (_S.UPLOADED, _S.COLUMN_MAPPING, _S.CELL_MAPPING, _S.PROCESSING, _S.COMPLETED)
_TITLES: Final = (
    N_("Uploaded"),
    N_("Columns"),
    N_("Values"),
    N_("Processing"),
    N_("Done"),
)


def steps(state: SpreadsheetState, panel: str = "") -> Sequence[Step]:
    """The steps of an import, with the one that it has reached; the review where it is there.

    One that failed or was cancelled shows its end only: how far it had come is not known.
    """
    if state not in _ROAD:
        return (Step(localised(_TITLES[0]), "past"), Step(localised(STATES[state].text), "ended"))
    reached = _ROAD.index(state)
    titles: list[str] = list(_TITLES)
    if panel == "review":
        reached += 1
        titles.insert(reached, N_("Review"))
    if state is _S.COMPLETED:
        reached = len(_ROAD)
    return tuple(
        Step(localised(title), "past" if place < reached else "now" if place == reached else "next")
        for place, title in enumerate(titles)
    )


def type_title(name: str, titles: Mapping[str, str]) -> str:
    """What an import type is called; its name in plain words where it is no longer declared."""
    return localised(titles.get(name) or name.replace("_", " ").capitalize())
