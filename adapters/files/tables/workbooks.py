"""Workbooks and tables for people: reports of rejected rows, exports, small workbooks."""

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any, Final, cast

import xlsxwriter
from xlsxwriter.exceptions import FileCreateError
from xlsxwriter.worksheet import Worksheet

from adapters.files import limits
from workflows.shared.cells import (
    LEFT_OUT_SHEET,
    MEMORY_SHEET,
    Cell,
    RejectedRow,
    SkippedTable,
    escape_formula,
)
from workflows.shared.contracts import Problem
from workflows.shared.fields import ColumnKind, FieldSpec

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


_TEXT_IS_TEXT: Final[Mapping[str, Any]] = MappingProxyType(
    {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
)


def in_memory() -> dict[str, Any]:
    """Options of a small workbook."""
    return {**_TEXT_IS_TEXT, "in_memory": True}


def row_by_row(folder: Path | str) -> dict[str, Any]:
    """Options of a workbook of any size.

    Args:
        folder: For temporary files.
    """
    return {**_TEXT_IS_TEXT, "constant_memory": True, "tmpdir": str(folder)}


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


WHAT_IS_WRONG: Final = "what is wrong"
"""Header of the first column; a reader of the report leaves this column out."""

COMMENTS: Final = 50_000
"""Comments of one report: they are kept in memory until all rows are written."""

_COMMENT_CHARACTERS = 500
_LONGEST_TEXT = 32_767  # of a cell, in Excel
_CUT = " [cut: too long for a spreadsheet]"
_EXACT = 10**15  # beyond it Excel changes digits
_FIRST_DAY = date(1900, 3, 1)  # before it, Excel's calendar is a day off


class XlsxReportWriter:
    """Writes the spreadsheet of rejected rows: the user's own, and what is wrong with each."""

    def write(
        self,
        target: Path,
        header: Sequence[str],
        rows: Iterator[RejectedRow],
        *,
        comments: bool = False,
        memory: Sequence[Sequence[str]] = (),
        left_out: Sequence[SkippedTable] = (),
    ) -> None:
        """Write the header, then a row for each rejected one; memory stays bounded.

        A worksheet that is full is followed by another with the same header. Text stays text,
        whatever it looks like; a number that a spreadsheet would round is written as text.
        Problems beyond the first `COMMENTS` stand in the first column only.

        Args:
            target: File to write.
            header: Titles of the columns.
            rows: The rows, with their problems.
            comments: Put each problem as a comment on the cell of its column as well.
            memory: Rows of a hidden sheet: what the report remembers.
            left_out: Rows of a sheet of its own: those that are no data, below the titles of
                their tables, each with the reason.
        """
        with xlsxwriter.Workbook(str(target), row_by_row(target.parent)) as workbook:
            bold = workbook.add_format({"bold": True})
            wrong = workbook.add_format({"font_color": "#9C0006", "text_wrap": True})
            writer = _Cells(
                workbook.add_format({"num_format": "yyyy-mm-dd"}),
                workbook.add_format({"num_format": "yyyy-mm-dd hh:mm:ss.000"}),
            )
            notes = _Comments(header, COMMENTS if comments else 0)
            sheet: Worksheet | None = None
            line = 0
            for row in rows:
                if sheet is None or line == limits.ROWS:
                    sheet = self._new_sheet(workbook, bold, header)
                    line = 1
                sheet.write_string(line, 0, fitting(_what_is_wrong(row)), wrong)
                for column, value in enumerate(row.cells, start=1):
                    writer.write(sheet, line, column, value)
                notes.write(sheet, line, row.problems)
                line += 1
            if sheet is None:
                self._new_sheet(workbook, bold, header)
            sheet, line = None, 0
            for titles, skipped in left_out:
                sheet = sheet or self._new_sheet(workbook, bold, titles, LEFT_OUT_SHEET)
                _write_titles(sheet, line, titles, bold)
                for row in skipped:
                    line += 1
                    sheet.write_string(line, 0, fitting(_why_skipped(row)), wrong)
                    for column, value in enumerate(row.cells, start=1):
                        writer.write(sheet, line, column, value)
                line += 1
            if memory:
                self._remember(workbook, memory)

    def _remember(self, workbook: Any, memory: Sequence[Sequence[str]]) -> None:
        sheet: Worksheet = workbook.add_worksheet(MEMORY_SHEET)
        sheet.very_hidden()
        for line, cells in enumerate(memory):
            for column, text in enumerate(cells):
                sheet.write_string(line, column, fitting(text))

    def _new_sheet(
        self, workbook: Any, bold: Any, header: Sequence[str], name: str | None = None
    ) -> Worksheet:
        sheet: Worksheet = workbook.add_worksheet(name)
        sheet.set_column(0, 0, 60)
        sheet.freeze_panes(1, 1)
        _write_titles(sheet, 0, header, bold)
        return sheet


def _write_titles(sheet: Worksheet, line: int, titles: Sequence[str], bold: Any) -> None:
    for column, title in enumerate((WHAT_IS_WRONG, *titles)):
        sheet.write_string(line, column, fitting(title), bold)


def _why_skipped(row: RejectedRow) -> str:
    """Return the place of a row and the reason."""
    place = "" if row.problems[0].sheet else f"line {row.line}: "
    return f"{place}{_what_is_wrong(row)}"


class _Cells:
    """Writes one value with the type it was read with."""

    def __init__(self, date_format: Any, datetime_format: Any) -> None:
        self._date_format = date_format
        self._datetime_format = datetime_format

    def write(self, sheet: Worksheet, line: int, column: int, value: Cell) -> None:
        match value:
            case None | "":
                return
            case bool():
                sheet.write_boolean(line, column, value)
            case int() | float() if -_EXACT < value < _EXACT:
                sheet.write_number(line, column, value)
            case datetime() if value.date() >= _FIRST_DAY:
                sheet.write_datetime(line, column, value, self._datetime_format)
            case date() if type(value) is date and value >= _FIRST_DAY:
                midnight = datetime(value.year, value.month, value.day)
                sheet.write_datetime(line, column, midnight, self._date_format)
            case _:
                sheet.write_string(line, column, fitting(str(value)))


class _Comments:
    """Writes problems onto the cells they are about."""

    def __init__(self, header: Sequence[str], most: int) -> None:
        # The first of two columns of one title is the one that the problems mean.
        self._places = {title: column for column, title in reversed([*enumerate(header, start=1)])}
        self._left = most

    def write(self, sheet: Worksheet, line: int, problems: Sequence[Problem]) -> None:
        by_column: dict[int, list[str]] = {}
        for problem in problems:
            if problem.column in self._places:
                by_column.setdefault(self._places[problem.column], []).append(problem.reason)
        for column, reasons in by_column.items():
            if self._left == 0:
                return
            self._left -= 1
            text = "; ".join(reasons)[:_COMMENT_CHARACTERS]
            sheet.write_comment(line, column, text, {"author": "docflow"})


def fitting(text: str) -> str:
    """A text as far as a cell of Excel holds it; one that is cut says so."""
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - len(_CUT)] + _CUT


