"""Bridges at work beside a test."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Protocol

from workers.shared.bridges.consumer import BridgeTotals


class Bridge(Protocol):
    """Receives messages of any queue."""

    async def run(self, stop: asyncio.Event) -> BridgeTotals: ...


@asynccontextmanager
async def running(bridge: Bridge) -> AsyncIterator[Callable[[], Awaitable[BridgeTotals]]]:
    """A bridge at work; the yielded call stops it and says what it did."""
    stop = asyncio.Event()
    run = asyncio.create_task(bridge.run(stop))

    async def stopped() -> BridgeTotals:
        stop.set()
        return await run

    try:
        yield stopped
    finally:
        await stopped()
