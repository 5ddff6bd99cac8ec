"""What the whole of a table shows before its first row is read.

Dates that a spreadsheet program has read in the wrong order of day and month.

A program set to days before months makes 1 May of `01/05/2025` (5 January), and leaves
`01/13/2025` as text, as it can read it in no way. So a column of texts in one order, beside real
dates that could all have been read in the other one, is one whose dates are doubtful.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from types import MappingProxyType
from typing import Any, Final

from workflows.imports.header import Specificity, TableHeader
from workflows.imports.row_classification import HeadersBelow, refuse_other_tables
from workflows.imports.types import TableSpec
from workflows.shared.amounts import count_currencies, usual_currency
from workflows.shared.cells import (
    Cell,
    GarbledTexts,
    Signed,
    cell_text,
    column_letters,
)
from workflows.shared.conversion import Flaw, convert_column, refuse_shares, ticks_of, transpose
from workflows.shared.currencies import NAMES_CURRENCY
from workflows.shared.durations import under_title
from workflows.shared.errors import InvalidDocument
from workflows.shared.fields import DAYS, NUMBERS, ColumnKind, FieldSpec, normalise
from workflows.shared.left_out import KeyWords, KeyWordSearch
from workflows.shared.notations import (
    Notation,
    column_notation,
    date_readings,
    days_of,
    decide,
    number_notations,
    part_of_date,
    plain_cells,
    slashed,
)
from workflows.shared.packed_rows import CellForm, ColumnText, NotPlain, text_of
from workflows.shared.sections import SEQUENCE
from workflows.shared.shares import Shares

DOUBTFUL: Final = Flaw(
    "may have day and month exchanged: texts of its column are written in the order that the "
    "program which made this a date does not read; write it as text, 2025-03-04, or name the "
    "date order in the message",
    returns=True,
)
_MONTHS: Final = 12


class DayOrder:
    """Follows the real dates of one column."""

    def __init__(self) -> None:
        self._is_doubtful = False
        self._is_sure = False

    def add(self, cells: Sequence[Cell]) -> None:
        """Take the next cells of the column."""
        if self._is_sure:
            return
        for cell in cells:
            if isinstance(cell, date) and cell.day > _MONTHS:
                self._is_sure = True
                return
            self._is_doubtful = self._is_doubtful or _may_be_exchanged(cell)

    def is_doubtful(self, texts: Collection[Notation]) -> bool:
        """Whether its dates may be exchanged.

        Args:
            texts: What the column's texts can only be read as.
        """
        return len(texts) == 1 and self._is_doubtful and not self._is_sure


def refused_days(cells: Sequence[Cell], values: Sequence[Any]) -> list[Any]:
    """Values of a doubtful column, its real dates refused."""
    return [
        DOUBTFUL if _may_be_exchanged(cell) and not isinstance(value, Flaw | None) else value
        for cell, value in zip(cells, values, strict=True)
    ]


def _may_be_exchanged(cell: Cell) -> bool:
    return isinstance(cell, date) and cell.day <= _MONTHS and cell.day != cell.month


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
        today: Day of the import, for years of two digits.
    """

    numbers: Notation | None = None
    dates: Notation | None = None
    carried: Mapping[str, Notation | None] = field(default_factory=dict[str, Notation | None])
    percentages: frozenset[str] = frozenset()
    dotted: bool = False
    today: date | None = None


@dataclass(frozen=True, slots=True)
class UnusedColumn:
    """A column that holds data and means nothing for the table.

    Attributes:
        name: Its title, or what a spreadsheet calls it.
        values: How many of its cells hold something.
        field: The field that its title fits and that another column holds.
        dropped: The message leaves it out.
    """

    name: str
    values: int
    field: str | None = None
    dropped: bool = False


