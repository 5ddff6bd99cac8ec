"""Finds the header row of a spreadsheet, and the columns below it that hold anything."""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

from domain.errors import InvalidDocument
from domain.spreadsheets.column_matches import column_name
from domain.spreadsheets.fields import SheetField
from domain.spreadsheets.match_keys import header_key
from domain.tabular.rows import Cell, is_filled
from domain.tabular.values import readable

NO_ROWS: Final = "the file holds no rows; choose another"
ONLY_HEADERS: Final = (
    "the file holds headers and no rows below them; fill it in, or upload it again and say "
    "that it has no header row"
)
SIDEWAYS: Final = (
    "the table seems to lie on its side: its headers stand below each other, and each column "
    "beside them is a row; transpose it (in Excel: copy it, Paste Special, Transpose) and upload "
    "it again, or say in which line the headers are"
)
_HEADERS_IN_COLUMN: Final = 2
_COLUMNS_OF_HEADERS: Final = 3
HEADER_WITHIN: Final = 30
"""Rows among which a header is looked for: titles and logos may stand above it."""
HEADER_CHARACTERS: Final = 200
_LONGEST_TITLE: Final = 80
_MOSTLY: Final = 0.8
_FILLED_OF_ROW: Final = 2
"""Cells of a row that holds more than a note below a table."""
_DATA: Final = re.compile(r"[-+\d\s.,:/%()]+|\S+@\S+\.\S+")
"""Numbers, dates, times, phone numbers and mail addresses: no title looks like that."""

_OF_A_ROW: Final = re.compile(
    r"\S+@\S+\.\S+|\d{1,4}[./-]\d{1,2}[./-]\d{1,4}|\d{1,3}:\d{2}(:\d{2})?([.,]\d+)?"
)
"""Mail addresses, dates and times. Years and seasons (2024/25) do stand above columns."""


class SheetHeader(NamedTuple):
    """A header row."""

    line: int
    """As the user's program shows it, from 1."""
    cells: Sequence[Cell]


NO_HEADER: Final = SheetHeader(0, ())
"""Of a sheet whose first row holds data: it lies above every line."""


class _Rank(NamedTuple):
    """How much a row looks like a header; the greatest is it, the first of equals."""

    fields: int
    """Fields that its cells name, if they are several: one may be chance."""
    titles: bool
    """It is wide enough and holds little but titles."""
    field: bool
    """Some cell names a field."""


def find_header(
    rows: Sequence[tuple[int, Sequence[Cell]]],
    fields: Sequence[SheetField],
    *,
    header_line: int | None = None,
) -> SheetHeader:
    """Find the header among the first rows of a sheet.

    It is the row whose cells name most fields. Where none names several, it is the first that
    is about as wide as the others and holds little but titles.

    Args:
        rows: Line and cells, from the top; a given `header_line` among them.
        fields: Fields of the import type.
        header_line: Line that a person has set.

    Raises:
        InvalidDocument: There are no rows, or nothing on the given line, or the headers stand below
            each other in a column.
    """
    if header_line is not None:
        for line, cells in rows:
            if line == header_line:
                return SheetHeader(line, cells)
        raise InvalidDocument(f"line {header_line} holds nothing; choose the line of the headers")
    if not rows:
        raise InvalidDocument("the sheet holds no rows; choose another one or another file")
    top = rows[:HEADER_WITHIN]
    known = _known(fields)
    width = max(_filled(cells) for _, cells in top)
    ranks = [_rank(cells, known, width) for _, cells in top]
    if not max(ranks).fields and _is_sideways([cells for _, cells in top], known):
        raise InvalidDocument(SIDEWAYS)
    return SheetHeader(*top[ranks.index(max(ranks))])


def rows_above(
    rows: Sequence[tuple[int, Sequence[Cell]]], header: SheetHeader, fields: Sequence[SheetField]
) -> tuple[int, ...]:
    """Lines of a table above the header, whose own header names several fields too.

    They are not read. Titles, logos and legends above a header name no fields.

    Args:
        rows: Line and cells, from the top, as the header was looked for in.
        header: The header that was found.
        fields: Fields of the import type.
    """
    known = _known(fields)
    lines: list[int] = []
    begun = False
    for line, cells in rows:
        if line >= header.line:
            break
        filled = _filled(cells)
        if _rank(cells, known, filled).fields:
            begun = True
        elif begun and filled >= _FILLED_OF_ROW:
            lines.append(line)
    return tuple(lines)


def reads_like_a_row(headers: Iterable[str]) -> bool:
    """Whether what is taken for headers holds something that only rows hold."""
    return any(_OF_A_ROW.fullmatch(header.strip()) for header in headers)


def column_titles(header: Sequence[Cell], rows: Iterable[Sequence[Cell]]) -> list[tuple[int, str]]:
    """Place and title of each column that has a header or a value.

    A column with values and without a header is called by its letter: `Column F`.

    Args:
        header: Cells of the header row.
        rows: Cells of the rows below it, as many as one cares to look at.
    """
    titles = {index: readable(cell, HEADER_CHARACTERS) for index, cell in enumerate(header)}
    valued = {index for cells in rows for index, cell in enumerate(cells) if is_filled(cell)}
    return [
        (index, titles.get(index) or column_name(index))
        for index in sorted(valued | titles.keys())
        if titles.get(index) or index in valued
    ]


def _known(fields: Sequence[SheetField]) -> frozenset[str]:
    """Keys of all headers that name a field."""
    return frozenset[str]().union(
        *(
            headers
            for each in fields
            for headers in (
                *(each.own_headers, each.other_headers),
                *(each.headers_beside, each.headers_instead),
            )
        )
    )


def _rank(cells: Sequence[Cell], known: Collection[str], width: int) -> _Rank:
    titles = [cell for cell in cells if isinstance(cell, str) and _is_title(cell.strip())]
    named = {key for title in titles if (key := header_key(title)) in known}
    filled = _filled(cells)
    looks_right = 2 * filled > width and len(titles) >= _MOSTLY * filled and bool(titles)
    return _Rank(len(named) if len(named) > 1 else 0, looks_right, bool(named))


def _is_sideways(rows: Sequence[Sequence[Cell]], known: Collection[str]) -> bool:
    """Whether most texts of one of the first columns name fields, and values stand beside them."""
    for place in range(_COLUMNS_OF_HEADERS):
        filled = [row for row in rows if place < len(row) and is_filled(row[place])]
        named = {
            key
            for row in filled
            if (key := header_key(readable(row[place], HEADER_CHARACTERS))) in known
        }
        beside = sum(_filled(row[place + 1 :]) > 0 for row in filled)
        if len(named) >= _HEADERS_IN_COLUMN and 2 * min(len(named), beside) > len(filled):
            return True
    return False


def _is_title(text: str) -> bool:
    return 0 < len(text) <= _LONGEST_TITLE and not _DATA.fullmatch(text)


def _filled(cells: Sequence[Cell]) -> int:
    return sum(map(is_filled, cells))
