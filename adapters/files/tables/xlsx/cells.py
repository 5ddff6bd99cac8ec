"""Cells of a worksheet: by an XML parser, and by a fast grammar where the file allows it.

Rows of a worksheet without an XML parser, where the file writes row after row alike.

Programs write sheets in a tiny part of XML: the same few attributes in the same order. The
grammar learns that part from rows that the XML parser has accepted, as one regular expression
for a whole row, and reads rows that match it in every byte; any other row goes to the XML
parser, and teaches the grammar. Values of many rows are then converted column by column.
"""

import re
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from operator import ge

from adapters.files import limits
from adapters.files.package import DAMAGED, XmlStream
from adapters.files.tables.xlsx.values import (
    NUMBER,
    TEXT_BYTES,
    Format,
    Mask,
    Memo,
    SharedStrings,
    Shown,
    Sign,
    column_number,
    from_serial,
    matched_number,
    number,
    text,
)
from adapters.ports.documents import Row
from adapters.ports.errors import UnreadableDocument
from workflows.shared.cells import Cell, Merge, Uncalculated

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
        if isinstance(kind, Mask | Sign):
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


Convert = Callable[[Sequence[bytes | None]], Sequence[Cell]]

_TEXT = b"[" + re.escape(TEXT_BYTES) + b"]"
_LONGEST = limits.CELL_CHARACTERS // 2  # of a formula or a text: the limit is for both together
# Formulas are passed over undecoded, so only those in ASCII, where every byte is a character.
_FORMULA = (
    rb'(?:<f(?: t="shared")?+(?: ref="[A-Z0-9:]{1,30}+")?+(?: si="\d{1,9}+")?+'
    rb"(?:/>|>[\t\n\x20-\x25\x27-\x3b\x3d\x3f-\x7f]{0,%d}+</f>))?+" % _LONGEST
)
_STRING = rb"(%b{0,%d}+)" % (_TEXT, _LONGEST)

# Where a workbook is to be calculated when it is opened, a zero of a formula may be no result: such
# a cell is left to the XML parser.
_RESULT = rb"(?!<f[^<]{0,%d}(?:</f>)?<v>[+-]?[0.]{1,9}</v>)" % _LONGEST

_BODIES = {
    b"n": _FORMULA + rb"<v>(" + NUMBER + rb")</v>",
    b"s": rb"<v>(\d{1,9}+)</v>",
    b"b": _FORMULA + rb"<v>([01])</v>",
    b"e": _FORMULA + rb"<v>(#[A-Z0-9/!?]{1,20}+)</v>",
    b"str": _FORMULA + rb"<v>" + _STRING + rb"</v>",
    b"inlineStr": rb'<is><t(?: xml:space="preserve")?+>' + _STRING + rb"</t></is>",
}

_ROW = re.compile(rb'<row r="(\d{1,7})"([^<>]{0,200})>((?:<c .*)?)</row>', re.DOTALL)
_HIDES = re.compile(rb'\shidden="(?:%b)"' % "|".join(HIDDEN).encode())
_CELL = re.compile(
    rb'<c r="([A-Z]{1,3})(\d{1,7})"((?: s="\d{1,5}")?)((?: t="[A-Za-z]{1,9}")?)'
    rb"(?:/>|>(?:(?!</c>).)*</c>)",
    re.DOTALL,
)


@dataclass
class _Column:
    """What has been seen in one column."""

    styles: set[bytes] = field(default_factory=lambda: set[bytes]())
    kinds: dict[tuple[bytes, Shown], set[bytes]] = field(
        default_factory=lambda: dict[tuple[bytes, Shown], set[bytes]]()
    )
    """Cell type and format to the attributes they come with."""

    def add(self, style: bytes, type_attribute: bytes, kind: Shown) -> bool:
        """Note a cell; whether it is new."""
        cell_type = type_attribute[4:-1] or b"n"
        attributes = self.kinds.setdefault((cell_type, kind), set())
        if style + type_attribute in attributes:
            return False
        attributes.add(style + type_attribute)
        self.styles |= {style, style + type_attribute}
        return True

    def pattern(self, letters: bytes, *, calculates_on_load: bool) -> bytes:
        """An optional cell of this column, one group for each kind."""
        guard = _RESULT if calculates_on_load else b""
        blank = _one_of(self.styles) + rb"/>"
        filled = [
            _one_of(attributes)
            + rb">"
            + (guard if cell_type == b"n" else b"")
            + _BODIES[cell_type]
            + rb"</c>"
            for (cell_type, _), attributes in self.kinds.items()
        ]
        return rb'(?:<c r="%b(?P=line)"(?:%b))?+' % (letters, b"|".join([blank, *filled]))