def _what_is_wrong(row: RejectedRow) -> str:
    shown = "; ".join(
        f"{problem.column}: {problem.reason}" if problem.column else problem.reason
        for problem in row.problems
    )
    mark = next((problem.mark for problem in row.problems if problem.mark), None)
    place = next((f"{each.sheet!r} line {each.line}: " for each in row.problems if each.sheet), "")
    return f"{place}{shown}" if mark is None else f"{place}{shown} [{mark}]"


Rows = Iterator[tuple[Any, ...]]
"""Values in the order of the fields."""

_FIRST_EXPORTED_DAY: Final = date(1900, 3, 1)
"""Before it, the calendar of spreadsheets is a day off."""
_EXACT_DIGITS: Final = 10**15
"""From it on spreadsheets change digits."""
_EPOCH: Final = date(1970, 1, 1).toordinal()
_BATCH: Final = 5_000
_ROW_GROUP: Final = 20_000


def write_csv(fields: Sequence[FieldSpec], rows: Rows, target: IO[bytes]) -> int:
    """Write UTF-8 with a mark, which spreadsheet programs need; how many rows.

    Text that such a program would run as a formula is guarded by an apostrophe, which the import
    takes off again.
    """
    target.write(codecs.BOM_UTF8)
    text = io.TextIOWrapper(target, encoding="utf-8", newline="", write_through=True)
    count = 0
    try:
        writer = csv.writer(text)
        writer.writerow([escape_formula(field.name) for field in fields])
        for row in rows:
            writer.writerow([_csv_value(value) for value in row])
            count += 1
    finally:
        text.detach()
    return count


