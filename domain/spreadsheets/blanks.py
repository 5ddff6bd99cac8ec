"""Cells of a spreadsheet that only say that there is nothing to say: `n/a`, `-`, `?`."""

from collections.abc import Iterable, Sequence

from domain.spreadsheets.fields import CellKind, SheetField
from domain.tabular.blanks import is_blank
from domain.tabular.fields import normalise
from domain.tabular.rows import Cell


def says_nothing(text: str, field: SheetField | None = None) -> bool:
    """Return whether a text only says that a value is not there.

    Args:
        text: Of a cell.
        field: Field of its column: a name or a free text is never blank, nor is a text that the
            field knows as one of its values, as `NA` is Namibia; None: that is not known.
    """
    if not is_blank(text):
        return False
    if field is not None and field.kind is CellKind.CHOICE:
        return normalise(text) not in field.spec.choice_of
    return field is None or field.kind is not CellKind.TEXT


def without_blanks(field: SheetField, cells: Sequence[Cell]) -> Sequence[Cell]:
    """The cells of a column, None for those that say nothing.

    Args:
        field: Field of the column; for one that refers to other tables its values decide.
        cells: As read.
    """
    texts = dict.fromkeys(cell for cell in cells if isinstance(cell, str))
    found = {text for text in texts if says_nothing(text, field)}
    if not found:
        return cells
    return [None if cell in found else cell for cell in cells]


def blanks_among(cells: Iterable[Cell], field: SheetField | None) -> list[str]:
    """The texts of a column that count as blank, each once, as they come."""
    texts = dict.fromkeys(cell.strip() for cell in cells if isinstance(cell, str))
    return [text for text in texts if text and says_nothing(text, field)]
