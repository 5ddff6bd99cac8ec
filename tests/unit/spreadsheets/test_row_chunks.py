"""Rows give the same outcomes in chunks of any size, and from any row on."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from activities.shared.scratch import SeenKeys
from activities.spreadsheets.sheet_types import discover
from activities.spreadsheets.validation import SourceRow, ValidatedRows
from tests.support.chaos import examples
from tests.support.spreadsheets.rules import source, validator
from workflows.shared.cells import Cell
from workflows.spreadsheets.mappings import CellMapping, MappingStatus

PARTICIPANT = discover()["EVENT_PARTICIPANT"]
HEADERS = ("Vorname", "Nachname", "E-Mail", "Geb.Datum", "Land", "Category", "T-Shirt", "Foo")
NAMES = st.sampled_from(["Anna", "Bert", "ANNA", "", " ", "=1", "a\u0000"])
ROWS = st.lists(
    st.tuples(
        NAMES,
        st.sampled_from(["Schmidt", "Maier", None]),
        st.sampled_from([None, None, "a@b.de", "A@B.de", "nonsense"]),
        st.sampled_from([None, "1990-01-01", "31.12.1990", "03/04/1990", "2050-01-01", 7]),
        st.sampled_from([None, "GER", "Schweiz", "Narnia", True, 276]),
        st.sampled_from([None, "Junior", "senior ", "Kidz", "Teens", "Gone"]),
        st.sampled_from([None, "S", "xl", "Cape"]),
    ).map(list),
    max_size=25,
)
DECIDED = tuple(
    CellMapping(id=1, field="EVENT_CATEGORY_NAME", value=value, status=status)
    for value, status in (("Gone", MappingStatus.IGNORED), ("Teens", MappingStatus.UNMATCHED))
)


def chunks(rows: Sequence[SourceRow], sizes: Sequence[int]) -> list[Sequence[SourceRow]]:
    pieces: list[Sequence[SourceRow]] = []
    start = 0
    for size in sizes:
        pieces.append(rows[start : start + size])
        start += size
    return [*pieces, rows[start:]]


def joined(parts: Sequence[ValidatedRows]) -> dict[str, Any]:
    """Parts as one; values that were found are merged with their rows."""
    targets: dict[str, list[tuple[int, tuple[Any, ...]]]] = {}
    found: dict[tuple[str, str], int] = {}
    for part in parts:
        for target in part.targets:
            rows = zip(target.origin, target.rows, strict=True)
            targets.setdefault(target.table, []).extend(
                (part.lines[origin], row) for origin, row in rows
            )
        for value in part.found:
            key = (value.field, value.value)
            found[key] = found.get(key, 0) + value.rows
    return {
        "lines": [line for part in parts for line in part.lines],
        "errors": [error for part in parts for error in part.errors],
        "skipped": [row for part in parts for row in part.skipped],
        "parked": [row for part in parts for row in part.parked],
        "targets": {table: sorted(rows, key=repr) for table, rows in targets.items() if rows},
        "found": found,
    }


@settings(deadline=None, max_examples=examples(60))
@given(ROWS, st.lists(st.integers(1, 9), max_size=6))
def test_chunks_of_any_size_give_the_same(rows: list[list[Cell]], sizes: list[int]) -> None:
    lines = source(rows)
    with closing(SeenKeys(Path())) as seen:
        whole = validator(PARTICIPANT, HEADERS, lines, seen=seen, decided=DECIDED)
        at_once = joined([whole.validate(lines)])
    with TemporaryDirectory() as folder, closing(SeenKeys(Path(folder), 3)) as seen:
        again = validator(PARTICIPANT, HEADERS, lines, seen=seen, decided=DECIDED)
        assert joined([again.validate(part) for part in chunks(lines, sizes)]) == at_once
    outcomes = [
        *at_once["lines"],
        *(line for line, _ in at_once["errors"]),
        *(line for line, _ in at_once["skipped"]),
        *(row.line for row in at_once["parked"]),
    ]
    assert sorted(outcomes) == [row.line for row in lines]


@settings(deadline=None, max_examples=examples(60))
@given(ROWS, st.integers(0, 25))
def test_skipped_rows_count_as_validated(rows: list[list[Cell]], done: int) -> None:
    lines = source(rows)
    with closing(SeenKeys(Path())) as seen:
        made = validator(PARTICIPANT, HEADERS, lines, seen=seen, decided=DECIDED)
        made.validate(lines[:done])
        expected = joined([made.validate(lines[done:])])
    with closing(SeenKeys(Path())) as seen:
        resumed = validator(PARTICIPANT, HEADERS, lines, seen=seen, decided=DECIDED)
        resumed.pass_over(lines[:done])
        assert joined([resumed.validate(lines[done:])]) == expected
