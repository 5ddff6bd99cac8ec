"""Rows of a table that are not data, and rows that are data although they look odd.

A row that has its own key is a row. It is skipped in three cases alone: its key is a totals word,
it holds no other text and each of its numbers is a sum of rows above; it repeats the header; or it
holds its key alone, and that is a page's footer which stands elsewhere with another number. A row
without a key cannot be stored: it is skipped if it is a heading, or if each of its numbers is a
sum of rows above, and rejected otherwise.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum, IntEnum
from functools import lru_cache
from typing import Any, Final, cast

from workflows.shared.cells import Cell, count_filled, is_filled
from workflows.shared.conversion import Flaw
from workflows.shared.currencies import CURRENCIES, LONGEST
from workflows.shared.fields import normalise
from workflows.shared.notations import number_readings_of
from workflows.shared.titles import is_unit_cell

Table = Sequence[Sequence[Cell]]
"""Cells by row, or by column."""
Values = Mapping[str, Sequence[Any]]
"""Converted columns by field."""

_GROUPS: Final = 64
"""Subtotals that a total of a higher level may sum up."""
_HALF_STEP: Final = Decimal("0.005")
_LEAST_SUMMED: Final = 2
"""Rows above of which a number without a key may be the sum: one row may just be repeated."""
_TITLES: Final = 2
"""Cells of a row that repeats the header in part."""


_TOTAL_WORDS: Final = "|".join(
    (
        "(?:sub ?|grand )?totals?|sums?|carried forward|brought forward",
        "summen?|gesamt|gesamtsumme|gesamtergebnis|ergebnis|zwischensumme|endsumme|teilsumme",
        "teilergebnis|ubertrag",
        "sous ?total|(?:sous )?totaux|total general|somme",
        "sumas?|suma total",
        "(?:sub ?)?total[ei]|totale generale|somma|somma totale",
        "(?:sub|eind)?totaal|totalen|som",
        "(?:suma )?razem|ogo\u0142em|ogolem|\u0142acznie|lacznie|suma czesciowa",
        "soma|somatorio|total geral",
        "celkem|soucet|mezisoucet",
        "summa|delsumma|slutsumma|totalt|i ?alt|mellemsum",
        "\u03c3",
    )
)
"""In English, German, French, Spanish, Italian, Dutch, Polish, Portuguese, Czech, Swedish and
Danish, as `normalise` writes them."""
_TOTAL: Final = re.compile(
    r"(?:(?:grand|overall|final|running|page|sheet|section|group|net|gross|project|report|general"
    rf"|cumulative|end|sum) )*(?:{_TOTAL_WORDS})(?: (?:{'|'.join(sorted(CURRENCIES))}|amount|cost"
    r"|costs|quantity|qty|price|sum|betrag|menge|netto|brutto|net|gross|general|generale))?"
)
_FOOTER: Final = re.compile(
    r"(?:page|seite|blatt|pagina|pag|sheet) [0-9]+(?: ?(?:of|von|de|di|sur|aus)? ?[0-9]+)?"
)
_DIGITS_OF_FOOTER: Final = re.compile(r"[0-9]+")
_WORD_PARTS: Final = (
    *("tota", "sum", "som", "ergebnis", "gesamt", "bertrag", "forward", "\u03c3"),
    *("razem", "ogo", "og\u00f3", "cznie", "celkem", "sou", "alt"),
    *("page", "seite", "blatt", "pag", "sheet"),
)
"""Each text of the two lists holds one of them."""


def may_hold_words(texts: Collection[str]) -> bool:
    """Return whether a text may stand in one of the lists; quick if none does."""
    joined = "\n".join(texts).lower()
    return any(part in joined for part in _WORD_PARTS)


@lru_cache(maxsize=4096)
def is_totals_word(text: str) -> bool:
    """Return whether a text says "total" and nothing else: `Grand total EUR`, `Zwischensumme:`."""
    return len(text) <= LONGEST and _TOTAL.fullmatch(normalise(text)) is not None


_WORDS_OF_TOTAL: Final = 3
"""Words that say "total" at most, beside others."""
_BETWEEN: Final = re.compile(r"[\s:]+")
_ALSO_NAMES: Final = frozenset(
    (
        *("total", "totals", "sum", "sums", "gesamt", "ergebnis", "totale", "totali", "totaal"),
        *("somme", "suma", "sumas", "somma", "som", "soma", "summa", "totalt", "i alt", "\u03c3"),
    )
)
"""Words for a total that names hold as well: `Total station`, `Lump sum`."""


class Alike(IntEnum):
    """How much a key is like a row that is no data."""

    NOTHING = 0
    WORDS = 1
    """It begins or ends with a word for a total that names hold as well."""
    SURE = 2
    """It says "total" and nothing else, it names a subtotal, or it is a page's footer."""


