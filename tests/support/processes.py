"""Processes of docflow as an operator starts and watches them."""

import asyncio
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from tests.support.forks import PipedDocflow

ROOT = Path(__file__).parents[2]


async def start(settings: Mapping[str, str], *arguments: str) -> PipedDocflow:
    """`docflow ...` with these settings and no others."""
    return await PipedDocflow.start(arguments, settings)


@asynccontextmanager
async def running(settings: Mapping[str, str], *arguments: str) -> AsyncIterator[PipedDocflow]:
    """`docflow ...`, which is killed where the block leaves it running."""
    process = await start(settings, *arguments)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def ends_cleanly(process: PipedDocflow, number: signal.Signals, within: float = 10) -> None:
    """Send a signal, which ends it within so many seconds, with 0 and without a traceback."""
    process.send_signal(number)
    _, errors = await asyncio.wait_for(process.communicate(), within)
    assert process.returncode == 0, errors.decode()
    assert b"Traceback" not in errors


async def says(process: Process | PipedDocflow, text: bytes) -> None:
    """Wait until its log says something."""
    assert process.stderr is not None
    async with asyncio.timeout(120):
        while text not in (line := await process.stderr.readline()):
            assert line, f"ended with {await process.wait()} before it said {text!r}"
