"""Rows of a spreadsheet that repeat its header."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from domain.tabular.rows import Cell, is_filled

REPEATED: Final = "repeats the header row"
_TITLES: Final = 2
"""Columns of which a row repeats the titles: one title alone may be a value."""


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


def _is_title(cell: Cell, title: str) -> bool:
    return isinstance(cell, str) and cell.strip().casefold() == title
