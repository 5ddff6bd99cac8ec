"""Cells of a worksheet that are merged down over several rows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date

from domain.tabular.rows import Cell, Merge

Begins = Mapping[int, Sequence[Merge]]
"""Line to the merged cells that begin in it."""


def merged_down(merges: Iterable[Merge], header_line: int) -> Begins:
    """The cells that are merged down to rows below a header."""
    found: dict[int, list[Merge]] = {}
    for merge in merges:
        if merge.last_line > merge.first_line and merge.last_line > header_line:
            found.setdefault(merge.first_line, []).append(merge)
    return found


def filled_down(
    rows: Iterable[tuple[int, list[Cell]]], begins: Begins
) -> Iterator[tuple[int, list[Cell]]]:
    """Rows with the texts and dates of cells that are merged down to them.

    Numbers are not filled down: a fee of three rows is not the fee of each.

    Args:
        rows: Line number and cells, in order.
        begins: Of `merged_down`.
    """
    under_way: list[tuple[Merge, Cell]] = []
    for line, cells in rows:
        under_way = [each for each in under_way if each[0].last_line >= line]
        for merge, value in under_way:
            place = merge.first_column
            if place >= len(cells):
                cells.extend([None] * (place + 1 - len(cells)))
            if cells[place] is None or cells[place] == "":
                cells[place] = value
        for merge in begins.get(line, ()):
            if merge.first_column < len(cells) and _is_filled(value := cells[merge.first_column]):
                under_way.append((merge, value))
        yield line, cells


def _is_filled(value: Cell) -> bool:
    return isinstance(value, date) or (isinstance(value, str) and bool(value.strip()))
