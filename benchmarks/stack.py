"""The servers that benchmarks run against, and what each process of theirs costs."""

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from adapters.database.schema import upgrade
from stack.embedded import QUEUE, service_bus
from stack.postgres import postgres_server
from stack.temporal import temporal_server
from workers.shared.gateway.http.auth import mint_token
from workers.shared.settings.gateway import TokenSettings

EMPTY_QUEUE = "empty-queue"
_KEY = "a key of the benchmarks, 32 bytes long"


@dataclass(frozen=True)
class Servers:
    """Temporal, the Service Bus emulator and PostgreSQL, each a process of its own."""

    folder: Path
    database_url: str
    queue: str
    """Connection string."""
    temporal: str
    """Address."""
    processes: Mapping[str, psutil.Process]
    further: Mapping[str, str] = field(default_factory=dict[str, str])
    """Settings of what uses them."""

    @property
    def container(self) -> Path:
        """Folder of the blob container."""
        return self.folder / "blobs" / "imports"

    @property
    def environment(self) -> dict[str, str]:
        """This process's environment with what points docflow at the servers."""
        # As installed, with bytecode: without it each process compiles what it imports.
        inherited = {
            name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
        }
        return {
            **inherited,
            "TEMPORAL_ADDRESS": self.temporal,
            "AZURE_SERVICE_BUS_CONNECTION_STRING": self.queue,
            "AZURE_SERVICE_BUS_QUEUE_NAME": QUEUE,
            "DOCFLOW_BLOB_FOLDER": str(self.folder / "blobs"),
            "AZURE_STORAGE_CONTAINER_NAME": "imports",
            "DATABASE_URL": self.database_url,
            "DOCFLOW_SCRATCH": str(self.folder / "scratch"),
            **self.further,
        }


@asynccontextmanager
async def open_servers(folder: Path, *, in_memory: bool) -> AsyncGenerator[Servers]:
    """Start everything on free loopback ports.

    Args:
        folder: Blobs, logs and Temporal's file.
        in_memory: Whether Temporal keeps its state in memory rather than in that file.
    """
    async with AsyncExitStack() as stack:
        database_url = stack.enter_context(postgres_server(durable=True))
        await upgrade(database_url)
        temporal = await stack.enter_async_context(
            temporal_server(folder / "temporal", ui=False, in_memory=in_memory)
        )
        queues = [f"{name}:lock=60,max=10" for name in (QUEUE, EMPTY_QUEUE)]
        queue = await stack.enter_async_context(service_bus(folder, queues))
        (folder / "blobs" / "imports").mkdir(parents=True)
        yield Servers(
            folder,
            database_url,
            queue,
            temporal.address,
            {
                "Temporal server": _server("start-dev"),
                "emulator": _server("emulators.service_bus"),
                "PostgreSQL": _server("postgres"),
            },
        )


def _server(mark: str) -> psutil.Process:
    """The one child of ours whose command line holds a word with this ending."""
    (found,) = (
        child
        for child in psutil.Process().children()
        if any(word.endswith(mark) for word in child.cmdline())
    )
    return found


class CpuMeter:
    """CPU seconds that named processes have used, with their children, since it was made."""

    def __init__(self, processes: Mapping[str, psutil.Process]) -> None:
        self._processes = processes
        self._before = {name: _cpu(process) for name, process in processes.items()}

    def read(self) -> dict[str, float]:
        """Seconds by name."""
        return {
            name: _cpu(process) - self._before[name] for name, process in self._processes.items()
        }


def children_cpu() -> float:
    """CPU seconds of the processes below this one, those that have ended included."""
    this = psutil.Process()
    total = this.cpu_times().children_user + this.cpu_times().children_system
    for member in this.children(recursive=True):
        try:
            times = member.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def _cpu(process: psutil.Process) -> float:
    total = 0.0
    for member in (process, *process.children(recursive=True)):
        try:
            times = member.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return total


def served_environment(
    database_url: str, temporal: str, folder: Path, port: int
) -> Mapping[str, str]:
    """What a gateway on a port is told, and what a client of it is told.

    Args:
        database_url: Of an up to date database.
        temporal: Address of the Temporal server.
        folder: For blobs and scratch files.
        port: On which the gateway will listen.
    """
    signing = TokenSettings.read({"DOCFLOW_JWT_KEY": _KEY})
    token = mint_token(signing, subject="bench", organisations=[1], roles=["operator"])
    return {
        **os.environ,
        "DATABASE_URL": database_url,
        "TEMPORAL_ADDRESS": temporal,
        "DOCFLOW_BLOB_FOLDER": str(folder / "blobs"),
        "DOCFLOW_SCRATCH": str(folder / "scratch"),
        "DOCFLOW_JWT_KEY": _KEY,
        "DOCFLOW_REQUESTS_PER_MINUTE": "0",
        "DOCFLOW_ADDRESS": f"http://127.0.0.1:{port}",
        "DOCFLOW_TOKEN": token,
    }
