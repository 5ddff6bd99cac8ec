"""Words by which people and programs mark rows of a table that are not data."""

import re
from collections.abc import Collection
from enum import Enum, auto
from functools import lru_cache
from operator import itemgetter
from typing import Final

from domain.tabular.fields import normalise
from domain.tabular.habits import CURRENCIES
from domain.tabular.rows import Cell


class RowWord(Enum):
    """What the text of a cell says of its row."""

    TOTAL = auto()
    """Nothing but that it is a total: `Total`, `Grand total EUR`, `Zwischensumme:`."""
    TOTAL_OF = auto()
    """It begins as a total does, and may be the name of a thing: `Total Station`."""
    OF_TOTAL = auto()
    """It ends as a subtotal of a group does: `D-100 Total`."""
    FOOTER = auto()
    """The foot of a printed page: `Page 2 of 7`."""
    PRINTED = auto()
    """When, by what or by whom the list was made, that it ends, or a note on it."""


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
_TOTAL_OF: Final = re.compile(
    rf"(?:grand )?{_TOTALS} \w.*|(?:anzahl(?: der)?|number of|count of) [a-z]+"
)
_OF_TOTAL: Final = re.compile(rf".*\w {_TOTALS}")
_NAMED_TOTAL: Final = re.compile(
    r"\W*(?:grand )?(?:sub)?totals?\s*(?::|-\s|of\b|for\b|f\u00fcr\b)", re.IGNORECASE
)
_FOOTER: Final = re.compile(
    r"(?:page|seite|blatt|pagina|pag) [0-9]+(?: ?(?:of|von|de|di|sur|aus)? ?[0-9]+)?"
    r"|sheet [0-9]+ of [0-9]+"
)
_STARS: Final = re.compile(r"\s*\*{1,6}\s*")
"""How SAP marks totals, in the first column of its lists."""
_DASHED: Final = re.compile(r"\s*[-\u2013]+\s+[0-9]{1,4}\s+[-\u2013]+\s*")
_PRINTED: Final = re.compile(
    r"(?:printed|print date|run date|report date|date printed|gedruckt|druckdatum"
    r"|erstellt (?:am|von)|generated (?:by|on|at)|exported (?:by|on|at|from)"
    r"|end of (?:report|list|file|document|table|data)|ende der (?:liste|tabelle)"
    r"|continued on|continued from|fortsetzung (?:auf|von|seite)"
    r"|applied filters|filters applied|angewendete filter)\b.*"
    r"|(?:created (?:with|by|using)|export(?:iert)? (?:vom|am|von|from))\b.*"
    r"|(?:stand|as of|as at|erstellt|created|status|etat au|stato al)"
    r"(?: (?:am|vom|per|on|of))? [0-9]{1,4} [0-9]{1,2} [0-9]{1,4}(?: .*)?"
)
_SIGNED: Final = re.compile(
    r"(?:prepared|checked|approved|reviewed|authori[sz]ed|signed) by\b.*"
    r"|(?:gepruft|freigegeben|genehmigt|gezeichnet) (?:am|von|durch)\b.*"
    r"|(?:(?:ort|place)(?: und| and)? )?(?:date|datum)|signature|unterschrift"
)
_WEB_ADDRESS: Final = re.compile(r"\s*(?:https?://|www\.)", re.IGNORECASE)
_NOTE: Final = re.compile(
    r"\s*(?:\*+\)|(?:notes?|n\.?b\.?|remarks?|hinweise?|anmerkung(?:en)?|bemerkung(?:en)?"
    r"|stand|contact|kontakt|ansprechpartner(?:in)?|source|quelle)\s*:"
    r"|\u00a9|\(c\)\s|https?://|www\.|gez\.\s|(?-i:i\.\s?[AV]\.\s))",
    re.IGNORECASE,
)
_ANYWHERE: Final = (
    *("total", "totaal", "summe", "somme", "ergebnis", "gesamt", "bertrag"),
    *("ed forward", "ht forward", "\u03c3"),
)
_SUM: Final = re.compile(r"[\W_]sum")
_AT_BEGINNING: Final = tuple(
    f"\n{word}"
    for word in (
        *("page", "seite", "blatt", "pag", "sheet", "- ", "\u2013 ", "print", "run date"),
        *("report date", "date printed", "gedruckt", "druckdatum", "erstellt", "generated"),
        *("export", "end of", "ende der", "continued", "fortsetzung", "applied", "filters"),
        *("angewendet", "*", "prepared", "checked", "approved", "reviewed", "authori", "signed"),
        *("gepr", "freigegeben", "genehmigt", "gezeichnet", "date", "datum", "signature"),
        *("unterschrift", "note", "nb", "n.b", "remark", "hinweis", "anmerkung", "bemerkung"),
        *("stand", "as of", "as at", "created", "status", "etat au", "\u00e9tat au", "stato al"),
        *("contact", "kontakt", "ansprechpartner", "source", "quelle", "anzahl", "number of"),
        *("count of", "ort", "place", "http", "www.", "gez.", "i.", "\u00a9", "(c)"),
    )
)
_PARTS: Final = ("tota", "mme", "gebn", "samt", "rtrag", " forw", "\u03c3")
"""Each word of `_ANYWHERE` holds one of them."""
_FIRST_LETTER: Final = itemgetter(0)
_LONGEST: Final = 120


