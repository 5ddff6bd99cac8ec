"""Texts that were saved in UTF-8 and read as Western European on their way: `MÃ¼ller`."""

import re
from collections.abc import Sequence
from typing import Final, cast

from domain.tabular.rows import Cell

_SIGNS: Final = re.compile("[\u00c2-\u00c5\u00d0\u00d1\u00d8\u00d9\u00e2][^a-zA-Z \\t\\n]")

_KEPT: Final = 1_000
"""Texts of which it is said what was meant."""


def may_be_garbled(text: str) -> bool:
    """Whether a text, or one of many in it, may be such a one; quick where none is."""
    return not text.isascii() and _SIGNS.search(text) is not None


def meant(text: str) -> str | None:
    """A garbled text as it was meant; None: it is not garbled.

    Correct text in one of these encodings is valid UTF-8 only by rare chance.
    """
    if not may_be_garbled(text):
        return None
    for encoding in ("cp1252", "latin-1"):
        try:
            return text.encode(encoding).decode("utf-8")
        except UnicodeError:
            continue
    return None


class GarbledTexts:
    """Collects garbled texts of a table.

    Attributes:
        found: Each of them once, and what was meant; as many as are kept.
    """

    def __init__(self) -> None:
        self.found: dict[str, str] = {}

    def add(self, cells: Sequence[Cell]) -> None:
        """Look at the next cells of a column."""
        try:
            joined = "\n".join(cast("Sequence[str]", cells))
        except TypeError:  # a cell that is not text
            joined = "\n".join(cell for cell in cells if isinstance(cell, str))
        if not may_be_garbled(joined):
            return
        for text in dict.fromkeys(cell for cell in cells if isinstance(cell, str)):
            if len(self.found) < _KEPT and (said := meant(text)) is not None:
                self.found[text] = said
