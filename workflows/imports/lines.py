"""Rows that are data, rows that are not, and the sheets and sections that they stand in.

Rows of a table that are not data, and rows that are data although they look odd.

A row that has its own key is a row. It is skipped in three cases alone: its key is a totals word,
it holds no other text and each of its numbers is a sum of rows above; it repeats the header cell by
cell; or it holds its key alone, and that is a page's footer which stands elsewhere with another
number. A row without a key cannot be stored: it is skipped if it is a heading, or if each of its
numbers is a sum of rows above, and rejected otherwise.

Sections of a bill: which headings stand above a row whose numbering starts anew in each.

A heading is a row with a text and without figures and unit. Headings that follow each other nest.
After rows, a heading takes the place of the one that is numbered in its way (`B` of `A`, `1.2` of
`1.1`, `Bill 2` of `Bill 1`), or of the last ones without a number. A heading does not hold rows
that are numbered in its way; rows that continue its number (`1.1` below `1`) name it themselves.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Any, Final, NamedTuple, cast

from workflows.imports.header import HEADER_WITHIN, SIDEWAYS, Meaning, TableHeader, meaning_of
from workflows.imports.types import SEQUENCE, TableSpec
from workflows.shared.cells import Cell, column_letters, is_filled, readable
from workflows.shared.errors import InvalidDocument
from workflows.shared.fields import ColumnKind, normalise
from workflows.shared.notations import footer_of, is_totals_word, may_hold_words, number_readings_of

_CHARACTERS: Final = 80
_FEWEST: Final = 2
"""Titles of a header in other words than those of the file."""
_OTHER_END: Final = re.compile(r"[^0-9]\n")


class HeaderBelow(NamedTuple):
    """A row that names columns.

    Attributes:
        row: Its index.
        other: Position whose title means something else than that of the header; None: the
            columns are the same.
    """

    row: int
    other: int | None


class HeadersBelow:
    """Finds rows that name the columns again, in whatever words.

    Args:
        spec: What the table holds.
        header: Its header.
    """

    def __init__(self, spec: TableSpec, header: TableHeader) -> None:
        self._spec = spec
        self._header = header
        self._required = {each.name for each in spec.fields if each.required}
        self._place = header.positions[spec.key[0]]
        self._rows = [
            {p: normalise(cell) for p, cell in enumerate(row) if isinstance(cell, str)}
            for row in header.rows
        ]

    def find(
        self, rows: Sequence[Sequence[Cell]], columns: Sequence[Sequence[Cell]]
    ) -> Iterator[HeaderBelow]:
        """Those among some rows.

        Args:
            rows: Cells of each.
            columns: The same cells by column.
        """
        cells = columns[self._place] if self._place < len(columns) else ()
        names = self._title_cells(cells)
        for index, cell in enumerate(cells) if names else ():
            if cell in names and (titles := self._titles(rows[index])) is not None:
                yield HeaderBelow(index, self._other(titles))

    def may_be_among(self, columns: Sequence[Sequence[str]]) -> bool:
        """Whether a row names the columns, by the distinct cells of each column."""
        return bool(self._title_cells(columns[self._place]))

    def _title_cells(self, cells: Sequence[Cell]) -> set[str]:
        """Cells of the key that are names of some column."""
        if _end_with_digits(cells):
            return set()
        # Most codes end with a digit, no title does.
        return {
            cell
            for cell in set(cells)
            if isinstance(cell, str)
            and not cell[-1:].isdigit()
            and normalise(cell) in self._spec.by_header
        }

    def _titles(self, cells: Sequence[Cell]) -> dict[int, str] | None:
        """Titles by position; None: the row is data."""
        if not all(isinstance(cell, str | None) for cell in cells):
            return None
        titles = {place: str(cell) for place, cell in enumerate(cells) if _is_filled(cell)}
        if len(titles) < _FEWEST:
            # One word may be a key that is called like a column: the trade "Trade".
            return None
        meant = [self._meaning(place, title) for place, title in titles.items()]
        named = {each.field.name for each in meant if each is not None}
        return titles if named >= self._required and 2 * len(named) > len(titles) else None

    def _meaning(self, place: int, title: str) -> Meaning | None:
        own = self._header.titles[place] if place < len(self._header.titles) else ""
        if own and normalise(own) == normalise(title):
            return self._header.meanings.get(place)
        return meaning_of(title, self._spec)

    def _other(self, titles: dict[int, str]) -> int | None:
        plain = {place: normalise(title) for place, title in titles.items()}
        if any(plain.items() <= row.items() for row in self._rows):
            return None
        for place, title in titles.items():
            here, there = self._header.meanings.get(place), self._meaning(place, title)
            if (here and here.field.name) != (there and there.field.name):
                return place
        return None


def other_table(header: TableHeader, line: int, cells: Sequence[Cell], place: int) -> str:
    """What is said where another table follows whose columns are not those of the first."""
    own = header.titles[place] if place < len(header.titles) else ""
    there = readable(cells[place], _CHARACTERS)
    return (
        f"another table begins on line {line}: its column {column_letters(place)} is {there!r}, "
        + (f"that of line {header.line} is {own!r}" if own else f"line {header.line} has none")
        + "; give each table a sheet of its own, or the same columns"
    )


def refuse_other_tables(
    below: HeadersBelow,
    header: TableHeader,
    rows: Sequence[tuple[int, Sequence[Cell]]],
    columns: Sequence[Sequence[Cell]],
) -> None:
    """Rows of one sheet must have the same columns.

    Raises:
        InvalidDocument: A header with other columns stands among them.
    """
    for index, other in below.find([cells for _, cells in rows], columns):
        if other is not None:
            line, cells = rows[index]
            raise InvalidDocument(other_table(header, line, cells, other))


def _end_with_digits(cells: Sequence[Cell]) -> bool:
    """Whether all cells are texts that end with a digit, or are empty; quick."""
    try:
        joined = "\n".join(cast("Sequence[str]", cells)) + "\n"
    except TypeError:  # a cell that is not text
        return False
    return _OTHER_END.search(joined) is None


def _is_filled(cell: Cell) -> bool:
    return isinstance(cell, str) and bool(cell.strip())


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


PATH_CHARACTERS: Final = 255
_TITLE_CHARACTERS: Final = 80
_LABEL: Final = re.compile(r"([^\W\d_][^\d]{0,19}?)?\s*\b([0-9]+(?:\.[0-9]+)*|[A-Z])\b")
_DIGITS: Final = re.compile(r"[0-9]+")
_LETTERS: Final = re.compile(r"[^\W\d_]+")


class _Heading(NamedTuple):
    title: str
    shape: str
    """How it is numbered: `0.0` for `1.2`; '': it has no number."""
    code: str
    """Its number; '': rows cannot continue it."""


class Sections:
    """Follows the headings of one table, part by part, in order.

    Args:
        spec: The table.
        header: The header of the file.
        sheet: Its sheet, if several hold bills: each begins its numbering anew; '': only one does.
    """

    def __init__(self, spec: TableSpec, header: TableHeader, sheet: str = "") -> None:
        self._sheet = sheet
        self._key = spec.key[0]
        self._figures = figures_of(spec, header)
        self._used = frozenset(header.positions.values())
        self._wrong = header.wrong
        self._open: list[_Heading] = []
        self._rows_since = False

    def paths(
        self,
        rows: Sequence[tuple[int, Sequence[Cell]]],
        values: Mapping[str, Sequence[Any]],
        keyless: Collection[int],
        aside: Collection[int],
    ) -> list[str]:
        """Return the section of each of the next rows; '' if no heading holds it.

        Args:
            rows: Line number and cells of each.
            values: Converted columns by field.
            keyless: Rows without a key.
            aside: Rows that are skipped.
        """
        paths = [""] * len(rows)
        for i, (_, cells) in enumerate(rows):
            if i in keyless:
                texts = [cell for place, cell in enumerate(cells) if self._counts(place, cell)]
                if i in aside and len(texts) == 1 and isinstance(texts[0], str):
                    self._begin(_heading_of(texts[0]))
                continue
            if i in aside:
                continue
            code = str(values[self._key][i])
            paths[i] = self._path(code)
            if self._has_figures(i, cells, values):
                self._rows_since = True
            else:
                title = values.get("description", paths)[i] or ""
                self._begin(_Heading(f"{code} {title}".strip(), _shape(code), code))
        return paths

    def _counts(self, place: int, cell: Cell) -> bool:
        return place != self._wrong and is_filled(cell)

    def _has_figures(
        self, i: int, cells: Sequence[Cell], values: Mapping[str, Sequence[Any]]
    ) -> bool:
        return any(values[name][i] is not None for name in self._figures) or any(
            place not in self._used and self._counts(place, cell) and bool(number_readings_of(cell))
            for place, cell in enumerate(cells)
        )

    def _path(self, code: str) -> str:
        self._close(_shape(code))
        open_titles = (each.title for each in self._open if not _continues(code, each.code))
        titles = (readable(each, _TITLE_CHARACTERS) for each in (self._sheet, *open_titles) if each)
        return readable(" / ".join(titles), PATH_CHARACTERS)

    def _begin(self, heading: _Heading) -> None:
        if is_totals_word(heading.title):
            return
        if heading.shape:
            self._close(heading.shape)
        elif self._rows_since:
            while self._open and not self._open[-1].shape:
                self._open.pop()
        self._open.append(heading)
        self._rows_since = False

    def _close(self, shape: str) -> None:
        """End the heading that is numbered in this way, with those within it."""
        for place, each in enumerate(self._open):
            if each.shape == shape:
                del self._open[place:]
                return


def figures_of(spec: TableSpec, header: TableHeader) -> list[str]:
    """Return the fields of which a heading fills none."""
    return [
        name
        for name in header.positions
        if name not in spec.key and (name == "unit" or spec.by_name[name].kind in _NUMBERS)
    ]


def _heading_of(text: str) -> _Heading:
    found = _LABEL.match(text.strip())
    if found is None:
        return _Heading(text, "", "")
    word = (found[1] or "").casefold()
    return _Heading(text, word + _shape(found[2]), "" if word else found[2])


def _shape(code: str) -> str:
    return _LETTERS.sub("a", _DIGITS.sub("0", code))


def _continues(code: str, number: str) -> bool:
    """Whether a code is a number with more behind it, `1.2` of `1`."""
    rest = code[len(number) :]
    return bool(number) and code.startswith(number) and not rest[:1].isalnum()


_NAME_CHARACTERS: Final = 80
_NAMED: Final = 20


@dataclass(frozen=True, slots=True)
class FoundSheet:
    """A sheet, looked at from its top.

    Attributes:
        name: Its name; None: the only table of a text file.
        hidden: The user's program does not show it.
        top: Its first rows, with their line numbers.
        header: The header of the table that is looked for.
        why_not: Why there is none.
    """

    name: str | None
    hidden: bool
    top: Sequence[tuple[int, list[Cell]]]
    header: TableHeader | None = None
    why_not: str = ""

    @property
    def is_blank(self) -> bool:
        """Whether nothing stands below its header."""
        if self.header is None or len(self.top) >= HEADER_WITHIN:
            return False
        return self.top[-1][0] <= self.header.line


def choose_sheets(found: Sequence[FoundSheet]) -> list[FoundSheet]:
    """The sheets to read, in their order; a hidden one never by itself, nor a blank form.

    Raises:
        InvalidDocument: No visible sheet holds the table, or several do with different columns.
    """
    visible = [sheet for sheet in found if not sheet.hidden]
    fitting = [sheet for sheet in visible if sheet.header is not None]
    if not fitting:
        raise InvalidDocument(_none_fits(found, visible))
    fitting = [sheet for sheet in fitting if not sheet.is_blank] or fitting
    first, *others = fitting
    for other in others:
        _refuse_other_columns(first, other)
    return fitting


def fitting_instead(others: Sequence[FoundSheet]) -> str:
    """The end of a sentence about a sheet that was named and does not hold the table."""
    if not others:
        return ""
    return f"; another sheet holds it: {_names(others)}: retry with one of them as `sheet`"


def _none_fits(found: Sequence[FoundSheet], visible: Sequence[FoundSheet]) -> str:
    filled = [sheet for sheet in visible if sheet.top]
    hidden = [sheet for sheet in found if sheet.hidden and sheet.header is not None]
    closest = max(filled, key=_titles, default=visible[0] if visible else found[0])
    why = closest.why_not or f"sheet {_quoted(closest)} is hidden"
    others = [sheet for sheet in filled if sheet is not closest]
    if others:
        why += f"; nor does any other sheet fit: {_names(others)}"
    if hidden:
        why += f"; the hidden sheet {_names(hidden)} does: name it as `sheet` to have it read"
    return why


def _titles(sheet: FoundSheet) -> int:
    """How much of the required columns a sheet seems to have: the fewer it lacks, the more."""
    if SIDEWAYS in sheet.why_not:
        return 1
    return -sheet.why_not.partition(":")[0].count(",") if "lacks" in sheet.why_not else -1_000


def _refuse_other_columns(first: FoundSheet, other: FoundSheet) -> None:
    assert first.header is not None
    assert other.header is not None
    here, there = set(first.header.positions), set(other.header.positions)
    if here == there:
        return
    only = [
        f"only {_quoted(sheet)} has {', '.join(sorted(more))}"
        for sheet, more in ((first, here - there), (other, there - here))
        if more
    ]
    raise InvalidDocument(
        f"sheets {_quoted(first)} and {_quoted(other)} both hold this table, with different "
        f"columns ({'; '.join(only)}); name the one to read as `sheet`, and send the document "
        "once for each that is to be read"
    )


def conflict_between(
    first: str, second: str, count: int, lines: tuple[int, int]
) -> InvalidDocument:
    """What is said where two sheets hold the same keys with different values."""
    many = "1 key stands" if count == 1 else f"{count:,} keys stand"
    return InvalidDocument(
        f"{many} on sheets {first!r} and {second!r} with different values (lines {lines[0]} and "
        f"{lines[1]}, for one); "
        "name the sheet to read as `sheet`"
    )


def left_sheets(found: Sequence[FoundSheet], chosen: Sequence[FoundSheet]) -> list[str]:
    """Sheets that hold something and are not read, as a person finds them."""
    left = [sheet for sheet in found if sheet.top and sheet not in chosen]
    return [f"{_quoted(sheet)}{' (hidden)' if sheet.hidden else ''}" for sheet in left]


def _names(sheets: Sequence[FoundSheet]) -> str:
    names = ", ".join(map(_quoted, sheets[:_NAMED]))
    return names if len(sheets) <= _NAMED else f"{names} and {len(sheets) - _NAMED} more"


def _quoted(sheet: FoundSheet) -> str:
    return repr(readable(sheet.name, _NAME_CHARACTERS))
