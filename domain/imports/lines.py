"""Rows of a table that are not data, and rows that are data although they look odd.

A row that has its own key is a row. It is skipped in three cases alone: its key is a totals word,
it holds no other text and each of its numbers is a sum of rows above; it repeats the header cell by
cell; or it holds its key alone, and that is a page's footer which stands elsewhere with another
number. A row without a key cannot be stored: it is skipped if it is a heading, or if each of its
numbers is a sum of rows above, and rejected otherwise.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Any, Final

from domain.imports.header import TableHeader
from domain.imports.headers_below import HeadersBelow
from domain.imports.tables import SEQUENCE, TableSpec
from domain.tabular.fields import ColumnKind
from domain.tabular.habits import number_readings_of
from domain.tabular.rows import Cell, is_filled
from domain.tabular.words import footer_of, is_totals_word, may_hold_words

Values = Mapping[str, Sequence[Any]]
"""Converted columns by field."""

_NUMBERS: Final = (ColumnKind.DECIMAL, ColumnKind.INTEGER)
_GROUPS: Final = 64
"""Subtotals that a total of a higher level may sum up."""
_HALF_STEP: Final = Decimal("0.005")
_LEAST_SUMMED: Final = 2
"""Rows above of which a number without a key may be the sum: one row may just be repeated."""


class Left(Enum):
    """Why a row is left out."""

    TOTAL = "totals"
    FOOTER = "page footers"
    HEADER = "repeated headers"
    HEADING = "headings or remarks without a key"


@dataclass(frozen=True, slots=True)
class KeyWords:
    """What the keys of a whole table show before its first row is judged.

    Attributes:
        needs_sums: A key is a totals word, or some row has no key.
        footers: Footers of pages that stand alone in the key with several numbers.
    """

    needs_sums: bool = False
    footers: frozenset[str] = frozenset()


class KeyWordSearch:
    """Looks at the keys of a table before its rows are judged.

    Args:
        places: Positions of the columns that may hold a part of the key that must be filled.
        first: Those of them that may hold its first part.
    """

    def __init__(self, places: Collection[int], first: Collection[int]) -> None:
        self._places = places
        self._first = first
        self._needs_sums = False
        self._footers: defaultdict[str, set[str]] = defaultdict(set)

    def add(self, rows: Sequence[Sequence[Cell]], columns: Sequence[Sequence[Cell]]) -> None:
        """Take the next rows.

        Args:
            rows: Cells of each.
            columns: The same cells by column.
        """
        for place in self._places:
            if place >= len(columns):
                self._needs_sums = True
                continue
            cells = columns[place]
            texts = {cell for cell in set(cells) if isinstance(cell, str)}
            if len(texts) != len(set(cells)) or not all(map(str.strip, texts)):
                self._needs_sums = self._needs_sums or not all(map(is_filled, cells))
            if not may_hold_words(texts):
                continue
            self._needs_sums = self._needs_sums or any(map(is_totals_word, texts))
            if place in self._first and (feet := set(filter(footer_of, texts))):
                self._collect(rows, place, feet)

    def _collect(self, rows: Sequence[Sequence[Cell]], place: int, feet: Collection[Cell]) -> None:
        for cells in rows:
            text = cells[place] if place < len(cells) else None
            if text in feet and _filled(cells) == 1:
                self._footers[footer_of(str(text)) or ""].add(str(text))

    def found(self) -> KeyWords:
        """Return what all keys show."""
        several = frozenset(foot for foot, texts in self._footers.items() if len(texts) > 1)
        return KeyWords(self._needs_sums, several)


@dataclass
class _Sums:
    """Running sums of one column of numbers."""

    block: Decimal = Decimal(0)
    """Since the last total."""
    blocks: list[Decimal] = field(default_factory=list[Decimal])
    """Those that totals have ended."""
    everything: Decimal = Decimal(0)

    def add(self, value: Decimal) -> None:
        self.block += value
        self.everything += value

    def is_sum(self, value: Decimal, rows: int) -> bool:
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
        header: The header of the file.
        keys: What the keys of the whole table show.
    """

    def __init__(
        self,
        spec: TableSpec,
        header: TableHeader,
        keys: KeyWords,
    ) -> None:
        positions = header.positions
        self._below = HeadersBelow(spec, header)
        self._keys = keys
        self._wrong = header.wrong
        self._places = key_places(spec, positions)
        self._used = frozenset(positions.values())
        self._numbers = {
            positions[each.name]: each.name
            for each in spec.fields
            if each.kind in _NUMBERS and each.name in positions and each.name != SEQUENCE
        }
        self._sums: defaultdict[int, _Sums] = defaultdict(_Sums)
        self._rows = self._since_total = 0
        patterns = (_pattern(row, header.wrong) for row in header.rows)
        self._repeated = [pattern for pattern in patterns if pattern]

    def sort(
        self,
        rows: Sequence[tuple[int, Sequence[Cell]]],
        columns: Sequence[Sequence[Cell]],
        values: Values,
    ) -> dict[int, Left]:
        """Judge the next rows.

        Args:
            rows: Line number and cells of each.
            columns: The same cells by column.
            values: Converted columns by field.

        Returns:
            Why a row is left out, by its index; rows that are data are not among them.
        """
        found = dict.fromkeys(self._repetitions(rows, columns), Left.HEADER)
        if not self._keys.needs_sums and not self._keys.footers:
            return found
        for i, (_, cells) in enumerate(rows):
            if i in found:
                continue
            verdict = self._judge(i, cells, values)
            if verdict is not None:
                found[i] = verdict
            if verdict is Left.TOTAL:
                self._since_total = 0
                for sums in self._sums.values():
                    sums.end_block()
            elif verdict is None and self._keys.needs_sums:
                self._rows += 1
                self._since_total += 1
                for place, number in self._numbers_of(i, cells, values).items():
                    if number is not None:
                        self._sums[place].add(number)
        return found

    def _judge(self, i: int, cells: Sequence[Cell], values: Values) -> Left | None:
        key = [cells[p] for p in self._places if p < len(cells) and is_filled(cells[p])]
        if not key:
            if not any(p < len(cells) and is_filled(cells[p]) for p in self._used):
                return None
            if self._since_total >= _LEAST_SUMMED and self._are_sums(i, cells, values):
                return Left.TOTAL
            return Left.HEADING if self._holds_one_text(i, cells, values) else None
        if _are_totals_words(key):
            other = {*range(len(cells))} - {*self._places, self._wrong}
            is_alone = not any(_is_text(cells[place]) for place in other)
            return Left.TOTAL if is_alone and self._are_sums(i, cells, values) else None
        if isinstance(key[0], str) and self._filled(cells) == 1:
            return Left.FOOTER if footer_of(key[0]) in self._keys.footers else None
        return None

    def _own(self, cells: Sequence[Cell]) -> list[Cell]:
        return [cell for place, cell in enumerate(cells) if place != self._wrong]

    def _filled(self, cells: Sequence[Cell]) -> int:
        return _filled(self._own(cells))

    def _holds_one_text(self, i: int, cells: Sequence[Cell], values: Values) -> bool:
        return self._filled(cells) == 1 and not self._numbers_of(i, cells, values)

    def _are_sums(self, i: int, cells: Sequence[Cell], values: Values) -> bool:
        """Whether a row holds numbers, and each of them is the sum of rows above."""
        numbers = self._numbers_of(i, cells, values)
        said = {place: number for place, number in numbers.items() if number != 0}
        return bool(said) and all(
            number is not None and self._sums[place].is_sum(number, self._rows)
            for place, number in said.items()
        )

    def _numbers_of(
        self, i: int, cells: Sequence[Cell], values: Values
    ) -> dict[int, Decimal | None]:
        """Numbers of a row by position, of columns that are not used too; None: one that is in
        doubt."""
        found: dict[int, Decimal | None] = {}
        for place, cell in enumerate(cells):
            if place == self._wrong or place in self._places or not is_filled(cell):
                continue
            if place in self._numbers:
                value = values[self._numbers[place]][i]
                found[place] = Decimal(value) if isinstance(value, Decimal | int) else None
            elif readings := number_readings_of(cell):
                found[place] = readings[0] if len(readings) == 1 else None
        return found

    def _repetitions(
        self, rows: Sequence[tuple[int, Sequence[Cell]]], columns: Sequence[Sequence[Cell]]
    ) -> list[int]:
        """Rows that repeat the header cell by cell."""
        found = [
            i
            for pattern in self._repeated
            for i in _like(pattern, columns)
            if self._filled(rows[i][1]) == len(pattern)
        ]
        below = self._below.find([cells for _, cells in rows], columns)
        return [*found, *(each.row for each in below if each.other is None)]

    def takes_all(self, columns: Sequence[Sequence[str]]) -> bool:
        """Return whether all rows are data, whichever of these cells stand beside each other.

        Args:
            columns: The distinct cells of each column; no key names a column.
        """
        width = len(columns)
        for texts in (columns[place] for place in self._places):
            if may_hold_words(texts) and any(is_totals_word(t) or footer_of(t) for t in texts):
                return False
            if not all(map(str.strip, texts)):
                return False
        if any(
            all(place < width and text in columns[place] for place, text in pattern.items())
            for pattern in self._repeated
        ):
            return False
        # No row holds its key alone if another column is filled in all of them.
        others = self._used - {self._places[0]}
        return not others or any(
            place < width and all(map(str.strip, columns[place])) for place in others
        )

    def lone_keys(self, columns: Sequence[Sequence[Cell]]) -> list[int]:
        """Return the rows that fill no used column but the first one of the key."""
        lone = list(range(len(columns[0])))
        others = [columns[place] for place in self._used if place != self._places[0]]
        for cells in others:
            lone = [i for i in lone if not is_filled(cells[i])]
            if not lone:
                break
        return lone if others else []


