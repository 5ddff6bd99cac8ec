"""What many failures have in common: their reason without the names that it quotes."""

import hashlib
import re
from typing import Final

ANY_NAME: Final = "…"
"""Stands for the name of a file."""
_NAME: Final = re.compile(r"""(?<!\w)(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")(?!\w)""")
"""As reasons quote it; an apostrophe within a word is none."""
_DIGITS: Final = 16


def cause_of(reason: str) -> str:
    """A reason without the names that it quotes: the same for all files of one cause."""
    return _NAME.sub(ANY_NAME, reason)


def cause_key(kind: str, reason: str) -> str:
    """What names a cause in addresses and commands.

    Args:
        kind: What tells apart runs that are answered differently, as their queue.
        reason: Why one of them waits.
    """
    return hashlib.sha256(f"{kind}\n{cause_of(reason)}".encode()).hexdigest()[:_DIGITS]
