"""Cells of a worksheet that are merged down over several rows."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from domain.tabular.rows import Cell, Merge, is_filled

Begins = Mapping[int, Sequence[Merge]]
"""Line to the merged cells that begin in it."""
Rows = Iterable[tuple[int, list[Cell]]]
"""Line number and cells of each row, in order."""


def merged_down(merges: Iterable[Merge], header_line: int) -> Begins:
    """The cells that are merged down to rows below a header."""
    found: dict[int, list[Merge]] = {}
    for merge in merges:
        if merge.last_line > merge.first_line and merge.last_line > header_line:
            found.setdefault(merge.first_line, []).append(merge)
    return found


def filled_down(
    rows: Rows, begins: Begins, fills: Callable[[int, Cell], bool]
) -> Iterator[tuple[int, list[Cell]]]:
    """Rows with the values of cells that are merged down to them.

    Args:
        rows: The rows below a header.
        begins: Of `merged_down`.
        fills: Whether a value counts for all rows of its cell, by place and value. A number does
            not: a fee of three rows is not the fee of each.
    """
    first_lines = sorted(begins, reverse=True)
    under_way: list[tuple[Merge, Cell]] = []
    for line, cells in rows:
        while first_lines and first_lines[-1] <= line:
            for merge in begins[first_lines.pop()]:
                place = merge.first_column
                if merge.first_line == line and place < len(cells) and is_filled(cells[place]):
                    under_way.append((merge, cells[place]))
        under_way = [each for each in under_way if each[0].last_line >= line]
        for merge, value in under_way:
            place = merge.first_column
            held = cells[place] if place < len(cells) else None
            if not is_filled(held) and fills(place, value):
                cells.extend([None] * (place + 1 - len(cells)))
                cells[place] = value
        yield line, cells
