"""Cells in a form that people and databases can handle, whatever the file holds."""

import math
import re
from collections.abc import Sequence
from datetime import date, datetime
from typing import Final

from domain.tabular.rows import Cell

CELL_CHARACTERS: Final = 32_767
"""What a cell of a spreadsheet can hold."""

FORBIDDEN: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
"""No database text and no spreadsheet holds these; tabs and line breaks are not among them."""
_DIGITS_BEFORE_EXPONENT: Final = 15
_LARGEST_INTEGER: Final = 10**40


def shown_number(value: float) -> float:
    """A float with the 15 digits that spreadsheet programs show: 2.3, not 2.3000000000000003."""
    shown = float(f"{value:.15g}")
    return shown if math.isfinite(shown) else value


def number_text(value: int | float) -> str:
    """A number cell as its user sees it: 1200.0 is `1200`; at most 40 digits."""
    if isinstance(value, int):
        return str(value) if abs(value) < _LARGEST_INTEGER else "a number of over 40 digits"
    if value.is_integer() and abs(value) < 10**_DIGITS_BEFORE_EXPONENT:
        return str(int(value))
    return repr(value)


def cell_text(cell: Cell) -> str:
    """A cell as text, nothing left out."""
    match cell:
        case None:
            return ""
        case str():
            return cell
        case bool():
            return "TRUE" if cell else "FALSE"
        case int() | float():
            return number_text(cell)
        case datetime():
            return cell.isoformat(" ")
        case date():
            return cell.isoformat()


def readable(cell: Cell, characters: int) -> str:
    """A cell in one line of at most so many characters, safe to store and to show."""
    if type(cell) is str and len(cell) <= characters and cell.isprintable():
        # What can be shown is safe to store as well.
        return " ".join(cell.split())
    words = FORBIDDEN.sub("\ufffd", cell_text(cell)[: 4 * characters]).split()
    line = " ".join(words)
    return line if len(line) <= characters else line[: characters - 1] + "\u2026"


def storable(cells: Sequence[Cell]) -> list[Cell]:
    """A row as read, except for what no database and no spreadsheet can hold.

    Forbidden characters are replaced by U+FFFD, texts cut to `CELL_CHARACTERS`, and numbers that
    are not finite, or beyond 40 digits, become text.
    """
    return [_storable(cell) for cell in cells]


def _storable(cell: Cell) -> Cell:
    match cell:
        case str():
            return cell if cell.isprintable() and len(cell) <= CELL_CHARACTERS else _mended(cell)
        case float() if not math.isfinite(cell):
            return repr(cell)
        case int() if abs(cell) >= _LARGEST_INTEGER:
            return number_text(cell)
        case _:
            return cell


def _mended(text: str) -> str:
    return FORBIDDEN.sub("\ufffd", text[:CELL_CHARACTERS])


def column_letters(position: int) -> str:
    """What a spreadsheet calls a column: A for 0, AA for 26."""
    letters = ""
    position += 1
    while position:
        position, rest = divmod(position - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters
