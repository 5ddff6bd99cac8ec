"""Text tables that can be read by columns."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from domain.tabular.columns import CellForm, ColumnText


class ColumnBlock(Protocol):
    """Some rows of a table: one line each, and as many cells in each as the header has.

    Every method raises `NotPlain` where the rows are to be read one by one.
    """

    first_line: int
    rows: int

    def top(self, rows: int) -> Sequence[tuple[str, ...]]:
        """The cells of the first rows."""
        ...

    def joined(self, position: int) -> str:
        """The distinct cells of a column, each behind a line break."""
        ...

    def distinct(self, position: int) -> Sequence[str]:
        """The distinct cells of a column."""
        ...

    def formed(self, position: int, form: CellForm) -> Sequence[tuple[str, str | None]]:
        """The distinct cells of a column, each with what is made of it; None: nothing can be."""
        ...

    def filled(self, position: int) -> int:
        """How many cells of a column are not empty."""
        ...

    def add_keys(self, key: Sequence[ColumnText]) -> bool:
        """Take the keys of the rows; whether none of them has come before, and none twice."""
        ...

    def number(self, key: Sequence[ColumnText]) -> None:
        """Count, for each row, which occurrence of its key it is in this block."""
        ...

    def lines(
        self, columns: Sequence[ColumnText], start: int, rows: int
    ) -> Iterator[Sequence[str]]:
        """Rows as lines of text from the row at `start` on, so many at a time.

        Args:
            columns: What stands in each line between tabs; behind them the line's number.
            start: Index of the first row.
            rows: How many are given together.
        """
        ...


class ColumnBlocks(Protocol):
    """A table in blocks."""

    single: bool
    """The whole table is one block; known when the first one is."""

    def blocks(self) -> Iterator[ColumnBlock]:
        """The blocks from the first on, one at a time: the next ends the one before.

        Raises:
            NotPlain: The rest is to be read row by row.
        """
        ...


class ColumnSource(Protocol):
    """Opens a table by columns."""

    def __call__(
        self, below: int, width: int, folder: Path
    ) -> AbstractContextManager[ColumnBlocks]:
        """Open it.

        Args:
            below: Lines above the first row.
            width: Cells of each row.
            folder: Scratch folder of the step.

        Raises:
            NotPlain: It is to be read row by row.
        """
        ...
