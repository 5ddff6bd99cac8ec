"""Results of a race."""

from collections.abc import Iterator
from types import MappingProxyType
from typing import Final

from domain.spreadsheets.entities import ImportContext
from domain.spreadsheets.types.base import (
    CellKind,
    ContextSpec,
    Fault,
    SheetField,
    SheetRows,
    SheetType,
)
from domain.spreadsheets.types.people import (
    PERSON_FIELDS,
    PERSONS,
    check_person,
    of_person,
    person_keys,
)
from domain.spreadsheets.types.shared import bib, category

_TABLE: Final = "race_results"
_FINISHED: Final = "finished"

_TIME: Final = SheetField(
    "FINISH_TIME",
    "Finish time",
    f"{_TABLE}.finish_time_ms",
    CellKind.DURATION,
    aliases=(
        *("time", "result", "result time", "net time", "chip time", "finishing time", "total time"),
        *("Zeit", "Zielzeit", "Endzeit", "Nettozeit", "Laufzeit", "Gesamtzeit", "Ergebnis"),
    ),
    examples=("01:23:45", "01:23:45.678", "5025.5"),
)
_STATUS: Final = SheetField(
    "STATUS",
    "Status",
    f"{_TABLE}.status",
    CellKind.CHOICE,
    aliases=("result status", "finish status", "Wertung", "Ergebnisstatus"),
    examples=("finished", "DNF"),
    choices=MappingProxyType(
        {
            _FINISHED: ("finish", "fin", "ok", "classified", "im Ziel", "gewertet", "beendet"),
            "DNF": ("did not finish", "retired", "aufgegeben", "ausgeschieden", "Aufgabe"),
            "DNS": ("did not start", "nicht gestartet", "nicht angetreten", "n. a.", "n.a."),
            "DSQ": ("disqualified", "dq", "disq", "disqualifiziert"),
        }
    ),
)


def _check(rows: SheetRows, context: ImportContext) -> Iterator[Fault]:
    yield from check_person(rows, context)
    for row, (time, status) in enumerate(zip(rows[_TIME.name], rows[_STATUS.name], strict=True)):
        if time is None and status in (None, _FINISHED):
            reason = "is missing; without a time the status has to be DNF, DNS or DSQ"
            yield Fault(row, _TIME.name, reason)


TYPE: Final = SheetType(
    name="RESULT",
    title="Race results",
    context=ContextSpec("races", "Race"),
    fields=(
        *PERSON_FIELDS,
        bib(_TABLE),
        category(_TABLE, "race_categories"),
        _TIME,
        SheetField(
            "RANK",
            "Rank",
            f"{_TABLE}.rank",
            CellKind.INTEGER,
            aliases=(
                *("place", "position", "pos", "placing", "overall rank", "overall place"),
                *("Rang", "Platz", "Platzierung", "Gesamtplatz", "Gesamtrang"),
            ),
            examples=("1",),
            minimum=1,
        ),
        _STATUS,
    ),
    targets=(PERSONS, of_person(_TABLE, "race_id")),
    main=_TABLE,
    keys=person_keys,
    check=_check,
)
