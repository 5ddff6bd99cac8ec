"""Sections of a bill: which headings stand above a row whose numbering starts anew in each.

A heading is a row with a text and without figures and unit. Headings that follow each other nest.
After rows, a heading takes the place of the one that is numbered in its way (`B` of `A`, `1.2` of
`1.1`, `Bill 2` of `Bill 1`), or of the last ones without a number. A heading does not hold rows
that are numbered in its way; rows that continue its number (`1.1` below `1`) name it themselves.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from domain.imports.header import TableHeader
from domain.imports.tables import TableSpec
from domain.tabular.fields import ColumnKind
from domain.tabular.habits import number_readings_of
from domain.tabular.rows import Cell, is_filled
from domain.tabular.values import readable
from domain.tabular.words import is_totals_word

PATH_CHARACTERS: Final = 255
_TITLE_CHARACTERS: Final = 80
_LABEL: Final = re.compile(r"([^\W\d_][^\d]{0,19}?)?\s*\b([0-9]+(?:\.[0-9]+)*|[A-Z])\b")
_DIGITS: Final = re.compile(r"[0-9]+")
_LETTERS: Final = re.compile(r"[^\W\d_]+")
_NUMBERS: Final = (ColumnKind.DECIMAL, ColumnKind.INTEGER)


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
