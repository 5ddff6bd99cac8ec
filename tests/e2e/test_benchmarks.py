"""A little of the benchmarks that have a quick way, to see that they work."""

import sys
from asyncio.subprocess import PIPE, create_subprocess_exec

import pytest


@pytest.mark.chaos
@pytest.mark.parametrize("name", ["processes", "status", "transfers"])
async def test_a_benchmark_works(name: str) -> None:
    parts = ["routes"] if name == "transfers" else []
    process = await create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks", name, "--quick", *parts), stdout=PIPE
    )
    output, _ = await process.communicate()
    assert process.returncode == 0
    assert b"\n### " in output and b"\n|---|" in output
