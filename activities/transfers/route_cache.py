"""Rules of routes, kept in memory as long as their table is the same."""

import asyncio
import time
from collections.abc import Callable, Sequence

from adapters.ports.transfers import RouteStore
from contracts.transfers import RouteRemark, RouteRule
from domain.transfers.routing import RouteTable


class RouteCache:
    """The rules, indexed; whether they have changed is asked at most every few seconds.

    Args:
        store: Where they are kept.
        seconds: For which rules hold without asking. 0: ask every time.
        clock: Seconds.
    """

    def __init__(
        self, store: RouteStore, seconds: float = 5, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._seconds = seconds
        self._clock = clock
        self._table = RouteTable(())
        self._unusable: Sequence[RouteRemark] = ()
        self._version: str | None = None
        self._asked = -float("inf")
        self._lock = asyncio.Lock()

    async def table(self) -> RouteTable:
        """The rules as they are, or were a few seconds ago.

        Raises:
            Unavailable: They cannot be read; an event is never routed by rules that may be old.
        """
        async with self._lock:
            if self._clock() - self._asked >= self._seconds:
                await self._refresh()
            return self._table

    async def unusable(self) -> Sequence[RouteRemark]:
        """Rows of which no rule can be made, as old as the table."""
        await self.table()
        return self._unusable

    def forget(self) -> None:
        """Ask again at once: a rule was changed here."""
        self._asked = -float("inf")

    async def _refresh(self) -> None:
        # The version is read first: a change in between is then seen once more, never missed.
        version = await self._store.version()
        if version != self._version:
            rules: Sequence[RouteRule] = await self._store.rules()
            self._unusable = await self._store.unusable()
            self._table = await asyncio.to_thread(RouteTable, rules)
            self._version = version
        self._asked = self._clock()
