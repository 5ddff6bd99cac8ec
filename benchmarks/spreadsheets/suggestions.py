"""How often suggestions for columns and values are right, and as often as docflow says."""

import csv
import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from activities.spreadsheets.column_matching import match_columns
from activities.spreadsheets.entities import ImportContext
from activities.spreadsheets.sheet_types import discover
from activities.spreadsheets.value_mapping import resolver_of
from adapters.database.schema import country_rows
from benchmarks.report import Table, at_least
from workflows.spreadsheets.fields import Entity

PAIRS: Final = Path(__file__).with_name("suggestions.tsv")
"""What people write, and what they mean by it: import type or `=` and the kind of rows, header or
value, samples, and the field or row; `-` where it means none of them. A field or row was never
taken from the lists of the product."""
RIGHT: Final = 0.95
"""Share of what is suggested that has to be right."""
CALIBRATED: Final = 0.05
"""By how much what docflow says may differ from how often it is right."""
BANDS: Final = ((0.8, 0.95), (0.95, 1.01))
"""Scores from and below, that are looked at by themselves."""
_NOTHING: Final = "-"
_TODAY: Final = date(2026, 6, 1)
_ROWS: Final[Mapping[str, Sequence[str]]] = {
    "categories": (
        *("Junior (U18)", "Senior (18+)", "Masters", "Women 5 km", "Men 5 km", "Women 10 km"),
        *("Men 10 km", "Half marathon", "Marathon", "Kids run"),
    ),
    "memberships": ("Adult", "Child", "Family", "Student", "Honorary", "Passive"),
}


class Judged(NamedTuple):
    """What became of a pair."""

    text: str
    means: str
    said: str
    """What docflow says; `-` for nothing."""
    score: float
    decided: bool
    """It matched by itself."""
    unseen: bool
    """The rules were made without a look at it."""

    @property
    def right(self) -> bool:
        """docflow says what it means."""
        return self.said == self.means

    @property
    def suggested(self) -> bool:
        """docflow says something, and leaves it to a person."""
        return self.said != _NOTHING and not self.decided


def judge() -> Sequence[Judged]:
    """Ask docflow about every pair."""
    with PAIRS.open(encoding="utf-8", newline="") as file:
        return [_judged(*row) for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]


def _judged(kind: str, text: str, samples: str, means: str) -> Judged:
    said, score, decided = (
        _of_value(kind[1:], text) if kind.startswith("=") else _of_column(kind, text, samples)
    )
    return Judged(text, means, said, score, decided, _unseen(kind, text))


def _unseen(kind: str, text: str) -> bool:
    """By chance, so that no hard one lands on the easy side."""
    return hashlib.sha256(f"{kind}\t{text}".encode()).digest()[0] % 2 == 1


def _of_column(kind: str, header: str, samples: str) -> tuple[str, float, bool]:
    fields = discover()[kind].fields
    (column,) = match_columns([(0, header)], fields, {}, [samples.split("|")])
    if column.target is not None:
        return column.target, column.confidence, True
    if column.alternatives:
        return column.alternatives[0].name, column.alternatives[0].score, False
    return _NOTHING, 0, False


def _of_value(kind: str, value: str) -> tuple[str, float, bool]:
    found = resolver_of(kind).resolve(value, _context(kind))
    if found.target is not None:
        return found.target.name, found.confidence, True
    if found.alternatives:
        return found.alternatives[0].entity.name, found.alternatives[0].score, False
    return _NOTHING, 0, False


@cache
def _context(kind: str) -> ImportContext:
    return ImportContext(1, 1, _TODAY, {kind: _entities(kind)})


def _entities(kind: str) -> Sequence[Entity]:
    if kind == "countries":
        return [
            Entity(row["id"], row["name"], json.loads(row["spellings"])) for row in country_rows()
        ]
    return [Entity(id, name) for id, name in enumerate(_ROWS[kind], 1)]


def measure() -> Table:
    """Ask about every pair; what was decided and what was suggested, by half and by score."""
    judged = judge()
    table = Table(
        f"Suggestions: {len(judged)} labelled pairs",
        ("", "pairs", "said something", "right", "right, %", "said, %"),
    )
    halves = {"unseen": [each for each in judged if each.unseen], "all": judged}
    for name, pairs in halves.items():
        said = [each for each in pairs if each.said != _NOTHING]
        _add(table, f"{name}: matched by itself", pairs, [each for each in said if each.decided])
        suggested = [each for each in said if each.suggested]
        _add(table, f"{name}: suggested", pairs, suggested)
        for low, high in BANDS:
            band = [each for each in suggested if low <= each.score < high]
            label = f"{name}: suggested with {_percent(low)} to {_percent(high)} %"
            _add(table, label, pairs, band)
    missed = sum(each.said == _NOTHING != each.means for each in judged)
    table.notes.append(f"of {missed} pairs with a meaning nothing was said")
    suggested = [each for each in judged if each.suggested]
    right = at_least(100 * share_right(suggested), 100 * RIGHT, " %")
    table.notes.append(f"right, of what was suggested: {right}")
    return table


def _add(table: Table, name: str, pairs: Sequence[Judged], said: Sequence[Judged]) -> None:
    table.add(
        name,
        str(len(pairs)),
        str(len(said)),
        str(sum(each.right for each in said)),
        f"{100 * share_right(said):.1f}",
        f"{100 * mean_score(said):.1f}",
    )


def share_right(said: Sequence[Judged]) -> float:
    """How often what was said is right, from 0 to 1."""
    return sum(each.right for each in said) / max(1, len(said))


def mean_score(said: Sequence[Judged]) -> float:
    """How often docflow says that it is right, from 0 to 1."""
    return sum(each.score for each in said) / max(1, len(said))


def _percent(share: float) -> int:
    return min(100, round(100 * share))
