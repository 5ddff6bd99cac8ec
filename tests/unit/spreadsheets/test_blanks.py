"""Cells that only say that there is nothing."""

import pytest

from activities.spreadsheets.sheet_types import discover
from tests.support.spreadsheets.rules import source, validator
from workflows.shared.cells import is_blank

RESULT = discover()["RESULT"]
FIELDS = {field.name: field for field in RESULT.fields}


@pytest.mark.parametrize("text", ["n/a", "N/A", " - ", "--", "?", "???", ".", "k.A.", "Unbekannt"])
def test_texts_that_say_nothing(text: str) -> None:
    assert is_blank(text)
    assert is_blank(text, FIELDS["BIRTHDATE"])


@pytest.mark.parametrize("text", ["0", "no", "x", "Na", "-5", "A-", "", "Nana", "?!x"])
def test_texts_that_say_something(text: str) -> None:
    assert not is_blank(text, FIELDS["CLUB"])


def test_a_field_knows_its_own_values_first() -> None:
    assert not is_blank("n.a.", FIELDS["STATUS"])
    assert not is_blank("n.a.", FIELDS["CLUB"])
    assert not is_blank("Null", FIELDS["LAST_NAME"])


def test_rows_hold_nothing_where_cells_say_nothing() -> None:
    header = ("First name", "Last name", "Email", "Date of birth", "Finish time", "Rank", "Status")
    rows = [
        ("Ann", "Lee", "n/a", "-", "1:00:00", "?", "-"),
        ("Bob", "Null", "?", "k.A.", "n/a", "-", "n.a."),
    ]
    found = validator(RESULT, header, source(rows), seen=None).validate(source(rows))
    assert found.errors == []
    persons, results = found.targets
    columns = [persons.columns.index(name) for name in ("last_name", "email", "birthdate")]
    assert [[row[i] for i in columns] for row in persons.rows] == [
        ["Lee", None, None],
        ["Null", None, None],
    ]
    columns = [results.columns.index(name) for name in ("finish_time_ms", "rank", "status")]
    assert [[row[i] for i in columns] for row in results.rows] == [
        [3_600_000, None, None],
        [None, None, "DNS"],
    ]