@lru_cache(maxsize=4096)
def likeness_of(text: str) -> Alike:
    """Return how much a key is like a total or footer: `Subtotal May`, `Total station`."""
    if is_totals_word(text) or footer_of(text) is not None:
        return Alike.SURE
    words = _BETWEEN.split(text.strip()) if len(text) <= LONGEST else []
    ends = (some for n in range(1, _WORDS_OF_TOTAL + 1) for some in (words[:n], words[-n:]))
    found = {normalise(each) for each in map(" ".join, ends) if is_totals_word(each)}
    if not found:
        return Alike.NOTHING
    return Alike.WORDS if found <= _ALSO_NAMES else Alike.SURE


@lru_cache(maxsize=4096)
def footer_of(text: str) -> str | None:
    """Return a page's footer without its numbers; None: the text is something else.

    `Page 2 of 9` and `Page 3 of 9` are the same footer.
    """
    if len(text) > LONGEST or _FOOTER.fullmatch(name := normalise(text)) is None:
        return None
    return _DIGITS_OF_FOOTER.sub("#", name)


class Left(Enum):
    """Why a row is skipped."""

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

    def __bool__(self) -> bool:
        return self.needs_sums or bool(self.footers)


class KeyWordSearch:
    """Looks at the keys of a table before its rows are judged.

    Args:
        places: Positions of the columns that may hold a part of the key that must be filled.
        first: Those of them that may hold its first part.
        either: One of the columns is enough for a key.
    """

    def __init__(
        self, places: Collection[int], first: Collection[int], *, either: bool = False
    ) -> None:
        self._places = places
        self._first = first
        self._either = either
        self._needs_sums = False
        self._footers: defaultdict[str, set[str]] = defaultdict(set)

    def add(self, rows: Sequence[Sequence[Cell]], columns: Sequence[Sequence[Cell]]) -> None:
        """Take the next rows.

        Args:
            rows: Cells of each.
            columns: The same cells by column.
        """
        if self._either:
            keys = zip(*(columns[place] for place in self._places), strict=True)
            self._needs_sums = self._needs_sums or not all(any(map(is_filled, key)) for key in keys)
        for place in self._places:
            if place >= len(columns):
                self._needs_sums = True
                continue
            cells = columns[place]
            texts = {cell for cell in set(cells) if isinstance(cell, str)}
            is_text = len(texts) == len(set(cells)) and all(map(str.strip, texts))
            if not is_text and not self._either:
                self._needs_sums = self._needs_sums or not all(map(is_filled, cells))
            if not may_hold_words(texts):
                continue
            self._needs_sums = self._needs_sums or any(map(is_totals_word, texts))
            if place in self._first and (feet := set(filter(footer_of, texts))):
                self._collect(rows, place, feet)

    def _collect(self, rows: Sequence[Sequence[Cell]], place: int, feet: Collection[Cell]) -> None:
        for cells in rows:
            text = cells[place] if place < len(cells) else None
            if text in feet and count_filled(cells) == 1:
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


