"""Cells that only say that there is nothing to say: `n/a`, `-`, `NULL`.

They count as blank in columns of numbers, dates, codes and choices, never in names and free texts,
unless the field knows the text as one of its values, as `NA` is Namibia.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from domain.spreadsheets.fields import CellKind, SheetField
from domain.tabular.fields import normalise
from domain.tabular.rows import Cell

_SIGNS: Final = re.compile(r"[\s\-\u2010-\u2015\u2212_./\\?*\u2026\u00b7\u2022]+")
_WORDS: Final = frozenset(
    (
        *("n/a", "#n/a", "n.a.", "n. a.", "na", "not available", "not applicable", "not known"),
        *("not given", "unknown", "none", "(none)", "nil", "null", "(null)", "<null>", "nan"),
        *("(blank)", "tbd", "tba", "undefined", "k.a.", "k. a.", "k/a", "keine angabe", "\\n"),
        *("ohne angabe", "unbekannt", "nicht bekannt", "nicht angegeben", "nicht vorhanden"),
        *("(leer)", "inconnu", "sans objet", "sconosciuto", "desconocido", "onbekend", "n.v.t."),
    )
)


def says_nothing(text: str, field: SheetField | None = None) -> bool:
    """Whether a text only says that a value is not there.

    Args:
        text: Of a cell.
        field: Field of its column; None: that is not known.
    """
    bare = text.strip().casefold()
    if bare not in _WORDS and not _SIGNS.fullmatch(bare):
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
