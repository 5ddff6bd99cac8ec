"""A document through the reader of tables, without a database or a workflow."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any, cast

import xlsxwriter

from activities.imports.table_reader import TableReader
from activities.imports.tables import own_tables
from adapters.files.documents import FileDocuments
from tests.support.imports.activities import message_of
from workflows.imports.messages import TableMessage
from workflows.shared.sections import SECTION, SEQUENCE

Sheet = Sequence[Sequence[Any]]
_PLAIN = ((SECTION, ""), (SEQUENCE, 1))


@dataclass(frozen=True)
class Document:
    """What became of a document.

    Attributes:
        rows: Fields of each row that goes in, without blank ones, those of the scope, and the
            section and sequence of a line of an estimate that needs neither.
        rejected: Line, column and reason of each problem.
        note: What a person reads.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    rejected: list[tuple[int | None, str | None, str]] = field(default_factory=list)
    note: str = ""

    def column(self, name: str) -> list[Any]:
        """One field of every row."""
        return [row.get(name) for row in self.rows]


def read(path: Path, type: str = "equipment", **fields: Any) -> Document:
    """Read a file as an import does."""
    if type in ("mto", "estimation_master"):
        fields.setdefault("service_id", "S1")
    message = cast(TableMessage, message_of(type, blob_name="in/file", **fields))
    spec = own_tables()[message.document_type]
    reader = TableReader(FileDocuments(), path, message, spec, chunk_rows=7)
    rows: list[dict[str, Any]] = []
    rejected: list[tuple[int | None, str | None, str]] = []
    try:
        reader.open()
        while (chunk := reader.next_chunk()) is not None:
            for row in chunk.rows:
                fields_of_row = dict(zip(chunk.columns, row, strict=True))
                rows.append(
                    {
                        name: value
                        for name, value in fields_of_row.items()
                        if name not in spec.scope and value is not None
                        if SECTION not in spec.key or (name, value) not in _PLAIN
                    }
                )
            rejected.extend(
                (problem.line, problem.column, problem.reason)
                for bad in chunk.rejected
                for problem in bad.problems
            )
    finally:
        reader.close()
    return Document(rows, rejected, " ".join(reader.findings.sentences(1_000)))


def workbook(
    path: Path,
    sheets: Mapping[str, Sheet],
    *,
    hidden: Sequence[str] = (),
    formats: Mapping[tuple[int, int], str] | None = None,
    merged: Sequence[tuple[int, int, int, int]] = (),
    also: Callable[[Any, Any], None] = lambda book, sheet: None,
    first_year: int = 1900,
) -> Path:
    """Write a workbook.

    Args:
        path: Where.
        sheets: Rows by name.
        hidden: Sheets that are not shown.
        formats: Number format by line and column, from 0, of the first sheet.
        merged: First line and column, last line and column, from 0, of the first sheet.
        also: Does more to the workbook and its first sheet.
        first_year: Year from which its days are counted: 1900 or 1904.
    """
    options = {
        "default_date_format": "yyyy-mm-dd",
        "strings_to_formulas": False,
        "date_1904": first_year == 1904,
    }
    with xlsxwriter.Workbook(str(path), options) as book:
        first = None
        for name, rows in sheets.items():
            sheet = book.add_worksheet(name)
            for line, cells in enumerate(rows):
                for column, value in enumerate(cells):
                    pattern = (formats or {}).get((line, column)) if first is None else None
                    style = book.add_format({"num_format": pattern}) if pattern else None
                    _write(sheet, line, column, value, style)
            if first is None:
                first = sheet
            if name in hidden:
                sheet.hide()
            else:
                sheet.activate()
        for top, left, bottom, right in merged:
            first.merge_range(top, left, bottom, right, None)
            _write(first, top, left, next(iter(sheets.values()))[top][left], None)
        also(book, first)
    return path


def _write(sheet: Any, line: int, column: int, value: Any, style: Any) -> None:
    match value:
        case None:
            return
        case datetime() | date():
            sheet.write_datetime(line, column, value, style)
        case str():
            sheet.write_string(line, column, value, style)
        case _:
            sheet.write(line, column, value, style)


def text(path: Path, *lines: str, encoding: str = "utf-8", end: str = "\n") -> Path:
    """Write a text file."""
    path.write_bytes("".join(line + end for line in lines).encode(encoding))
    return path
