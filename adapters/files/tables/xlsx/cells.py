"""Cells of a worksheet by an XML parser: complete and slow; `xlsx_grammar` is its fast twin."""

import re
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime

from adapters.files import limits
from adapters.files.tables.table import Row
from adapters.files.tables.xlsx.strings import SharedStrings
from adapters.files.tables.xlsx.values import (
    Format,
    Mask,
    Memo,
    Shown,
    column_number,
    from_serial,
    number,
    text,
)
from adapters.files.xml import XmlStream
from adapters.ports import UnreadableDocument
from domain.tabular.rows import Cell, Merge, Uncalculated

_REFERENCE = re.compile("([A-Z]{1,4})([0-9]{1,7})", re.ASCII)
_RANGE = re.compile("([A-Z]{1,3})([0-9]{1,7}):([A-Z]{1,3})([0-9]{1,7})", re.ASCII)
HIDDEN = ("1", "true")
"""What the attribute of a hidden row or column says."""
_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)?Z?", re.ASCII)


@dataclass(frozen=True)
class Workbook:
    """What the cells of every sheet need to become values."""

    strings: SharedStrings
    formats: list[Shown]
    date1904: bool = False
    calculates_on_load: bool = False
    _serials: dict[Shown, Memo] = field(default_factory=lambda: dict[Shown, Memo]())

    def format_of(self, style: str | None) -> Shown:
        """What a cell's style makes of its number."""
        index = int(style) if style is not None and style.isdecimal() and len(style) < 9 else 0
        return self.formats[index] if index < len(self.formats) else Format.NUMBER

    def serials(self, kind: Shown) -> Memo:
        """What is shown of numbers by their digits: days, times, codes with leading zeros."""
        if kind not in self._serials:
            self._serials[kind] = Memo(lambda raw: self._serial(raw, kind))
        return self._serials[kind]

    def _serial(self, raw: bytes, kind: Shown) -> Cell:
        value = number(raw)
        if isinstance(value, str):
            return value
        if isinstance(kind, Mask):
            return kind.shown(value)
        return from_serial(value, kind, self.date1904)


class LineNumbers:
    """The line number of each row, checked to grow."""

    def __init__(self) -> None:
        self.last = 0

    def next(self, declared: str | None) -> int:
        """The line number of a row from its `r`, or the one after the last.

        Raises:
            UnreadableDocument: Rows are out of order, or beyond the last row of a worksheet.
        """
        if declared is None:
            line = self.last + 1
        elif declared.isdecimal() and len(declared) < 9:
            line = int(declared)
        else:
            raise UnreadableDocument(f"the worksheet has a row numbered {declared[:20]!r}")
        if not self.last < line <= limits.ROWS:
            raise UnreadableDocument(
                f"the worksheet's row {line:,} comes after row {self.last:,};"
                f" rows must be in order and end at {limits.ROWS:,}"
            )
        self.last = line
        return line


