"""Merged cells of a worksheet: keys that stand for several rows."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from domain.imports.header import TableHeader
from domain.imports.tables import TableSpec
from domain.tabular.fields import ColumnKind
from domain.tabular.rows import Cell, Merge

_NUMBERS: Final = (ColumnKind.DECIMAL, ColumnKind.INTEGER)


def fill_down(
    rows: Iterable[tuple[int, list[Cell]]],
    merges: Sequence[Merge],
    header: TableHeader,
    spec: TableSpec,
    filled: Counter[str],
) -> Iterator[tuple[int, list[Cell]]]:
    """Rows below a header with the values of cells that are merged down to them.

    Numbers are not filled down: a quantity of three rows is not the quantity of each.

    Args:
        rows: Line number and cells, in order.
        merges: Merged cells of the sheet.
        header: Which columns are used.
        spec: What they hold.
        filled: Counts the cells that were filled, by title.
    """
    titles = {
        position: header.titles[position]
        for name, position in header.positions.items()
        if spec.by_name[name].kind not in _NUMBERS
    }
    begin: dict[int, list[Merge]] = {}
    for merge in merges:
        if merge.last_line > merge.first_line and merge.last_line > header.line:
            begin.setdefault(merge.first_line, []).append(merge)
    return _filled_down(rows, begin, titles, filled) if begin else iter(rows)


def _filled_down(
    rows: Iterable[tuple[int, list[Cell]]],
    begin: Mapping[int, Sequence[Merge]],
    titles: Mapping[int, str],
    filled: Counter[str],
) -> Iterator[tuple[int, list[Cell]]]:
    first_lines = sorted(begin, reverse=True)
    under_way: list[tuple[Merge, Cell]] = []
    for line, cells in rows:
        while first_lines and first_lines[-1] <= line:
            for merge in begin[first_lines.pop()]:
                place = merge.first_column
                of_this_row = merge.first_line == line and place < len(cells)
                under_way.append((merge, cells[place] if of_this_row else None))
        under_way = [each for each in under_way if each[0].last_line >= line]
        for merge, value in under_way:
            place = merge.first_column
            if merge.first_line < line and value is not None and place in titles:
                cells.extend([None] * (place + 1 - len(cells)))
                if cells[place] is None:
                    cells[place] = value
                    filled[titles[place]] += 1
        yield line, cells
