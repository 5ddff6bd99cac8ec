"""A small table in every format, and reading it through `open_table`."""

from pathlib import Path

import xlsxwriter

from adapters.files.tables.source import open_table
from adapters.ports.documents import Row
from tests.support.files.compound_files import xls
from tests.support.files.open_documents import ods

ROWS = [["code", "qty"], ["A", 12], [], ["B", 1.5]]
CELL = '<row r="1"><c r="A1"><v>1</v></c></row>'
"""The only row of a worksheet part."""


def read_table(path: Path, sheet: str | None = None) -> tuple[str, str | None, list[Row]]:
    """Format, sheet and all rows of a file."""
    with open_table(path, sheet=sheet) as table:
        return table.format, table.sheet, list(table.rows())


def write_table(path: Path, format: str) -> Path:
    """Write `ROWS` as xlsx, csv, ods or xls."""
    if format == "xlsx":
        with xlsxwriter.Workbook(str(path)) as workbook:
            sheet = workbook.add_worksheet("Data")
            for line, row in enumerate(ROWS):
                sheet.write_row(line, 0, row)
    elif format == "csv":
        path.write_text("".join(",".join(map(str, row)) + "\n" for row in ROWS))
    else:
        path.write_bytes(ods("Data", ROWS) if format == "ods" else xls(ROWS))
    return path
