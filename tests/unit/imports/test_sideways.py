"""Tables whose titles stand below each other, and codes in two spellings."""

from pathlib import Path
from typing import Any

import pytest

from activities.imports import column_table
from tests.support.imports.documents import read, text, workbook
from workflows.imports import survey
from workflows.imports.survey import LetterCases
from workflows.shared.errors import InvalidDocument

SIDEWAYS = [
    ["Code", "E-1", "E-2", "E-3"],
    ["Description", "Crane", "Pump", "Saw"],
    ["Rate", 5, 6, 7],
]
SAID = r"the table of sheet 'A' seems to lie on its side: column A holds the titles \('Code', "


@pytest.mark.parametrize("type", ["equipment", "material"])
def test_a_table_on_its_side_is_refused_by_that_name(tmp_path: Path, type: str) -> None:
    with pytest.raises(InvalidDocument, match=SAID + "'Description'.*transpose it"):
        read(workbook(tmp_path / "f.xlsx", {"A": SIDEWAYS[:2]}), type)


def test_its_titles_may_stand_below_others_and_beside_numbers(tmp_path: Path) -> None:
    rows: list[list[Any]] = [["Our cranes"], [], *([None, *cells] for cells in SIDEWAYS)]
    with pytest.raises(InvalidDocument, match="on its side: column B"):
        read(workbook(tmp_path / "f.xlsx", {"A": rows}))


def test_crews_on_their_side_lack_no_column(tmp_path: Path) -> None:
    days = ["2025-01-01", "2025-02-01"]
    rows = [["Employee No", "1", "2"], ["Name", "Ada", "Alan"], ["From", *days]]
    file = workbook(tmp_path / "f.xlsx", {"Notes": [["nothing, here"]], "A": rows})
    with pytest.raises(InvalidDocument, match="'A' seems to lie on its side"):
        read(file, "crew_member")


def test_a_list_of_two_columns_is_not_on_its_side(tmp_path: Path) -> None:
    rows = [["Code", "Description"], ["E-1", "Rate"], ["E-2", "Model"], ["E-3", "Crane"]]
    assert len(read(workbook(tmp_path / "f.xlsx", {"A": rows})).rows) == 3
    keys = [["Code", "Description"], ["RATE-1", "x"], ["E-2", "y"]]
    assert len(read(workbook(tmp_path / "f.xlsx", {"A": keys})).rows) == 2


class TestLetterCases:
    def test_codes_that_differ_in_case_are_two_and_named(self, tmp_path: Path) -> None:
        rows = [["Code", "Rate"], *([f"E-{n}", n] for n in range(9)), ["e-1", 5], ["e-1", 5]]
        found = read(workbook(tmp_path / "f.xlsx", {"A": rows}))
        assert len(found.rows) == 10
        assert found.note == (
            "Codes that differ in capital letters only count as different: 'E-1' and 'e-1'."
        )

    def test_codes_in_small_letters_come_first(self, tmp_path: Path) -> None:
        lines = ("Code,Rate", "e-1,5", *(f"X-{n},5" for n in range(10)), "E-1,6", "E-1a,7")
        found = read(text(tmp_path / "f.csv", *lines))
        assert "'e-1' and 'E-1'." in found.note

    def test_they_are_found_by_columns_too(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(column_table, "COLUMN_BYTES", 1)
        lines = ("Code,Rate", *(f"E-{n},5" for n in range(40)), "e-7,6")
        found = read(text(tmp_path / "f.csv", *lines))
        assert (len(found.rows), "'E-7' and 'e-7'." in found.note) == (41, True)

    def test_no_more_are_compared_than_memory_is_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(survey, "CODES", 3)
        cases = LetterCases()
        for codes in (["A", "a"], ["B", "b"], ["C", "c"]):
            cases.add(codes)
        assert cases.pairs == [("A", "a"), ("B", "b")]
