"""What an ODS sheet shows and the library that reads it drops: errors, zeros, merges, hidden rows.

Source: OpenDocument 1.3 part 3, 9.1 (tables), 19.385 (value types); errors as LibreOffice marks
them, `calcext:value-type`.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from adapters.files import limits
from adapters.files.package import open_package
from adapters.files.tables.marks import Marks
from adapters.files.xml import XmlStream, parse
from adapters.ports import UnreadableDocument

_LEADING_ZEROS = re.compile(r"0[0-9]+")
_NUMBERS = ("float", "percentage", "currency")
_REPEATED = re.compile(rb"-repeated\s*=\s*[\"'][0-9]{3}")
_TAG = 500
_COUNTED = ("table-cell", "covered-table-cell")


def read_marks(path: Path, sheet: str) -> Marks:
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
        if shown and self._is_marked(shown):
            for line in range(self._line, self._line + self._rows):
                for column in range(self._column, self._column + columns):
                    self.found.add(line, column, shown)
        self._add_merge()
        self._column += columns
        self._pieces = None

    def _is_marked(self, shown: str) -> bool:
        if self._cell.get("calcext:value-type") == "error":
            return True
        is_number = self._cell.get("office:value-type") in _NUMBERS
        return is_number and _LEADING_ZEROS.fullmatch(shown) is not None

    def _add_merge(self) -> None:
        rows = _count(self._cell, "table:number-rows-spanned")
        columns = _count(self._cell, "table:number-columns-spanned")
        if (rows > 1 or columns > 1) and len(self.found.merges) < limits.MERGES:
            last = (self._line + rows - 1, self._column, self._column + columns - 1)
            self.found.merges.append((self._line, *last))


def _count(attributes: dict[str, str], name: str) -> int:
    value = attributes.get(name, "1")
    return max(int(value), 1) if value.isdecimal() and len(value) < 8 else 1
