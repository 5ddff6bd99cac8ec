"""What an XLS sheet shows and the library that reads it drops: errors, codes, missing results.

Source: [MS-XLS] 2.3 and 2.4 (records), 2.5.217 (RkNumber), 2.5.133 (FormulaValue); BIFF5 has the
same records with shorter texts.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from adapters.files import limits
from adapters.files.compound import stream
from adapters.files.tables.marks import Marks
from adapters.files.tables.xlsx.values import (
    LONGEST_TIME,
    Format,
    Mask,
    Shown,
    from_serial,
    number_format,
)

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


def read_marks(path: Path, sheet: int) -> Marks:
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
    for block in stream(path, _STREAMS):
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
        elif shown is Format.TIME and value >= LONGEST_TIME:
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
