"""Headers below the first one, and the sheets that rows stand in."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, cast

from workflows.imports.header import HEADER_WITHIN, SIDEWAYS, Meaning, TableHeader, meaning_of
from workflows.imports.types import TableSpec
from workflows.shared.cells import Cell, column_letters, readable
from workflows.shared.errors import InvalidDocument
from workflows.shared.fields import NUMBERS, ColumnKind, normalise, squash
from workflows.shared.left_out import KeyWords, RowSorter
from workflows.shared.sections import SEQUENCE

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
        self._place = header.positions[spec.item(header.positions)]
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
            and squash(cell) in self._spec.by_header
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


def second_table_error(header: TableHeader, line: int, cells: Sequence[Cell], place: int) -> str:
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
            raise InvalidDocument(second_table_error(header, line, cells, other))


def _end_with_digits(cells: Sequence[Cell]) -> bool:
    """Whether all cells are texts that end with a digit, or are empty; quick."""
    try:
        joined = "\n".join(cast("Sequence[str]", cells)) + "\n"
    except TypeError:  # a cell that is not text
        return False
    return _OTHER_END.search(joined) is None


def _is_filled(cell: Cell) -> bool:
    return isinstance(cell, str) and bool(cell.strip())


_SUMMED: Final = NUMBERS | {ColumnKind.DURATION}
"""Kinds of which totals are sums."""


def sorter_of(spec: TableSpec, header: TableHeader, words: KeyWords) -> RowSorter:
    """What finds the rows of a table that are not data."""
    positions, below = header.positions, HeadersBelow(spec, header)
    required = (name for name in spec.key if name in positions and spec.by_name[name].required)
    return RowSorter(
        [positions[name] for name in required],
        positions.values(),
        header.rows,
        words,
        numbers={
            positions[each.name]: each.name
            for each in spec.fields
            if each.kind in _SUMMED and each.name in positions and each.name != SEQUENCE
        },
        renamed=lambda rows, columns: [
            each.row for each in below.find(rows, columns) if each.other is None
        ],
        wrong=header.wrong,
    )


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