class CellParser:
    """Collects the rows of `sheetData`.

    Elements count only at their place: worksheet 1, sheetData 2, row 3, c 4, v, f and is 5,
    t within is 6, r within is 6, t within r 7.
    """

    def __init__(
        self,
        workbook: Workbook,
        lines: LineNumbers,
        merges: list[Merge] | None = None,
        hidden: set[int] | None = None,
        hidden_rows: "array[int] | None" = None,
    ) -> None:
        self._merges = merges
        self._hidden = hidden
        self._hidden_rows = hidden_rows
        self.stream = XmlStream(self._start, self._end, self._text)
        self._rows: list[Row] = []
        self.started = False
        """`sheetData` has begun."""
        self._within_data = False
        self._workbook = workbook
        self._lines = lines
        self._line = 0
        self._cells: list[Cell] = []
        self._column = -1
        self._attributes: dict[str, str] = {}
        self._pieces: dict[str, list[str]] = {}
        self._collected: list[str] | None = None
        self._length = 0
        self._boundary = 0
        self._phonetic = False
        self._in_row = False
        self._in_cell = False
        self._is_hidden = False

    @property
    def between_rows(self) -> bool:
        """Whether the parser has consumed everything fed, and stands directly in `sheetData`."""
        return self._within_data and self._boundary == self.stream.fed

    def take(self) -> list[Row]:
        """The complete rows so far; the parser forgets them."""
        rows, self._rows = self._rows, []
        return rows

    def _mark_boundary(self, tag: bytes) -> None:
        self._boundary = self.stream.parser.CurrentByteIndex + len(tag)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        depth = self.stream.depth
        if depth == 5:
            if self._in_cell and name in ("v", "f"):
                self._collected = self._pieces.setdefault(name, [])
        elif depth == 4:
            if self._in_row and name == "c":
                self._start_cell(attributes)
        elif depth == 3:
            if self._within_data and name == "row":
                self._line = self._lines.next(attributes.get("r"))
                self._cells = []
                self._column = -1
                self._in_row = True
                self._within_data = False
                self._is_hidden = attributes.get("hidden") in HIDDEN
            elif name == "mergeCell" and self._merges is not None:
                self._add_merge(attributes.get("ref", ""), self._merges)
            elif name == "col" and self._hidden is not None:
                self._add_hidden(attributes, self._hidden)
        elif depth >= 6:
            if name == "rPh":
                self._phonetic = True
            elif self._in_cell and name == "t" and not self._phonetic:
                self._collected = self._pieces.setdefault("t", [])
        elif depth == 2 and name == "sheetData":
            self.started = self._within_data = True
            self._mark_boundary(b"<sheetData>")

    def _add_merge(self, reference: str, merges: list[Merge]) -> None:
        if len(merges) < limits.MERGES and (found := _RANGE.fullmatch(reference)):
            first, last = column_number(found[1]), column_number(found[3])
            merges.append(Merge(int(found[2]), int(found[4]), first, last))

    def _add_hidden(self, attributes: dict[str, str], hidden: set[int]) -> None:
        first, last = (attributes.get(name, "") for name in ("min", "max"))
        is_range = first.isdecimal() and last.isdecimal() and len(last) < 8
        if is_range and attributes.get("hidden") in HIDDEN:
            hidden.update(range(int(first) - 1, min(int(last), limits.COLUMNS)))

    def _start_cell(self, attributes: dict[str, str]) -> None:
        reference = attributes.get("r")
        column = self._column + 1
        if reference is not None:
            match = _REFERENCE.fullmatch(reference)
            if match is None or int(match[2]) != self._line:
                raise UnreadableDocument(
                    f"row {self._line:,} of the worksheet holds a cell called {reference[:20]!r}"
                )
            column = column_number(match[1])
        if column <= self._column:
            raise UnreadableDocument(
                f"row {self._line:,} of the worksheet holds its cells out of order"
            )
        self._column = column
        self._attributes = attributes
        self._pieces = {}
        self._length = 0
        self._in_cell = True

    def _text(self, value: str) -> None:
        if self._collected is not None:
            self._collected.append(value)
            self._length += len(value)
            if self._length > limits.CELL_CHARACTERS:
                raise UnreadableDocument(
                    f"a cell of row {self._line:,} holds more than"
                    f" {limits.CELL_CHARACTERS:,} characters"
                )

    def _end(self, name: str) -> None:
        depth = self.stream.depth
        if depth >= 5:
            self._collected = None
            if name == "rPh":
                self._phonetic = False
        elif depth == 4:
            if self._in_cell:
                self._end_cell()
        elif depth == 3:
            if self._in_row:
                self._end_row()
        elif depth == 2:
            self._within_data = False

    def _end_cell(self) -> None:
        self._in_cell = False
        if not self._pieces:
            return
        value = self._value()
        if value is None:
            return
        if self._column >= limits.COLUMNS:
            raise UnreadableDocument(
                f"row {self._line:,} holds a value in column {self._column + 1:,};"
                f" at most {limits.COLUMNS:,} columns are read"
            )
        cells = self._cells
        cells.extend([None] * (self._column - len(cells)))
        cells.append(value)

    def _end_row(self) -> None:
        self._in_row = False
        self._within_data = True
        self._mark_boundary(b"</row>")
        if self._cells:
            self._rows.append((self._line, self._cells))
            if self._is_hidden and self._hidden_rows is not None:
                self._hidden_rows.append(self._line)

    def _value(self) -> Cell:
        kind = self._attributes.get("t", "n")
        raw = "".join(self._pieces.get("v", ()))
        if kind == "inlineStr":
            return text("".join(self._pieces.get("t", ())))
        if kind == "str" and "v" in self._pieces:
            return text(raw)
        if "f" in self._pieces and self._is_uncalculated(kind, raw.strip()):
            return Uncalculated("=" + "".join(self._pieces["f"]))
        if not raw.strip():
            return None
        return _VALUES.get(kind, _plain)(raw, self._attributes.get("s"), self._workbook)

    def _is_uncalculated(self, kind: str, raw: str) -> bool:
        """Whether a formula's cell holds no result: a program wrote it that does not calculate."""
        if not raw:
            return True
        return self._workbook.calculates_on_load and kind == "n" and number(raw.encode()) == 0


def _shared(raw: str, style: str | None, workbook: Workbook) -> Cell:
    return workbook.strings.by_digits[raw.encode()]


def _boolean(raw: str, style: str | None, workbook: Workbook) -> Cell:
    return {"1": True, "true": True, "0": False, "false": False}.get(raw.strip(), raw)


def _numeric(raw: str, style: str | None, workbook: Workbook) -> Cell:
    kind = workbook.format_of(style)
    digits = raw.strip().encode()
    return number(digits) if kind is Format.NUMBER else workbook.serials(kind)[digits]


def _iso_date(raw: str, style: str | None, workbook: Workbook) -> Cell:
    value = raw.strip()
    if _ISO_DATE.fullmatch(value) is None:
        return raw
    try:
        if len(value) <= 11:
            return date.fromisoformat(value[:10])
        return datetime.fromisoformat(value).replace(tzinfo=None)
    except ValueError:  # the thirtieth of February
        return raw


def _plain(raw: str, style: str | None, workbook: Workbook) -> Cell:
    return raw


_VALUES: dict[str, Callable[[str, str | None, Workbook], Cell]] = {
    "s": _shared,
    "b": _boolean,
    "n": _numeric,
    "d": _iso_date,
}
