"""Small workbooks of several sheets, for people."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import xlsxwriter

from adapters.files.tables.workbook_options import in_memory

_FORBIDDEN: Final = re.compile(r"[\[\]:*?/\\]")
_LONGEST_NAME: Final = 31
_WIDEST: Final = 60
"""Characters; longer texts are wrapped."""


@dataclass(frozen=True, slots=True)
class WorkbookSheet:
    """A sheet: its name, its headers, and rows of text below them."""

    name: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]


def write_workbook(sheets: Sequence[WorkbookSheet], target: Path) -> None:
    """Write sheets in which every cell is text, whatever it looks like.

    Raises:
        OSError: The file cannot be written.
    """
    with xlsxwriter.Workbook(str(target), in_memory()) as workbook:
        bold = workbook.add_format({"bold": True})
        # Spreadsheet programs would make dates and numbers of what is typed over an example.
        text = workbook.add_format({"num_format": "@", "text_wrap": True, "valign": "top"})
        for each in sheets:
            sheet = workbook.add_worksheet(_FORBIDDEN.sub(" ", each.name)[:_LONGEST_NAME])
            sheet.freeze_panes(1, 0)
            for column, header in enumerate(each.headers):
                cells = [header, *(row[column] for row in each.rows)]
                sheet.set_column(column, column, min(_WIDEST, max(map(len, cells)) + 2), text)
                sheet.write_string(0, column, header, bold)
                for line, cell in enumerate(cells[1:], 1):
                    if cell:
                        sheet.write_string(line, column, cell, text)
