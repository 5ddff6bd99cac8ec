"""What the whole of a table shows before its first row is read: notations, and columns in use."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from domain.errors import InvalidDocument
from domain.imports.currencies import count_currencies, usual_currency
from domain.imports.exchanged_days import DayOrder
from domain.imports.header import TableHeader
from domain.imports.headers_below import HeadersBelow, refuse_other_tables
from domain.imports.lines import KeyWords, KeyWordSearch
from domain.imports.tables import TableSpec
from domain.imports.titles import Specificity
from domain.tabular.conversion import Flaw, convert_column, transpose
from domain.tabular.fields import ColumnKind, FieldSpec, normalise
from domain.tabular.garbled import GarbledTexts
from domain.tabular.habits import NAMES_CURRENCY, is_percentage, part_of_date, plain_cells
from domain.tabular.notations import (
    Notation,
    date_readings,
    decide,
    number_notations,
    settle,
    slashed,
)
from domain.tabular.rows import Cell
from domain.tabular.values import cell_text, column_letters

SAMPLE_ROWS: Final = 5_000
"""Rows that decide between columns which fit one field."""
_MANY_POINTS: Final = re.compile(r"\.[0-9]{3}\.|[^\S\n]|['\u2019]")
_PLAIN_POINTS: Final = re.compile(r"(?:(?:[0-9]{1,15}(?:\.[0-9]{1,2})?)?\n)*")
"""Lines of which each is a number in decimal points, or in either notation, or blank."""
OPEN: Final = "open"
"""Stands in a report for a column whose notation is not settled."""


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """What a person has said about how a table is written.

    Attributes:
        numbers: Decimal mark.
        dates: Order of day and month.
        carried: Field to what was settled about it when its row was refused; None: it was open.
        percentages: Fields whose values had a percent sign then.
        dotted: Dates with dots did not say their order then.
    """

    numbers: Notation | None = None
    dates: Notation | None = None
    carried: Mapping[str, Notation | None] = field(default_factory=dict[str, Notation | None])
    percentages: frozenset[str] = frozenset()
    dotted: bool = False


@dataclass(frozen=True, slots=True)
class UnusedColumn:
    """A column that holds data and means nothing for the table.

    Attributes:
        name: Its title, or what a spreadsheet calls it.
        values: How many of its cells hold something.
        field: The field that its title fits and that another column holds.
    """

    name: str
    values: int
    field: str | None = None


@dataclass(frozen=True, slots=True)
class Surveyed:
    """What a survey found.

    Attributes:
        header: The header, with one column for each field.
        notations: How each column writes numbers and dates, by field.
        percentages: Fields most of whose values have a percent sign.
        unused: Columns that hold data and are not used.
        rows: Rows below the header.
        keys: What all keys show.
        doubtful: Fields whose real dates may have day and month exchanged.
        currencies: Field to the currency that most of its amounts name.
        garbled: Texts that were saved in a wrong encoding, and what was meant.
        parts: Title of each column with years or months that have no day, and some of them.
        dotted: Some date with dots can only have its month first: dots say no more than slashes.
    """

    header: TableHeader
    notations: Mapping[str, Notation | None]
    percentages: frozenset[str]
    unused: Sequence[UnusedColumn]
    rows: int
    keys: KeyWords = field(default_factory=KeyWords)
    doubtful: frozenset[str] = frozenset()
    currencies: Mapping[str, str] = field(default_factory=dict[str, str])
    dotted: bool = False
    garbled: Mapping[str, str] = field(default_factory=dict[str, str])
    parts: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])


class Survey:
    """Looks at every row of a table once.

    Args:
        spec: What the table holds.
        header: Its header.
        date1904: Day numbers count from 1904.
    """

    def __init__(self, spec: TableSpec, header: TableHeader, *, date1904: bool = False) -> None:
        self._spec = spec
        self._header = header
        self._date1904 = date1904
        self._written: dict[int, FieldSpec] = {
            position: meaning.field
            for position, meaning in header.meanings.items()
            if meaning.field.kind in (ColumnKind.DECIMAL, ColumnKind.INTEGER, ColumnKind.DATE)
        }
        self._found: dict[int, set[Notation]] = {position: set() for position in self._written}
        self._dotted = {position: set[Notation]() for position in self._written}
        self._percent: Counter[int] = Counter()
        self._currencies: dict[int, Counter[str]] = {}
        self._orders = {
            position: DayOrder()
            for position, field in self._written.items()
            if field.kind is ColumnKind.DATE
        }
        self._parts: dict[int, dict[str, None]] = {}
        self._filled: list[int] = []
        self._sample: dict[int, list[Cell]] = {
            position: [] for places in header.candidates.values() for position in places
        }
        self._texts = header.meanings.keys() - self._written.keys()
        self._garbled = GarbledTexts()
        self._rows = 0
        self._below = HeadersBelow(spec, header)
        key = {
            place: meaning.field.name
            for place, meaning in header.meanings.items()
            if meaning.field.required and meaning.field.name in spec.key
        }
        first = [place for place, name in key.items() if name == spec.key[0]]
        self._keys = KeyWordSearch(key, first)

    def add(self, numbered: Sequence[tuple[int, Sequence[Cell]]]) -> None:
        """Look at the next rows, with their line numbers.

        Raises:
            InvalidDocument: Another table with other columns begins among them.
        """
        rows = [cells for _, cells in numbered]
        columns = transpose(rows, max(map(len, rows), default=0))
        self._filled.extend([0] * (len(columns) - len(self._filled)))
        for position, cells in enumerate(columns):
            self._filled[position] += len(cells) - cells.count(None) - cells.count("")
        for position, cells in enumerate(columns):
            if position in self._written:
                self._look(position, cells)
            elif position in self._texts:
                self._garbled.add(cells)
        refuse_other_tables(self._below, self._header, numbered, columns)
        self._keys.add(rows, columns)
        room = SAMPLE_ROWS - self._rows
        if room > 0:
            for position, sample in self._sample.items():
                known = columns[position] if position < len(columns) else [None] * len(rows)
                sample.extend(known[:room])
        self._rows += len(rows)

    def add_distinct(
        self, columns: Sequence[Sequence[str]], filled: Sequence[int], rows: int
    ) -> bool:
        """Look at the distinct cells of each column of the next rows.

        Args:
            columns: The cells.
            filled: How many cells of each column are not empty.
            rows: How many rows they are of.

        Returns:
            Whether they say enough: some things show only when whole rows are looked at, or all
            cells are counted.
        """
        self._filled.extend([0] * (len(columns) - len(self._filled)))
        for position, cells in enumerate(columns):
            self._filled[position] += filled[position]
            if position in self._written:
                self._look(position, cells)
            elif position in self._texts:
                self._garbled.add(cells)
        self._rows += rows
        counted = self._percent.total() + sum(each.total() for each in self._currencies.values())
        return not (counted or self._sample or self._below.may_be_among(columns))

    def _look(self, position: int, cells: Sequence[Cell]) -> None:
        spec, found = self._written[position], self._found[position]
        if position in self._orders:
            self._orders[position].add(cells)
            parts = (each for each in dict.fromkeys(cells) if part_of_date(spec, each))
            self._parts.setdefault(position, {}).update(dict.fromkeys(map(cell_text, parts)))
        texts = [cell for cell in cells if isinstance(cell, str)]
        if not texts:
            return
        joined = "\n".join(texts)
        if spec.kind is ColumnKind.DATE:
            distinct = plain_cells(spec, list(dict.fromkeys(texts)), date1904=self._date1904)
            written = [cell.strip() for cell in distinct if isinstance(cell, str)]
            found |= decide(map(date_readings, written))
            dotted = [text for cell in written if (text := slashed(cell)) != cell]
            self._dotted[position] |= decide(map(date_readings, dotted))
            return
        if "%" in joined:
            self._percent[position] += sum(map(is_percentage, texts))
        if NAMES_CURRENCY.search(joined):
            count_currencies(texts, self._currencies.setdefault(position, Counter()))
        one_each_line = joined.count("\n") == len(texts) - 1
        if len(found) == 2 or (one_each_line and not _may_add(joined, found)):
            return
        if one_each_line and _PLAIN_POINTS.fullmatch(f"{joined}\n"):
            found |= {Notation.POINT} if "." in joined else set()
            return
        written = (
            cell.strip()
            for cell in plain_cells(spec, list(dict.fromkeys(texts)))
            if isinstance(cell, str)
        )
        found |= decide(map(number_notations, written))

    def finish(self, options: ReadingOptions, hidden: Collection[int] = ()) -> Surveyed:
        """What all rows show.

        Args:
            options: What a person has said.
            hidden: Positions of columns that are not shown.

        Raises:
            InvalidDocument: Two columns of the same title hold different values.
        """
        chosen = {
            name: self._choose(
                self._spec.by_name[name], [p for p in places if p not in hidden] or places
            )
            for name, places in self._header.candidates.items()
        }
        header = self._header.with_positions(chosen)
        dotted = options.dotted or any(
            Notation.MONTH_FIRST in self._dotted.get(position, ())
            for position in header.positions.values()
        )
        if dotted:
            self._found = {at: found | self._dotted[at] for at, found in self._found.items()}
        at = {
            name: position for name, position in header.positions.items() if position in self._found
        }
        return Surveyed(
            header,
            self._settle(at, options),
            frozenset(
                name
                for name, position in at.items()
                if name in options.percentages
                or 0 < self._values(position) <= 2 * self._percent[position]
            ),
            self._unused(header),
            self._rows,
            self._keys.found(),
            self._doubtful(at, options),
            {
                name: usual
                for name, position in at.items()
                if (usual := usual_currency(self._currencies.get(position, Counter())))
            },
            dotted,
            self._garbled.found,
            {
                header.titles[place]: list(self._parts[place])
                for place in at.values()
                if self._parts.get(place)
            },
        )

    def _doubtful(self, at: Mapping[str, int], options: ReadingOptions) -> frozenset[str]:
        if options.dates is not None:
            return frozenset()
        return frozenset(
            name
            for name, position in at.items()
            if position in self._orders
            and self._orders[position].is_doubtful(self._found[position])
        )

    def _settle(self, at: Mapping[str, int], options: ReadingOptions) -> dict[str, Notation | None]:
        """A person's word, the report's, or what the columns show."""
        everywhere = {notation for position in at.values() for notation in self._found[position]}
        settled: dict[str, Notation | None] = {}
        for name, position in at.items():
            is_date = self._written[position].kind is ColumnKind.DATE
            settled[name] = options.dates if is_date else options.numbers
            if settled[name] is None and name in options.carried:
                settled[name] = options.carried[name]
            elif settled[name] is None:
                settled[name] = settle(self._found[position], everywhere, dates=is_date)
        return settled

    def _choose(self, spec: FieldSpec, places: Sequence[int]) -> int:
        """The column for a field that several titles fit: by how exactly, then by content."""
        filled = [place for place in places if self._values(place)]
        if len(filled) < 2:
            return filled[0] if filled else places[0]
        fits = {place: self._fit(spec, place) for place in filled}
        fitting = [place for place in filled if fits[place][0] > 0] or filled
        most = max(self._specificity(place) for place in fitting)
        closest = [place for place in fitting if self._specificity(place) == most]
        if len(closest) == 1:
            return closest[0]
        self._refuse_twins(spec, closest)
        best = max(fits[place] for place in closest)
        return next(place for place in closest if fits[place] == best)

    def _specificity(self, place: int) -> Specificity:
        return self._header.meanings[place].specificity

    def _values(self, place: int) -> int:
        return self._filled[place] if place < len(self._filled) else 0

    def _fit(self, spec: FieldSpec, place: int) -> tuple[float, float, bool]:
        """How well a column's content is what the field holds; larger is better."""
        cells = [cell for cell in self._sample[place] if cell not in (None, "")]
        if not cells:
            return 0, 0, False
        is_key = spec.name in self._spec.key
        plain = plain_cells(spec, cells, is_key=is_key, date1904=self._date1904)
        values, _ = convert_column(spec, plain, None)
        good = sum(1 for value in values if not isinstance(value, Flaw))
        share = round(good / len(self._sample[place]), 1)
        if not is_key:
            return share, 0, False
        distinct = round(len(set(map(str, cells))) / len(cells), 1)
        words = [str(cell) for cell in cells]
        codes = sum(1 for word in words if " " not in word and any(map(str.isdigit, word)))
        counted = words == [str(number) for number in range(1, len(words) + 1)]
        return min(share, 0.5 + distinct / 2), round(codes / len(words), 1), not counted

    def _refuse_twins(self, spec: FieldSpec, places: Sequence[int]) -> None:
        """Two columns of the same title must say the same.

        Raises:
            InvalidDocument: They do not, and the message does not say which counts.
        """
        first, *others = places
        titles = self._header.titles
        for other in others:
            same = _bare(titles[other]) == _bare(titles[first])
            if same and self._sample[other] != self._sample[first]:
                raise InvalidDocument(
                    f"columns {column_letters(first)} {titles[first]!r} and "
                    f"{column_letters(other)} {titles[other]!r} on line {self._header.line} both "
                    f"mean {spec.name}, with different values; rename or remove one"
                )

    def _unused(self, header: TableHeader) -> list[UnusedColumn]:
        used = {*header.positions.values(), header.wrong}
        unused: list[UnusedColumn] = []
        for position, values in enumerate(self._filled):
            if position in used or not values:
                continue
            title = header.titles[position] if position < len(header.titles) else ""
            meaning = header.meanings.get(position)
            name = repr(title) if title else f"column {column_letters(position)} without a title"
            unused.append(UnusedColumn(name, values, meaning and meaning.field.name))
        return unused


def _bare(title: str) -> str:
    return normalise(re.sub(r"\([^()]*\)|\[[^\[\]]*\]", " ", title))


def _may_add(joined: str, found: Iterable[Notation]) -> bool:
    """Whether lines may show a notation that was not found yet; quick where they cannot."""
    known = set(found)
    if Notation.POINT not in known:
        return "." in joined or "," in joined
    return "," in joined or _MANY_POINTS.search(joined) is not None
