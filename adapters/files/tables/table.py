"""What every table reader returns."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from domain.tabular.rows import Cell, Merge

Row = tuple[int, list[Cell]]
"""Line number, from 1, and cells without trailing blanks."""


@dataclass(slots=True)
class Table:
    """One table of a file, to be read once; a `TableSource`."""

    format: str
    sheet: str | None
    encoding: str | None
    _rows: Iterator[Row]
    delimiter: str | None = None
    date1904: bool = False
    merges: list[Merge] = field(default_factory=list[Merge])

    def rows(self) -> Iterator[Row]:
        """Rows that hold anything, each with its line number as the user's program shows it."""
        return self._rows
