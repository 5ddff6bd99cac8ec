"""Tables for people and programs: CSV, XLSX and Parquet, each written as its rows arrive."""

import codecs
import csv
import io
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, Any, Final, cast

import xlsxwriter
from xlsxwriter.exceptions import FileCreateError

from adapters.files import limits
from adapters.files.tables.workbook_options import row_by_row
from domain.tabular.fields import ColumnKind, FieldSpec
from domain.tabular.guards import guarded

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

Rows = Iterator[tuple[Any, ...]]
"""Values in the order of the fields."""

_FIRST_DAY: Final = date(1900, 3, 1)
"""Before it, the calendar of spreadsheets is a day off."""
_EXACT: Final = 10**15
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
        writer.writerow([guarded(field.name) for field in fields])
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
        case datetime() | date():
            return value.isoformat()
        case str():
            return guarded(value)
        case int() | float():
            return str(value)
        case _:
            return guarded(str(value))


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
    day = workbook.add_format({"num_format": "yyyy-mm-dd"})
    sheet = workbook.add_worksheet()
    line = _header(sheet, fields, bold)
    for row in rows:
        if line == limits.ROWS:
            sheet = workbook.add_worksheet()
            line = _header(sheet, fields, bold)
        for column, value in enumerate(row):
            _write_cell(sheet, line, column, value, day)
        line += 1
        count += 1
    return count


def _header(sheet: Any, fields: Sequence[FieldSpec], bold: Any) -> int:
    sheet.freeze_panes(1, 0)
    for column, field in enumerate(fields):
        sheet.write_string(0, column, field.name, bold)
    return 1


def _write_cell(sheet: Any, line: int, column: int, value: Any, day: Any) -> None:
    match value:
        case None | "":
            return
        case int():
            sheet.write_number(line, column, value)
        case Decimal():
            if abs(value) < _EXACT and Decimal(repr(float(value))) == value:
                sheet.write_number(line, column, float(value))
            else:
                sheet.write_string(line, column, number_text(value))
        case date() if value >= _FIRST_DAY:
            midnight = datetime(value.year, value.month, value.day)
            sheet.write_datetime(line, column, midnight, day)
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
        ColumnKind.DECIMAL: (str, DataType.utf8(), DataType.decimal128(20, 6)),
        ColumnKind.INTEGER: (int, DataType.int64(), DataType.int64()),
        ColumnKind.DATE: (_days, DataType.int32(), DataType.date32()),
    }
    text = (str, DataType.utf8(), DataType.utf8())
    kinds = [types.get(field.kind, text) for field in fields]
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
