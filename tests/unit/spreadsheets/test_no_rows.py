"""What stands below a list of people is no person."""

from collections.abc import Sequence

import pytest

from domain.spreadsheets.no_rows import NOTE, TOTAL, notes
from domain.tabular.rows import Cell
from tests.unit.spreadsheets.test_row_validation import ANNA, reasons, validate


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (["Prepared by", "J. Doe"], NOTE),
        (["Erstellt von", "J.", "Doe"], NOTE),
        (["Erstellt von Max Muster", "01.05.2026"], NOTE),
        (["Stand: 01.05.2026"], NOTE),
        (["As of 1/5/2026", "12:30"], NOTE),
        (["Kontakt: Ada", "Lovelace"], NOTE),
        (["Page 1 of 3", None, None], NOTE),
        (["Seite 2", "Verein"], NOTE),
        (["Date", "01.05.2026"], NOTE),
        (["Unterschrift", "Meier"], NOTE),
        (["Total", 15], TOTAL),
        ([None, "Summe", "15", "300,00 ", "12"], TOTAL),
        (["Total members", "15"], TOTAL),
        (["Juniors total", 3], TOTAL),
    ],
)
def test_rows_that_begin_with_a_word_of_no_person(row: list[Cell], reason: str) -> None:
    assert list(notes([["Ada", "Lovelace"], row])) == [(1, reason)]


@pytest.mark.parametrize(
    "row",
    [
        ["Date", "Masamune"],
        ["Kim Sum", 15],
        ["Sum Ting", 15],
        ["Gesamt", 1, "Anna", "Schmidt"],
        ["Note: vegetarian", "Anna", "Schmidt"],
        ["Standish", "Myles"],
        ["Page", "Larry"],
        ["Printz", "Birgit"],
        [15, "Total"],
        [None],
        [],
    ],
)
def test_people_are_rows_whatever_they_are_called(row: list[Cell]) -> None:
    assert list(notes([row])) == []


@pytest.mark.parametrize(
    "row", [["Prepared by", "J. Doe"], ["Total", "15"], ["Erstellt von", "Max", None, None]]
)
def test_such_a_row_becomes_no_person_and_is_named(row: Sequence[Cell]) -> None:
    validated = validate([ANNA, row])
    assert validated.lines == [2]
    ((column, _, reason),) = reasons(validated)[3]
    assert column is None
    assert reason in (NOTE, TOTAL)
