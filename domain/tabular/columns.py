"""Columns of a text table as text that databases take, without a value for each cell."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

NULL: Final = "\x1f"
"""Stands for an absent value: no cell that is read by columns holds a control character."""


class NotPlain(Exception):
    """A table, or what follows of it, is to be read row by row."""


class CellForm(Enum):
    """What is made of the text of a cell."""

    TEXT = auto()
    """Nothing."""
    DECIMAL = auto()
    """The same number with six places."""
    COMMA = auto()
    """The same for a number with a decimal comma."""
    INTEGER = auto()
    """The same whole number."""
    PADDED = auto()
    """The same whole number with ten digits, so that texts sort as numbers do."""


@dataclass(frozen=True, slots=True)
class ColumnText:
    """Where the text of one column comes from.

    Attributes:
        position: Of its column in the file; None: it has none.
        form: What is made of the cells.
        changed: Cells of which something else is made, and what; few.
        constant: The text of every row, where the file has no column.
        numbered: It holds which occurrence of its key each row is.
    """

    position: int | None
    form: CellForm = CellForm.TEXT
    changed: Mapping[str, str] = field(default_factory=dict[str, str])
    constant: str = ""
    numbered: bool = False
