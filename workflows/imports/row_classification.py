"""Headers below the first one, and the sheets and sections that rows stand in.

Sections of a bill: which headings stand above a row whose numbering starts anew in each.

A heading is a row with a text and without figures and unit. A row with a code is one only if
numbering starts anew below it, or if it is numbered as an earlier one: it may just lack its
figures. Headings that follow each other nest.
After rows, a heading takes the place of the one that is numbered in its way (`B` of `A`, `1.2` of
`1.1`, `Bill 2` of `Bill 1`), or of the last ones without a number. A heading does not hold rows
that are numbered in its way; rows that continue its number (`1.1` below `1`) name it themselves.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast

from workflows.imports.header import HEADER_WITHIN, SIDEWAYS, Meaning, TableHeader, meaning_of
from workflows.imports.types import SEQUENCE, TableSpec
from workflows.shared.cells import Cell, column_letters, is_filled, readable
from workflows.shared.conversion import Flaw
from workflows.shared.errors import InvalidDocument
from workflows.shared.fields import NUMBERS, ColumnKind, normalise, squash
from workflows.shared.left_out import KeyWords, RowSorter, is_totals_word
from workflows.shared.notations import number_readings_of

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
            if each.kind in NUMBERS and each.name in positions and each.name != SEQUENCE
        },
        renamed=lambda rows, columns: [
            each.row for each in below.find(rows, columns) if each.other is None
        ],
        wrong=header.wrong,
    )


PATH_CHARACTERS: Final = 255
_TITLE_CHARACTERS: Final = 80
_LABEL: Final = re.compile(r"([^\W\d_][^\d]{0,19}?)?\s*\b([0-9]+(?:\.[0-9]+)*|[A-Z])\b")
_LAST: Final = re.compile(r"([0-9]+|[^\W\d_]+)\W*$")
_FIRST: Final = ("", "1", "a", "i")
"""How lists begin, without zeros: `1`, `01`, `10`, `0`, `1.1`, `a)`, `(i)`."""
_DIGITS: Final = re.compile(r"[0-9]+")
_LETTERS: Final = re.compile(r"[^\W\d_]+")


class _Heading(NamedTuple):
    title: str
    shape: str
    """How it is numbered: `0.0` for `1.2`; '': it has no number."""
    code: str
    """Its number; '': rows cannot continue it."""
    line: int = 0
    """Line of a heading that has a key, so that it may be a row that lacks its figures; 0: it has
    none."""


class Sections:
    """Follows the headings of one table, part by part, in order.

    Attributes:
        lines: Lines of rows with a key that begin a section.

    Args:
        spec: The table.
        header: The header of the file.
        sheet: Its sheet, if several hold bills: each begins its numbering anew; '': only one does.
    """

    def __init__(self, spec: TableSpec, header: TableHeader, sheet: str = "") -> None:
        self.lines: list[int] = []
        self._sheet = sheet
        self._key = spec.item(header.positions)
        self._figures = figures_of(spec, header)
        own = (each for each in spec.fields if each.kind is ColumnKind.TEXT)
        titles = [n.name for n in own if n.name in header.positions and n.name not in self._figures]
        self._title = titles[0] if titles else None
        self._positions = header.positions
        self._used = frozenset(header.positions.values())
        self._wrong = header.wrong
        self._open: list[_Heading] = []
        self._next: list[_Heading] = []
        """What stands above the next row and may begin a section."""
        self._numbered: set[str] = set()
        """How the headings with a code are numbered."""
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
        for i, (line, cells) in enumerate(rows):
            if i in keyless:
                texts = [cell for place, cell in enumerate(cells) if self._counts(place, cell)]
                if i in aside and len(texts) == 1 and isinstance(texts[0], str):
                    self._next.append(_heading_of(texts[0]))
                continue
            if i in aside:
                continue
            code = str(values[self._key][i])
            self._settle(code)
            paths[i] = self._path(code)
            if self._has_figures(i, cells, values):
                self._rows_since = True
            else:
                title = values[self._title][i] if self._title else None
                text = "" if title is None or isinstance(title, Flaw) else str(title)
                heading = _Heading(f"{code} {text}".strip(), _shape(code), code, line)
                self._next.append(heading)
        return paths

    def _counts(self, place: int, cell: Cell) -> bool:
        return place != self._wrong and is_filled(cell)

    def _has_figures(
        self, i: int, cells: Sequence[Cell], values: Mapping[str, Sequence[Any]]
    ) -> bool:
        return any(
            values[name][i] is not None and place < len(cells) and is_filled(cells[place])
            for name, place in self._figures.items()
        ) or any(
            place not in self._used and self._counts(place, cell) and bool(number_readings_of(cell))
            for place, cell in enumerate(cells)
        )

    def _settle(self, code: str) -> None:
        """Begin the sections above the next row, given its code."""
        for heading in self._next:
            if not heading.line:
                self._begin(heading)
            elif heading.shape in self._numbered or _begins_below(code, heading):
                self._numbered.add(heading.shape)
                self._begin(heading)
                self.lines.append(heading.line)
            else:
                self._rows_since = True
        self._next.clear()

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


def figures_of(spec: TableSpec, header: TableHeader) -> dict[str, int]:
    """Return the fields of which a heading fills none, and their positions."""
    return {
        name: place
        for name, place in header.positions.items()
        if name not in spec.key and (name == "unit" or spec.by_name[name].kind in NUMBERS)
    }


def _heading_of(text: str) -> _Heading:
    found = _LABEL.match(text.strip())
    if found is None:
        return _Heading(text, "", "")
    word = (found[1] or "").casefold()
    return _Heading(text, word + _shape(found[2]), "" if word else found[2])


def _shape(code: str) -> str:
    return _LETTERS.sub("a", _DIGITS.sub("0", code))


def _begins_below(code: str, heading: _Heading) -> bool:
    """Whether numbering starts anew below a heading: `1.1` or `a` below `1`, `1` below `A`."""
    if _continues(code, heading.code):
        return True
    last = _LAST.search(code)
    is_first = last is not None and last[1].strip("0").casefold() in _FIRST
    return is_first and _shape(code) != heading.shape


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
