"""`make bench`: what imports cost, in ratios of one run on one machine.

It prints markdown and asserts nothing. Name parts to run only these.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import machine
from benchmarks.imports import bridge, cancel, documents, latency, payloads, rows
from benchmarks.report import Table
from benchmarks.stack import open_servers

PARTS = ("documents", "latency", "cancel", "rows", "bridge", "payloads")


def _show(table: Table) -> None:
    print(table.markdown(), flush=True)


async def _on_servers(folder: Path, options: argparse.Namespace, *, in_memory: bool) -> None:
    """What needs Temporal; only documents depend on where its state is."""
    where = "in memory" if in_memory else "in a file"
    async with open_servers(folder / where.replace(" ", "-"), in_memory=in_memory) as servers:
        if "latency" in options.parts and not in_memory:
            _show(await latency.measure(servers, options.singly))
        if "cancel" in options.parts and not in_memory:
            _show(await cancel.measure(servers, options.singly))
        if "documents" in options.parts:
            _show(await documents.compare(servers, options.documents, options.rounds, where))
        if "bridge" in options.parts and not in_memory:
            _show(await bridge.compare(servers, options.messages, options.rounds))
        if "payloads" in options.parts and not in_memory:
            _show(await payloads.compare(servers, options.documents, options.rounds))


async def run(options: argparse.Namespace) -> None:
    """Run the parts that were asked for."""
    print(f"## Imports\n\n{machine.describe()}", flush=True)
    with tempfile.TemporaryDirectory(prefix="docflow-bench-") as name:
        folder = Path(name)
        if {"documents", "latency", "cancel", "bridge", "payloads"} & set(options.parts):
            await _on_servers(folder, options, in_memory=False)
        if "documents" in options.parts:
            await _on_servers(folder, options, in_memory=True)
        if "payloads" in options.parts:
            _show(await payloads.cost())
        if "rows" in options.parts:
            _show(await rows.compare(folder, options.rounds))
            _show(await rows.declared(folder, options.rounds))
            _show(await rows.refused(folder))
            if options.large:
                _show(await rows.large(folder))


def main(arguments: Sequence[str]) -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.imports", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} [all]")
    parser.add_argument("--rounds", type=int, default=3, help="figures are medians [3]")
    parser.add_argument("--documents", type=int, default=1000, help="of a round [1000]")
    parser.add_argument("--singly", type=int, default=30, help="documents one by one [30]")
    parser.add_argument("--messages", type=int, default=3000, help="of a round [3000]")
    parser.add_argument("--large", action="store_true", help="rows: also 500 MB of them")
    options = parser.parse_args(arguments)
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"unknown part {', '.join(sorted(unknown))}; known are {', '.join(PARTS)}")
    options.parts = options.parts or PARTS
    asyncio.run(run(options))


if __name__ == "__main__":
    main(sys.argv[1:])
