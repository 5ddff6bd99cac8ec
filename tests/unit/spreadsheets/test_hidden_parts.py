"""Rows, columns and sheets that a workbook does not show are read, and named."""

from pathlib import Path
from typing import Any

import pytest
import xlsxwriter

from activities.spreadsheets import analysis
from tests.support.spreadsheets.activities import SpreadsheetSetup
from workflows.spreadsheets.mappings import HiddenParts, Layout

PEOPLE = [["First name", "Last name", "Shoe size"], *([f"A{n}", "B", 38] for n in range(2, 40))]
HIDDEN: dict[str, Any] = {"hidden": True}


def written(path: Path, *lines: int, columns: str = "", sheet: bool = False) -> bytes:
    with xlsxwriter.Workbook(str(path)) as book:
        shown = book.add_worksheet("Runners")
        for line, row in enumerate(PEOPLE):
            shown.write_row(line, 0, row)
        for line in lines:
            shown.set_row(line - 1, None, None, HIDDEN)
        if columns:
            shown.set_column(columns, None, None, HIDDEN)
        if sheet:
            book.add_worksheet("Empty").activate()
            shown.hide()
    return path.read_bytes()


async def preview(setup: SpreadsheetSetup) -> str:
    ((kept,),) = await setup.select("spreadsheet_imports", "preview")
    return kept


async def test_hidden_rows_and_columns_are_named(setup: SpreadsheetSetup) -> None:
    content = written(setup.folder / "f.xlsx", 1, 5, 6, 7, 30, columns="B:C")
    order = await setup.upload(content, filename="f.xlsx")
    found = await setup.analyse(order)
    assert found.hidden == HiddenParts(rows=4, lines="5-7, 30", columns=(2,))
    kept = await preview(setup)
    assert '"hidden_rows": 4, "hidden_lines": "5-7, 30", "hidden_columns": ["Last name"]' in kept
    staged = await setup.stage(order, found.layout)
    assert (staged.total, staged.hidden_rows, staged.hidden_lines) == (38, 4, "5-7, 30")


async def test_a_hidden_sheet_that_is_read_is_named(setup: SpreadsheetSetup) -> None:
    content = written(setup.folder / "f.xlsx", sheet=True)
    found = await setup.analyse(await setup.upload(content, filename="f.xlsx"))
    assert found.hidden == HiddenParts(sheet=True)


async def test_nothing_is_said_where_nothing_is_hidden(setup: SpreadsheetSetup) -> None:
    order = await setup.upload(written(setup.folder / "f.xlsx", 90), filename="f.xlsx")
    found = await setup.analyse(order)
    assert found.hidden == HiddenParts()
    assert (await setup.stage(order, found.layout)).hidden_rows == 0
    assert '"hidden_rows": 0' in await preview(setup)


async def test_rows_that_the_first_look_did_not_reach(
    setup: SpreadsheetSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analysis, "SAMPLED_ROWS", 10)
    order = await setup.upload(written(setup.folder / "f.xlsx", 8, 35), filename="f.xlsx")
    found = await setup.analyse(order, Layout())
    assert (found.hidden.rows, found.hidden.lines) == (1, "8")
    staged = await setup.stage(order, found.layout)
    assert (staged.hidden_rows, staged.hidden_lines) == (2, "8, 35")
    assert '"hidden_rows": 2, "hidden_lines": "8, 35", ' in await preview(setup)
