"""What the values of a column show about how it is written, however quickly they are looked at."""

from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.imports import column_table
from activities.imports.tables import own_tables
from tests.support.imports.documents import read, text
from workflows.imports import column_scan
from workflows.imports.column_scan import LetterCases, ReadingOptions, Survey
from workflows.imports.header import find_header
from workflows.imports.messages import DocumentType
from workflows.shared.cells import listed_lines
from workflows.shared.notations import Notation

EQUIPMENT = own_tables()[DocumentType.EQUIPMENT]

_NUMBERS = st.sampled_from(
    (
        *("", "1", "100.25", "7.5", "1.234", "1,5", "1.", ".5", "-2.5", "1 000.5", "2\n3.5"),
        *("12 EUR", "9" * 61, "9" * 70 + ".5", " 4.5", "abc"),
    )
)


def notation_of(values: list[str]) -> Notation | None:
    """What is settled of a column of rates."""
    header = find_header([(1, ["Code", "Rate"])], EQUIPMENT)
    found = Survey(EQUIPMENT, header)
    found.add([(line, [f"E-{line}", value]) for line, value in enumerate(values, 2)])
    return found.finish(ReadingOptions()).notations["rate"]


@given(st.lists(_NUMBERS, min_size=1, max_size=5))
def test_a_quick_look_shows_what_a_thorough_one_does(values: list[str]) -> None:
    quick = notation_of(values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_scan, "_PLAIN_POINTS", column_scan.re.compile(r"(?!)"))
        assert notation_of(values) == quick


def test_plain_decimals_are_not_looked_at_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_scan, "number_notations", lambda text: pytest.fail(text))
    assert notation_of(["100.25", "7.5", "", "12"]) is Notation.POINT


def test_the_whole_column_decides(tmp_path: Path) -> None:
    rows = (f"A{number};03/04/2025" for number in range(6_000))
    found = read(text(tmp_path / "f.csv", "Employee;From", *rows, "B;25/04/2025"), "crew_member")
    assert found.rejected == []
    assert set(found.column("valid_from")[:-1]) == {date(2025, 4, 3)}


def test_codes_in_two_spellings_are_found_by_columns_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(column_table, "COLUMN_BYTES", 1)
    lines = ("Code,Rate", *(f"E-{number},5" for number in range(40)), "e-7,6")
    found = read(text(tmp_path / "f.csv", *lines))
    assert (len(found.rows), "'E-7' and 'e-7'." in found.note) == (41, True)


def test_no_more_codes_are_compared_than_memory_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_scan, "CODES", 3)
    cases = LetterCases()
    for codes in (["A", "a"], ["B", "b"], ["C", "c"]):
        cases.add(codes)
    assert cases.pairs == [("A", "a"), ("B", "b")]


def test_lines_are_listed_by_runs() -> None:
    assert listed_lines([]) == ""
    assert listed_lines([5, 6, 7, 9]) == "5-7, 9"
    assert listed_lines(range(1, 20, 2)) == "1, 3, 5, 7, 9, 11, ..."