@dataclass(frozen=True, slots=True)
class Surveyed:
    """What a survey found.

    Attributes:
        header: The header, with one column for each field.
        notations: How each column writes numbers and dates, by field.
        percentages: Fields most of whose values have a percent sign.
        signed: Fields few of whose values have one, beside numbers beyond 1.
        unused: Columns that hold data and are not used.
        rows: Rows below the header.
        keys: What all keys show.
        doubtful: Fields whose real dates may have day and month exchanged.
        currencies: Field to the currency that most of its amounts name.
        garbled: Texts that were saved in a wrong encoding, and what was meant.
        parts: Title of each column with years or months that have no day, and some of them.
        dotted: Some date with dots can only have its month first: dots say no more than slashes.
        today: As the options have it.
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
    signed: frozenset[str] = frozenset()
    garbled: Mapping[str, str] = field(default_factory=dict[str, str])
    parts: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    today: date | None = None


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
            if meaning.field.kind in (*NUMBERS, *DAYS, ColumnKind.BOOLEAN)
        }
        self._found: dict[int, set[Notation]] = {position: set() for position in self._written}
        self._dotted = {position: set[Notation]() for position in self._written}
        self._shares = {position: Shares() for position in self._written}
        self._currencies: dict[int, Counter[str]] = {}
        self._orders = {
            position: DayOrder() for position, field in self._written.items() if field.kind in DAYS
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
        item = spec.item(header.positions)
        first = [place for place, name in key.items() if name == item]
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
        has_signs = any(each.signed for each in self._shares.values())
        counted = has_signs or any(each.total() for each in self._currencies.values())
        return not (counted or self._sample or self._below.may_be_among(columns))

    def _look(self, position: int, cells: Sequence[Cell]) -> None:
        spec, found = self._written[position], self._found[position]
        if spec.kind is ColumnKind.BOOLEAN:
            found |= ticks_of(cells)
            self._garbled.add(cells)
            return
        if position in self._orders:
            self._orders[position].add(cells)
            parts = (each for each in dict.fromkeys(cells) if part_of_date(spec, each))
            self._parts.setdefault(position, {}).update(dict.fromkeys(map(cell_text, parts)))
        elif not spec.is_percent and spec.kind is not ColumnKind.MONEY:
            self._shares[position].add(cells)
        if spec.currency is None and (signed := [c for c in cells if isinstance(c, Signed)]):
            count_currencies(signed, self._currencies.setdefault(position, Counter()))
        texts = [cell for cell in cells if isinstance(cell, str)]
        if not texts:
            return
        joined = "\n".join(texts)
        if spec.kind in DAYS:
            distinct = plain_cells(spec, list(dict.fromkeys(texts)), date1904=self._date1904)
            written = days_of(spec.kind, distinct)
            found |= decide(map(date_readings, written))
            dotted = [text for cell in written if (text := slashed(cell)) != cell]
            self._dotted[position] |= decide(map(date_readings, dotted))
            return
        if spec.currency is None and NAMES_CURRENCY.search(joined):
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
                if name in options.percentages or self._shares[position].odd == "bare"
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
            frozenset(name for name, place in at.items() if self._shares[place].odd == "signed"),
            self._garbled.found,
            {
                header.titles[place]: list(self._parts[place])
                for place in at.values()
                if self._parts.get(place)
            },
            options.today,
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
            kind, found = self._written[position].kind, self._found[position]
            if kind is ColumnKind.BOOLEAN:
                if Notation.TICKS in (*found, options.carried.get(name)):
                    settled[name] = Notation.TICKS
                continue
            settled[name] = options.dates if kind in DAYS else options.numbers
            if settled[name] is None and name in options.carried:
                settled[name] = options.carried[name]
            elif settled[name] is None:
                settled[name] = column_notation(found, everywhere, dates=kind in DAYS)
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
        spec = under_title(spec, self._header.titles[place])
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
                    f"mean {spec.name}, with different values; say which counts "
                    f"(--map {column_letters(first)}={spec.name}), or rename or remove one"
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
            is_dropped = position in header.dropped
            unused.append(UnusedColumn(name, values, meaning and meaning.field.name, is_dropped))
        return unused


def _bare(title: str) -> str:
    return normalise(re.sub(r"\([^()]*\)|\[[^\[\]]*\]", " ", title))


def _may_add(joined: str, found: Iterable[Notation]) -> bool:
    """Whether lines may show a notation that was not found yet; quick where they cannot."""
    known = set(found)
    if Notation.POINT not in known:
        return "." in joined or "," in joined
    return "," in joined or _MANY_POINTS.search(joined) is not None


def convert_cells(
    spec: TableSpec,
    surveyed: Surveyed,
    field: FieldSpec,
    cells: Sequence[Cell],
    *,
    date1904: bool = False,
) -> tuple[list[Any], bool]:
    """Convert cells of one column, each for itself.

    Args:
        spec: The table.
        surveyed: How its columns are written.
        field: What the column holds.
        cells: As read.
        date1904: Day numbers count from 1904.

    Returns:
        See `convert_column`.
    """
    field = under_title(field, surveyed.header.titles[surveyed.header.positions[field.name]])
    is_key, today = field.name in spec.key, surveyed.today
    plain = plain_cells(field, cells, is_key=is_key, date1904=date1904, today=today)
    if surveyed.dotted and field.kind in DAYS:
        plain = [slashed(cell.strip()) if isinstance(cell, str) else cell for cell in plain]
    values, refused = convert_column(field, plain, surveyed.notations.get(field.name))
    if field.name in surveyed.doubtful:
        return refused_days(cells, values), True
    if field.name not in surveyed.percentages | surveyed.signed:
        return values, refused
    odd = "bare" if field.name in surveyed.percentages else "signed"
    checked = refuse_shares(cells, values, odd)
    return checked, refused or checked != values


NUMBER_DIGITS: Final = 10
"""Digits of a number that is part of a key: texts of the same length sort as numbers do."""
_CHANGED: Final = 32
"""Distinct cells of a column that may become something else than their form."""
_FORMS: Final[Mapping[ColumnKind, CellForm]] = MappingProxyType(
    {
        ColumnKind.DECIMAL: CellForm.DECIMAL,
        ColumnKind.MONEY: CellForm.DECIMAL,
        ColumnKind.INTEGER: CellForm.INTEGER,
    }
)


def form_of(field: FieldSpec, surveyed: Surveyed) -> CellForm:
    """What is made of most cells of a field."""
    if field.name == SEQUENCE:
        return CellForm.PADDED
    form = _FORMS.get(field.kind, CellForm.TEXT)
    is_comma = surveyed.notations.get(field.name) is Notation.COMMA
    return CellForm.COMMA if form is CellForm.DECIMAL and is_comma else form


def column_text(
    spec: TableSpec,
    surveyed: Surveyed,
    field: FieldSpec,
    cells: Sequence[str],
    formed: Sequence[str | None],
) -> ColumnText:
    """Where the text of a field comes from.

    Every distinct cell is converted as the rows of a table are; what differs from its form is
    kept by cell.

    Args:
        spec: The table.
        surveyed: How it is written.
        field: The field.
        cells: The distinct cells of its column.
        formed: What `form_of` makes of each.

    Raises:
        NotPlain: A cell is refused, or too many become something else.
    """
    values, refused = convert_cells(spec, surveyed, field, cells)
    if refused:
        raise NotPlain
    are_texts = form_of(field, surveyed) is CellForm.TEXT and values == list(cells)
    texts: Sequence[str] = values if are_texts else list(map(text_of, values))
    if field.name == SEQUENCE:
        texts = [text.zfill(NUMBER_DIGITS) for text in texts]
    if field.kind is ColumnKind.TEXT and "\t" in "".join(texts):
        raise NotPlain
    changed = {
        cell: text
        for cell, form, text in zip(cells, formed, texts, strict=True)
        if text is not form and text != form
    }
    if len(changed) > _CHANGED:
        raise NotPlain
    return ColumnText(surveyed.header.positions[field.name], form_of(field, surveyed), changed)


CODES: Final = 100_000
"""Codes that are compared, about 20 MB: more than lists have in which people type codes."""
_PAIRS: Final = 1_000


@dataclass
class LetterCases:
    """Finds pairs such as `E-1` and `e-1`: two codes, which one person may mean as one.

    Attributes:
        pairs: The spelling that came first, and another one; as many as are kept.
    """

    pairs: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    _waiting: list[Collection[str]] = field(default_factory=list[Collection[str]], repr=False)
    _first: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    _known: set[str] = field(default_factory=set[str], repr=False)
    _count: int = field(default=0, repr=False)

    def add(self, codes: Collection[str]) -> None:
        """Take the next codes; they may repeat."""
        if self._count >= CODES:
            self._waiting.clear()
            return
        self._count += len(codes)
        joined = "\n".join(codes)
        if not self._first and joined == joined.upper():
            # Codes in capitals alone differ in more than case.
            self._waiting.append(codes)
            return
        for each in (*self._waiting, codes):
            self._compare(each)
        self._waiting.clear()

    def _compare(self, codes: Collection[str]) -> None:
        for code in codes:
            first = self._first.setdefault(code.lower(), code)
            if first != code and code not in self._known and len(self.pairs) < _PAIRS:
                self._known.add(code)
                self.pairs.append((first, code))
