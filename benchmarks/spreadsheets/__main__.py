"""`make bench-spreadsheets`: what spreadsheet imports cost, on one machine.

It prints markdown and asserts nothing. Name parts to run only these.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import machine
from benchmarks.report import Table
from benchmarks.spreadsheets import gateway, grid, review, suggestions
from benchmarks.spreadsheets import pauses as sheet_pauses
from benchmarks.spreadsheets import rows as sheet_rows

PARTS = ("rows", "large", "upload", "status", "waiting", "review", "grid", "suggestions")


async def measure(part: str, folder: Path, rounds: int) -> Table:
    """One part."""
    match part:
        case "rows":
            return await sheet_rows.compare(folder, rounds)
        case "large":
            return await sheet_rows.large(folder)
        case "upload":
            return await gateway.upload(folder, rounds)
        case "status":
            return await gateway.status(folder)
        case "waiting":
            return await sheet_pauses.measure(folder)
        case "review":
            return await review.measure(folder, rounds)
        case "grid":
            return await grid.measure(folder, rounds)
        case _:
            return suggestions.measure()


async def run(parts: Sequence[str], rounds: int) -> None:
    """Run the parts that were asked for, each with servers of its own."""
    print(f"## Spreadsheets\n\n{machine.describe()}", flush=True)
    for part in parts:
        with tempfile.TemporaryDirectory(prefix="docflow-bench-") as name:
            print((await measure(part, Path(name), rounds)).markdown(), flush=True)


def main(arguments: Sequence[str]) -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spreadsheets", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} [all]")
    parser.add_argument("--rounds", type=int, default=3, help="figures are medians [3]")
    options = parser.parse_args(arguments)
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"unknown part {', '.join(sorted(unknown))}; known are {', '.join(PARTS)}")
    asyncio.run(run(options.parts or PARTS, options.rounds))


if __name__ == "__main__":
    main(sys.argv[1:])
