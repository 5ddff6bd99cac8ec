"""How lists write the names of people."""

import re
from typing import Final

from domain.tabular.rows import Cell

_NO_NAME: Final = re.compile(r"\s*(?:[-\u2010-\u2015\u2212]+|\.)\s*")
_SUFFIX: Final = re.compile(r"(?:jr|sr|jun|sen|[ivx]+|ph\.? ?d|m\.? ?d|esq)\.?", re.IGNORECASE)


def stored_name(cell: Cell) -> Cell:
    """A name; None if only a dash or a dot stands in its place."""
    return None if isinstance(cell, str) and _NO_NAME.fullmatch(cell) else cell


def given_and_family(cell: Cell) -> tuple[Cell, Cell]:
    """First and last name of `Ferreira, Jo\u00e3o`; another text is one name, the last."""
    if not isinstance(cell, str) or cell.count(",") != 1:
        return None, cell
    family, given = map(str.strip, cell.split(","))
    if not family or not given or _SUFFIX.fullmatch(given):
        return None, cell
    return given, family
