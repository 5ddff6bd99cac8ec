"""`make bench-transfers`: what transfers cost, on one machine.

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
from benchmarks.transfers import beside, events, files, routes

PARTS = ("files", "events", "beside", "routes")


async def measure(part: str, folder: Path, options: argparse.Namespace) -> Table:
    """One part."""
    match part:
        case "files":
            return await files.large(folder, options.megabytes, options.rounds)
        case "events":
            return await events.events(folder, options.events, options.rounds)
        case "beside":
            return await beside.beside(folder, options.burst, options.singles, options.limit)
        case _:
            return routes.look_ups()


async def run(parts: Sequence[str], options: argparse.Namespace) -> None:
    """Run the parts that were asked for, each with servers of its own."""
    print(f"## Transfers\n\n{machine.describe()}", flush=True)
    for part in parts:
        with tempfile.TemporaryDirectory(prefix="docflow-bench-") as name:
            table = await measure(part, Path(name), options)
            print(table.markdown(), flush=True)


def main(arguments: Sequence[str]) -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.transfers", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} [all]")
    parser.add_argument("--rounds", type=int, default=3, help="figures are medians [3]")
    parser.add_argument("--megabytes", type=int, default=1_024, help="of the part files [1024]")
    parser.add_argument("--events", type=int, default=1_000, help="of the part events [1000]")
    parser.add_argument("--burst", type=int, default=10_000, help="of the part beside [10000]")
    parser.add_argument("--singles", type=int, default=40, help="of the part beside [40]")
    parser.add_argument(
        "--limit", type=float, default=1_800, help="seconds for all of the part beside [1800]"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="once, and little of all: whether it works",
    )
    options = parser.parse_args(arguments)
    if options.quick:
        options.rounds, options.megabytes, options.events = 1, 16, 40
        options.burst, options.singles = 400, 10
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"unknown part {', '.join(sorted(unknown))}; known are {', '.join(PARTS)}")
    asyncio.run(run(options.parts or PARTS, options))


if __name__ == "__main__":
    main(sys.argv[1:])
