"""Text from outside as part of a key."""

import hashlib
from typing import Final

from adapters.database.codec import clean

LONGEST: Final = 200
"""Characters that go into a key as they are; PostgreSQL indexes 2,704 bytes of all its columns."""


def key_text(text: str) -> str:
    """Text that stands for another in a key: the same for the same, and never too long."""
    text = clean(text)
    if len(text) <= LONGEST:
        return text
    return hashlib.sha256(text.encode()).hexdigest()
