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
from benchmarks.batches import beside, documents, lifecycle, memory
from benchmarks.batches import cases as batch_cases
from benchmarks.report import Table

PARTS = ("up-and-down", "case-events", "orders", "account", "documents", "memory", "beside")
BESIDE = 10_000
"""Documents of the large case."""
LOADED = 20_000
"""Documents while whose loading memory is looked at."""
NEW_CASES = 40
QUICK_BESIDE = 60
QUICK_NEW_CASES = 2


async def measure(
    part: str, folder: Path, rounds: int, cases: int, count: int | None, new_cases: int
) -> Table:
    """One part."""
    match part:
        case "up-and-down":
            return await lifecycle.compare(folder, rounds)
        case "case-events":
            return await batch_cases.events(folder)
        case "account":
            return await batch_cases.account(folder, cases)
        case "documents":
            return await documents.load(folder, count or 2_000)
        case "memory":
            return await memory.memory(folder, count or LOADED)
        case "beside":
            return await beside.beside(folder, count or BESIDE, new_cases)
        case _:
            return await batch_cases.orders(folder, cases)


async def run(
    parts: Sequence[str], rounds: int, cases: int, count: int | None, new_cases: int
) -> None:
    """Run the parts that were asked for, each with servers of its own."""
    print(f"## Batches\n\n{machine.describe()}", flush=True)
    for part in parts:
        with tempfile.TemporaryDirectory(prefix="docflow-bench-") as name:
            table = await measure(part, Path(name), rounds, cases, count, new_cases)
            print(table.markdown(), flush=True)


def main(arguments: Sequence[str]) -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.batches", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} [all]")
    parser.add_argument("--rounds", type=int, default=5, help="figures are medians [5]")
    parser.add_argument("--cases", type=int, default=500, help="of orders and account [500]")
    parser.add_argument(
        "--documents", type=int, help="of documents [2000], memory [20000] or beside [10000]"
    )
    parser.add_argument("--quick", action="store_true", help="beside: a little of it, once")
    options = parser.parse_args(arguments)
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"unknown part {', '.join(sorted(unknown))}; known are {', '.join(PARTS)}")
    count, new_cases = options.documents, NEW_CASES
    if options.quick:
        if options.parts != ["beside"]:
            parser.error("--quick is for beside alone")
        count, new_cases = count or QUICK_BESIDE, QUICK_NEW_CASES
    parts = options.parts or PARTS
    asyncio.run(run(parts, options.rounds, options.cases, count, new_cases))


if __name__ == "__main__":
    main(sys.argv[1:])