def may_hold_words(texts: Collection[str]) -> bool:
    """Whether any of these texts may be one that `word_of` knows; quick where none is."""
    joined = "\n" + "\n".join(texts).lower()
    if any(part in joined for part in _PARTS) and any(word in joined for word in _ANYWHERE):
        return True
    if "sum" in joined and _SUM.search(joined):
        return True
    first = _first_letters(texts)
    if any(word in joined for word in _AT_BEGINNING if word[1] in first):
        return True
    # What stands before the first letter does not count, except where it is the word.
    return not all(map(str.isalnum, first)) and any(
        word_of(text, in_key=True) is not None for text in texts if text and not text[0].isalnum()
    )


def _first_letters(texts: Collection[str]) -> set[str]:
    """What texts begin with, in lower case."""
    try:
        letters = set(map(_FIRST_LETTER, texts))
    except IndexError:  # an empty text
        letters = {text[0] for text in texts if text}
    return {letter.lower()[0] for letter in letters}


@lru_cache(maxsize=4096)
def word_of(text: str, *, in_key: bool = False) -> RowWord | None:
    """What a text says of its row; None: nothing.

    Args:
        text: Of one cell.
        in_key: It stands where a key is expected.
    """
    if len(text) > _LONGEST:
        return None
    if in_key and _STARS.fullmatch(text):
        return RowWord.TOTAL
    if _DASHED.fullmatch(text):
        return RowWord.FOOTER
    name = normalise(text)
    if _TOTAL.fullmatch(name) or _NAMED_TOTAL.match(text):
        return RowWord.TOTAL
    if _FOOTER.fullmatch(name):
        return RowWord.FOOTER
    if _PRINTED.fullmatch(name) or (in_key and (_SIGNED.fullmatch(name) or _NOTE.match(text))):
        return RowWord.PRINTED
    if _OF_TOTAL.fullmatch(name):
        return RowWord.OF_TOTAL
    return RowWord.TOTAL_OF if _TOTAL_OF.fullmatch(name) else None


def is_web_address(text: str) -> bool:
    """Whether a text begins as a web address does."""
    return _WEB_ADDRESS.match(text) is not None


def names_group_above(text: str, above: Cell) -> bool:
    """Whether a text that ends as a subtotal does names what the cell above it holds."""
    if above is None:
        return False
    group = normalise(str(above))
    return bool(group) and normalise(text).startswith(f"{group} ")
