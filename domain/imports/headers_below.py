"""Headers below the header of a table: of the next page, or of another table on the sheet."""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, cast

from domain.errors import InvalidDocument
from domain.imports.header import TableHeader
from domain.imports.tables import TableSpec
from domain.imports.titles import Meaning, meaning_of
from domain.tabular.fields import normalise
from domain.tabular.rows import Cell
from domain.tabular.values import column_letters, readable

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
