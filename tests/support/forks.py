"""Processes of `multiprocessing` that a test waits for beside others."""

import asyncio
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess


async def ended(process: BaseProcess, within: float | None = None) -> None:
    """Wait until a process has ended, or so many seconds have passed.

    A start looks for processes that have ended, in the thread of the loop. Were this one joined in
    another thread, only one of the two would read how it ended; the other one takes it for 255.
    """
    if await asyncio.to_thread(wait, [process.sentinel], within):
        process.join()
