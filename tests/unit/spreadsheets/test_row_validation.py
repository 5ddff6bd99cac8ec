"""What goes in, what waits, and what does not go in and why."""

from collections.abc import Sequence
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

from activities.shared.scratch import SeenKeys
from activities.spreadsheets.sheet_types import discover
from activities.spreadsheets.validation import ValidatedRows
from tests.support.spreadsheets.rules import source, validator
from workflows.shared.cells import Cell
from workflows.spreadsheets.mappings import CellMapping, MappingStatus

PARTICIPANT = discover()["EVENT_PARTICIPANT"]
HEADERS = ("Vorname", "Nachname", "E-Mail", "Geb.Datum", "Land", "Category", "T-Shirt", "Foo")
ANNA = ["Anna", "Schmidt", "anna@example.org", "31.05.1990", "GER", "Junior", "XL", "?"]


def validate(rows: Sequence[Sequence[Cell]]) -> ValidatedRows:
    with closing(SeenKeys(Path())) as seen:
        return validator(PARTICIPANT, HEADERS, source(rows), seen=seen).validate(source(rows))


def written(validated: ValidatedRows, table: str) -> list[dict[str, Any]]:
    (target,) = [each for each in validated.targets if each.table == table]
    return [dict(zip(target.columns, row, strict=True)) for row in target.rows]


def decision(field: str, value: str, status: MappingStatus, **more: Any) -> CellMapping:
    return CellMapping(id=1, field=field, value=value, status=status, **more)


def test_problems_hold_no_more_than_they_may() -> None:
    validated = validate([["x" * 9000, "Schmidt"], ["a\u0000b", "Schmidt"]])
    (long,), (forbidden,) = (problems for _, problems in validated.errors)
    assert long.value is not None and len(long.value) == 200
    assert long.reason == "has 9000 characters, at most 255 are allowed"
    assert (forbidden.value, "control character" in forbidden.reason) == ("a\ufffdb", True)


def test_parked_rows_are_loaded_once_their_values_are_known() -> None:
    kids = [*ANNA[:5], "Kidz"]
    answered = [decision("EVENT_CATEGORY_NAME", "Kidz", MappingStatus.MANUAL_MATCHED, target_id=42)]
    rows = source([kids])
    validated = validator(PARTICIPANT, HEADERS, rows, seen=None, decided=answered).validate(rows)
    assert (validated.lines, written(validated, "event_participants")[0]["category_id"]) == (
        [2],
        42,
    )


def test_the_head_settles_dates_for_the_whole_file() -> None:
    rows = source([["A", "B", None, "25/12/1990"], ["C", "D", None, "03/04/1991"]])
    with closing(SeenKeys(Path())) as seen:
        made = validator(PARTICIPANT, HEADERS, rows, seen=seen)
        made.validate(rows[:1])
        assert written(made.validate(rows[1:]), "persons")[0]["birthdate"] == date(1991, 4, 3)
