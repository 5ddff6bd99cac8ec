"""Formats of tables that packages read: entry points, found by the suffix of a file's name.

What a reader returns is bounded like the rows of docflow's own formats.
"""

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from functools import cache
from importlib.metadata import EntryPoint
from itertools import islice
from pathlib import Path, PurePath
from typing import Any, ClassVar, Final

from adapters.files import limits
from adapters.files.faults import is_of_disk
from adapters.installed import Installed, installed
from adapters.ports.documents import Book, Row, Table
from adapters.ports.errors import PortError, ReaderFailed, UnreadableDocument
from workflows.shared.cells import Cell, SheetInfo, is_filled
from workflows.shared.errors import InvalidDocument

GROUP: Final = "docflow.readers"
"""Entry points that name a reader."""
OWN_SUFFIXES: Final = (
    *(".xlsx", ".xlsm", ".xltx", ".xltm", ".xls", ".xlt", ".ods", ".ots"),
    *(".csv", ".tsv", ".tab", ".txt"),
)
"""Suffixes of files that docflow reads itself."""
_EXACT_DIGITS: Final = 15


class TableReader(ABC):
    """Reads tables of one format; an instance reads one file.

    Attributes:
        suffixes: What the names of its files end with, in small letters: `(".lst",)`.

    Args:
        path: The file. Its name is not that of the sender.
    """

    suffixes: ClassVar[tuple[str, ...]]

    def __init__(self, path: Path) -> None:
        self.path = path

    def sheets(self) -> Sequence[str]:
        """Return the names of the sheets; none: the file holds one table."""
        return ()

    @abstractmethod
    def rows(self, sheet: str | None) -> Iterable[Sequence[Any]]:
        """Read the rows from the top, blank ones included, header first.

        Cells are `str`, `int`, `float`, `Decimal`, `bool`, `date`, `datetime`, `time` or None.

        Args:
            sheet: One of `sheets`; None: the file has none.

        Raises:
            InvalidDocument: The file is damaged; the message says what to do.
        """


@dataclass(frozen=True, slots=True)
class CustomFormat:
    """A format that a package reads.

    Attributes:
        name: Of its entry point.
        reader: Reads it.
    """

    name: str
    reader: type[TableReader]


@cache
def installed_readers() -> Installed[CustomFormat]:
    """Return formats of installed packages, by suffix."""

    def brought(point: EntryPoint) -> list[tuple[str, CustomFormat]]:
        found: Any = point.load()
        if not (isinstance(found, type) and issubclass(found, TableReader)):
            raise TypeError(f"{point.value} is no class that derives from TableReader")
        for suffix in found.suffixes:
            if PurePath(f"name{suffix}").suffix != suffix or suffix != suffix.lower():
                raise ValueError(f"the suffix {suffix!r} is not possible; write one like '.lst'")
        return [(suffix, CustomFormat(point.name, found)) for suffix in found.suffixes]

    return installed(GROUP, brought, OWN_SUFFIXES)


def custom_format(filename: str | None) -> CustomFormat | None:
    """Return the format of a package that the name of a file ends with."""
    return installed_readers().found.get(PurePath(filename or "").suffix.lower())


def open_custom_book(path: Path, kind: CustomFormat) -> Book:
    """Open a file with all of its tables.

    Raises:
        UnreadableDocument: The reader refuses the file, or it is too large.
    """
    reader, names = _opened(path, kind)
    sheets = [SheetInfo(name) for name in names]
    return Book(sheets, lambda sheet: _table(reader, kind, sheet or None))


@contextmanager
def open_custom(path: Path, kind: CustomFormat, sheet: str | None) -> Generator[Table]:
    """Open one table of a file; the first one that holds anything if no sheet is named.

    Raises:
        UnreadableDocument: The reader refuses the file, or it is too large or has no such sheet.
    """
    reader, names = _opened(path, kind)
    if sheet is not None and names:
        wanted = sheet.strip().casefold()
        known = {name.casefold(): name for name in names}
        if wanted not in known:
            listed = ", ".join(map(repr, names[:20]))
            raise UnreadableDocument(f"the file has no sheet {sheet!r}; it has {listed}")
        yield _table(reader, kind, known[wanted])
        return
    tables = (_table(reader, kind, name) for name in names)
    first = next((each for each in tables if next(each.rows(), None)), None)
    yield first or _table(reader, kind, names[0] if names else None)


