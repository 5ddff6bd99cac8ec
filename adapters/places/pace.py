"""Bandwidth: no more bytes a second than a partner bears."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator

_BURST_SECONDS = 0.25


class Pace:
    """Lets bytes of one session pass at a steady rate.

    Args:
        bytes_per_second: Of this session; None: no limit.
    """

    def __init__(self, bytes_per_second: float | None = None) -> None:
        self._rate = bytes_per_second
        self._due = 0.0

    async def __call__(self, size: int) -> None:
        """Account for bytes that have passed, and wait until more of them may."""
        if self._rate is None:
            return
        now = time.monotonic()
        self._due = max(self._due, now - _BURST_SECONDS) + size / self._rate
        if self._due > now:
            await asyncio.sleep(self._due - now)

    async def of(self, chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
        """The same chunks, paced."""
        async for chunk in chunks:
            await self(len(chunk))
            yield chunk
