"""A little of the benchmarks that have a quick way, to see that they work."""

import sys
from asyncio.subprocess import PIPE, create_subprocess_exec

import pytest

PARTS = {"batches": ["beside"], "transfers": ["routes"]}
"""Of benchmarks whose other parts take long, or have no quick way."""


@pytest.mark.chaos(alone=True)
@pytest.mark.parametrize("name", ["batches", "status", "transfers"])
async def test_a_benchmark_works(name: str) -> None:
    parts = PARTS.get(name, [])
    process = await create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks", name, "--quick", *parts), stdout=PIPE
    )
    output, _ = await process.communicate()
    assert process.returncode == 0
    assert b"\n### " in output and b"\n|---|" in output
