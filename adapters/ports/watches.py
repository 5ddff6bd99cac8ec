"""What watches saw, what came on queues, and what was recorded of the days of expectations.

Every method raises `Unavailable` when the database does not answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from contracts.transfers import RouteKey
from contracts.transfers.watches import ExpectedDay, SeenFile, WatchState


class WatchStore(Protocol):
    """Files as watches saw them last."""

    async def seen(self, watch: str) -> Sequence[SeenFile]:
        """Files that were there at the last look."""
        ...

    async def vanished(self, watch: str, at: datetime) -> Sequence[SeenFile]:
        """Files that were found gone at that moment."""
        ...

    async def put(self, watch: str, files: Sequence[SeenFile]) -> None:
        """Insert or replace files; key: path."""
        ...

    async def prune(self, watch: str, before: datetime) -> int:
        """Remove files that vanished before a moment; how many they were."""
        ...

    async def files(self, watch: str, limit: int, *, unsent: bool = False) -> Sequence[SeenFile]:
        """Files for people, those that vanished included, the newest first.

        Args:
            watch: Whose.
            limit: How many at most.
            unsent: Only those without an event.
        """
        ...

    async def state(self, watch: str) -> WatchState | None:
        """What its last look came to; None: there was none."""
        ...

    async def put_state(self, state: WatchState) -> None:
        """Insert or replace."""
        ...


@dataclass(frozen=True, slots=True)
class Arrival:
    """A transfer that came on a queue."""

    transfer_id: str
    at: datetime
    key: RouteKey | None
    """None: it was recorded without."""
    file: str | None


class ExpectedStore(Protocol):
    """Days of expectations, and the arrivals that they are judged by."""

    async def arrivals(
        self, queue: str, begin: datetime, end: datetime, limit: int
    ) -> Sequence[Arrival]:
        """Transfers that came on a queue, each once, by the time at which it first came there.

        Args:
            queue: Which.
            begin: Included.
            end: Not included.
            limit: How many at most.
        """
        ...

    async def days(self, name: str, limit: int) -> Sequence[ExpectedDay]:
        """What was recorded of an expectation, the newest day first."""
        ...

    async def record(self, days: Sequence[ExpectedDay]) -> None:
        """Insert or replace; key: (name, day). What a person has closed stays closed."""
        ...
