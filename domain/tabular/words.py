"""Words by which a key shows that its row is a total or the foot of a page: two closed lists."""

import re
from collections.abc import Collection
from functools import lru_cache
from typing import Final

from domain.tabular.fields import normalise
from domain.tabular.habits import CURRENCIES

_TOTALS: Final = (
    r"(?:sub ?totals?|totals?|sum|summe|summen|gesamt|gesamtsumme|gesamtergebnis|ergebnis"
    r"|zwischensumme|endsumme|teilsumme|teilergebnis|sous ?total|somme|suma|subtotaal|totaal"
    r"|totale|total general|total generale|ubertrag|carried forward|brought forward|\u03c3)"
)
_TOTAL: Final = re.compile(
    r"(?:(?:grand|overall|final|running|page|sheet|section|group|net|gross|project|report|general"
    rf"|cumulative|end|sum) )*{_TOTALS}(?: (?:{'|'.join(sorted(CURRENCIES))}|amount|cost|costs"
    r"|quantity|qty|price|sum|betrag|menge|netto|brutto|net|gross|general|generale))?"
)
_FOOTER: Final = re.compile(
    r"(?:page|seite|blatt|pagina|pag|sheet) [0-9]+(?: ?(?:of|von|de|di|sur|aus)? ?[0-9]+)?"
)
_NUMBER: Final = re.compile(r"[0-9]+")
_PARTS: Final = (
    *("tota", "sum", "somme", "ergebnis", "gesamt", "bertrag", "forward", "\u03c3"),
    *("page", "seite", "blatt", "pag", "sheet"),
)
"""Each text of the two lists holds one of them."""
_LONGEST: Final = 60


def may_hold_words(texts: Collection[str]) -> bool:
    """Return whether a text may stand in one of the lists; quick if none does."""
    joined = "\n".join(texts).lower()
    return any(part in joined for part in _PARTS)


@lru_cache(maxsize=4096)
def is_totals_word(text: str) -> bool:
    """Return whether a text says "total" and nothing else: `Grand total EUR`, `Zwischensumme:`."""
    return len(text) <= _LONGEST and _TOTAL.fullmatch(normalise(text)) is not None


@lru_cache(maxsize=4096)
def footer_of(text: str) -> str | None:
    """Return a page's footer without its numbers; None: the text is something else.

    `Page 2 of 9` and `Page 3 of 9` are the same footer.
    """
    if len(text) > _LONGEST or _FOOTER.fullmatch(name := normalise(text)) is None:
        return None
    return _NUMBER.sub("#", name)
