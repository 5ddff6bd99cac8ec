"""Dates that a spreadsheet program has read in the wrong order of day and month.

A program set to days before months makes 1 May of `01/05/2025` (5 January), and leaves
`01/13/2025` as text, as it can read it in no way. So a column of texts in one order, beside real
dates that could all have been read in the other one, is one whose dates are doubtful.
"""

from collections.abc import Collection, Sequence
from datetime import date
from typing import Any, Final

from domain.tabular.conversion import Flaw
from domain.tabular.notations import Notation
from domain.tabular.rows import Cell

DOUBTFUL: Final = Flaw(
    "may have day and month exchanged: texts of its column are written in the order that the "
    "program which made this a date does not read; write it as text, 2025-03-04, or name the "
    "date order in the message",
    returns=True,
)
_MONTHS: Final = 12


class DayOrder:
    """Follows the real dates of one column."""

    def __init__(self) -> None:
        self._is_doubtful = False
        self._is_sure = False

    def add(self, cells: Sequence[Cell]) -> None:
        """Take the next cells of the column."""
        if self._is_sure:
            return
        for cell in cells:
            if isinstance(cell, date) and cell.day > _MONTHS:
                self._is_sure = True
                return
            self._is_doubtful = self._is_doubtful or _may_be_exchanged(cell)

    def is_doubtful(self, texts: Collection[Notation]) -> bool:
        """Whether its dates may be exchanged.

        Args:
            texts: What the column's texts can only be read as.
        """
        return len(texts) == 1 and self._is_doubtful and not self._is_sure


def refused(cells: Sequence[Cell], values: Sequence[Any]) -> list[Any]:
    """Values of a doubtful column, its real dates refused."""
    return [
        DOUBTFUL if _may_be_exchanged(cell) and not isinstance(value, Flaw | None) else value
        for cell, value in zip(cells, values, strict=True)
    ]


def _may_be_exchanged(cell: Cell) -> bool:
    return isinstance(cell, date) and cell.day <= _MONTHS and cell.day != cell.month