class Grammar:
    """A regular expression for the rows of one sheet, which grows while it is used."""

    _MOST_HEADS = 32
    _MOST_COLUMNS = 256
    _MOST_STYLES = 32
    _MOST_COMPILATIONS = 32
    _MISSES = 256
    """Rows in a row that taught nothing, after which the grammar stops learning."""

    def __init__(
        self, workbook: Workbook, lines: LineNumbers, hidden_rows: "array[int] | None" = None
    ) -> None:
        self._workbook = workbook
        self._lines = lines
        self._hidden_rows = array("I") if hidden_rows is None else hidden_rows
        self._hides = False
        """The pattern has a group for rows that are hidden."""
        self._heads: set[bytes] = set()
        self._columns: dict[bytes, _Column] = {}
        self._pattern: re.Pattern[bytes] | None = None
        self._layout: list[tuple[int, list[Convert]]] = []
        self._compilations = 0
        self._taught_nothing = 0

    def learn(self, raw: bytes) -> None:
        """Widen the grammar by one row that an XML parser has accepted."""
        if self._compilations >= self._MOST_COMPILATIONS or self._taught_nothing >= self._MISSES:
            return
        self._taught_nothing += 1
        row = _ROW.fullmatch(raw)
        if row is None or (len(self._heads) >= self._MOST_HEADS and row[2] not in self._heads):
            return
        cells = list(_CELL.finditer(row[3]))
        if sum(len(cell[0]) for cell in cells) != len(row[3]):
            return
        if any(cell[2] != row[1] or not self._knows(cell) for cell in cells):
            return
        news = [self._add(cell) for cell in cells]
        if any(news) or row[2] not in self._heads:
            self._heads.add(row[2])
            self._taught_nothing = 0
            self._compile()

    def _knows(self, cell: re.Match[bytes]) -> bool:
        if (cell[4][4:-1] or b"n") not in _BODIES:
            return False
        column = self._columns.get(cell[1])
        if column is None:
            return column_number(cell[1].decode()) < self._MOST_COLUMNS
        return len(column.styles) < self._MOST_STYLES

    def _add(self, cell: re.Match[bytes]) -> bool:
        style, type_attribute = cell[3], cell[4]
        kind: Shown = Format.NUMBER
        if type_attribute in (b"", b' t="n"'):
            kind = self._workbook.format_of(style[4:-1].decode() or None)
        column = self._columns.setdefault(cell[1], _Column())
        return column.add(style, type_attribute, kind)

    def _compile(self) -> None:
        self._compilations += 1
        columns = sorted(
            (column_number(letters.decode()), letters, column)
            for letters, column in self._columns.items()
        )
        on_load = self._workbook.calculates_on_load
        cells = b"".join(
            column.pattern(letters, calculates_on_load=on_load) for _, letters, column in columns
        )
        hidden = {head for head in self._heads if _HIDES.search(head)}
        self._hides = bool(hidden)
        shown = self._heads - hidden
        heads = _one_of(shown)
        if hidden:
            heads = rb"(?:%b(%b))" % (heads + b"|" if shown else b"", _one_of(hidden))
        self._pattern = re.compile(
            rb'<row r="(?P<line>\d{1,7}+)"' + heads + rb">" + cells + b"</row>"
        )
        self._layout = [
            (index, [self._convert(*kind) for kind in column.kinds]) for index, _, column in columns
        ]

    def _convert(self, cell_type: bytes, kind: Shown) -> Convert:
        if cell_type == b"s":
            return self._workbook.strings.cells
        if cell_type == b"b":
            return _by_memo(Memo(b"1".__eq__))
        if cell_type == b"n":
            return _numbers if kind is Format.NUMBER else _by_memo(self._workbook.serials(kind))
        return _texts

    def take(self, buffer: bytes, position: int) -> tuple[int, list[Row]]:
        """Read the rows at `position` that match, as far as they go.

        Returns:
            The position after them, and those that hold anything.

        Raises:
            UnreadableDocument: As the XML parser would.
        """
        if self._pattern is None:
            return position, []
        match_at = self._pattern.match
        found: list[tuple[bytes | None, ...]] = []
        while (match := match_at(buffer, position)) is not None:
            found.append(match.groups())
            position = match.end()
        return position, self._rows(found) if found else []

    def _rows(self, found: list[tuple[bytes | None, ...]]) -> list[Row]:
        groups = zip(*found, strict=True)
        lines = self._line_numbers(next(groups))
        hidden = next(groups) if self._hides else None
        if not self._layout:
            return []
        columns: list[Sequence[Cell]] = []
        blank: list[Cell] = [None] * len(found)
        for index, converts in self._layout:
            columns.extend([blank] * (index - len(columns)))
            columns.append(_first_of([convert(next(groups)) for convert in converts]))
        rows: list[Row] = []
        for line, values in zip(lines, zip(*columns, strict=True), strict=True):
            cells = list(values)
            if cells[-1] is None:
                while cells and cells[-1] is None:
                    cells.pop()
                if not cells:
                    continue
            rows.append((line, cells))
        if hidden is not None:
            marks = dict(zip(lines, hidden, strict=True))
            self._hidden_rows.extend(line for line, _ in rows if marks[line] is not None)
        return rows

    def _line_numbers(self, raw: Sequence[bytes | None]) -> list[int]:
        lines = [int(digits or 0) for digits in raw]
        if any(map(ge, [self._lines.last, *lines], lines)) or lines[-1] > limits.ROWS:
            for line in lines:
                self._lines.next(str(line))
        self._lines.last = lines[-1]
        return lines


def _one_of(literals: set[bytes]) -> bytes:
    return rb"(?:" + b"|".join(re.escape(literal) for literal in sorted(literals)) + rb")"


def _first_of(alternatives: list[Sequence[Cell]]) -> Sequence[Cell]:
    merged = alternatives[0]
    for others in alternatives[1:]:
        merged = [
            other if value is None else value for value, other in zip(merged, others, strict=True)
        ]
    return merged


def _by_memo(memo: Memo) -> Convert:
    value_of = memo.__getitem__
    return lambda raws: list(map(value_of, raws))


def _numbers(raws: Sequence[bytes | None]) -> Sequence[Cell]:
    try:
        return list(map(int, raws))  # type: ignore[arg-type]
    except (TypeError, ValueError):  # a blank, or not an integer
        # Amounts repeat.
        known = {raw: None if raw is None else matched_number(raw) for raw in set(raws)}
        return list(map(known.__getitem__, raws))


def _texts(raws: Sequence[bytes | None]) -> Sequence[Cell]:
    try:
        return [None if raw is None else text(raw.decode("utf-8")) for raw in raws]
    except UnicodeDecodeError as error:
        raise UnreadableDocument(f"{DAMAGED} (XML: {error})") from error
