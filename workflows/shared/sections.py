"""Sections of a bill: which headings stand above a row whose numbering starts anew in each.

A heading is a row with a text and without figures and unit. A row with a code is one only if
numbering starts anew below it, or if it is numbered as an earlier one: it may just lack its
figures. Headings that follow each other nest.
After rows, a heading takes the place of the one that is numbered in its way (`B` of `A`, `1.2` of
`1.1`, `Bill 2` of `Bill 1`), or of the last ones without a number. A heading does not hold rows
that are numbered in its way; rows that continue its number (`1.1` below `1`) name it themselves.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from workflows.shared.cells import Cell, is_filled, readable
from workflows.shared.conversion import Flaw
from workflows.shared.fields import NUMBERS, ColumnKind, FieldSpec
from workflows.shared.left_out import is_totals_word
from workflows.shared.notations import number_readings_of

SECTION: Final = "section"
"""Part of a key that the headings above a row give, unless the file has a column for it."""
SEQUENCE: Final = "sequence"
"""Last part of a key whose other parts may come several times in one file."""
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
    """Follows the headings of one table, row by row, in order.

    Attributes:
        lines: Lines of rows with a key that begin a section.

    Args:
        fields: Fields of the table.
        key: Those that make a row the same row.
        positions: Field to the position of its column in the file.
        wrong: Position of the column of a report that says what is wrong.
        sheet: Its sheet, if several hold bills: each begins its numbering anew; '': only one does.
    """

    def __init__(
        self,
        fields: Iterable[FieldSpec],
        key: Sequence[str],
        positions: Mapping[str, int],
        *,
        wrong: int | None = None,
        sheet: str = "",
    ) -> None:
        fields = list(fields)
        self.lines: list[int] = []
        self._sheet = sheet
        self._code = next((name for name in key if name not in (SECTION, SEQUENCE)), None)
        self._figures = figures_of(fields, key, positions)
        titles = (each.name for each in fields if each.kind is ColumnKind.TEXT)
        texts = (name for name in titles if name in positions and name not in self._figures)
        self._title = next(texts, None)
        self._used = frozenset(positions.values())
        self._wrong = wrong
        self._open: list[_Heading] = []
        self._next: list[_Heading] = []
        """What stands above the next row and may begin a section."""
        self._numbered: set[str] = set()
        """How the headings with a code are numbered."""
        self._rows_since = False

    def skip(self, cells: Sequence[Cell]) -> None:
        """Take the next row, which has no key and is skipped: a heading if it holds one text."""
        texts = [cell for place, cell in enumerate(cells) if self._counts(place, cell)]
        if len(texts) == 1 and isinstance(texts[0], str):
            self._next.append(_heading_of(texts[0]))

    def paths(
        self,
        rows: Sequence[tuple[int, Sequence[Cell]]],
        values: Mapping[str, Sequence[Any]],
        keyless: Collection[int],
        aside: Collection[int],
    ) -> list[str]:
        """Take the next rows, and return the section of each; '' of those that are skipped.

        Args:
            rows: Line number and cells of each.
            values: Converted columns by field.
            keyless: Rows without a key.
            aside: Rows that are skipped.
        """
        paths = [""] * len(rows)
        for i, (line, cells) in enumerate(rows):
            if i in keyless and i in aside:
                self.skip(cells)
            elif i not in keyless and i not in aside:
                paths[i] = self.path(line, cells, lambda name, i=i: values[name][i])
        return paths

    def path(self, line: int, cells: Sequence[Cell], value: Callable[[str], Any]) -> str:
        """Take the next row, which has a key, and return its section; '' if no heading holds it.

        Args:
            line: Its line.
            cells: The cells of the row.
            value: Gives the converted value of a field; None: its cell is blank.
        """
        code = "" if self._code is None else str(value(self._code))
        self._settle(code)
        path = self._path(code)
        if self._has_figures(cells, value):
            self._rows_since = True
        else:
            title = None if self._title is None else value(self._title)
            text = "" if title is None or isinstance(title, Flaw) else str(title)
            heading = _Heading(f"{code} {text}".strip(), _shape(code), code, line)
            self._next.append(heading)
        return path

    def _counts(self, place: int, cell: Cell) -> bool:
        return place != self._wrong and is_filled(cell)

    def _has_figures(self, cells: Sequence[Cell], value: Callable[[str], Any]) -> bool:
        return any(
            place < len(cells) and is_filled(cells[place]) and value(name) is not None
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


def figures_of(
    fields: Iterable[FieldSpec], key: Collection[str], positions: Mapping[str, int]
) -> dict[str, int]:
    """Return the fields of which a heading fills none, and their positions."""
    return {
        each.name: positions[each.name]
        for each in fields
        if each.name in positions
        and each.name not in key
        and (each.name == "unit" or each.kind in NUMBERS)
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
