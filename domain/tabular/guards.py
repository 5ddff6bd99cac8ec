"""Text in delimited files that a spreadsheet program would take for a formula.

A program that opens such a file would run what another person has typed. An apostrophe in front
keeps it text; reading takes that off again, so that a table that goes out comes back as it was.
"""

from typing import Final

GUARD: Final = "'"
MARKS: Final = (GUARD, '="')
"""How a cell begins that is not shown as it stands: guarded, or a formula that yields its text."""
_STARTS: Final = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""The last four are the first four in full width, as East Asian programs take them."""
_CONTROLS: Final = ("\t", "\r", "\n")
_SKIPPED: Final = f"{GUARD} \t\r\n\v\f\xa0\u3000\ufeff"
"""What programs take off the beginning of a cell before they look at it."""


def guarded(text: str) -> str:
    """Text that begins like a formula, or as if it were guarded, with an apostrophe in front."""
    return f"{GUARD}{text}" if _is_formula(text) else text


def unguarded(text: str) -> str:
    """The text that was guarded."""
    is_guarded = text.startswith(GUARD) and _is_formula(text)
    return text[len(GUARD) :] if is_guarded else text


def _is_formula(text: str) -> bool:
    """Whether it is one, with or without guards; another guard changes nothing."""
    return text.lstrip(GUARD).startswith(_CONTROLS) or text.lstrip(_SKIPPED).startswith(_STARTS)
