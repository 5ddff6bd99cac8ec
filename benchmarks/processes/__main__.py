"""`make bench-processes`: memory of a worker of imports, with its bridge and nothing to do.

It prints markdown and asserts nothing.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import psutil

from benchmarks import machine
from benchmarks.report import Table
from benchmarks.stack import open_servers
from stack.children import free_port
from stack.embedded import docflow_part

SETTLED: Final = 5.0
"""Seconds after which a worker that is ready has nothing left to do."""


async def measure(folder: Path, environment: Mapping[str, str], processes: int) -> Table:
    """Every process of one worker, itself first."""
    table = Table(
        f"A worker with --processes {processes}", ("process", "resident MB", "of its own MB")
    )
    port = free_port()
    options = ("--with-bridge", "--processes", str(processes), "--health-port", str(port))
    part = docflow_part(
        f"worker-{processes}", ["worker", "imports", *options], port, folder, environment
    )
    async with part.ready() as worker:
        await asyncio.sleep(SETTLED)
        parent = psutil.Process(worker.pid)
        for each in (parent, *parent.children(recursive=True)):
            known = each.memory_full_info()
            name = "itself" if each.pid == parent.pid else _name(each)
            table.add(name, f"{known.rss / 1e6:.0f}", f"{known.uss / 1e6:.0f}")
    return table


def _name(process: psutil.Process) -> str:
    words = process.cmdline()
    return "tracker of shared resources" if "resource_tracker" in " ".join(words) else "process"


async def run(processes: Sequence[int]) -> None:
    """Measure workers with so many processes, one after another."""
    print(f"## Processes\n\n{machine.describe()}", flush=True)
    with tempfile.TemporaryDirectory(prefix="docflow-bench-") as name:
        async with open_servers(Path(name), in_memory=True) as servers:
            for number in processes:
                table = await measure(servers.folder, servers.environment, number)
                print(table.markdown(), flush=True)


def main(arguments: Sequence[str]) -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks processes", description=__doc__)
    parser.add_argument("processes", nargs="*", type=int, metavar="N", help="of a worker [1 and 2]")
    parser.add_argument("--quick", action="store_true", help="one process alone: whether it works")
    options = parser.parse_args(arguments)
    asyncio.run(run((1,) if options.quick else options.processes or (1, 2)))


if __name__ == "__main__":
    main(sys.argv[1:])