def _csv_value(value: Any) -> str:
    match value:
        case None:
            return ""
        case Decimal():
            return number_text(value)
        case datetime() | date() | time():
            return value.isoformat()
        case str():
            return escape_formula(value)
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case _:
            return escape_formula(str(value))


def number_text(value: Decimal) -> str:
    """A number that can be read in one way: three decimals could be thousands."""
    text = f"{value:f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    whole, _, decimals = text.partition(".")
    return f"{whole}.{decimals}0" if len(decimals) == 3 else text


def write_xlsx(fields: Sequence[FieldSpec], rows: Rows, target: Path) -> int:
    """Write a workbook in which text is text, whatever it looks like; how many rows.

    A worksheet that is full is followed by another with the same header.

    Raises:
        OSError: The file cannot be written.
    """
    try:
        # Where the disk is full, the library leaves its temporary files behind.
        with (
            TemporaryDirectory(prefix=".docflow-", dir=target.parent) as folder,
            xlsxwriter.Workbook(str(target), row_by_row(folder)) as workbook,
        ):
            return _fill(workbook, fields, rows)
    except FileCreateError as error:
        raise OSError(*getattr(error.args[0], "args", error.args)) from error


def _fill(workbook: Any, fields: Sequence[FieldSpec], rows: Rows) -> int:
    count = 0
    bold = workbook.add_format({"bold": True})
    formats = {
        kind: workbook.add_format({"num_format": shown}) for kind, shown in _SHOWN_DAYS.items()
    }
    sheet = workbook.add_worksheet()
    line = _header(sheet, fields, bold)
    for row in rows:
        if line == limits.ROWS:
            sheet = workbook.add_worksheet()
            line = _header(sheet, fields, bold)
        for column, value in enumerate(row):
            _write_cell(sheet, line, column, value, formats)
        line += 1
        count += 1
    return count


def _header(sheet: Any, fields: Sequence[FieldSpec], bold: Any) -> int:
    sheet.freeze_panes(1, 0)
    for column, field in enumerate(fields):
        sheet.write_string(0, column, field.name, bold)
    return 1


_SHOWN_DAYS: Final[Mapping[type, str]] = MappingProxyType(
    {date: "yyyy-mm-dd", datetime: "yyyy-mm-dd hh:mm:ss.000", time: "hh:mm:ss.000"}
)


def _write_cell(
    sheet: Any, line: int, column: int, value: Any, formats: Mapping[type, Any]
) -> None:
    match value:
        case None | "":
            return
        case bool():
            sheet.write_boolean(line, column, value)
        case time() | datetime() if value.tzinfo is not None or value.microsecond % 1000:
            # Spreadsheets know neither zones nor microseconds.
            sheet.write_string(line, column, value.isoformat())
        case time():
            sheet.write_datetime(line, column, value, formats[time])
        case datetime() if value.date() >= _FIRST_EXPORTED_DAY:
            sheet.write_datetime(line, column, value, formats[datetime])
        case int():
            sheet.write_number(line, column, value)
        case Decimal():
            if abs(value) < _EXACT_DIGITS and Decimal(repr(float(value))) == value:
                sheet.write_number(line, column, float(value))
            else:
                sheet.write_string(line, column, number_text(value))
        case date() if type(value) is date and value >= _FIRST_EXPORTED_DAY:
            midnight = datetime(value.year, value.month, value.day)
            sheet.write_datetime(line, column, midnight, formats[date])
        case _:
            sheet.write_string(line, column, str(value))


