"""`make bench-jobs`: what staged jobs cost, on one machine.

It prints markdown and asserts nothing. Name parts to run only these.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import machine
from benchmarks.jobs import catalogue, hello_world, rasters, vectors
from benchmarks.report import Table

PARTS = ("grouped", "ungrouped", "beside", "rasters", "polygons", "catalogue")


async def measure(part: str, folder: Path, rounds: int) -> Table:
    """One part."""
    match part:
        case "grouped":
            return await hello_world.grouped(folder, rounds)
        case "ungrouped":
            return await hello_world.ungrouped(folder, rounds)
        case "polygons":
            return await vectors.polygons(folder, rounds)
        case "catalogue":
            return await catalogue.concurrent_writers()
        case "rasters":
            return await rasters.tiled(folder, rounds)
        case _:
            return await hello_world.beside(folder)


async def run(parts: Sequence[str], rounds: int) -> None:
    """Run the parts that were asked for, each with servers of its own."""
    print(f"## Jobs\n\n{machine.describe()}", flush=True)
    for part in parts:
        with tempfile.TemporaryDirectory(prefix="docflow-bench-") as name:
            table = await measure(part, Path(name), rounds)
            print(table.markdown(), flush=True)


def main(arguments: Sequence[str]) -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.jobs", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} [all]")
    parser.add_argument("--rounds", type=int, default=3, help="figures are medians [3]")
    options = parser.parse_args(arguments)
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"unknown part {', '.join(sorted(unknown))}; known are {', '.join(PARTS)}")
    asyncio.run(run(options.parts or PARTS, options.rounds))


if __name__ == "__main__":
    main(sys.argv[1:])
