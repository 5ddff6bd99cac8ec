"""Rows of a worksheet without an XML parser, where the file writes row after row alike.

Programs write sheets in a tiny part of XML: the same few attributes in the same order. The
grammar learns that part from rows that the XML parser has accepted, as one regular expression
for a whole row, and reads rows that match it in every byte; any other row goes to the XML
parser, and teaches the grammar. Values of many rows are then converted column by column.
"""

import re
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import ge

from adapters.files import limits
from adapters.files.package import DAMAGED
from adapters.files.tables.table import Row
from adapters.files.tables.xlsx.cells import HIDDEN, LineNumbers, Workbook
from adapters.files.tables.xlsx.values import (
    NUMBER,
    TEXT_BYTES,
    Format,
    Memo,
    Shown,
    column_number,
    matched_number,
    text,
)
from adapters.ports import UnreadableDocument
from domain.tabular.rows import Cell

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
