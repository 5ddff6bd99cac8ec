"""Everything docflow needs, on free loopback ports, in one folder."""

import asyncio
import json
import os
import sys
import urllib.error
import urllib.request
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from adapters.database import upgrade
from workers.stack.children import child, free_port, wait_for_port, wait_until
from workers.stack.temporal import TemporalServer, temporal_server

QUEUE = "import-queue"
DOCFLOW = (sys.executable, "-m", "workers.cli")


@dataclass(frozen=True)
class EmbeddedStack:
    """A running stack."""

    folder: Path
    temporal: TemporalServer
    settings: Mapping[str, str]
    """The environment variables that point docflow at this stack."""
    health_port: int
    worker: Process

    @property
    def health_url(self) -> str:
        """Address of the worker's health endpoints."""
        return f"http://127.0.0.1:{self.health_port}"

    async def keep_working(self, announce: Callable[[str], None]) -> NoReturn:
        """Start the worker again whenever it ends, as a supervisor does in production.

        Raises:
            StackError: It does not start again.
        """
        code = await self.worker.wait()
        while True:
            announce(f"the worker ended with {code}; starting it again")
            async with worker_process(self.folder, self.environment, self.health_port) as process:
                code = await process.wait()

    @property
    def environment(self) -> dict[str, str]:
        """This process's environment with the stack's settings."""
        return {**os.environ, **self.settings}


@asynccontextmanager
async def service_bus(folder: Path, queues: Sequence[str]) -> AsyncGenerator[str]:
    """The Service Bus emulator in a process of its own.

    Args:
        folder: Where its log goes.
        queues: As `docflow stack service-bus --queue` takes them.

    Yields:
        Its connection string.
    """
    port, log = free_port(), folder / "service-bus.log"
    command = [*DOCFLOW, "stack", "service-bus", "--port", str(port)]
    for queue in queues:
        command += ["--queue", queue]
    async with child(command, log) as process:
        await wait_for_port(process, port, "the Service Bus emulator", log)
        yield (
            f"Endpoint=sb://127.0.0.1:{port};SharedAccessKeyName=docflow;"
            "SharedAccessKey=docflow;UseDevelopmentEmulator=true;"
        )


@asynccontextmanager
async def embedded_stack(
    folder: Path,
    *,
    database_url: str | None = None,
    temporal_port: int | None = None,
    ui_port: int | None = None,
    settings: Mapping[str, str] | None = None,
) -> AsyncGenerator[EmbeddedStack]:
    """Temporal with its Web UI, the Service Bus emulator, SQLite, a blob folder and a worker.

    Everything durable lies in `folder`; a stack that is started there again goes on with it.

    Args:
        folder: Created when missing.
        database_url: Another database than the folder's SQLite file.
        temporal_port: A free one when None.
        ui_port: A free one when None.
        settings: Further settings for the worker.

    Raises:
        StackError: A part did not start.
    """
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    async with AsyncExitStack() as stack:
        temporal = await stack.enter_async_context(
            temporal_server(folder / "temporal", port=temporal_port, ui_port=ui_port)
        )
        queue = await stack.enter_async_context(service_bus(folder, [f"{QUEUE}:lock=30,max=10"]))
        pointers = {
            "TEMPORAL_ADDRESS": temporal.address,
            "TEMPORAL_UI_ADDRESS": temporal.ui_url or "",
            "AZURE_SERVICE_BUS_CONNECTION_STRING": queue,
            "AZURE_SERVICE_BUS_QUEUE_NAME": QUEUE,
            "DOCFLOW_BLOB_FOLDER": str(folder / "blobs"),
            "AZURE_STORAGE_CONTAINER_NAME": "imports",
            "DATABASE_URL": database_url or f"sqlite:///{folder / 'docflow.db'}",
            "DOCFLOW_SCRATCH": str(folder / "scratch"),
            **(settings or {}),
        }
        await upgrade(pointers["DATABASE_URL"])
        health_port = free_port()
        process = await stack.enter_async_context(
            worker_process(folder, {**os.environ, **pointers}, health_port)
        )
        yield EmbeddedStack(folder, temporal, pointers, health_port, process)


@asynccontextmanager
async def worker_process(
    folder: Path, environment: Mapping[str, str], health_port: int
) -> AsyncGenerator[Process]:
    """A worker with its bridge, in a process of its own, once it is ready.

    Raises:
        StackError: It does not get ready.
    """
    log = folder / "worker.log"
    command = [*DOCFLOW, "worker", "imports", "--with-bridge", "--health-port", str(health_port)]
    async with child(command, log, environment) as process:
        ready = f"http://127.0.0.1:{health_port}/health/ready"
        await wait_until(lambda: asyncio.to_thread(_is_ready, ready), process, "the worker", log)
        yield process


def _is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as response:  # noqa: S310 - our own loopback
            return json.load(response)["status"] == "ready"
    except (urllib.error.HTTPError, urllib.error.URLError, ConnectionError):
        return False
