"""Rows of a spreadsheet that are none: repeated headers, totals, and what stands below a list."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from domain.tabular.rows import Cell, is_filled
from domain.tabular.words import RowWord, is_signature, may_hold_words, word_of

REPEATED: Final = "repeats the header row"
TOTAL: Final = "looks like a total, not like a row; correct its first cell if it is one"
NOTE: Final = "looks like a note on the list, not like a row; correct its first cell if it is one"
_SUM: Final = re.compile(r"\bsuma?\b", re.IGNORECASE)
_TITLES: Final = 2
"""Columns of which a row repeats the titles: one title alone may be a value."""
_BESIDE_NOTE: Final = 1
_BESIDE_SIGNATURE: Final = 2
_TOTALS: Final = frozenset({RowWord.TOTAL, RowWord.TOTAL_OF, RowWord.OF_TOTAL})


def repeated_headers(
    headers: Mapping[str, str], cells: Mapping[str, Sequence[Cell]]
) -> Iterator[int]:
    """Rows of titles, as on each printed page, though all of their values may be valid.

    A second table below the first one may have fewer columns.

    Args:
        headers: Header by field.
        cells: Cells of the rows by field.
    """
    titles = {name: header.strip().casefold() for name, header in headers.items()}
    if len(titles) < _TITLES:
        return
    first = next(iter(titles))
    for i, cell in enumerate(cells[first]):
        if not _is_title(cell, titles[first]):
            continue
        filled = [name for name in titles if is_filled(cells[name][i])]
        if len(filled) >= _TITLES and all(
            _is_title(cells[name][i], titles[name]) for name in filled
        ):
            yield i


def notes(rows: Sequence[Sequence[Cell]]) -> Iterator[tuple[int, str]]:
    """Rows that begin with a word that no list's row begins with, and why each is none.

    A total has numbers beside the word, a note or signature little more than itself: what has a
    name and more beside the word is a row.
    """
    texts = [_first_text(cells) for cells in rows]
    if not may_hold_words(texts):
        return
    for i, text in enumerate(texts):
        word = word_of(text, in_key=True) if text else None
        if word is None:
            continue
        beside = [cell for cell in rows[i] if is_filled(cell)][1:]
        if word in _TOTALS:
            if beside and not any(map(_has_letters, beside)) and _is_total(text, word):
                yield i, TOTAL
        elif _is_note(text, beside):
            yield i, NOTE


def _first_text(cells: Sequence[Cell]) -> str:
    first = next((cell for cell in cells if is_filled(cell)), None)
    return first if isinstance(first, str) else ""


def _is_total(text: str, word: RowWord) -> bool:
    # Sum is a family name as well.
    return word is RowWord.TOTAL or not _SUM.search(text)


def _is_note(text: str, beside: Sequence[Cell]) -> bool:
    if text.strip().casefold() == "date":
        # It is a family name as well.
        return not any(map(_has_letters, beside))
    return len(beside) <= (_BESIDE_SIGNATURE if is_signature(text) else _BESIDE_NOTE)


def _has_letters(cell: Cell) -> bool:
    return isinstance(cell, str) and any(map(str.isalpha, cell))


def _is_title(cell: Cell, title: str) -> bool:
    return isinstance(cell, str) and cell.strip().casefold() == title