class RowSorter:
    """Finds the rows of one table that are not data, part by part, in order.

    Args:
        keys: Positions of the columns of the key that must be filled, the first part first.
        used: Positions of all columns in use.
        header: Cells of its rows.
        words: What the keys of the whole table show.
        numbers: Position to the field of the columns whose numbers are converted. A number that is
            refused, for example by a bound, is one all the same.
        renamed: Finds rows that name the columns in other words.
        wrong: Position of the column of a report that says what is wrong.
        is_list: The rows are a list, such as of people, in which one column is enough for a key:
            totals may count its rows, and need no proof if they have no key.
    """

    def __init__(
        self,
        keys: Sequence[int],
        used: Collection[int],
        header: Iterable[Sequence[Cell]],
        words: KeyWords,
        *,
        numbers: Mapping[int, str] | None = None,
        renamed: Callable[[Table, Table], Iterable[int]] = lambda rows, columns: (),
        wrong: int | None = None,
        is_list: bool = False,
    ) -> None:
        self._words = words
        self._keys = keys
        self._used = frozenset(used)
        self._numbers = numbers or {}
        self._renamed = renamed
        self._wrong = wrong
        self._is_list = is_list
        self._sums: defaultdict[int, _Sums] = defaultdict(_Sums)
        self._rows = self._since_total = 0
        patterns = (_pattern(row, wrong) for row in header)
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
            Why a row is skipped, by its index; rows that are data are not among them.
        """
        found = dict.fromkeys(self._repetitions(rows, columns), Left.HEADER)
        if not self._words:
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
            elif verdict is None and self._words.needs_sums:
                self._rows += 1
                self._since_total += 1
                for place, readings in self._numbers_of(i, cells, values).items():
                    if len(readings) == 1:
                        self._sums[place].add(readings[0])
        return found

    def _judge(self, i: int, cells: Sequence[Cell], values: Values) -> Left | None:
        key = [cells[p] for p in self._keys if p < len(cells) and is_filled(cells[p])]
        if not key:
            return self._judge_keyless(i, cells, values)
        if all(isinstance(cell, str) and is_totals_word(cell) for cell in key):
            numbers = self._numbers_of(i, cells, values)
            other = {*range(len(cells))} - {*self._keys, self._wrong, *filter(numbers.get, numbers)}
            is_alone = not any(is_text(cells[place]) for place in other)
            return Left.TOTAL if is_alone and self._are_sums(i, cells, values) else None
        if isinstance(key[0], str) and self._filled(cells) == 1:
            return Left.FOOTER if footer_of(key[0]) in self._words.footers else None
        return None

    def _judge_keyless(self, i: int, cells: Sequence[Cell], values: Values) -> Left | None:
        if not any(p < len(cells) and is_filled(cells[p]) for p in self._used):
            return None
        texts = [str(cell) for cell in cells if is_text(cell)] if self._is_list else []
        if len(texts) == 1 and is_totals_word(texts[0].partition(":")[0]):
            return Left.TOTAL
        rows = self._since_total
        if any(isinstance(cell, str) and likeness_of(cell) for cell in cells):
            # A total of subtotals follows the last of them, and says what it is.
            rows = self._rows
        may_be_sums = rows >= _LEAST_SUMMED and not texts
        if may_be_sums and self._are_sums(i, cells, values):
            return Left.TOTAL
        numbers = self._numbers_of(i, cells, values)
        # In a list, a text in a column of numbers may be a note below it.
        if self._filled(cells) > 1 or (any(numbers.values()) if self._is_list else numbers):
            return None
        # A word alone may be one column of a person.
        return None if self._is_list and len("".join(texts).split()) < 2 else Left.HEADING

    def _filled(self, cells: Sequence[Cell]) -> int:
        return count_filled([cell for place, cell in enumerate(cells) if place != self._wrong])

    def _are_sums(self, i: int, cells: Sequence[Cell], values: Values) -> bool:
        """Whether a row holds numbers, and each of them is the sum of rows above."""
        numbers = self._numbers_of(i, cells, values)
        said = {place: readings for place, readings in numbers.items() if readings != (0,)}
        counts = (self._rows, self._since_total) if self._is_list else ()
        return bool(said) and all(
            any(each in counts or self._sums[place].is_sum(each, self._rows) for each in readings)
            for place, readings in said.items()
        )

    def _numbers_of(
        self, i: int, cells: Sequence[Cell], values: Values
    ) -> dict[int, Sequence[Decimal]]:
        """Readings of the numbers of a row by position, of columns that are not used too; none of
        one that cannot be read."""
        found: dict[int, Sequence[Decimal]] = {}
        for place, cell in enumerate(cells):
            if place == self._wrong or place in self._keys or not is_filled(cell):
                continue
            if place in self._numbers:
                value = values[self._numbers[place]][i]
                readings = number_readings_of(cell) if isinstance(value, Flaw) else ()
                found[place] = (Decimal(value),) if isinstance(value, Decimal | int) else readings
            elif readings := number_readings_of(cell):
                found[place] = readings
        return found

    def _repetitions(
        self, rows: Sequence[tuple[int, Sequence[Cell]]], columns: Sequence[Sequence[Cell]]
    ) -> list[int]:
        """Rows that hold titles of the header alone, each in its column."""
        found = [
            i
            for pattern in self._repeated
            for i in self._like(pattern, columns)
            if self._repeats(pattern, rows[i][1])
        ]
        return [*found, *self._renamed([cells for _, cells in rows], columns)]

    def _like(self, pattern: Mapping[int, str], columns: Sequence[Sequence[Cell]]) -> Iterable[int]:
        """Rows that hold a title of a key, or the first one."""
        places = [p for p in self._keys if p in pattern] or [min(pattern)]
        for place in places if self._is_list else places[:1]:
            cells = columns[place] if place < len(columns) else ()
            if _may_hold(cells, title := pattern[place]):
                yield from (i for i, cell in enumerate(cells) if _bare(cell) == title)

    def _repeats(self, pattern: Mapping[int, str], cells: Sequence[Cell]) -> bool:
        filled = [p for p, cell in enumerate(cells) if p != self._wrong and is_filled(cell)]
        return len(filled) >= min(_TITLES, len(pattern)) and all(
            _bare(cells[place]) == pattern.get(place) for place in filled
        )

    def takes_all(self, columns: Sequence[Sequence[str]]) -> bool:
        """Return whether all rows are data, whichever of these cells stand beside each other.

        Args:
            columns: The distinct cells of each column; no key names a column.
        """
        width = len(columns)
        for texts in (columns[place] for place in self._keys):
            if _odd_among(texts):
                return False
            if not all(map(str.strip, texts)):
                return False
        repeated = (row for pattern in self._repeated for row in self._like(pattern, columns))
        if next(iter(repeated), None) is not None:
            return False
        # No row holds its key alone if another column is filled in all of them.
        others = self._used - {*self._keys[:1]}
        return not others or any(
            place < width and all(map(str.strip, columns[place])) for place in others
        )

    def odd_keys(self, columns: Sequence[Sequence[Cell]]) -> dict[int, str]:
        """Return the rows with a part of the key that is like a total or a page's footer.

        If the word may be a name, they are those without a text beside the key.
        """
        found: dict[int, str] = {}
        for cells in (columns[place] for place in self._keys if place < len(columns)):
            odd = _odd_among({cell for cell in cells if isinstance(cell, str)})
            for i, cell in enumerate(cells) if odd else ():
                if cell in odd and (
                    likeness_of(str(cell)) is Alike.SURE or not self._has_text(i, columns)
                ):
                    found[i] = str(cell)
        return dict(sorted(found.items()))

    def _has_text(self, i: int, columns: Sequence[Sequence[Cell]]) -> bool:
        """Whether a text stands beside the key of a row that is more than a unit."""
        others = (
            column[i]
            for place, column in enumerate(columns)
            if place not in self._keys and place != self._wrong
        )
        return any(is_text(cell) and not is_unit_cell(str(cell)) for cell in others)

    def lone_keys(self, columns: Sequence[Sequence[Cell]]) -> list[int]:
        """Return the rows that fill no used column but the first one of the key."""
        lone = list(range(len(columns[0])))
        others = [columns[place] for place in sorted(self._used - {*self._keys[:1]})]
        for cells in others:
            lone = [i for i in lone if not is_filled(cells[i])]
            if not lone:
                break
        return lone if others and self._keys else []


def _odd_among(texts: Collection[str]) -> set[str]:
    """Texts that are like a total, or a page's footer."""
    return {text for text in texts if likeness_of(text)} if may_hold_words(texts) else set()


def is_text(cell: Cell) -> bool:
    """Whether a cell holds letters, and is not a number with a unit of money."""
    return isinstance(cell, str) and any(map(str.isalpha, cell)) and not number_readings_of(cell)


def _bare(cell: Cell) -> str:
    return cell.strip().casefold() if isinstance(cell, str) else ""


def _may_hold(cells: Sequence[Cell], title: str) -> bool:
    """Whether a title may be among cells; quick if it is not."""
    try:
        return title in "\n".join(cast("Sequence[str]", cells)).casefold()
    except TypeError:  # a cell that is not text
        return True


def _pattern(row: Sequence[Cell], wrong: int | None) -> dict[int, str]:
    return {
        place: title for place, cell in enumerate(row) if place != wrong and (title := _bare(cell))
    }
