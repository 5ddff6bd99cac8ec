"""What is said about cells that are imported as they stand, and may be no names or no days."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from domain.spreadsheets.fields import SheetField
from domain.tabular.fields import ColumnKind
from domain.tabular.garbled import meant
from domain.tabular.habits import part_of_date
from domain.tabular.rows import Cell

NAMES: Final = ("FIRST_NAME", "LAST_NAME")
MARKUP: Final = "holds a code of a web page, such as &uuml;"
GARBLED: Final = "was saved in a wrong encoding"
DIGITS: Final = "is a name with digits"
INITIALS: Final = "holds initials alone"
NO_DAY: Final = "has no day; the first or last day is stored"
REMARKS: Final = (MARKUP, GARBLED, DIGITS, INITIALS, NO_DAY)
_MARKUP: Final = re.compile(r"&(?:[A-Za-z]{2,8}|#[0-9]{2,6}|#x[0-9A-Fa-f]{2,5});")
_INITIALS: Final = re.compile(r"\s*(?:[^\W\d_]\.\s*)+")


def remark_on(field: SheetField, cell: Cell) -> str | None:
    """Return what a person should look at in a cell; None: nothing."""
    if part_of_date(field.spec, cell) is not None:
        return NO_DAY
    if not isinstance(cell, str) or field.kind is not ColumnKind.TEXT:
        return None
    return remark_on_name(cell) if field.name in NAMES else _remark_on_text(cell)


def remark_on_name(text: str) -> str | None:
    """Return why a name may be none, or a wrong one; None: it looks like one."""
    if any(map(str.isdigit, text)) and not _MARKUP.search(text):
        return DIGITS
    return INITIALS if _INITIALS.fullmatch(text) else _remark_on_text(text)


def _remark_on_text(text: str) -> str | None:
    if _MARKUP.search(text):
        return MARKUP
    return None if meant(text) is None else GARBLED


def remarks_on(fields: Mapping[int, SheetField], cells: Sequence[Cell]) -> Mapping[int, str]:
    """Return what a person should look at in a row, by column.

    Args:
        fields: Field of each column, by its id, which is its place from 1.
        cells: The cells of the row.
    """
    read = ((id, each) for id, each in fields.items() if id <= len(cells))
    found = ((id, remark_on(each, cells[id - 1])) for id, each in read)
    return {id: remark for id, remark in found if remark is not None}