def custom_sheets(path: Path, kind: CustomFormat) -> Sequence[str]:
    """Return the names of the sheets of a file.

    Raises:
        UnreadableDocument: The reader refuses the file, or it is too large.
    """
    return _opened(path, kind)[1]


def _opened(path: Path, kind: CustomFormat) -> tuple[TableReader, Sequence[str]]:
    size = path.stat().st_size
    if size > limits.LEGACY_FILE_BYTES:
        raise UnreadableDocument(
            f"the file has {size:,} bytes; at most {limits.LEGACY_FILE_BYTES:,} are read of this "
            "format: split it, or save it as XLSX"
        )
    with _named(kind):
        reader = kind.reader(path)
        sheets = list(islice(reader.sheets(), limits.SHEETS + 1))
        for name in sheets:
            if type(name) is not str or not name.strip():
                raise TypeError(f"the sheet name {name!r} is no text, or blank")
        if len({name.casefold() for name in sheets}) < len(sheets):
            raise ValueError("two sheets have the same name")
    if len(sheets) > limits.SHEETS:
        raise UnreadableDocument(f"the file has more than {limits.SHEETS:,} sheets")
    return reader, sheets


def _table(reader: TableReader, kind: CustomFormat, sheet: str | None) -> Table:
    return Table(kind.name, sheet, None, lambda: _rows(reader, kind, sheet))


def _rows(reader: TableReader, kind: CustomFormat, sheet: str | None) -> Iterator[Row]:
    left = limits.SHEET_BYTES
    with _named(kind):
        for line, cells in enumerate(reader.rows(sheet), start=1):
            if line > limits.ROWS:
                raise UnreadableDocument(
                    f"the table has more than {limits.ROWS:,} rows; split the file"
                )
            row = [_cell(cell, line) for cell in islice(cells, limits.COLUMNS + 1)]
            if len(row) > limits.COLUMNS:
                raise UnreadableDocument(
                    f"line {line} has more than {limits.COLUMNS:,} columns; remove some"
                )
            size = sum(len(cell) for cell in row if isinstance(cell, str))
            left -= size
            if size > limits.LINE_BYTES or left < 0:
                raise UnreadableDocument(f"the text up to line {line} is too long; split the file")
            while row and not is_filled(row[-1]):
                row.pop()
            if row:
                yield line, row


@contextmanager
def _named(kind: CustomFormat) -> Generator[None]:
    """Name the reader and its package in whatever it raises."""
    try:
        yield
    except PortError:
        raise
    except InvalidDocument as error:
        raise UnreadableDocument(f"the reader {kind.name!r} refuses the file: {error}") from error
    except Exception as error:
        # Code of others, which may raise anything.
        if isinstance(error, OSError) and is_of_disk(error):
            raise
        suffix = kind.reader.suffixes[0]
        package = installed_readers().packages.get(suffix, "?")
        raise ReaderFailed(
            f"the reader {kind.name!r} of the package {package} fails with "
            f"{type(error).__name__}: {error}; send the file as XLSX, or install a repaired package"
        ) from error


def _cell(value: Any, line: int) -> Cell:
    match value:
        case None | bool() | int() | float():
            return value
        case str():
            if len(value) > limits.CELL_CHARACTERS:
                raise UnreadableDocument(
                    f"a cell on line {line} has more than {limits.CELL_CHARACTERS:,} characters"
                )
            return value
        case Decimal():
            return _number(value)
        case datetime() if value.tzinfo is not None:
            return value.isoformat(" ")
        case date():
            return value
        case time():
            return value.isoformat()
        case _:
            raise TypeError(f"a cell on line {line} is of type {type(value).__name__}")


def _number(value: Decimal) -> Cell:
    """Return an exact number as a cell has it; as text if a cell would round it."""
    _, digits, exponent = value.as_tuple()
    if isinstance(exponent, str) or len(digits) > _EXACT_DIGITS or abs(exponent) > _EXACT_DIGITS:
        return str(value)
    return float(value) if exponent < 0 else int(value)
