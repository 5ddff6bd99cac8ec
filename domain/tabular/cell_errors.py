"""Texts that stand for a value that could not be shown, or for the value of another row."""

import re
from collections.abc import Sequence
from typing import Final

from domain.tabular.fields import ColumnKind

_ERRORS: Final = frozenset(
    (
        *("#N/A", "#NAME?", "#REF!", "#VALUE!", "#DIV/0!", "#NULL!", "#NUM!", "#SPILL!", "#CALC!"),
        *("#FIELD!", "#BLOCKED!", "#CONNECT!", "#BUSY!", "#UNKNOWN!", "#GETTING_DATA", "#ERROR!"),
        *("#NV", "#BEZUG!", "#WERT!", "#ZAHL!", "#\u00dcBERLAUF!"),
        *("#VALEUR!", "#NOM?", "#NOMBRE!", "#NUL!"),
        *("Err:502", "Err:504", "Err:508", "Err:509", "Err:511", "Err:519", "Err:522"),
    )
)
"""What a spreadsheet shows in the place of a formula's result; in German and French as well."""
_SCIENTIFIC: Final = re.compile(r"[0-9](?:[.,][0-9]+)?[eE]\+[0-9]{2,3}")
"""How a spreadsheet shows, and writes into text files, a long number: without its last digits."""
_MONTH: Final = (
    "Jan|Feb|Mar|Mrz|Apr|May|Mai|Jun|Jul|Aug|Sep|Oct|Okt|Nov|Dec|Dez"
    "|janv|f\u00e9vr|mars|avr|juin|juil|ao\u00fbt|sept|d\u00e9c"
)
_MONTHS: Final = tuple(_MONTH.split("|"))
_DAY: Final = re.compile(rf"[0-9]{{1,2}}(?:-|\. )(?:{_MONTH})|(?:{_MONTH})[- ][0-9]{{2}}")
"""What a spreadsheet makes of a code that looks like a date, `3/4` or `2-1`, in text files."""
_DITTO: Final = frozenset(
    spelling
    for mark in (
        *('"', "''", "\u201c", "\u201d", "\u201e", "\u2033", "\u3003", "\u00bb", "\u00ab"),
        *('-"-', '- " -', '\u2013"\u2013', "-\u201d-", "-''-", '--"--'),
        *("dto", "dto.", "dito", "ditto", "do.", "idem", "as above", "same as above"),
        *("s.o.", "s. o.", "siehe oben", "wie oben", "wie vor"),
    )
    for spelling in (mark, mark.upper(), mark.capitalize())
)
"""What people write for the code of the row above."""
_TOO_NARROW: Final = re.compile(r"#{3,}")
"""What a spreadsheet shows, and writes into text files, where a column is too narrow."""


def may_be_error(texts: Sequence[str], joined: str, kind: ColumnKind) -> bool:
    """Whether one of many texts may be such a text; quick if none is.

    Args:
        texts: The texts.
        joined: All of them in one.
        kind: Kind of their column.
    """
    if "#" in joined or "Err:" in joined or "+" in joined:
        return True
    if kind is not ColumnKind.CODE:
        return False
    # Most codes name no month, and to search for words is quicker than for a pattern.
    names_month = not joined.isupper() and any(month in joined for month in _MONTHS)
    return (names_month and _DAY.search(joined) is not None) or not _DITTO.isdisjoint(texts)


def error_of(text: str, kind: ColumnKind) -> str | None:
    """What is wrong with a text that stands for a value that could not be shown."""
    if text in _ERRORS:
        what = "code" if kind is ColumnKind.CODE else "value"
        return f"is an error, not a {what}; correct its formula"
    if kind is ColumnKind.CODE and _SCIENTIFIC.fullmatch(text):
        return "is a number without its last digits; format the cell as text and enter it again"
    if kind is ColumnKind.CODE and _DAY.fullmatch(text):
        return "is a date that a spreadsheet has made of a code; format the cell as text"
    if kind is ColumnKind.CODE and text in _DITTO:
        return "stands for the code of the row above; write that code"
    if _TOO_NARROW.fullmatch(text):
        return "is not the value: the column was too narrow to show it when the file was written"
    return None
