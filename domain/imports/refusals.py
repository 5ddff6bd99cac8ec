"""Rows of a report that come back: what was corrected goes in, what was not is refused again."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

from domain.tabular.conversion import Flaw
from domain.tabular.rows import Cell
from domain.tabular.values import readable

_MARK: Final = re.compile(r"\[([0-9a-f]{12})\]")
_MARK_CHARACTERS: Final = 14
_WHY_CHARACTERS: Final = 300
_AGAIN: Final = "came back as it was: "


def mark_of(fields: Mapping[str, Any]) -> str:
    """Recognises a row by what its columns say, however a program writes it.

    Args:
        fields: Field to the converted value, or to the cell where it could not be converted.
    """
    parts = [f"{name}={_text(fields[name])}" for name in sorted(fields) if _text(fields[name])]
    return hashlib.sha256("\x1f".join(parts).encode("utf-8", "replace")).hexdigest()[:12]


def _text(value: Any) -> str:
    match value:
        case None:
            return ""
        case Decimal():
            return format(value.normalize(), "f")
        case date():
            return value.isoformat()
        case _:
            return str(value).strip()


def unreadable_as_text(value: Any, cell: Cell) -> Any:
    """What stands for a cell in a mark: its value, or its text where it has none."""
    if not isinstance(value, Flaw):
        return value
    return cell.date() if isinstance(cell, datetime) else readable(cell, _WHY_CHARACTERS)


def marked(cells: Sequence[Cell]) -> dict[int, tuple[str, str]]:
    """The marks in a report's column that says what is wrong, and what it says.

    Returns:
        Index of the row to its mark and reason; rows without a mark are not among them.
    """
    found: dict[int, tuple[str, str]] = {}
    for i, cell in enumerate(cells):
        if not isinstance(cell, str):
            continue
        text = cell.rstrip()
        if (mark := _MARK.fullmatch(text[-_MARK_CHARACTERS:])) is not None:
            whole = text[:-_MARK_CHARACTERS].rstrip()
            why = (whole.partition(": ")[2] or whole).removeprefix(_AGAIN)
            found[i] = (mark[1], f"{_AGAIN}{why[:_WHY_CHARACTERS]}")
    return found
