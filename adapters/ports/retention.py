"""Rows that are kept for a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class OldRow:
    """A row whose time is over."""

    key: tuple[Any, ...]
    """Its primary key."""
    blobs: tuple[str, ...] = ()
    """Names of blobs that nothing else names."""


class OldRows(Protocol):
    """Rows of one kind whose time is over; every method finds them by an index."""

    async def count(self, before: datetime, most: int) -> int:
        """How many there are, counted up to `most`."""
        ...

    async def due(self, before: datetime, limit: int) -> Sequence[OldRow]:
        """The oldest of them.

        Args:
            before: The moment up to which they are no longer kept.
            limit: At most so many.
        """
        ...

    async def remove(self, rows: Sequence[OldRow], before: datetime) -> int:
        """Remove rows in one transaction; one that has changed since it was read stays.

        Returns:
            How many were removed.
        """
        ...


@dataclass(frozen=True, slots=True)
class KeptRows:
    """A kind of row, and how long it is kept."""

    what: str
    """For people."""
    days: int | None
    """None: for ever."""
    rows: OldRows
