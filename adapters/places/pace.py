"""Bandwidth: no more bytes a second than a partner bears."""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import contextmanager

from contracts.transfers import Limits

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


class Paces:
    """The paces of a partner's sessions.

    They outlive the sessions: many small files, each in a session of its own, pass no faster than
    one large file.
    """

    def __init__(self) -> None:
        self._free: defaultdict[tuple[str, Limits], list[Pace]] = defaultdict(list)

    @contextmanager
    def of(self, partner: str, limits: Limits) -> Generator[Pace]:
        """That of one session, for the length of the block."""
        rate = limits.bytes_per_second
        if rate is None:
            yield Pace()
            return
        free = self._free[partner, limits]
        # Each session has its part: so all of them together never pass the limit.
        pace = free.pop() if free else Pace(rate / limits.sessions)
        try:
            yield pace
        finally:
            free.append(pace)
