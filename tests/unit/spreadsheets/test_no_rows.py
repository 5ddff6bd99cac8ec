"""What stands below a list of people is no person."""

from collections.abc import Sequence

import pytest

from domain.spreadsheets.names import name_flaw
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
        (["Anzahl Teilnehmer", "2"], TOTAL),
        (["Ort, Datum", "Berlin, 1.5.2026"], NOTE),
        (["gez. M\u00fcller", "Vorsitzender"], NOTE),
        (["i. V. M\u00fcller", "Kassenwart"], NOTE),
        (["Created with", "ClubSoft 3.1"], NOTE),
        (["\u00a9 2026", "Harriers"], NOTE),
        (["www.example.org", "Export"], NOTE),
        (["Export vom 01.05.2026", "Ada"], NOTE),
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
        ["Ortmann", "Ada"],
        ["I. Ada", "Lovelace"],
        ["I. V. Petrov", "Dynamo"],
        ["I.A. Ivanova", "Spartak"],
        ["Placido", "Domingo"],
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


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("123", "holds no letter"),
        ("5", "holds no letter"),
        ("NN", "not known yet"),
        ("N.N.", "not known yet"),
        ("M\u00c3\u00bcller", "wrong encoding; did you mean 'M\u00fcller'?"),
        ("Gro\u00c3\u0178", "wrong encoding; did you mean 'Gro\u00df'?"),
        ("O&#39;Neil", 'did you mean "O\'Neil"?'),
        ("J&uuml;rgen", "did you mean 'J\u00fcrgen'?"),
    ],
)
def test_what_is_no_name_is_refused(name: str, reason: str) -> None:
    assert reason in (name_flaw(name) or "")
    ((_, value, said),) = reasons(validate([["Ada", name]]))[2]
    assert (value, reason in said) == (name, True)


@pytest.mark.parametrize(
    "name",
    [
        *("Anna", "J.", "O'Neil", "von Berg", "M\u00fcller", "\u00c5ngstr\u00f6m", "Nn\u00e1mdi"),
        *("N\u00fa\u00f1ez", "\u674e", "Smith & Sons", "Henry 8", "\u062f\u0627\u0646\u0627"),
    ],
)
def test_names_of_people_are_names(name: str) -> None:
    assert name_flaw(name) is None
