"""Cells and rows of a table, as readers deliver them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final

from contracts.problems import Problem

Cell = str | int | float | bool | date | datetime | None
"""A cell as a reader returns it; dates and times are naive, as they stand in the file."""


MEMORY_SHEET: Final = "docflow"
"""Hidden sheet of a report that keeps what was settled about its columns."""
LEFT_OUT_SHEET: Final = "left out"
"""Sheet of a report that lists the rows that are no data."""


class Uncalculated(str):
    """A formula without a result: text as it stands in the file, not a value of its cell."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class SheetFacts:
    """One worksheet of a workbook."""

    name: str
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Merge:
    """Cells that a worksheet shows as one; only the first holds a value.

    Attributes:
        first_line: Line number, from 1.
        last_line: The same as the first where only columns are merged.
        first_column: From 0.
        last_column: Included.
    """

    first_line: int
    last_line: int
    first_column: int
    last_column: int


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """A row that did not go in."""

    line: int
    cells: Sequence[Cell]
    """As read."""
    problems: Sequence[Problem]


SkippedTable = tuple[Sequence[str], Sequence[RejectedRow]]
"""Titles of a table, and its rows that are no data."""


def is_filled(cell: Cell) -> bool:
    """Whether a cell holds anything but blanks."""
    return bool(cell.strip()) if isinstance(cell, str) else cell is not None
