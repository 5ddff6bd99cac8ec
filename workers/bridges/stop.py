"""Stopping in bounded time, without losing what is under way."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


class Stop:
    """The wish to stop, and what it cuts off."""

    def __init__(self, event: asyncio.Event) -> None:
        """Listen to `event`; `watch` must run as long as limits are to work."""
        self._event = event
        self._since: float | None = None
        self._limits: dict[asyncio.Timeout, float] = {}

    @property
    def is_set(self) -> bool:
        """Whether to stop."""
        return self._event.is_set()

    async def watch(self) -> None:
        """Set the limits in motion when the time has come."""
        await self._event.wait()
        self._since = asyncio.get_running_loop().time()
        for limit, grace in self._limits.items():
            limit.reschedule(self._since + grace)

    async def pause(self, seconds: float) -> bool:
        """Wait, but not beyond a stop; whether it came."""
        try:
            await asyncio.wait_for(self._event.wait(), seconds)
        except TimeoutError:
            return False
        return True

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
