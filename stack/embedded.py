"""Everything docflow needs, on free loopback ports, in one folder."""

import asyncio
import os
import secrets
import sys
import urllib.error
import urllib.request
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import NoReturn

from adapters.aws.session import AwsSettings, open_aws
from adapters.database import open_database, upgrade
from stack.children import child, free_port, require_free, wait_for_port, wait_until
from stack.loader_function import Installation, install
from stack.ministack import ministack
from stack.sample_club import SampleClub, sample_club
from stack.temporal import TemporalServer, temporal_server
from workers.gateway.http.auth import mint_token
from workers.services.identity import IMPORTER, OPERATOR
from workers.settings.gateway import TokenSettings

QUEUE = "import-queue"
DOCFLOW = (sys.executable, "-m", "workers.cli")


@dataclass(frozen=True)
class Part:
    """A process of docflow that reports when it is ready."""

    name: str
    """Also of its log."""
    arguments: Sequence[str]
    port: int
    """The log that reports it."""
    folder: Path
    environment: Mapping[str, str]

    def started(self) -> AbstractAsyncContextManager[Process]:
        """The process, at its very beginning.

        Raises:
            StackError: Its port is taken.
        """
        require_free(self.port)
        return child([*DOCFLOW, *self.arguments], self._log, self.environment)

    async def until_ready(self, process: Process) -> None:
        """Wait for it.

        Raises:
            StackError: It does not get ready.
        """
        url = f"http://127.0.0.1:{self.port}/health/ready"
        await wait_until(
            lambda: asyncio.to_thread(is_ready, url), process, f"the {self.name}", self._log
        )

    @asynccontextmanager
    async def ready(self) -> AsyncGenerator[Process]:
        """The process, once it is ready.

        Raises:
            StackError: It does not get ready.
        """
        async with self.started() as process:
            await self.until_ready(process)
            yield process

    @property
    def _log(self) -> Path:
        return self.folder / f"{self.name}.log"


@dataclass(frozen=True)
class EmbeddedStack:
    """A running stack."""

    folder: Path
    temporal: TemporalServer
    settings: Mapping[str, str]
    """The environment variables that point docflow at this stack."""
    parts: tuple[Part, Part]
    """Worker and gateway."""
    processes: Sequence[Process]
    """Those that run them from the beginning."""
    club: SampleClub
    """What the database holds for spreadsheets to refer to."""
    aws: AwsSettings
    """The way to MiniStack."""
    installed: Installation
    """What stands there for all batches."""

    @property
    def health_url(self) -> str:
        """Address of the worker's health endpoints."""
        return f"http://127.0.0.1:{self.parts[0].port}"

    @property
    def gateway_url(self) -> str:
        """Address of the pages and the HTTP API."""
        return f"http://127.0.0.1:{self.parts[1].port}"

    def token(self, subject: str = "developer") -> str:
        """A token with all roles for the sample club, valid for 30 days."""
        return mint_token(
            TokenSettings.read(self.settings),
            subject=subject,
            organisations=[self.club.organisation_id],
            roles=[IMPORTER, OPERATOR],
            lasts=timedelta(days=30),
        )

    def sign_in_url(self) -> str:
        """A page that signs a browser in."""
        return f"{self.gateway_url}/sign-in#token={self.token()}"

    async def keep_working(self, announce: Callable[[str], None]) -> None:
        """Start worker and gateway again whenever one ends, as a supervisor does in production.

        Runs until it is cancelled.

        Raises:
            StackError: One does not start again.
        """

        async with AsyncExitStack() as stack:
            keepers = [
                asyncio.create_task(_keep(part, process, announce))
                for part, process in zip(self.parts, self.processes, strict=True)
            ]
            stack.push_async_callback(_stop_all, keepers)
            await asyncio.gather(*keepers)

    @property
    def environment(self) -> dict[str, str]:
        """This process's environment with the stack's settings."""
        return {**os.environ, **self.settings}


async def _keep(part: Part, process: Process, announce: Callable[[str], None]) -> NoReturn:
    code = await process.wait()
    while True:
        announce(f"the {part.name} ended with {code}; starting it again")
        async with part.ready() as again:
            code = await again.wait()


