"""`make bench`: what imports cost, in ratios of one run on one machine.

It prints markdown and asserts nothing. Name parts to run only these.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import documents, machine
from benchmarks.stack import open_servers

PARTS = ("documents", "latency", "rows", "bridge")


async def _documents(folder: Path, options: argparse.Namespace) -> None:
    for store, in_memory in (("in memory", True), ("in a file", False)):
        if options.store in (store.split()[-1], "both"):
            async with open_servers(folder / store, in_memory=in_memory) as servers:
                table = await documents.compare(servers, options.documents, options.rounds, store)
            print(table.markdown(), flush=True)


async def run(options: argparse.Namespace) -> None:
    """Run the parts that were asked for."""
    print(f"## Imports\n\n{machine.describe()}", flush=True)
    with tempfile.TemporaryDirectory(prefix="docflow-bench-") as name:
        folder = Path(name)
        if "documents" in options.parts:
            await _documents(folder, options)


def main(arguments: Sequence[str]) -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="make bench ARGS=...", description=__doc__)
    parser.add_argument("parts", nargs="*", help=", ".join(PARTS))
    parser.add_argument("--documents", type=int, default=1000, help="of a round")
    parser.add_argument("--rounds", type=int, default=3, help="figures are medians")
    parser.add_argument("--store", choices=("memory", "file", "both"), default="both")
    options = parser.parse_args(arguments)
    options.parts = options.parts or PARTS
    asyncio.run(run(options))


if __name__ == "__main__":
    main(sys.argv[1:])
