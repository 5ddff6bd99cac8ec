"""Rows of a table that are not data: totals, page footers, repeated headers, headings.

A row is left out where a word and the numbers, or the place, agree; with one sign alone it is a
row, or a problem of one. What is left out is counted, so that the result names it.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Any, Final, cast

from domain.imports.headers_below import HeadersBelow
from domain.imports.key_shapes import are_filled, lone_place
from domain.imports.survey import Surveyed
from domain.imports.tables import SEQUENCE, TableSpec
from domain.tabular.conversion import Flaw, error_of
from domain.tabular.fields import ColumnKind
from domain.tabular.rows import Cell, Uncalculated, is_filled
from domain.tabular.words import RowWord, is_web_address, may_hold_words, names_group_above, word_of

SUSPECT: Final = (
    "looks like a total, but is not the sum of the rows above; "
    "leave the row out, or call it something else"
)
_NUMBERS: Final = (ColumnKind.DECIMAL, ColumnKind.INTEGER)
_NUMBER_TYPES: Final = frozenset({Decimal, int})
_GROUPS: Final = 64
"""Subtotals that a total of a higher level may sum up."""
_TOGETHER: Final = 2_000
"""Texts that are looked at together."""
_HALF_STEP: Final = Decimal("0.005")


class Left(Enum):
    """Why a row is left out."""

    TOTAL = "totals"
    FOOTER = "page footers"
    HEADER = "repeated headers"
    HEADING = "headings of sections"
    REMARK = "headings or remarks"


@dataclass(frozen=True, slots=True)
class Suspect:
    """A row with one sign of a total.

    Attributes:
        column: Position of the cell that holds the word.
    """

    column: int


@dataclass
class _Sums:
    """Running sums of one column of numbers."""

    block: Decimal = Decimal(0)
    """Since the last total."""
    blocks: list[Decimal] = field(default_factory=list[Decimal])
    """Those that totals have ended."""
    everything: Decimal = Decimal(0)

    def add(self, values: Sequence[Any]) -> None:
        if not _NUMBER_TYPES.issuperset(map(type, values)):
            values = [value for value in values if isinstance(value, Decimal | int)]
        found = sum(values, Decimal(0))
        self.block += found
        self.everything += found

    def is_sum(self, value: Decimal | int, rows: int) -> bool:
        """Whether a value is the sum of the rows of a group, of several groups, or of all."""
        tolerance = _HALF_STEP * min(rows + 1, 200)
        total = self.block
        if abs(value - total) <= tolerance or abs(value - self.everything) <= tolerance:
            return True
        for block in reversed(self.blocks[-_GROUPS:]):
            total += block
            if abs(value - total) <= tolerance:
                return True
        return False

    def end_block(self) -> None:
        self.blocks.append(self.block)
        del self.blocks[:-_GROUPS]
        self.block = Decimal(0)


class LineSorter:
    """Finds the rows of one table that are not data, part by part, in order.

    Args:
        spec: The table.
        surveyed: The header of the file, and what its keys look like.
        above: Rows above the header: where one of them comes again, it is a page's title.
        headings: Lines whose first cell is merged across the table.
    """

    def __init__(
        self,
        spec: TableSpec,
        surveyed: Surveyed,
        above: Sequence[Sequence[Cell]] = (),
        headings: Collection[int] = (),
    ) -> None:
        self._header = header = surveyed.header
        self._below = HeadersBelow(spec, header)
        self._shape = surveyed.keys
        self._key = header.positions[spec.key[0]]
        others = [p for p in header.positions.values() if p != self._key]
        self._beside = others[0] if others else None
        self._headings = headings
        self._places = frozenset(header.positions.values())
        self._keys = frozenset(
            header.positions[name]
            for name in spec.key
            if name in header.positions and spec.by_name[name].required
        )
        self._numbers = [
            each.name
            for each in spec.fields
            if each.kind in _NUMBERS and each.name in header.positions and each.name != SEQUENCE
        ]
        self._sums: Mapping[str, _Sums] = {name: _Sums() for name in self._numbers}
        self._rows = self._since_total = 0
        self._last: Sequence[Cell] = ()
        self._repeated = [
            pattern for row in header.rows if (pattern := self._pattern(row)) is not None
        ]
        titles = [_pattern_of_all(row) for row in above]
        self._titles = [pattern for pattern in titles if pattern is not None]

    def _pattern(self, row: Sequence[Cell]) -> dict[int, str] | None:
        """Titles by position where columns are used."""
        found = {p: t for p in self._places if p < len(row) and (t := _text(row[p]))}
        return found or None

    def sort(
        self,
        rows: Sequence[tuple[int, Sequence[Cell]]],
        columns: Sequence[Sequence[Cell]],
        values: Mapping[str, Sequence[Any]],
        keyless: Collection[int],
    ) -> dict[int, Left | Suspect]:
        """Judge the next rows.

        Args:
            rows: Line number and cells of each.
            columns: The same cells by column.
            values: Converted columns by field.
            keyless: Rows whose key cannot be read.

        Returns:
            By index of the row; rows that are data are not among them.
        """
        found: dict[int, Left | Suspect] = dict.fromkeys(
            self._repetitions(rows, columns, keyless), Left.HEADER
        )
        words = self._words(columns, values)
        remarks = self._remarks(rows, columns)
        found.update((i, Left.REMARK) for i in remarks if i not in words and i not in found)
        if self._headings:
            found.update(self._merged(rows))
        done = 0
        for i in sorted({*words, *found, *keyless}):
            self._count(values, done, i)
            done = i + 1
            verdict = found.get(i)
            if verdict is None and i in words:
                verdict = self._judge(i, rows, words[i], values, keyless)
            if verdict is not None:
                found[i] = verdict
            # A row of numbers alone that are the sum of those above ends a group, and is refused.
            is_sum = verdict is None and i in keyless and self._agrees(i, values)
            if verdict is Left.TOTAL or is_sum:
                self._since_total = 0
                for sums in self._sums.values():
                    sums.end_block()
            elif verdict is None or isinstance(verdict, Suspect):
                self._count(values, i, i + 1)
        self._count(values, done, len(rows))
        if rows:
            self._last = rows[-1][1]
        return found

    def takes_all(self, columns: Sequence[Sequence[str]]) -> bool:
        """Whether all rows are data, whichever of these cells stand beside each other.

        Args:
            columns: The distinct cells of each column. Those of numbers hold numbers only, and
                none names a column.
        """
        width = len(columns)
        for pattern in (*self._repeated, *self._titles):
            if all(place < width and text in columns[place] for place, text in pattern.items()):
                return False
        fields = {position: name for name, position in self._header.positions.items()}
        for position, column in enumerate(columns):
            if fields.get(position) in self._sums:
                continue
            in_key = position in self._keys
            if any(word_of(cell, in_key=in_key) is not None for cell in _suspects(column)):
                return False
        # No row holds a text alone where another column is filled in all of them.
        filled = (all(map(str.strip, column)) for column in columns)
        return self._beside is None or any(
            all_filled and place != self._key for place, all_filled in enumerate(filled)
        )

    def _count(self, values: Mapping[str, Sequence[Any]], start: int, end: int) -> None:
        if end > start:
            self._rows += end - start
            self._since_total += end - start
            for name, sums in self._sums.items():
                sums.add(values[name][start:end])

    def _repetitions(
        self,
        rows: Sequence[tuple[int, Sequence[Cell]]],
        columns: Sequence[Sequence[Cell]],
        keyless: Collection[int],
    ) -> list[int]:
        """Rows that repeat the header, or what stands above it."""
        found = [i for pattern in self._repeated for i in _like(pattern, columns)]
        for pattern in self._titles:
            for i in _like(pattern, columns):
                if i in keyless or _filled(rows[i][1]) == len(pattern):
                    found.append(i)
        below = self._below.find([cells for _, cells in rows], columns)
        return [*found, *(each.row for each in below if each.other is None)]

    def _merged(self, rows: Sequence[tuple[int, Sequence[Cell]]]) -> dict[int, Left | Suspect]:
        return {
            i: Left.HEADING
            for i, (line, cells) in enumerate(rows)
            if line in self._headings and _filled(cells) == 1
        }

    def _remarks(
        self, rows: Sequence[tuple[int, Sequence[Cell]]], columns: Sequence[Sequence[Cell]]
    ) -> list[int]:
        """Rows that hold a text alone, in the place of the key and unlike the keys."""
        found: list[int] = []
        if self._beside is None or self._beside >= len(columns):
            return found
        if are_filled(columns[self._beside]):
            return found
        for i, cell in enumerate(columns[self._beside]):
            if is_filled(cell) or self._key >= len(rows[i][1]):
                continue
            text = rows[i][1][self._key]
            if not isinstance(text, str) or _is_wrong(text) or self._shape.fits(text):
                continue
            if lone_place(rows[i][1], self._header.wrong) == self._key:
                found.append(i)
        return found

    def _words(
        self, columns: Sequence[Sequence[Cell]], values: Mapping[str, Sequence[Any]]
    ) -> dict[int, list[tuple[int, RowWord]]]:
        """Words of rows, each with the position of its cell."""
        fields = {position: name for name, position in self._header.positions.items()}
        found: defaultdict[int, list[tuple[int, RowWord]]] = defaultdict(list)
        for position, cells in enumerate(columns):
            name = fields.get(position)
            if position == self._header.wrong:
                continue
            # What is a number is no word, however it is written.
            numbers = values[name] if name is not None and name in self._sums else None
            if numbers is not None and Flaw not in set(map(type, numbers)):
                continue
            if not _may_hold_words(cells):
                continue
            in_key = position in self._keys
            for i, cell in enumerate(cells):
                if numbers is not None and not isinstance(numbers[i], Flaw):
                    continue
                if isinstance(cell, str) and (word := word_of(cell, in_key=in_key)) is not None:
                    found[i].append((position, word))
        return found

    def _judge(
        self,
        i: int,
        rows: Sequence[tuple[int, Sequence[Cell]]],
        words: Sequence[tuple[int, RowWord]],
        values: Mapping[str, Sequence[Any]],
        keyless: Collection[int],
    ) -> Left | Suspect | None:
        cells = rows[i][1]
        above = rows[i - 1][1] if i else self._last
        kinds = {word for _, word in words}
        if kinds & {RowWord.FOOTER, RowWord.PRINTED}:
            alone = _filled(cells) <= len(words) + 1
            if self._mapped(cells) > 1 and is_web_address(str(cells[words[0][0]])):
                # Codes may be web addresses; a footer's stands alone.
                return None
            return Left.FOOTER if alone and (i in keyless or words[0][0] in self._keys) else None
        position, word = min(words, key=lambda each: each[1].value)
        agrees = self._agrees(i, values)
        if word is RowWord.OF_TOTAL and names_group_above(
            str(cells[position]), above[position] if position < len(above) else None
        ):
            word = RowWord.TOTAL
        in_key = position in self._keys
        if word is RowWord.TOTAL:
            label_alone = in_key and agrees is None and self._mapped(cells) == 1
            own_key = not in_key and i not in keyless
            if i in keyless or label_alone or (agrees and not (own_key and self._since_total < 2)):
                return Left.TOTAL
            return Suspect(position)
        if agrees and self._rows > 1 and (i in keyless or in_key or word is RowWord.OF_TOTAL):
            return Left.TOTAL
        is_code = word is not RowWord.OF_TOTAL and self._shape.fits(str(cells[position]))
        return Suspect(position) if in_key and not is_code else None

    def _agrees(self, i: int, values: Mapping[str, Sequence[Any]]) -> bool | None:
        """Whether some number of a row is the sum of those above; None: it holds no number."""
        numbers = {
            name: value
            for name in self._numbers
            if isinstance(value := values[name][i], Decimal | int) and value
        }
        if not numbers:
            return None
        return self._rows > 0 and any(
            self._sums[name].is_sum(value, self._rows) for name, value in numbers.items()
        )

    def _mapped(self, cells: Sequence[Cell]) -> int:
        return sum(1 for p in self._places if p < len(cells) and is_filled(cells[p]))


def _suspects(texts: Sequence[str]) -> Iterator[str]:
    """Those among which a word may be; quick where none is."""
    for start in range(0, len(texts), _TOGETHER):
        part = texts[start : start + _TOGETHER]
        if may_hold_words(part):
            yield from part


def _is_wrong(text: str) -> bool:
    return isinstance(text, Uncalculated) or error_of(text.strip(), ColumnKind.CODE) is not None


def _pattern_of_all(row: Sequence[Cell]) -> dict[int, str] | None:
    found = {position: text for position, cell in enumerate(row) if (text := _text(cell))}
    return found or None


def _like(pattern: Mapping[int, str], columns: Sequence[Sequence[Cell]]) -> list[int]:
    """Rows whose cells are those of a pattern."""
    if max(pattern) >= len(columns):
        return []
    (first, text), *others = pattern.items()
    if text not in columns[first]:
        return []
    found = [i for i, cell in enumerate(columns[first]) if cell == text]
    return [i for i in found if all(_text(columns[p][i]) == title for p, title in others)]


def _text(cell: Cell) -> str:
    return cell if isinstance(cell, str) and cell.strip() else ""


def _may_hold_words(cells: Sequence[Cell]) -> bool:
    """Whether any of these cells may be a word of a row; quick where none is."""
    try:
        return may_hold_words(cast("Sequence[str]", cells))
    except TypeError:  # a cell that is not text
        return may_hold_words({cell for cell in set(cells) if isinstance(cell, str)})


def _filled(cells: Sequence[Cell]) -> int:
    return sum(map(is_filled, cells))