async def _stop_all(keepers: Sequence[asyncio.Task[NoReturn]]) -> None:
    for keeper in keepers:
        keeper.cancel()
    await asyncio.gather(*keepers, return_exceptions=True)


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
    gateway_port: int | None = None,
    settings: Mapping[str, str] | None = None,
) -> AsyncGenerator[EmbeddedStack]:
    """Temporal with its Web UI, the Service Bus emulator, MiniStack, SQLite, a blob folder, a
    worker for every pipeline and a gateway.

    Everything durable lies in `folder`; a stack that is started there again continues with it.
    Messages, and whatever is built on MiniStack, live in memory.

    Args:
        folder: Created when missing.
        database_url: Another database than the folder's SQLite file.
        temporal_port: A free one when None.
        ui_port: A free one when None.
        gateway_port: A free one when None.
        settings: Further settings for worker and gateway.

    Raises:
        StackError: A port is taken, or a part did not start.
    """
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    # Before anything starts: another server on the port would answer in place of ours.
    for port in filter(None, (temporal_port, ui_port, gateway_port)):
        require_free(port)
    gateway_port, health_port = gateway_port or free_port(), free_port()
    async with AsyncExitStack() as stack:
        starts = (
            asyncio.create_task(
                stack.enter_async_context(
                    temporal_server(folder / "temporal", port=temporal_port, ui_port=ui_port)
                )
            ),
            asyncio.create_task(
                stack.enter_async_context(service_bus(folder, [f"{QUEUE}:lock=30,max=10"]))
            ),
            asyncio.create_task(stack.enter_async_context(ministack(folder))),
        )
        # When one fails, none is still on its way: all that are up are stopped.
        await asyncio.gather(*starts, return_exceptions=True)
        temporal, queue, aws = starts[0].result(), starts[1].result(), starts[2].result()
        installed = await install_on(aws, temporal.address)
        pointers = {
            "TEMPORAL_ADDRESS": temporal.address,
            "TEMPORAL_UI_ADDRESS": temporal.ui_url or "",
            "AZURE_SERVICE_BUS_CONNECTION_STRING": queue,
            "AZURE_SERVICE_BUS_QUEUE_NAME": QUEUE,
            "DOCFLOW_BLOB_FOLDER": str(folder / "blobs"),
            "AZURE_STORAGE_CONTAINER_NAME": "imports",
            "DATABASE_URL": database_url or f"sqlite:///{folder / 'docflow.db'}",
            "DOCFLOW_SCRATCH": str(folder / "scratch"),
            "DOCFLOW_JWT_KEY": _own_key(folder / "jwt.key"),
            "DOCFLOW_PUBLIC_URL": f"http://127.0.0.1:{gateway_port}",
            **batch_pointers(aws, installed),
            **(settings or {}),
        }
        await upgrade(pointers["DATABASE_URL"])
        async with open_database(pointers["DATABASE_URL"]) as database:
            club = await sample_club(database)
        environment = {**os.environ, **pointers}
        parts = (
            worker_part(folder, environment, health_port),
            gateway_part(folder, environment, gateway_port),
        )
        # Side by side: most of a start is loading libraries.
        processes = [await stack.enter_async_context(part.started()) for part in parts]
        for part, process in zip(parts, processes, strict=True):
            await part.until_ready(process)
        yield EmbeddedStack(folder, temporal, pointers, parts, processes, club, aws, installed)


def aws_pointers(aws: AwsSettings) -> dict[str, str]:
    """The environment variables that point at MiniStack."""
    return {
        "AWS_REGION": aws.region,
        "AWS_ENDPOINT_URL": aws.endpoint_url or "",
        "AWS_ACCESS_KEY_ID": aws.access_key_id or "",
        "AWS_SECRET_ACCESS_KEY": aws.secret_access_key or "",
    }


def batch_pointers(aws: AwsSettings, installed: Installation) -> dict[str, str]:
    """The environment variables that let a worker build batches there."""
    return {
        **aws_pointers(aws),
        "DOCFLOW_BATCH_TOPIC_ARN": installed.topic_arn,
        "DOCFLOW_BATCH_SOURCE_FUNCTION": installed.source_function,
        "DOCFLOW_CASE_EVENTS_QUEUE_URL": installed.case_events_queue_url,
    }


async def install_on(aws: AwsSettings, temporal_address: str) -> Installation:
    """Make what all batches share; their functions find Temporal at the address."""
    environment = {**aws_pointers(aws), "TEMPORAL_ADDRESS": temporal_address}
    async with open_aws(aws) as clients:
        return await install(clients, environment)


def _own_key(file: Path) -> str:
    """The key that signs this stack's tokens; made once, so that they outlive a restart."""
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return file.read_text()
    with os.fdopen(descriptor, "w") as opened:
        key = secrets.token_urlsafe(32)
        opened.write(key)
    return key


def worker_part(
    folder: Path, environment: Mapping[str, str], health_port: int, pipeline: str = "all"
) -> Part:
    """A worker with its bridge."""
    arguments = ["worker", pipeline, "--with-bridge", "--health-port", str(health_port)]
    return Part("worker", arguments, health_port, folder, environment)


def gateway_part(folder: Path, environment: Mapping[str, str], port: int) -> Part:
    """A gateway."""
    arguments = ["gateway", "--host", "127.0.0.1", "--port", str(port)]
    return Part("gateway", arguments, port, folder, environment)


def worker_process(
    folder: Path, environment: Mapping[str, str], health_port: int
) -> AbstractAsyncContextManager[Process]:
    """A worker for imports with its bridge, in a process of its own, once it is ready.

    Raises:
        StackError: It does not get ready.
    """
    return worker_part(folder, environment, health_port, "imports").ready()


def is_ready(url: str) -> bool:
    """Whether a health endpoint answers with 200."""
    try:
        with urllib.request.urlopen(url, timeout=5) as response:  # noqa: S310 - our own loopback
            return response.status == 200
    except (urllib.error.HTTPError, urllib.error.URLError, ConnectionError):
        return False
