"""What XLS and ODS sheets show, and the library that reads them drops.

What an XLS sheet shows and the library that reads it drops: errors, codes, missing results.

Source: [MS-XLS] 2.3 and 2.4 (records), 2.5.217 (RkNumber), 2.5.133 (FormulaValue); BIFF5 has the
same records with shorter texts.

What an ODS sheet shows and the library that reads it drops: errors, zeros, merges, hidden rows.

Source: OpenDocument 1.3 part 3, 9.1 (tables), 19.385 (value types); errors as LibreOffice marks
them, `calcext:value-type`.
"""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from adapters.files import limits
from adapters.files.compound import read_stream
from adapters.files.package import XmlStream, open_package, parse
from adapters.files.tables.xlsx.values import (
    LONGEST_TIME,
    Format,
    Mask,
    Shown,
    Sign,
    from_serial,
    number,
    number_format,
)
from adapters.ports.errors import UnreadableDocument
from workflows.shared.cells import PERCENT_SIGN, shown_number

_MOST: Final = 1_000_000


class TooManyMarks(Exception):
    """More cells of a sheet show something else than they hold than can be kept."""

    def __init__(self) -> None:
        super().__init__(
            f"more than {_MOST:,} cells of a sheet show errors, leading zeros, percent "
            "signs or currencies; save the file as XLSX and send that"
        )


@dataclass
class Marks:
    """Of one sheet.

    Attributes:
        cells: Line, from 1, and column, from 0, to what the cell shows.
        merges: First and last line, from 1, first and last column, from 0.
        hidden: Columns that are not shown, from 0.
        hidden_rows: First and last line, from 1, of rows that are not shown, in order.
    """

    cells: dict[tuple[int, int], Any] = field(default_factory=dict[tuple[int, int], Any])
    merges: list[tuple[int, int, int, int]] = field(default_factory=list[tuple[int, int, int, int]])

    hidden: set[int] = field(default_factory=set[int])
    hidden_rows: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def hide(self, first: int, count: int) -> None:
        """Note columns that are not shown."""
        self.hidden.update(range(first, min(first + count, limits.COLUMNS)))

    def hide_rows(self, first: int, count: int) -> None:
        """Note rows that are not shown, those of earlier lines first."""
        last = first + count - 1
        if self.hidden_rows and self.hidden_rows[-1][1] == first - 1:
            first, _ = self.hidden_rows.pop()
        self.hidden_rows.append((first, last))

    def add(self, line: int, column: int, shown: Any) -> None:
        """Note one cell.

        Raises:
            TooManyMarks: There are too many.
        """
        if len(self.cells) >= _MOST:
            raise TooManyMarks
        if column < limits.COLUMNS:
            self.cells[line, column] = shown


_STREAMS: Final = ("workbook", "book")
_BOF: Final = 0x809
_EOF: Final = 0x0A
_DATEMODE: Final = 0x22
_FORMAT: Final = 0x41E
_XF: Final = 0xE0
_BOUNDSHEET: Final = 0x85
_RECALCID: Final = 0x1C1
_UNCALCED: Final = 0x5E
_COLINFO: Final = 0x7D
_ROW: Final = 0x208
_HIDDEN_ROW: Final = 0x20
_NUMBER: Final = 0x203
_RK: Final = 0x27E
_MULRK: Final = 0xBD
_BOOLERR: Final = 0x205
_FORMULA: Final = 0x06
_BIFF8: Final = 0x600
_SPECIAL: Final = b"\xff\xff"
"""Ends the result of a formula that is not a number."""
_ERROR_RESULT: Final = 2
_EMPTY_RESULT: Final = 3
_ERRORS: Final = {
    0x00: "#NULL!",
    0x07: "#DIV/0!",
    0x0F: "#VALUE!",
    0x17: "#REF!",
    0x1D: "#NAME?",
    0x24: "#NUM!",
    0x2A: "#N/A",
    0x2B: "#GETTING_DATA",
}
NO_RESULT: Final = ("=",)
"""Stands for a formula without a result."""


@dataclass
class _Book:
    """What the records before the first sheet say."""

    version: int = 0
    date1904: bool = False
    calculated: bool = False
    """A program that calculates has saved the file."""
    patterns: dict[int, str] = field(default_factory=dict[int, str])
    formats: list[int] = field(default_factory=list[int])
    sheets: list[int] = field(default_factory=list[int])
    """Where each sheet begins."""

    def shown(self) -> list[Shown]:
        """What each cell format makes of a number."""
        return [number_format(code, self.patterns.get(code)) for code in self.formats]


