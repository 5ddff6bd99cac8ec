"""The `docflow` command inside the process of a test."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import typer
from typer.testing import CliRunner, Result

from workers.shared.cli.app import app
from workers.shared.cli.context import CliContext


def _commands() -> Iterator[tuple[str, ...]]:
    def walk(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        for name, child in getattr(command, "commands", {}).items():
            yield from walk(child, (*path, name))
        if not hasattr(command, "commands"):
            yield path

    yield from walk(typer.main.get_command(app), ())


COMMANDS = tuple(_commands())
"""Every command of the program, as the words that it is called by."""

SETTINGS: Mapping[str, str] = {
    "AZURE_SERVICE_BUS_CONNECTION_STRING": "Endpoint=sb://127.0.0.1;UseDevelopmentEmulator=true",
    "DOCFLOW_BLOB_FOLDER": "/nowhere",
    "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/docflow",
    "USER": "ada",
}


def run_docflow(*arguments: str, context: CliContext | None = None) -> Result:
    """Run a command whose output goes to a pipe, whatever terminal the tests were started from."""
    # readline sets both for every process that it is loaded into, and the next one inherits them.
    runner = CliRunner(env={"COLUMNS": None, "LINES": None})
    return runner.invoke(app, arguments, obj=context, prog_name="docflow")


async def run_docflow_in_thread(*arguments: str, context: CliContext | None = None) -> Result:
    """Run a command beside the event loop of a test that serves it.

    It changes stdout of the whole process until it ends, so its end is waited for even when the
    test has no more time.
    """
    running = asyncio.ensure_future(asyncio.to_thread(run_docflow, *arguments, context=context))
    try:
        return await asyncio.shield(running)
    finally:
        await running


@dataclass(frozen=True)
class Terminal:
    """A person with the settings of an installation, at the commands of one pipeline."""

    pipeline: ClassVar[str]
    environment: Mapping[str, str]

    async def try_docflow(self, *arguments: str) -> Result:
        """Run `docflow PIPELINE ...`."""
        context = CliContext(self.environment)
        return await run_docflow_in_thread(self.pipeline, *arguments, context=context)

    async def docflow(self, *arguments: str) -> str:
        """Run a command that works."""
        done = await self.try_docflow(*arguments)
        assert done.exit_code == 0, done.output
        return done.stdout

    async def refused(self, *arguments: str) -> str:
        """Run a command that is refused, in one line, or in one for each wrong setting."""
        done = await self.try_docflow(*arguments)
        assert done.exit_code != 0, done.output
        lines = done.stderr.splitlines()
        assert len(lines) == 1 or all("setting: " in line for line in lines), done.stderr
        return done.stderr

    async def json(self, *arguments: str) -> Any:
        """What a command prints for programs."""
        return json.loads(await self.docflow(*arguments, "--json"))
