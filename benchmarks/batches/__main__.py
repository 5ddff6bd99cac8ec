"""`make bench-batches`: what batches cost, on one machine.

It prints markdown and asserts nothing. Name parts to run only these.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import machine
from benchmarks.batches import cases as batch_cases
from benchmarks.batches import documents, lifecycle
from benchmarks.report import Table

PARTS = ("up-and-down", "case-events", "orders", "account", "documents")


async def measure(part: str, folder: Path, rounds: int, cases: int, count: int) -> Table:
    """One part."""
    match part:
        case "up-and-down":
            return await lifecycle.compare(folder, rounds)
        case "case-events":
            return await batch_cases.events(folder)
        case "account":
            return await batch_cases.account(folder, cases)
        case "documents":
            return await documents.load(folder, count)
        case _:
            return await batch_cases.orders(folder, cases)


async def run(parts: Sequence[str], rounds: int, cases: int, count: int) -> None:
    """Run the parts that were asked for, each with servers of its own."""
    print(f"## Batches\n\n{machine.describe()}", flush=True)
    for part in parts:
        with tempfile.TemporaryDirectory(prefix="docflow-bench-") as name:
            table = await measure(part, Path(name), rounds, cases, count)
            print(table.markdown(), flush=True)


def main(arguments: Sequence[str]) -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.batches", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} [all]")
    parser.add_argument("--rounds", type=int, default=5, help="figures are medians [5]")
    parser.add_argument("--cases", type=int, default=500, help="of orders and account [500]")
    parser.add_argument("--documents", type=int, default=2_000, help="of that part [2000]")
    options = parser.parse_args(arguments)
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"unknown part {', '.join(sorted(unknown))}; known are {', '.join(PARTS)}")
    asyncio.run(run(options.parts or PARTS, options.rounds, options.cases, options.documents))


if __name__ == "__main__":
    main(sys.argv[1:])