def has_1904_days(path: Path) -> bool:
    """Whether day numbers of a workbook count from 1904.

    Raises:
        DamagedCompound: The file cannot be read.
    """
    return _globals(_records(path)).date1904


def read_xls_marks(path: Path, sheet: int) -> Marks:
    """Look through one sheet.

    Args:
        path: The file.
        sheet: Its number, from 0, in the order of the workbook.

    Raises:
        DamagedCompound: The file cannot be read.
        TooManyMarks: There are too many.
    """
    records = _records(path)
    book = _globals(records)
    if sheet >= len(book.sheets):
        return Marks()
    reading = _Sheet(book)
    start, depth = book.sheets[sheet], 0
    for place, kind, body in records:
        if place < start:
            continue
        if kind == _BOF:
            depth += 1
        elif kind == _EOF:
            depth -= 1
            if depth == 0:
                break
        elif depth == 1:
            reading.take(kind, body)
    return reading.finish()


def _records(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Place, kind and body of each record."""
    buffer = b""
    place = 0
    for block in read_stream(path, _STREAMS):
        buffer += block
        at = 0
        while at + 4 <= len(buffer):
            kind, length = struct.unpack_from("<HH", buffer, at)
            if at + 4 + length > len(buffer):
                break
            yield place + at, kind, buffer[at + 4 : at + 4 + length]
            at += 4 + length
        place += at
        buffer = buffer[at:]


def _globals(records: Iterator[tuple[int, int, bytes]]) -> _Book:
    book = _Book()
    for _, kind, body in records:
        if kind == _EOF:
            break
        if kind == _BOF and len(body) >= 2:
            (book.version,) = struct.unpack_from("<H", body)
        elif kind == _DATEMODE:
            book.date1904 = body[:1] == b"\x01"
        elif kind == _RECALCID:
            book.calculated = True
        elif kind == _FORMAT and len(body) > 3:
            book.patterns[_short(body, 0)] = _pattern(body, book.version)
        elif kind == _XF and len(body) >= 4 and len(book.formats) < limits.STYLES:
            book.formats.append(_short(body, 2))
        elif kind == _BOUNDSHEET and len(body) >= 4 and len(book.sheets) < limits.SHEETS:
            book.sheets.append(struct.unpack_from("<L", body)[0])
    return book


def _pattern(body: bytes, version: int) -> str:
    if version < _BIFF8:
        return body[3 : 3 + body[2]].decode("latin-1")
    wide = len(body) > 4 and body[4] & 1
    length = _short(body, 2) * (2 if wide else 1)
    return body[5 : 5 + length].decode("utf-16-le" if wide else "latin-1", "replace")


def _short(body: bytes, at: int) -> int:
    return struct.unpack_from("<H", body, at)[0]


class _Sheet:
    """Follows the cells of one sheet."""

    def __init__(self, book: _Book) -> None:
        self._book = book
        self._shown = book.shown()
        self._marks = Marks()
        self._without: list[tuple[int, int]] = []
        """Formulas whose result is zero or empty: those of programs that do not calculate."""
        self._has_results = False
        self._asks = False

    def take(self, kind: int, body: bytes) -> None:
        """Look at one record; one that is too short holds no cell."""
        if kind == _UNCALCED:
            self._asks = True
        elif kind == _COLINFO and len(body) >= 10:
            first, last = struct.unpack_from("<HH", body)
            if body[8] & 1:
                self._marks.hide(first, last - first + 1)
        elif kind == _ROW and len(body) >= 16:
            if body[12] & _HIDDEN_ROW:
                self._marks.hide_rows(_short(body, 0) + 1, 1)
        elif kind == _MULRK and len(body) >= 12:
            line, first = struct.unpack_from("<HH", body)
            for n in range((len(body) - 6) // 6):
                style, raw = struct.unpack_from("<HL", body, 4 + 6 * n)
                self._number(line, first + n, style, _rk(raw))
        elif kind in _CELLS and len(body) >= _CELLS[kind]:
            line, column, style = struct.unpack_from("<HHH", body)
            if kind == _NUMBER:
                self._number(line, column, style, struct.unpack_from("<d", body, 6)[0])
            elif kind == _RK:
                self._number(line, column, style, _rk(struct.unpack_from("<L", body, 6)[0]))
            elif kind == _BOOLERR:
                if body[7]:
                    self._error(line, column, body[6])
            else:
                self._formula(line, column, style, body[6:14])

    def _formula(self, line: int, column: int, style: int, result: bytes) -> None:
        if result[6:] != _SPECIAL:
            (value,) = struct.unpack("<d", result)
            self._number(line, column, style, value)
            empty = value == 0
        else:
            empty = result[0] == _EMPTY_RESULT
            if result[0] == _ERROR_RESULT:
                self._error(line, column, result[2])
        if empty:
            self._without.append((line, column))
        else:
            self._has_results = True

    def _error(self, line: int, column: int, code: int) -> None:
        self._marks.add(line + 1, column, _ERRORS.get(code, "#UNKNOWN!"))

    def _number(self, line: int, column: int, style: int, value: float) -> None:
        shown = self._shown[style] if style < len(self._shown) else Format.NUMBER
        if isinstance(shown, Mask) and value.is_integer():
            text = shown.shown(int(value))
            if isinstance(text, str):
                self._marks.add(line + 1, column, text)
        elif isinstance(shown, Sign):
            self._marks.add(line + 1, column, (shown_number(value), shown.sign))
        elif shown in (Format.TIME, Format.LENGTH) and value >= LONGEST_TIME:
            self._marks.add(line + 1, column, from_serial(value, shown, self._book.date1904))

    def finish(self) -> Marks:
        """All that was found."""
        if self._asks or not (self._book.calculated or self._has_results):
            for line, column in self._without:
                self._marks.add(line + 1, column, NO_RESULT)
        return self._marks


_CELLS: Final[dict[int, int]] = {_NUMBER: 14, _RK: 10, _BOOLERR: 8, _FORMULA: 14}
"""Records of one cell, with the bytes that they have at least."""


def _rk(raw: int) -> float:
    if raw & 2:
        signed = raw if raw < 1 << 31 else raw - (1 << 32)
        value = float(signed >> 2)
    else:
        (value,) = struct.unpack("<d", struct.pack("<Q", (raw & 0xFFFFFFFC) << 32))
    return value / 100 if raw & 1 else value


_LEADING_ZEROS = re.compile(r"0[0-9]+")
_NUMBERS = ("float", "percentage", "currency")
_REPEATED = re.compile(rb"-repeated\s*=\s*[\"'][0-9]{3}")
_TAG = 500
_COUNTED = ("table-cell", "covered-table-cell")


def read_ods_marks(path: Path, sheet: str) -> Marks:
    """Look through one sheet.

    Raises:
        UnreadableDocument: The file is damaged or hostile.
        TooManyMarks: There are too many.
    """
    with open_package(path) as package:
        reading = _Reading(sheet)
        parse(package.stream("content.xml", limits.SHEET_BYTES), reading.stream)
    return reading.found


def check_cells(path: Path) -> None:
    """See that the sheets of a file hold no more cells than can be kept.

    A cell or row that stands once may be repeated a million times: the library makes cells of all.

    Raises:
        UnreadableDocument: They do, or the file is damaged.
    """
    with open_package(path) as package:
        if not _repeats_often(package.stream("content.xml", limits.SHEET_BYTES)):
            return
        counting = _Counting()
        parse(package.stream("content.xml", limits.SHEET_BYTES), counting.stream)


def _repeats_often(blocks: Iterator[bytes]) -> bool:
    """Whether a row or cell is repeated a hundred times or more; quick."""
    end = b""
    for block in blocks:
        block = end + block
        for found in _REPEATED.finditer(block):
            tag = block[max(block.rfind(b"<", 0, found.start()), 0) : found.start()]
            if not tag.split(maxsplit=1)[0].endswith(b"column"):
                return True
        end = block[-_TAG:]
    return False


class _Counting:
    """Counts the cells up to the last filled row and column of each sheet."""

    def __init__(self) -> None:
        self.stream = XmlStream(self._start, self._end, self._text)
        self._cells = 0
        self._line = self._width = 0
        self._rows = 1
        self._column = 0
        self._row_width = 0
        self._in_cell = self._is_filled = False
        self._columns = 1

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "table":
            self._line = self._width = 0
        elif name == "table-row":
            self._rows = _count(attributes, "table:number-rows-repeated")
            self._column = self._row_width = 0
        elif name in _COUNTED:
            self._columns = _count(attributes, "table:number-columns-repeated")
            self._in_cell, self._is_filled = True, "office:value-type" in attributes

    def _text(self, text: str) -> None:
        self._is_filled = self._is_filled or (self._in_cell and bool(text.strip()))

    def _end(self, name: str) -> None:
        if name in _COUNTED:
            self._column += self._columns
            if self._is_filled:
                self._row_width = self._column
            self._in_cell = False
        elif name == "table-row":
            self._line += self._rows
            if self._row_width:
                self._width = max(self._width, self._row_width)
                self._check(self._cells + self._line * self._width)
        elif name == "table":
            self._cells += self._line * self._width if self._width else 0

    def _check(self, cells: int) -> None:
        if cells > limits.ODS_CELLS:
            raise UnreadableDocument(
                f"the sheets of the ODS file have more than {limits.ODS_CELLS:,} cells, repeated "
                "ones included; remove what is repeated, or save it as XLSX"
            )


class _Reading:
    """Follows rows and cells of one sheet."""

    def __init__(self, sheet: str) -> None:
        self.stream = XmlStream(self._start, self._end, self._text)
        self.found = Marks()
        self._wanted = sheet
        self._within = False
        self._line = 0
        self._rows = 1
        self._column = 0
        self._columns = 0
        self._cell: dict[str, str] = {}
        self._pieces: list[str] | None = None
        self._notes = 0

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "table":
            self._within = attributes.get("table:name") == self._wanted
            self._line = 1
            self._columns = 0
        elif not self._within:
            return
        elif name == "table-column":
            columns = _count(attributes, "table:number-columns-repeated")
            if attributes.get("table:visibility", "visible") != "visible":
                self.found.hide(self._columns, columns)
            self._columns += columns
        elif name == "table-row":
            self._rows = _count(attributes, "table:number-rows-repeated")
            self._column = 0
            if attributes.get("table:visibility", "visible") != "visible":
                self.found.hide_rows(self._line, self._rows)
        elif name in _COUNTED:
            self._cell, self._pieces = attributes, []
        elif name == "annotation":
            self._notes += 1

    def _text(self, text: str) -> None:
        if self._within and self._pieces is not None and not self._notes:
            self._pieces.append(text)

    def _end(self, name: str) -> None:
        if not self._within:
            return
        if name == "annotation":
            self._notes -= 1
        elif name in _COUNTED:
            self._end_cell("".join(self._pieces or ()).strip())
        elif name == "table-row":
            self._line += self._rows
        elif name == "table":
            self._within = False

    def _end_cell(self, shown: str) -> None:
        columns = _count(self._cell, "table:number-columns-repeated")
        if shown and (mark := self._mark(shown)) is not None:
            for line in range(self._line, self._line + self._rows):
                for column in range(self._column, self._column + columns):
                    self.found.add(line, column, mark)
        self._add_merge()
        self._column += columns
        self._pieces = None

    def _mark(self, shown: str) -> str | tuple[float, str] | None:
        """What a cell shows, or its number and its sign; None: what the library reads."""
        kind = self._cell.get("office:value-type")
        if self._cell.get("calcext:value-type") == "error":
            return shown
        if kind in _NUMBERS and _LEADING_ZEROS.fullmatch(shown):
            return shown
        value = number(self._cell.get("office:value", "").encode())
        if kind not in ("percentage", "currency") or isinstance(value, str):
            return None
        sign = PERCENT_SIGN if kind == "percentage" else self._cell.get("office:currency")
        return (value, sign.upper()) if sign else None

    def _add_merge(self) -> None:
        rows = _count(self._cell, "table:number-rows-spanned")
        columns = _count(self._cell, "table:number-columns-spanned")
        if (rows > 1 or columns > 1) and len(self.found.merges) < limits.MERGES:
            last = (self._line + rows - 1, self._column, self._column + columns - 1)
            self.found.merges.append((self._line, *last))


def _count(attributes: dict[str, str], name: str) -> int:
    value = attributes.get(name, "1")
    return max(int(value), 1) if value.isdecimal() and len(value) < 8 else 1
