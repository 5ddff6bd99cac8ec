"""How often keys occur in a file."""

from collections.abc import Sequence
from typing import Protocol


class KeyOccurrences(Protocol):
    """Counts the occurrences of keys in the order of a file."""

    def add(self, keys: Sequence[str], lines: Sequence[int]) -> list[tuple[int, int]]:
        """Take the next keys of the file.

        Args:
            keys: Keys in the order of the file; no lone surrogates.
            lines: Line of each, rising within and across calls.

        Returns:
            For each key which occurrence it is, from 1, and the line of the first.
        """
        ...

    def close(self) -> None:
        """Release what the keys occupy; a second call does nothing."""
        ...
