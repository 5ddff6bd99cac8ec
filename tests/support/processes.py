"""Processes of docflow as an operator starts and watches them."""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]


async def start(settings: Mapping[str, str], *arguments: str) -> Process:
    """`docflow ...` with these settings and no others."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "workers.cli", *arguments),
        cwd=ROOT,
        env=dict(settings),
        stdout=PIPE,
        stderr=PIPE,
    )


async def says(process: Process, text: bytes) -> None:
    """Wait until its log says something."""
    assert process.stderr is not None
    async with asyncio.timeout(120):
        while text not in (line := await process.stderr.readline()):
            assert line, f"ended with {await process.wait()} before it said {text!r}"
