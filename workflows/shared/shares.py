"""What a column of numbers and percentages means."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from workflows.shared.cells import Cell, Signed
from workflows.shared.notations import is_percentage, number_readings_of

OddShares = Literal["signed", "bare"]
"""Cells with a percent sign, or numbers beyond 1 without one."""


@dataclass
class Shares:
    """What the cells of a column of numbers show of percentages.

    Attributes:
        signed: Cells with a percent sign.
        filled: Cells that hold something.
        is_beyond: One without a sign is a number beyond 1.
    """

    signed: int = 0
    filled: int = 0
    is_beyond: bool = False

    def add(self, cells: Sequence[Cell]) -> None:
        """Take the next cells."""
        texts = [cell for cell in cells if isinstance(cell, str)]
        if "%" in "".join(texts):
            self.signed += sum(map(is_percentage, texts))
        self.signed += sum(1 for cell in cells if isinstance(cell, Signed) and is_percentage(cell))
        self.filled += len(cells) - cells.count(None) - cells.count("")
        self.is_beyond = self.is_beyond or any(map(_is_beyond, cells))

    def merge(self, other: "Shares") -> None:
        """Take what other cells of the column show."""
        self.signed += other.signed
        self.filled += other.filled
        self.is_beyond = self.is_beyond or other.is_beyond

    @property
    def odd(self) -> OddShares | None:
        """Which cells mean something else than most of their column; None: they mean one thing."""
        if not self.signed:
            return None
        if self.filled <= 2 * self.signed:
            return "bare"
        return "signed" if self.is_beyond else None


def _is_beyond(cell: Cell) -> bool:
    if cell == "" or is_percentage(cell):
        return False
    readings = number_readings_of(cell)
    return bool(readings) and all(abs(each) > 1 for each in readings)
