"""Rows and columns that a workbook does not show are read, and named."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.files.compound_files import colinfo, number, row_record, text, xls_of
from tests.support.files.open_documents import ods_of
from tests.support.imports.documents import read, workbook
from workflows.shared.cells import listed_lines

HEADER = ["Code", "Description", "Rate"]
EQUIPMENT = [HEADER, *([f"E-{n}", "Crane", n] for n in range(2, 30))]


@pytest.fixture
def xlsx(tmp_path: Path) -> Callable[..., Path]:
    return lambda *args, **more: workbook(tmp_path / "file.xlsx", *args, **more)


def hides(*lines: int, columns: str = "") -> Callable[[Any, Any], None]:
    def hide(book: Any, sheet: Any) -> None:
        for line in lines:
            sheet.set_row(line - 1, None, None, {"hidden": True})
        if columns:
            sheet.set_column(columns, None, None, {"hidden": True})

    return hide


def test_lines_are_listed_by_runs() -> None:
    assert listed_lines([]) == ""
    assert listed_lines([5, 6, 7, 9]) == "5-7, 9"
    assert listed_lines(range(1, 20, 2)) == "1, 3, 5, 7, 9, 11, ..."


def test_hidden_rows_are_read_and_named(xlsx: Any) -> None:
    found = read(xlsx({"A": EQUIPMENT}, also=hides(1, 5, 6, 7, 20)))
    assert len(found.rows) == 28
    assert found.note == "4 hidden rows were read too (lines 5-7, 20)."
    one = read(xlsx({"A": EQUIPMENT}, also=hides(9)))
    assert one.note == "1 hidden row was read too (line 9)."


def test_rows_that_hold_nothing_are_not_named(xlsx: Any) -> None:
    found = read(xlsx({"A": [*EQUIPMENT[:3], [], EQUIPMENT[3]]}, also=hides(4, 60)))
    assert found.note == ""


def test_hidden_rows_of_several_sheets(xlsx: Any) -> None:
    other = [HEADER, ["X-1", "Saw", 5]]
    found = read(xlsx({"A": EQUIPMENT, "B": other}, also=hides(5)))
    assert found.note == "Sheets read: 'A', 'B'. 1 hidden row was read too (line 5 of 'A')."


def test_hidden_columns_in_use_are_named(xlsx: Any) -> None:
    rows = [[*HEADER, "Colour"], ["E-1", "Crane", 5, "red"]]
    found = read(xlsx({"A": rows}, also=hides(columns="C:D")))
    assert found.rows[0]["rate"] == 5
    assert found.note == (
        "Hidden columns were read too: 'Rate'. Columns not used: 'Colour' (1 value)."
    )


def test_hidden_rows_of_an_xls_file(tmp_path: Path) -> None:
    cells = [colinfo(1, 1, hidden=True)]
    cells += [row_record(line, hidden=line in (0, 2, 3)) for line in range(5)]
    cells += [text(0, 0, "Code"), text(0, 1, "Rate")]
    for line in range(1, 5):
        cells += [text(line, 0, f"E-{line}"), number(line, 1, line)]
    file = tmp_path / "file.xls"
    file.write_bytes(xls_of(cells))
    found = read(file)
    assert len(found.rows) == 4
    assert found.note == (
        "2 hidden rows were read too (lines 3-4). Hidden columns were read too: 'Rate'."
    )


def test_rows_that_a_filter_of_libreoffice_hides(tmp_path: Path) -> None:
    def row(*cells: str, more: str = "") -> str:
        shown = (f"<text:p>{cell}</text:p>" for cell in cells)
        every = "".join(
            f'<table:table-cell office:value-type="string">{each}</table:table-cell>'
            for each in shown
        )
        return f"<table:table-row {more}>{every}</table:table-row>"

    blank = 'table:visibility="collapse" table:number-rows-repeated="1000000"'
    rows = (
        row("Code", "Description"),
        row("E-1", "Crane", more='table:visibility="filter"'),
        row("E-2", "Pump", more='table:visibility="collapse"'),
        row("E-3", "Saw"),
        f"<table:table-row {blank}><table:table-cell/></table:table-row>",
    )
    file = tmp_path / "file.ods"
    file.write_bytes(ods_of(f'<table:table table:name="A">{"".join(rows)}</table:table>'))
    found = read(file)
    assert (found.column("code"), found.note) == (
        ["E-1", "E-2", "E-3"],
        "2 hidden rows were read too (lines 2-3).",
    )
