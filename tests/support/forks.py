"""Processes of `multiprocessing` that a test waits for beside others, and kills.

They are forks of one server, which has loaded what workers need: an interpreter for each of some
hundred workers that are killed would take longer than all they do.
"""

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from multiprocessing import get_context
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final

from stack.children import die_with_parent

FORKS: Final = get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        "workers.shared.cli.app",
        "workers.shared.worker_factory",
        *(f"workers.{word}.register" for word in ("imports", "spreadsheets", "batches", "jobs")),
        "workers.transfers.register",
        "workers.shared.resources",
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
        log: Takes its output.
        environment: Its own.
    """

    def __init__(self, arguments: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        self._process = FORKS.Process(target=_docflow, args=(arguments, log, dict(environment)))
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


def to_log(log: Path) -> None:
    """Let what this process says go to a file."""
    with log.open("ab") as file:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(file.fileno(), stream.fileno())


def _docflow(arguments: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
    from workers.shared.cli import main

    die_with_parent()
    os.setsid()
    to_log(log)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["docflow", *arguments]
    main()