def write_parquet(fields: Sequence[FieldSpec], rows: Rows, target: Path) -> int:
    """Write typed columns: exact numbers, days, text; how many rows.

    Raises:
        OSError: The file cannot be written.
    """
    # Few commands need it, and it takes a moment to load.
    from arro3.core import Array, DataType, Field, RecordBatch, RecordBatchReader, Schema
    from arro3.io import write_parquet as write

    # Arrays of exact numbers and days can only be made from others.
    types = {
        ColumnKind.DECIMAL: (_fixed, DataType.utf8(), DataType.decimal128(20, 6)),
        ColumnKind.MONEY: (_fixed, DataType.utf8(), DataType.decimal128(20, 6)),
        ColumnKind.INTEGER: (int, DataType.int64(), DataType.int64()),
        ColumnKind.PLACE: (int, DataType.int64(), DataType.int64()),
        ColumnKind.BOOLEAN: (bool, DataType.bool(), DataType.bool()),
        ColumnKind.TIME: (_microseconds, DataType.int64(), DataType.time64("us")),
        ColumnKind.DATE: (_days, DataType.int32(), DataType.date32()),
    }
    text = (str, DataType.utf8(), DataType.utf8())
    local, moment = DataType.timestamp("us"), DataType.timestamp("us", tz="UTC")
    kinds = [
        (_microseconds, DataType.int64(), moment if field.zone else local)
        if field.kind is ColumnKind.TIMESTAMP
        else types.get(field.kind, text)
        for field in fields
    ]
    schema = Schema([Field(field.name, kind[2]) for field, kind in zip(fields, kinds, strict=True)])
    count = 0

    def batches() -> Iterator[RecordBatch]:
        nonlocal count
        while file.error is None and (page := list(islice(rows, _BATCH))):
            count += len(page)
            columns = zip(*page, strict=True)
            arrays = [
                Array([None if value is None else made(value) for value in values], first).cast(
                    final
                )
                for values, (made, first, final) in zip(columns, kinds, strict=True)
            ]
            yield RecordBatch.from_arrays(arrays, schema=schema)

    reader: Callable[..., RecordBatchReader] = RecordBatchReader.from_batches
    with target.open("wb") as raw, _RememberingFile(raw) as file:
        write(reader(schema, batches()), cast("IO[bytes]", file), max_row_group_size=_ROW_GROUP)
        if file.error is not None:
            raise file.error
    return count


class _RememberingFile(io.RawIOBase):
    """A file that remembers the first failure of a write and swallows what follows.

    The library ends its thread with a panic, and prints it, where a write fails.

    Attributes:
        error: The first failure.
    """

    def __init__(self, target: IO[bytes]) -> None:
        self._target = target
        self.error: OSError | None = None

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, data: "ReadableBuffer", /) -> int:
        """Write what can be written; how many bytes there were."""
        self._attempt(lambda: self._target.write(data))
        return memoryview(data).nbytes

    def flush(self) -> None:
        """Write what is buffered."""
        if not self.closed:
            self._attempt(self._target.flush)

    def _attempt(self, act: Callable[[], object]) -> None:
        if self.error is not None:
            return
        try:
            act()
        except OSError as error:
            self.error = error


def _days(value: date) -> int:
    """Days since 1970."""
    return value.toordinal() - _EPOCH


def _fixed(value: Decimal) -> str:
    """A number without an exponent, which no other type is made of."""
    return f"{value:f}"


def _microseconds(value: datetime | time) -> int:
    """Microseconds since 1970, or since midnight."""
    moment = value if isinstance(value, datetime) else datetime.combine(date(1970, 1, 1), value)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
