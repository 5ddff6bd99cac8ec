"""What people and programs write into a cell that has no value: one closed list.

These texts count as blank in columns of numbers, dates and codes. They never do in names and free
texts: `Null`, `None` and `N/A` may be what their writer means there. An error of a formula
(`#N/A`, `NaN`) and a value that is still to come (`tbd`) are no blanks: they are rejected.
"""

from typing import Final

from domain.tabular.fields import ColumnKind, FieldSpec, normalise
from domain.tabular.rows import Cell

BLANKS: Final = frozenset(
    (
        *("-", "--", "---", "\u2013", "\u2014", "\u2212", ".", "\u2026", "/", "\\"),
        *("?", "??", "???", "*", "_"),
        *("n/a", "na", "n.a.", "n. a.", "n.v.", "n.v.t.", "k.a.", "k. a.", "k/a"),
        *("nil", "none", "(none)", "null", "(null)", "<null>", "\\n", "(blank)", "(leer)"),
        *("not available", "not applicable", "not known", "not given", "unknown", "undefined"),
        *("keine angabe", "ohne angabe", "unbekannt", "nicht bekannt"),
        *("nicht angegeben", "nicht vorhanden", "inconnu", "sans objet", "sconosciuto"),
        *("desconocido", "onbekend"),
    )
)
"""In lower case."""
_LONGEST: Final = max(map(len, BLANKS))


def is_blank(cell: Cell, field: FieldSpec | None = None) -> bool:
    """Return whether a cell holds a text that means "no value".

    Args:
        cell: The cell.
        field: Field of its column. A name or a free text is never blank, nor is a text that the
            field knows as one of its values, as `NA` is Namibia; None: that is not known.
    """
    if not isinstance(cell, str) or len(cell) > 2 * _LONGEST or cell.strip().lower() not in BLANKS:
        return False
    if field is None:
        return True
    return field.kind is not ColumnKind.TEXT and normalise(cell) not in field.choice_of
