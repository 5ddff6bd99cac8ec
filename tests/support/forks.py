"""Processes of `multiprocessing` that a test waits for beside others, and kills.

They are forks of one server, which has loaded what workers need: an interpreter for each of some
hundred workers that are killed would take longer than all they do.
"""

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final, Self, TypeAlias

from stack.children import die_with_parent

Output: TypeAlias = "Path | Connection"
FORKS: Final = get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        "workers.shared.cli.app",
        "workers.shared.worker_factory",
        *(f"workers.{word}.register" for word in ("imports", "spreadsheets", "batches", "jobs")),
        "workers.transfers.register",
        "workers.shared.resources",
        "activities.imports.rows",
        "activities.spreadsheets.rows",
        "sqlalchemy.ext.asyncio",
        "asyncpg",
    ]
)


async def ended(process: BaseProcess, within: float | None = None) -> None:
    """Wait until a process has ended, or so many seconds have passed.

    A start looks for processes that have ended, in the thread of the loop. Were this one joined in
    another thread, only one of the two would read how it ended; the other one takes it for 255.
    """
    if await asyncio.to_thread(wait, [process.sentinel], within):
        process.join()


class Docflow:
    """A process of docflow, with what a process of asyncio has.

    Args:
        arguments: Of the command.
        environment: Its own.
        outputs: What takes stdout and stderr: a file to append to, or the end of a pipe.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        outputs: tuple[Output, Output],
    ) -> None:
        self._process = FORKS.Process(target=_docflow, args=(arguments, dict(environment), outputs))
        self._process.start()
        self.kill, self.terminate = self._process.kill, self._process.terminate

    @property
    def pid(self) -> int:
        """Its id."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Its exit code; negative: the signal that ended it; None: it runs."""
        return self._process.exitcode

    async def wait(self) -> int | None:
        """Wait for its end."""
        await ended(self._process)
        return self.returncode


class PipedDocflow(Docflow):
    """A process of docflow whose output a test reads while it runs."""

    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader

    @classmethod
    async def start(cls, arguments: Sequence[str], environment: Mapping[str, str]) -> Self:
        """Start it."""
        pipes = [FORKS.Pipe(duplex=False) for _ in range(2)]
        process = cls(arguments, environment, (pipes[0][1], pipes[1][1]))
        for _, writer in pipes:
            writer.close()
        process.stdout, process.stderr = [await _stream(reader) for reader, _ in pipes]
        return process

    def send_signal(self, number: int) -> None:
        """Send a signal, which it must not have ended before."""
        os.kill(self.pid, number)

    async def communicate(self) -> tuple[bytes, bytes]:
        """What it says on stdout and stderr until it has ended."""
        output, errors = await asyncio.gather(self.stdout.read(), self.stderr.read())
        await self.wait()
        return output, errors


async def _stream(reader: Connection) -> asyncio.StreamReader:
    stream = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    # Its end closes the connection.
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stream), reader)
    return stream


def to_log(log: Path) -> None:
    """Let what this process says go to a file."""
    _direct((log, log))


def _direct(outputs: tuple[Output, Output]) -> None:
    for stream, output in zip((sys.stdout, sys.stderr), outputs, strict=True):
        with output.open("ab") if isinstance(output, Path) else output as file:
            os.dup2(file.fileno(), stream.fileno())


def _docflow(
    arguments: Sequence[str], environment: Mapping[str, str], outputs: tuple[Output, Output]
) -> None:
    from workers.shared.cli import main

    die_with_parent()
    os.setsid()
    _direct(outputs)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["docflow", *arguments]
    main()
