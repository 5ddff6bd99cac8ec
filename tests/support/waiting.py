"""Waiting for what happens elsewhere, without guessing how long it takes."""

import asyncio
from collections.abc import Awaitable, Callable


async def eventually(
    happened: Callable[[], Awaitable[bool]], *, seconds: float = 20, pause: float = 0.02
) -> None:
    """Ask again and again.

    Raises:
        TimeoutError: It has not happened in time.
    """
    async with asyncio.timeout(seconds):
        while not await happened():
            await asyncio.sleep(pause)
