"""Rows at the top of a table that may name its columns, by words that such a row must hold."""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Final, cast

from domain.imports.tables import TableSpec
from domain.tabular.fields import normalise
from domain.tabular.rows import Cell
from domain.tabular.values import readable

HEADER_CHARACTERS: Final = 80
"""Of a title, as far as it is looked at."""


def title_text(cell: Cell) -> str:
    """A cell as a title, in one line."""
    return readable(cell, HEADER_CHARACTERS) if cell is not None else ""


def marks_of(
    required: Collection[str], spec: TableSpec, names: Mapping[str, str]
) -> Sequence[Sequence[str]]:
    """For each required field one word of every title that names it, the longest."""
    required_titles = [(title, name) for title, name in names.items() if name in required]
    return [
        [*spec.title_words[field]]
        + [
            max(title.split(), key=len, default="")
            for title, name in required_titles
            if name == field
        ]
        for field in sorted(required)
    ]


def rows_worth_reading(
    top: Sequence[tuple[int, Sequence[Cell]]], marks: Sequence[Sequence[str]]
) -> Iterable[int]:
    """Rows that may be a header, alone or with the one below, by what they must hold for that.

    What a title means is looked up cell by cell; most rows are data, and lack such a word.
    """
    texts = [_folded(cells) for _, cells in top]
    together = "\n".join(texts)
    begins = [*accumulate((len(text) + 1 for text in texts), initial=0)]
    found = [_rows_with(words, together, begins) for words in marks]
    for index in range(len(texts)):
        if all(index in rows or index + 1 in rows for rows in found):
            yield index


def _rows_with(words: Sequence[str], together: str, begins: Sequence[int]) -> set[int]:
    """Which rows hold one of these words, by where each begins; words hold no blanks."""
    if "" in words:
        return set(range(len(begins)))
    rows: set[int] = set()
    for word in words:
        place = together.find(word)
        while place >= 0:
            row = bisect_right(begins, place) - 1
            rows.add(row)
            place = together.find(word, begins[row + 1])
    return rows


def _folded(cells: Sequence[Cell]) -> str:
    """A text that holds every word of a row's titles as `normalise` writes them."""
    try:
        text = "\n".join(cast("Sequence[str]", cells))
    except TypeError:  # a cell that is no text
        text = "\n".join(cell if isinstance(cell, str) else title_text(cell) for cell in cells)
    return text.casefold() if text.isascii() else normalise(text)
