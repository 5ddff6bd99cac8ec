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
from benchmarks.stack import served_environment
from stack.children import free_port
from stack.embedded import gateway_part
from stack.postgres import migrated_database
from stack.temporal import temporal_server

TABLES: Final = ("--version", "db current")
"""Commands that ask the database, or nothing."""
TEMPORAL: Final = ("setup --schedules", "doctor", "status")
"""Commands that ask Temporal, most of them the database as well."""
GATEWAY: Final = (
    *("run list", "message list", "schedule list", "context"),
    *("upload list", "batch list", "job list", "transfer list", "partner list"),
)
"""Commands that ask a gateway."""
COMPLETION: Final = "(completion)"
HELP: Final = ("--help", "run list --help", "upload --help", "worker --help", COMPLETION)
"""Help, and the completion of a name in a shell; they ask nothing."""
TARGETS: Final = {
    **dict.fromkeys(TABLES, 0.5),
    **dict.fromkeys(GATEWAY, 0.45),
    **dict.fromkeys(HELP, 0.2),
}
"""CPU seconds of a command."""


def cpu_seconds(command: str, environment: Mapping[str, str]) -> float:
    """CPU of one `docflow COMMAND`, from its first instruction to its end."""
    if command == COMPLETION:
        typed = {"COMP_WORDS": "docflow sch", "COMP_CWORD": "1"}
        environment = {**environment, **typed, "_DOCFLOW_COMPLETE": "complete_bash"}
        command = ""
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
        target = f"at most {TARGETS[command] * 1e3:.0f}" if command in TARGETS else ""
        table.add(f"`docflow {command}`", spread(seen), target)
    return table


async def run(commands: Sequence[str], rounds: int) -> None:
    """Run the commands over an empty database, a Temporal server and a gateway of their own."""
    print(f"## Commands\n\n{machine.describe()}", flush=True)
    with tempfile.TemporaryDirectory(prefix="docflow-bench-") as name:
        folder = Path(name)
        async with (
            migrated_database() as url,
            temporal_server(folder / "temporal", ui=False) as temporal,
        ):
            port = free_port()
            environment = served_environment(url, temporal.address, folder, port)
            async with gateway_part(folder, environment, port).ready():
                table = await asyncio.to_thread(measure, commands, environment, rounds)
            print(table.markdown(), flush=True)


def main(arguments: Sequence[str]) -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.commands", description=__doc__)
    parser.add_argument("commands", nargs="*", metavar="COMMAND", help="[several that read]")
    parser.add_argument("--rounds", type=int, default=5, help="figures are medians [5]")
    options = parser.parse_args(arguments)
    asyncio.run(run(options.commands or (*TABLES, *TEMPORAL, *GATEWAY, *HELP), options.rounds))


if __name__ == "__main__":
    main(sys.argv[1:])
