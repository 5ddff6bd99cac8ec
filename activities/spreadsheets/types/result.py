"""Results of a race."""

from collections.abc import Iterator
from types import MappingProxyType
from typing import Final

from activities.spreadsheets.entities import ImportContext
from activities.spreadsheets.types.base import Cells, ContextSpec, Fault, SheetRows, SheetType
from activities.spreadsheets.types.people import (
    PERSON_FIELDS,
    PERSONS,
    arrange_person,
    check_person,
    of_person,
    person_keys,
)
from activities.spreadsheets.types.shared import bib, category
from workflows.shared.cells import is_blank, is_filled
from workflows.shared.fields import ColumnKind, FieldSpec, normalise

_TABLE: Final = "race_results"
_FINISHED: Final = "finished"

_TIME: Final = FieldSpec(
    "FINISH_TIME",
    ColumnKind.DURATION,
    title="Finish time",
    target=f"{_TABLE}.finish_time_ms",
    aliases=(
        *("time", "result", "result time", "net time", "chip time", "finishing time", "total time"),
        *("official time", "finish", "gun time", "Bruttozeit", "Netto", "Brutto", "Zeit netto"),
        *("Zeit", "Zielzeit", "Endzeit", "Nettozeit", "Laufzeit", "Gesamtzeit", "Ergebnis"),
    ),
    examples=("01:23:45", "01:23:45.678", "5025.5"),
)
_RANK: Final = FieldSpec(
    "RANK",
    ColumnKind.PLACE,
    title="Rank",
    target=f"{_TABLE}.rank",
    aliases=(
        *("place", "position", "pos", "placing", "overall rank", "overall place", "finish place"),
        *("Rang", "Platz", "Pl.", "Platzierung", "Gesamtplatz", "Gesamtrang"),
    ),
    examples=("1", "=3", "T5"),
    minimum=1,
)
_STATUS: Final = FieldSpec(
    "STATUS",
    ColumnKind.CHOICE,
    title="Status",
    target=f"{_TABLE}.status",
    aliases=("result status", "finish status", "Wertung", "Ergebnisstatus"),
    examples=("finished", "DNF"),
    choices=MappingProxyType(
        {
            _FINISHED: (
                "finish",
                "finisher",
                "fin",
                "ok",
                "classified",
                "im Ziel",
                "gewertet",
                "beendet",
            ),
            "DNF": ("did not finish", "retired", "aufgegeben", "ausgeschieden", "Aufgabe"),
            "DNS": ("did not start", "nicht gestartet", "nicht angetreten", "n. a.", "n.a."),
            "DSQ": ("disqualified", "dq", "disq", "disqualifiziert", "disqu"),
            "NC": (
                "not classified",
                "unclassified",
                "n.k.",
                "a.W.",
                "a.K.",
                "AK",
                "nicht klassiert",
                "au\u00dfer Wertung",
            ),
        }
    ),
)


def _check(rows: SheetRows, context: ImportContext) -> Iterator[Fault]:
    yield from check_person(rows, context)
    columns = (rows[each.name] for each in (_TIME, _RANK, _STATUS))
    for row, result in enumerate(zip(*columns, strict=True)):
        if result == (None, None, None):
            yield Fault(row, _TIME.name, "is missing, and there is no rank and no status either")


def _arrange(cells: Cells, context: ImportContext) -> Cells:
    """Move a status that stands in the place of a rank or time, unless the row has another one."""
    arranged = dict(arrange_person(cells, context))
    held = [name for name in (_RANK.name, _TIME.name) if name in cells]
    texts = dict.fromkeys(cell for name in held for cell in cells[name] if isinstance(cell, str))
    known = {text: status for text in texts if (status := _status_of(text)) is not None}
    if not known:
        return arranged
    count = len(cells[held[0]])
    statuses = list(cells.get(_STATUS.name, (None,) * count))
    for name in held:
        column = list(cells[name])
        for row, cell in enumerate(column):
            if not isinstance(cell, str) or cell not in known:
                continue
            if not is_filled(statuses[row]):
                statuses[row] = known[cell]
            if _status_of(str(statuses[row])) == known[cell]:
                column[row] = None
        arranged[name] = column
    arranged[_STATUS.name] = statuses
    return arranged


def _status_of(text: str) -> str | None:
    return None if is_blank(text) else _STATUS.choice_of.get(normalise(text))


TYPE: Final = SheetType(
    name="RESULT",
    title="Race results",
    context=ContextSpec("races", "Race"),
    fields=(
        *PERSON_FIELDS,
        bib(_TABLE),
        category(_TABLE, "race_categories", creates=True),
        _TIME,
        _RANK,
        _STATUS,
    ),
    targets=(PERSONS, of_person(_TABLE, "race_id")),
    main=_TABLE,
    keys=person_keys,
    check=_check,
    arrange=_arrange,
)
