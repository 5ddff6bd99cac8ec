"""What stands in the place of a name and is none, or is not as a person has written it."""

import re
from html import unescape
from typing import Final

from domain.tabular.garbled import meant

_ENTITY: Final = re.compile(r"&(?:#[0-9]{1,6}|#x[0-9a-f]{1,5}|[a-z]{2,8});", re.IGNORECASE)
_PLACEHOLDERS: Final = frozenset(("n.n.", "n. n.", "n.n", "nn", "n n"))


def name_flaw(text: str) -> str | None:
    """Why a text is no name of a person; None: nothing speaks against it."""
    if text.isalpha() and text.isascii():
        return "stands for a name that is not known yet" if text.lower() == "nn" else None
    if any(map(str.isdigit, text)) and not any(map(str.isalpha, text)):
        return "holds no letter, and is no name"
    if text.strip().lower() in _PLACEHOLDERS:
        return "stands for a name that is not known yet"
    if "&" in text and _ENTITY.search(text):
        return f"holds a character as web pages write it; did you mean {unescape(text)!r}?"
    if (said := meant(text)) is not None:
        return f"was saved in a wrong encoding; did you mean {said!r}?"
    return None
