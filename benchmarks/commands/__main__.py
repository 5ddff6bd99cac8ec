"""`make bench-commands`: the CPU that commands take to start, on one machine.

It prints markdown and asserts nothing. Name a command, in quotes, to run only that.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks import machine
from benchmarks.report import Table, spread
from stack.postgres import migrated_database
from stack.temporal import temporal_server

TABLES: Final = ("--version", "list", "db current")
"""Commands that ask the database, or nothing."""
TEMPORAL: Final = ("schedule reconcile", "list --state parked", "status")
"""Commands that ask Temporal, most of them the database as well."""
TARGET: Final = 0.5
"""CPU seconds of a command that asks the database."""


def cpu_seconds(command: str, environment: Mapping[str, str]) -> float:
    """CPU of one `docflow COMMAND`, from its first instruction to its end."""
    arguments = [sys.executable, "-m", "workers.shared.cli", *command.split()]
    with open(os.devnull, "wb") as nothing:
        actions = [(os.POSIX_SPAWN_DUP2, nothing.fileno(), number) for number in (1, 2)]
        child = os.posix_spawn(sys.executable, arguments, environment, file_actions=actions)
    _, _, used = os.wait4(child, 0)
    return used.ru_utime + used.ru_stime


def measure(commands: Sequence[str], environment: Mapping[str, str], rounds: int) -> Table:
    """Every command, so often."""
    table = Table("CPU of a command", ("command", "CPU, ms", "target"))
    for command in commands:
        # The first one writes bytecode, and fills the cache of the disk.
        cpu_seconds(command, environment)
        seen = [cpu_seconds(command, environment) * 1e3 for _ in range(rounds)]
        target = f"at most {TARGET * 1e3:.0f}" if command in TABLES else ""
        table.add(f"`docflow {command}`", spread(seen), target)
    return table


async def run(commands: Sequence[str], rounds: int) -> None:
    """Run the commands over an empty database and a Temporal server of their own."""
    print(f"## Commands\n\n{machine.describe()}", flush=True)
    with tempfile.TemporaryDirectory(prefix="docflow-bench-") as name:
        folder = Path(name)
        async with (
            migrated_database() as url,
            temporal_server(folder / "temporal", ui=False) as temporal,
        ):
            environment = {
                **os.environ,
                "DATABASE_URL": url,
                "TEMPORAL_ADDRESS": temporal.address,
            }
            table = await asyncio.to_thread(measure, commands, environment, rounds)
            print(table.markdown(), flush=True)


def main(arguments: Sequence[str]) -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.commands", description=__doc__)
    parser.add_argument("commands", nargs="*", metavar="COMMAND", help="[several that read]")
    parser.add_argument("--rounds", type=int, default=5, help="figures are medians [5]")
    options = parser.parse_args(arguments)
    asyncio.run(run(options.commands or (*TABLES, *TEMPORAL), options.rounds))


if __name__ == "__main__":
    main(sys.argv[1:])