def key_places(spec: TableSpec, positions: Mapping[str, int]) -> list[int]:
    """Return the positions of the columns of a key that must be filled, the first part first."""
    return [
        positions[name] for name in spec.key if name in positions and spec.by_name[name].required
    ]


def odd_keys(keys: Sequence[Any]) -> list[int]:
    """Return the rows whose key is a totals word or a page's footer."""
    texts = {key for key in keys if isinstance(key, str)}
    if not may_hold_words(texts):
        return []
    odd = {text for text in texts if is_totals_word(text) or footer_of(text)}
    return [i for i, key in enumerate(keys) if key in odd] if odd else []


def _are_totals_words(key: Sequence[Cell]) -> bool:
    return all(isinstance(cell, str) and is_totals_word(cell) for cell in key)


def _is_text(cell: Cell) -> bool:
    return isinstance(cell, str) and any(map(str.isalpha, cell))


def _pattern(row: Sequence[Cell], wrong: int | None) -> dict[int, str]:
    return {
        position: cell
        for position, cell in enumerate(row)
        if isinstance(cell, str) and cell.strip() and position != wrong
    }


def _like(pattern: Mapping[int, str], columns: Sequence[Sequence[Cell]]) -> list[int]:
    """Rows whose cells are those of a pattern."""
    if max(pattern) >= len(columns):
        return []
    (first, text), *others = pattern.items()
    if text not in columns[first]:
        return []
    found = [i for i, cell in enumerate(columns[first]) if cell == text]
    return [i for i in found if all(columns[p][i] == title for p, title in others)]


def _filled(cells: Sequence[Cell]) -> int:
    return sum(map(is_filled, cells))
