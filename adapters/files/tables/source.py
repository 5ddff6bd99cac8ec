"""Tables of every format docflow reads, opened by what the file holds."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from adapters.files.encodings import Content
from adapters.files.tables.custom import (
    CustomFormat,
    custom_sheets,
    open_custom,
    open_custom_book,
)
from adapters.files.tables.delimited import open_delimited
from adapters.files.tables.formats import TableFormat, table_format
from adapters.files.tables.legacy import legacy_sheets, open_legacy, open_legacy_book
from adapters.files.tables.xlsx.reader import open_xlsx, open_xlsx_book, xlsx_sheets
from adapters.ports.documents import Book, Table


@contextmanager
def open_table(
    path: Path,
    *,
    filename: str | None = None,
    sheet: str | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
) -> Generator[Table]:
    """Open a table; the name is used in messages, and finds the format if a package reads it.

    Args:
        path: The file.
        filename: The name its owner knows it by.
        sheet: Sheet of a workbook; when absent the first that holds anything, a hidden one only
            where no visible one does.
        encoding: Encoding of a text file; found out when absent.
        delimiter: Between the fields of a text file; found out when absent.

    Raises:
        UnreadableDocument: No table can be read from it; the message says why.
    """
    kind = table_format(path, filename)
    match kind:
        case TableFormat.XLSX:
            opened = open_xlsx(path, sheet)
        case TableFormat.XLS | TableFormat.ODS:
            opened = open_legacy(path, kind, sheet)
        case TableFormat.TEXT:
            opened = open_delimited(path, encoding, delimiter)
        case CustomFormat():
            opened = open_custom(path, kind, sheet)
    with opened as table:
        yield table


@contextmanager
def open_workbook(
    content: Content, *, filename: str | None = None, encoding: str | None = None
) -> Generator[Book]:
    """Open a file with all of its tables; the name is used as by `open_table`.

    Args:
        content: The file; a text that docflow reads itself may be in memory.
        filename: The name its owner knows it by.
        encoding: Encoding of a text file; found out when absent.

    Raises:
        UnreadableDocument: No table can be read from it; the message says why.
    """
    kind = table_format(content, filename)
    if kind is TableFormat.TEXT:
        with open_delimited(content, encoding) as table:
            yield Book((), lambda _: table)
        return
    assert isinstance(content, Path)
    if kind is TableFormat.XLSX:
        with open_xlsx_book(content) as book:
            yield book
    elif isinstance(kind, CustomFormat):
        yield open_custom_book(content, kind)
    else:
        yield open_legacy_book(content, kind)


def sheets_of(path: Path, *, filename: str | None = None) -> Sequence[str]:
    """Names of a workbook's sheets in its order, hidden ones included; none for a text table.

    Args:
        path: The file.
        filename: The name its owner knows it by, for messages and for formats of packages.

    Raises:
        UnreadableDocument: No table can be read from it; the message says why.
    """
    kind = table_format(path, filename)
    match kind:
        case TableFormat.XLSX:
            sheets = xlsx_sheets(path)
        case TableFormat.XLS | TableFormat.ODS:
            sheets = legacy_sheets(path, kind)
        case TableFormat.TEXT:
            return ()
        case CustomFormat():
            return custom_sheets(path, kind)
    return [sheet.name for sheet in sheets]
