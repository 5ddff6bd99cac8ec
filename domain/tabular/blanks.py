"""What people and programs write into a cell that has no value: one closed list.

These texts count as blank in columns of numbers, dates and codes. They never do in names and free
texts: `Null`, `None` and `N/A` may be what their writer means there. An error of a formula
(`#N/A`, `NaN`) and a value that is still to come (`tbd`) are no blanks: they are rejected.
"""

from typing import Final

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
LONGEST: Final = max(map(len, BLANKS))
SPELLINGS: Final = frozenset(
    spelling
    for blank in BLANKS
    for spelling in (blank, blank.upper(), blank.capitalize(), blank.title())
) | {"k.A.", "k. A.", "k/A"}
"""As they are usually written: cells are looked up in it quickly."""


def is_blank(cell: Cell) -> bool:
    """Return whether a cell holds a text that means "no value"."""
    return isinstance(cell, str) and len(cell) <= 2 * LONGEST and cell.strip().lower() in BLANKS
