"""Measured programs, each in a process of its own that reports in JSON."""

import asyncio
import json
import sys
from collections.abc import Mapping
from typing import Any


class Failed(Exception):
    """A measured program ended in an error; the message is its output."""


async def measured(module: str, *arguments: str, environment: Mapping[str, str]) -> Any:
    """The JSON that `python -m benchmarks.MODULE` prints as its last line.

    Raises:
        Failed: It ended in an error.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", f"benchmarks.{module}", *arguments),
        env=dict(environment),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        output, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise Failed(f"{module} {' '.join(arguments)}: {errors.decode()[-2000:]}")
    return json.loads(output.splitlines()[-1])
