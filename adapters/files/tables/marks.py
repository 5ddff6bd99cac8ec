"""What cells of XLS and ODS files show, where the library that reads them drops it."""

from dataclasses import dataclass, field
from typing import Any, Final

from adapters.files import limits

_MOST: Final = 1_000_000


class TooManyMarks(Exception):
    """More cells of a sheet show something else than they hold than can be kept."""

    def __init__(self) -> None:
        super().__init__(
            f"more than {_MOST:,} cells of a sheet show errors or leading zeros; "
            "save the file as XLSX and send that"
        )


@dataclass
class Marks:
    """Of one sheet.

    Attributes:
        cells: Line, from 1, and column, from 0, to what the cell shows.
        merges: First and last line, from 1, first and last column, from 0.
        hidden: Columns that are not shown, from 0.
        hidden_rows: First and last line, from 1, of rows that are not shown, in order.
    """

    cells: dict[tuple[int, int], Any] = field(default_factory=dict[tuple[int, int], Any])
    merges: list[tuple[int, int, int, int]] = field(default_factory=list[tuple[int, int, int, int]])

    hidden: set[int] = field(default_factory=set[int])
    hidden_rows: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def hide(self, first: int, count: int) -> None:
        """Note columns that are not shown."""
        self.hidden.update(range(first, min(first + count, limits.COLUMNS)))

    def hide_rows(self, first: int, count: int) -> None:
        """Note rows that are not shown, those of earlier lines first."""
        last = first + count - 1
        if self.hidden_rows and self.hidden_rows[-1][1] == first - 1:
            first, _ = self.hidden_rows.pop()
        self.hidden_rows.append((first, last))

    def add(self, line: int, column: int, shown: Any) -> None:
        """Note one cell.

        Raises:
            TooManyMarks: There are too many.
        """
        if len(self.cells) >= _MOST:
            raise TooManyMarks
        if column < limits.COLUMNS:
            self.cells[line, column] = shown
