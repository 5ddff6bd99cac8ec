"""Cells and rows of a table, as readers deliver them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from contracts.problems import Problem

Cell = str | int | float | bool | date | datetime | None
"""A cell as a reader returns it; dates and times are naive, as they stand in the file."""


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """A row that did not go in."""

    line: int
    cells: Sequence[Cell]
    """As read."""
    problems: Sequence[Problem]
