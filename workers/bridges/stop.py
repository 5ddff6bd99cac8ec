"""Stop in bounded time, without losing what is in flight."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


class Stop:
    """An event that ends a run, and the deadlines that count from it."""

    def __init__(self, event: asyncio.Event) -> None:
        """Listen to `event`; `watch` must run as long as limits are to work."""
        self._event = event
        self._since: float | None = None
        self._limits: dict[asyncio.Timeout, float] = {}

    @property
    def is_set(self) -> bool:
        """Whether the stop was requested."""
        return self._event.is_set()

    async def watch(self) -> None:
        """Start the deadlines when the event is set."""
        await self._event.wait()
        self._since = asyncio.get_running_loop().time()
        for limit, grace in self._limits.items():
            limit.reschedule(self._since + grace)

    async def pause(self, seconds: float) -> bool:
        """Wait, but not beyond a stop; True: it is set."""
        try:
            await asyncio.wait_for(self._event.wait(), seconds)
        except TimeoutError:
            return False
        return True

    async def elapsed(self, grace: float) -> None:
        """Wait until `grace` seconds have passed since the stop."""
        await self._event.wait()
        await asyncio.sleep(grace)

    @asynccontextmanager
    async def deadline_after_stop(self, grace: float) -> AsyncGenerator[asyncio.Timeout]:
        """Leave the block, without an error, when `grace` seconds have passed since the stop."""
        limit = asyncio.timeout(None)
        try:
            async with limit:
                self._limits[limit] = grace
                if self._since is not None:
                    limit.reschedule(self._since + grace)
                try:
                    yield limit
                finally:
                    del self._limits[limit]
        except TimeoutError:
            if not limit.expired():
                raise
