"""What every table reader returns."""

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from adapters.ports.documents import ColumnSource
from workflows.shared.cells import Cell, Merge, SheetFacts

Row = tuple[int, list[Cell]]
"""Line number, from 1, and cells without trailing blanks."""


@dataclass(slots=True)
class Table:
    """One table of a file; a `TableSource`."""

    format: str
    sheet: str | None
    encoding: str | None
    _rows: Callable[[], Iterator[Row]]
    delimiter: str | None = None
    columns: ColumnSource | None = None
    date1904: bool = False
    merges: list[Merge] = field(default_factory=list[Merge])
    widths: dict[int, int] = field(default_factory=dict[int, int])
    hidden_columns: set[int] = field(default_factory=set[int])
    hidden_rows: "array[int]" = field(default_factory=lambda: array("I"))
    is_hidden: bool = False

    def rows(self) -> Iterator[Row]:
        """Rows that hold anything, each with its line number as the user's program shows it."""
        self.merges.clear()
        self.widths.clear()
        self.hidden_columns.clear()
        del self.hidden_rows[:]
        return self._rows()


@dataclass(frozen=True, slots=True)
class Book:
    """A file with its tables; a `TableBook`."""

    sheets: Sequence[SheetFacts]
    _table: Callable[[str], Table]

    def table(self, sheet: str | None = None) -> Table:
        """One of its sheets; the table itself where it has none."""
        return self._table(sheet or "")
