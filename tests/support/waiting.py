"""Waiting for what happens elsewhere, without guessing how long it takes."""

import asyncio
from collections.abc import Awaitable, Callable

FIRST_PAUSE = 0.01
LONGEST_PAUSE = 0.2
"""Seconds: where every look is a replay of the run, looking all the time would be all the work."""


async def eventually(
    happened: Callable[[], Awaitable[bool]], *, seconds: float = 60, pause: float | None = None
) -> None:
    """Ask again and again.

    Args:
        happened: What is waited for.
        seconds: How long at most: what a busy machine may take.
        pause: Seconds between two questions; None: short ones first, then longer ones.

    Raises:
        TimeoutError: It has not happened in time.
    """
    wait = FIRST_PAUSE if pause is None else pause
    async with asyncio.timeout(seconds):
        while not await happened():
            await asyncio.sleep(wait)
            if pause is None:
                wait = min(1.5 * wait, LONGEST_PAUSE)
