"""Text in delimited files that a spreadsheet program would take for a formula.

A program that opens such a file would run what another person has typed. An apostrophe in front
keeps it text; reading takes that off again, so that a table that goes out comes back as it was.
"""

from typing import Final

GUARD: Final = "'"
MARKS: Final = (GUARD, '="')
"""How a cell begins that is not shown as it stands: guarded, or a formula that yields its text."""
_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")


def guarded(text: str) -> str:
    """Text that begins like a formula, or as if it were guarded, with an apostrophe in front."""
    return f"{GUARD}{text}" if _is_formula(text.lstrip(GUARD)) else text


def unguarded(text: str) -> str:
    """The text that was guarded."""
    is_guarded = text.startswith(GUARD) and _is_formula(text.lstrip(GUARD))
    return text[len(GUARD) :] if is_guarded else text


def _is_formula(text: str) -> bool:
    return text.startswith(_STARTS)
