"""The table of a sample: its titles, and the rows that an import would take as data."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from statistics import median
from typing import Final

from adapters.ports.documents import Book, Table
from workflows.imports.column_scan import ReadingOptions, Survey, convert_cells
from workflows.imports.header import (
    HEADER_WITHIN,
    Meaning,
    Specificity,
    TableHeader,
    find_header,
)
from workflows.imports.row_classification import sorter_of
from workflows.imports.types import TableSpec
from workflows.shared.cells import (
    Cell,
    Merge,
    column_letters,
    filled_down,
    is_filled,
    merged_down,
    readable,
)
from workflows.shared.conversion import Flaw, read_cells, transpose
from workflows.shared.errors import InvalidDocument
from workflows.shared.fields import ColumnKind, FieldSpec, squash
from workflows.shared.header_rows import joined_titles, title_cells, title_text, without_blanks
from workflows.shared.left_out import Alike, likeness_of
from workflows.shared.notations import Notation, number_readings_of
from workflows.shared.sections import SECTION, Sections
from workflows.shared.titles import is_unit_cell

SAMPLE_ROWS: Final = 5_000
"""Rows of a sample that a draft looks at."""
Row = tuple[int, list[Cell]]
"""Line number and cells."""
NamesOf = Callable[[Sequence[str]], Sequence[str | None]]
"""Names of fields for titles; None for a title that names none."""
_NEARLY: Final = 0.75
"""A header has titles for so many of the cells that rows usually have."""
_MOSTLY: Final = 0.9
_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class SampleTable:
    """The sheet of a sample that holds most rows.

    Attributes:
        header: As an import finds it.
        rows: Those below the header, merged cells filled down.
        sheet: Name of the sheet; None: the sample is a text table.
        others: Names of further sheets that are shown and hold rows.
        date1904: Day numbers count from 1904.
    """

    header: TableHeader
    rows: Sequence[Row]
    sheet: str | None
    others: Sequence[str]
    date1904: bool

    @property
    def titles(self) -> list[str]:
        """Titles of the columns, in one line each."""
        return [title.strip() for title in self.header.titles]

    def untitled(self) -> Iterator[str]:
        """Say which columns hold something and have no title."""
        width = max(len(cells) for _, cells in self.rows)
        titles = self.titles
        for place, cells in enumerate(transpose([cells for _, cells in self.rows], width)):
            filled = [n for n, cell in enumerate(cells) if is_filled(cell)]
            if filled and (place >= len(titles) or not titles[place]):
                count = f"{len(filled):,} filled cell{'' if len(filled) == 1 else 's'}"
                first = f"{readable(cells[filled[0]], _SHOWN)!r} in line {self.rows[filled[0]][0]}"
                above = [cells[place] for cells in self.header.rows if place < len(cells)]
                what = "no text as its title" if any(map(is_filled, above)) else "no title"
                yield (
                    f"column {column_letters(place)} has {what} and {count}, such as {first}: "
                    "give it a title to import it"
                )


def table_of(book: Book, names_of: NamesOf) -> SampleTable:
    """Find the table of a sample: that of the sheet which holds most.

    Args:
        book: The sample.
        names_of: What fields of such titles are called.

    Raises:
        InvalidDocument: No row can be a header with rows below it.
    """
    best: SampleTable | None = None
    shown = [each.name for each in book.sheets if not each.hidden]
    holding: list[str] = []
    for sheet in shown or [None]:
        source = book.table(sheet)
        rows = list(islice(source.rows(), SAMPLE_ROWS))
        if rows and sheet is not None:
            holding.append(sheet)
        header = _header_of(rows[:HEADER_WITHIN], sheet, source.merges, names_of)
        below = [] if header is None else _below(rows, header.line, source)
        if header is not None and below and (best is None or len(below) > len(best.rows)):
            best = SampleTable(header, below, sheet, (), source.date1904)
    if best is None:
        raise InvalidDocument("the sample has no header with rows below it")
    return replace(best, others=[name for name in holding if name != best.sheet])


def _below(rows: Sequence[Row], line: int, source: Table) -> list[Row]:
    """The rows below a header, with the texts and days of cells that are merged down to them."""
    data = (row for row in rows if row[0] > line)
    begins = merged_down(source.merges, line)
    return list(filled_down(data, begins, lambda _, cell: not isinstance(cell, int | float)))


def _header_of(
    top: Sequence[Row], sheet: str | None, merges: Sequence[Merge], names_of: NamesOf
) -> TableHeader | None:
    """The header among the first rows, as an import of its titles finds it."""
    texts = [sum(isinstance(each, str) and is_filled(each) for each in cells) for _, cells in top]
    if not any(texts):
        return None
    usual = median(sum(map(is_filled, cells)) for _, cells in top)
    likely = (
        place
        for place, (_, cells) in enumerate(top)
        if texts[place] >= _NEARLY * usual and _are_titles(cells)
    )
    start = next(likely, texts.index(max(texts)))
    for first in (start, start - 1):
        if 0 <= first < len(top) - 1 and _are_two_rows(top, first, start, merges):
            titles = joined_titles(top[first][1], without_blanks(top[first + 1][1]))
            found = _found(top[first:], list(map(title_text, titles)), sheet, names_of)
            if found is not None and found.line > top[first][0]:
                return found
    titles = [title_text(cell) if is_filled(cell) else "" for cell in title_cells(top[start][1])]
    return _found(top[start:], titles, sheet, names_of)


def _found(
    top: Sequence[Row], titles: Sequence[str], sheet: str | None, names_of: NamesOf
) -> TableHeader | None:
    named = {n: name for n, name in enumerate(names_of(titles)) if name is not None}
    if not named:
        return None
    cells = transpose([cells for _, cells in top[2:]], len(titles))
    kinds = {n: _kind(cells[n]) for n in named}
    fields = [FieldSpec(name, kinds[n], True, title=titles[n]) for n, name in named.items()]
    # In the column of a key a unit is a value. Any column of texts may be the key, if no further
    # title stands in the second row.
    upper = dict(enumerate(map(title_text, top[0][1])))
    alone = (n for n in named if kinds[n] is ColumnKind.TEXT and titles[n] == upper.get(n))
    key = [named[n] for n in alone]
    return find_header(top, TableSpec("", (), (*key, fields[0].name), tuple(fields)), sheet)


def _are_two_rows(top: Sequence[Row], first: int, start: int, merges: Sequence[Merge]) -> bool:
    """Whether a row of titles and the one below it are one header.

    Args:
        top: The first rows of the sheet.
        first: Place of the upper row.
        start: Place of the row that is a header by itself.
        merges: Merged cells of the sheet.
    """
    (line, upper), (below_line, lower) = top[first], top[first + 1]
    lower = without_blanks(lower)
    filled = [place for place, cell in enumerate(lower) if is_filled(cell)]
    if below_line != line + 1 or not filled or not _may_be_titles(lower):
        return False
    if first < start:
        # Titles that repeat stand below the names of their groups.
        titles = [squash(title_text(cell)) for cell in lower if is_filled(cell)]
        joined = [
            squash(title_text(title))
            for title, cell in zip(joined_titles(upper, lower), lower, strict=False)
            if is_filled(cell)
        ]
        return len({*joined}) > len({*titles})
    if all(place < len(upper) and is_filled(upper[place]) for place in filled):
        return False
    if any(each.first_line == line and _spans(each, line) for each in merges):
        return True
    rows = [cells for _, cells in top[first + 2 :]]
    columns = transpose(rows, max(len(upper), len(lower)))
    if any(_share(columns[place], _is_figure) >= _MOSTLY for place in filled):
        return True
    return len(filled) > 1 and any(
        is_filled(cell) and place not in filled and _share(columns[place], is_filled) >= _MOSTLY
        for place, cell in enumerate(upper)
    )


def _spans(merge: Merge, line: int) -> bool:
    """Whether a cell is merged to the right of a line alone, or down to the next one."""
    is_wide = merge.last_column > merge.first_column
    return merge.last_line == line + 1 if not is_wide else merge.last_line == line


def _share(cells: Sequence[Cell], is_such: Callable[[Cell], bool]) -> float:
    held = [cell for cell in cells if is_filled(cell)] if is_such is _is_figure else cells
    return sum(map(is_such, held)) / len(held) if held else 0


def _is_figure(cell: Cell) -> bool:
    return not isinstance(cell, str) or bool(number_readings_of(cell))


def _may_be_titles(cells: Sequence[Cell]) -> bool:
    """Whether a row holds texts alone of which none is a number, day or address."""
    filled = [cell for cell in cells if is_filled(cell)]
    texts = [cell for cell in filled if isinstance(cell, str)]
    if not texts or len(texts) < len(filled):
        return False
    kinds = (ColumnKind.DECIMAL, ColumnKind.DATE, ColumnKind.MAIL)
    return not any(_reads(kind, text) for text in texts if not is_unit_cell(text) for kind in kinds)


def _are_titles(cells: Sequence[Cell]) -> bool:
    """Whether a row may be titles, few of them twice."""
    distinct = {squash(cell) for cell in cells if isinstance(cell, str) and is_filled(cell)}
    count = sum(map(is_filled, cells))
    return _may_be_titles(cells) and not 2 * len(distinct) <= count > 1


def _reads(kind: ColumnKind, text: str) -> bool:
    values, _ = read_cells(FieldSpec("x", kind), [text], Notation.DAY_FIRST)
    return values[0] is not None and not isinstance(values[0], Flaw)


@dataclass(frozen=True, slots=True)
class Judged:
    """What an import makes of the rows of a sample, if one column is its key.

    Attributes:
        data: Places of the rows that are data, but not of rows that an import refuses or lists as
            odd: those that are like a total, hold nothing but their key, or stand below the last
            key.
        sections: The headings above each of them; empty texts if there are none.
        odd: How many rows an import lists as odd and takes, or refuses.
    """

    data: Sequence[int]
    sections: Sequence[str]
    odd: int

    @property
    def are_grouped(self) -> bool:
        """Whether several headings stand above rows."""
        return len({*self.sections} - {""}) > 1


def judged(table: SampleTable, place: int) -> Judged | None:
    """Sort the rows of a sample as an import does.

    Args:
        table: The sample.
        place: Of the column that is the key.

    Returns:
        None if an import refuses such a table.
    """
    every = [cells for _, cells in table.rows]
    columns = transpose(every, max(len(table.titles), max(map(len, every))))
    titled = [n for n, title in enumerate(table.titles) if title]
    fields = {
        n: FieldSpec(
            f"column_{n}",
            ColumnKind.CODE if n == place else _kind(columns[n]),
            required=n == place,
        )
        for n in titled
    }
    key = fields[place].name
    section = FieldSpec(SECTION, ColumnKind.CODE)
    spec = TableSpec("", (), (key, SECTION), (*fields.values(), section))
    header = replace(
        table.header,
        positions={each.name: n for n, each in fields.items()},
        meanings={n: Meaning(each, Specificity.NAME) for n, each in fields.items()},
        candidates={},
    )
    survey = Survey(spec, header, date1904=table.date1904)
    try:
        survey.add(table.rows)
        surveyed = survey.finish(ReadingOptions())
    except InvalidDocument:
        return None
    values = {
        each.name: convert_cells(spec, surveyed, each, columns[n], date1904=table.date1904)[0]
        for n, each in fields.items()
    }
    sorter = sorter_of(spec, header, surveyed.keys)
    left = sorter.sort(table.rows, columns, values)
    keyless = {n for n, value in enumerate(values[key]) if isinstance(value, Flaw)}
    paths = Sections(*(spec.fields, spec.key, header.positions), wrong=header.wrong).paths(
        table.rows, values, keyless, left
    )
    lone = sorter.lone_keys(columns)
    odd = {*left, *(lone if 2 * len(lone) < len(every) else ())}
    odd.update(n for n, cells in enumerate(every) if _is_total(columns[place][n], cells))
    last = max((n for n in range(len(every)) if n not in keyless), default=-1)
    odd.update(range(last + 1, len(every)))
    data = [n for n in range(len(every)) if n not in odd]
    return Judged(data, [paths[n] for n in data], len(odd) - len(left))


def _kind(cells: Collection[Cell]) -> ColumnKind:
    filled = [cell for cell in cells if is_filled(cell)]
    figures = sum(1 for cell in filled if number_readings_of(cell))
    return ColumnKind.DECIMAL if 2 * figures > len(filled) else ColumnKind.TEXT


def _is_total(key: Cell, cells: Sequence[Cell]) -> bool:
    """Whether the key of a row is like a total; or another cell, if the row has no key."""
    words = [key] if is_filled(key) else cells
    return any(isinstance(each, str) and likeness_of(each) is Alike.SURE for each in words)
