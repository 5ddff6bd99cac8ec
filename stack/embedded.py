"""Everything docflow needs, on loopback ports, in one folder."""

import asyncio
import http.client
import os
import secrets
import sys
import urllib.request
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType

from botocore.exceptions import BotoCoreError, ClientError

from adapters.aws.session import AwsSettings, open_aws
from adapters.database.engine import open_database
from adapters.database.schema import upgrade
from stack.batch_times import BATCH_TIMES
from stack.children import StackError, free_port, listens
from stack.loader_function import Installation, install
from stack.ministack import ministack_at, ministack_part, remove_packages
from stack.parts import DOCFLOW, Part
from stack.ports import take_ports
from stack.postgres import postgres_at, postgres_part
from stack.sample_club import SampleClub, sample_club
from stack.supervision import Keeper, supervised
from stack.temporal import TemporalServer, server_at, temporal_part
from workers.shared.gateway.http.auth import mint_token
from workers.shared.services.identity import ADMIN, acting_user
from workers.shared.settings.gateway import TokenSettings

QUEUE = "import-queue"
JOB_QUEUE = "job-queue"
TIERS = {
    "DOCFLOW_BRONZE_CONTAINER": "bronze",
    "DOCFLOW_SILVER_CONTAINER": "silver",
    "DOCFLOW_GOLD_CONTAINER": "gold",
}
"""Setting to container of spatial data."""


@dataclass(frozen=True)
class EmbeddedStack:
    """A running stack."""

    folder: Path
    temporal: TemporalServer
    settings: Mapping[str, str]
    """The environment variables that point docflow at this stack."""
    ports: Mapping[str, int]
    """Those of its parts, by name."""
    keepers: Sequence[Keeper]
    """What keeps its parts running."""
    club: SampleClub
    """What the database holds for spreadsheets to refer to."""
    aws: AwsSettings
    """The way to MiniStack."""
    installed: Installation
    """What stands there for all batches."""

    @property
    def health_url(self) -> str:
        """Address of the worker's health endpoints."""
        return f"http://127.0.0.1:{self.ports['health']}"

    @property
    def gateway_url(self) -> str:
        """Address of the pages and the HTTP API."""
        return f"http://127.0.0.1:{self.ports['gateway']}"

    def token(self, subject: str = "developer") -> str:
        """A token with all roles for the sample club, valid for 30 days."""
        return mint_token(
            TokenSettings.read(self.settings),
            subject=subject,
            organisations=[self.club.organisation_id],
            roles=[ADMIN],
            lasts=timedelta(days=30),
        )

    def sign_in_url(self) -> str:
        """A page that signs a browser in."""
        return f"{self.gateway_url}/sign-in#token={self.token()}"

    async def keep_working(self) -> None:
        """Wait until it is cancelled; meanwhile every part that ends is started again."""
        # Only what is a defect ends a keeper.
        await asyncio.gather(*(asyncio.shield(keeper.task) for keeper in self.keepers))

    @property
    def environment(self) -> dict[str, str]:
        """This process's environment with the stack's settings."""
        return {**os.environ, **self.settings}


def service_bus_part(
    folder: Path, port: int, queues: Sequence[str], messages: Path | None = None
) -> Part:
    """The Service Bus emulator; the way to it is `service_bus_at`.

    Args:
        folder: Where its log goes.
        port: Where it listens.
        queues: As `python -m emulators.service_bus --queue` takes them.
        messages: A file that keeps the messages; None: they live in memory.
    """
    command = [sys.executable, "-m", "emulators.service_bus", "--port", str(port)]
    for queue in queues:
        command += ["--queue", queue]
    if messages is not None:
        command += ["--messages", str(messages)]
    log = folder / "service-bus.log"
    return Part("the Service Bus emulator", command, [port], log, lambda: listens(port))


def service_bus_at(port: int) -> str:
    """Connection string of an emulator on this machine."""
    return (
        f"Endpoint=sb://127.0.0.1:{port};SharedAccessKeyName=docflow;"
        "SharedAccessKey=docflow;UseDevelopmentEmulator=true;"
    )


@asynccontextmanager
async def service_bus(folder: Path, queues: Sequence[str]) -> AsyncGenerator[str]:
    """The Service Bus emulator in a process of its own, on a free port.

    Args:
        folder: Where its log goes.
        queues: As `python -m emulators.service_bus --queue` takes them.

    Yields:
        Its connection string.
    """
    port = free_port()
    async with service_bus_part(folder, port, queues).ready():
        yield service_bus_at(port)


@asynccontextmanager
async def embedded_stack(
    folder: Path,
    *,
    announce: Callable[[str], None],
    patient: bool = False,
    temporal_port: int | None = None,
    ui_port: int | None = None,
    gateway_port: int | None = None,
    preferred_ports: Mapping[str, int] = MappingProxyType({}),
    with_partners: bool = False,
    settings: Mapping[str, str] | None = None,
) -> AsyncGenerator[EmbeddedStack]:
    """Temporal with its Web UI, PostgreSQL, the Service Bus emulator, MiniStack, a blob folder, a
    worker for every pipeline and a gateway.

    Everything durable lies in `folder`, and the ports too: a stack that is started there again
    continues with both. What batches have built on MiniStack lives in memory. Every part that ends
    is started again, whenever that is.

    Args:
        folder: Created when missing.
        announce: Gets what becomes of parts and ports.
        patient: Wait for a part that fails at each start.
        temporal_port: That of the last start when None, or a free one.
        ui_port: That of the last start when None, or a free one.
        gateway_port: That of the last start when None, or a free one.
        preferred_ports: Ports of a first start by part, if they are free.
        with_partners: Files are carried too, between folders of the stack's.
        settings: Further settings for worker and gateway.

    Raises:
        StackError: A port is taken, a program is not installed, or a part fails at each start.
    """
    folder = folder.resolve()
    ports = take_ports(
        folder / "ports.json",
        {
            "temporal": temporal_port,
            "ui": ui_port,
            "gateway": gateway_port,
            "health": None,
            "service-bus": None,
            "ministack": None,
            "postgres": None,
        },
        announce,
        preferred_ports,
    )
    async with AsyncExitStack() as stack:

        async def start(*parts: Part) -> list[Keeper]:
            """Side by side: most of a start is loading libraries."""
            keepers = [
                await stack.enter_async_context(supervised(part, announce, patient=patient))
                for part in parts
            ]
            for keeper in keepers:
                await keeper.until_up()
            return keepers

        aws = ministack_at(ports["ministack"])
        installing = _Installing(aws, f"127.0.0.1:{ports['temporal']}")
        stack.callback(remove_packages, folder)
        temporal = temporal_part(folder / "temporal", ports["temporal"], ports["ui"])
        password = _own_key(folder / "postgres.key")
        keepers = await start(
            temporal,
            postgres_part(folder, ports["postgres"], password),
            service_bus_part(
                folder,
                ports["service-bus"],
                [f"{name}:lock=30,max=10" for name in (QUEUE, JOB_QUEUE)],
                folder / "service-bus.db",
            ),
            installing.after(ministack_part(folder, ports["ministack"])),
        )
        server = server_at(ports["temporal"], ports["ui"], temporal.log)
        pointers = {
            "TEMPORAL_ADDRESS": server.address,
            "TEMPORAL_UI_ADDRESS": server.ui_url or "",
            "AZURE_SERVICE_BUS_CONNECTION_STRING": service_bus_at(ports["service-bus"]),
            "AZURE_SERVICE_BUS_QUEUE_NAME": QUEUE,
            "DOCFLOW_BLOB_FOLDER": str(folder / "blobs"),
            "AZURE_STORAGE_CONTAINER_NAME": "imports",
            "DOCFLOW_JOBS_QUEUE": JOB_QUEUE,
            **TIERS,
            "DATABASE_URL": postgres_at(ports["postgres"], password),
            "DOCFLOW_SCRATCH": str(folder / "scratch"),
            "DOCFLOW_JWT_KEY": _own_key(folder / "jwt.key"),
            "DOCFLOW_PUBLIC_URL": f"http://127.0.0.1:{ports['gateway']}",
            **batch_pointers(aws, installing.installed),
            **BATCH_TIMES,
            **(carrying_pointers(folder) if with_partners else {}),
            **(settings or {}),
        }
        for tier in TIERS.values():
            (folder / "blobs" / tier).mkdir(parents=True, exist_ok=True)
        await upgrade(pointers["DATABASE_URL"])
        async with open_database(pointers["DATABASE_URL"]) as database:
            club = await sample_club(database)
        environment = {**os.environ, **pointers}
        keepers += await start(
            worker_part(folder, environment, ports["health"]),
            gateway_part(folder, environment, ports["gateway"]),
        )
        running = EmbeddedStack(
            folder, server, pointers, ports, keepers, club, aws, installing.installed
        )
        # Commands that source the settings are logged in.
        pointers["DOCFLOW_ADDRESS"] = running.gateway_url
        pointers["DOCFLOW_TOKEN"] = running.token(acting_user(os.environ))
        yield running


class _Installing:
    """Makes what all batches share, after each start of MiniStack, which keeps nothing.

    Args:
        aws: The way to MiniStack.
        temporal_address: Where the functions of batches find Temporal.
    """

    def __init__(self, aws: AwsSettings, temporal_address: str) -> None:
        self._aws = aws
        self._temporal_address = temporal_address
        self._installed: Installation | None = None

    @property
    def installed(self) -> Installation:
        """What was made; the same after each start."""
        assert self._installed is not None, "MiniStack has not been up"
        return self._installed

    def after(self, part: Part) -> Part:
        """MiniStack, which is up only with what was made there."""

        async def is_up() -> bool:
            return await part.is_up() and await self._install()

        return replace(part, is_up=is_up)

    async def _install(self) -> bool:
        """Make it.

        Returns:
            Whether it was made; not when MiniStack ends meanwhile.

        Raises:
            StackError: MiniStack refuses it.
        """
        try:
            self._installed = await install_on(self._aws, self._temporal_address)
        except BotoCoreError:
            return False
        except ClientError as error:
            raise StackError(f"MiniStack refuses what batches need: {error}") from error
        return True


def aws_pointers(aws: AwsSettings) -> dict[str, str]:
    """The environment variables that point at MiniStack."""
    return {
        "AWS_REGION": aws.region,
        "AWS_ENDPOINT_URL": aws.endpoint_url or "",
        "AWS_ACCESS_KEY_ID": aws.access_key_id or "",
        "AWS_SECRET_ACCESS_KEY": aws.secret_access_key or "",
    }


def carrying_pointers(folder: Path) -> dict[str, str]:
    """The environment variables that let a worker carry files between folders of partners.

    Args:
        folder: Of the stack; its file of job settings is made with no job in it, when missing.
    """
    settings, partners = folder / "jobsettings.json", folder / "partners"
    partners.mkdir(exist_ok=True)
    if not settings.exists():
        settings.write_text('{"Version": 1, "Jobs": []}\n')
    return {
        "DOCFLOW_TRANSFERS_SETTINGS": str(settings),
        "DOCFLOW_TRANSFERS_FOLDERS": str(partners),
        "DOCFLOW_TRANSFERS_LOCAL": "true",
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
    """A secret of this stack; made once, so that what it protects outlives a restart."""
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
    """A worker of one process, with its bridge."""
    options = ["--with-bridge", "--health-port", str(health_port)]
    arguments = ["worker", pipeline, *options]
    return docflow_part("worker", arguments, health_port, folder, environment)


def gateway_part(folder: Path, environment: Mapping[str, str], port: int) -> Part:
    """A gateway."""
    arguments = ["gateway", "--host", "127.0.0.1", "--port", str(port)]
    return docflow_part("gateway", arguments, port, folder, environment)


def docflow_part(
    name: str, arguments: Sequence[str], port: int, folder: Path, environment: Mapping[str, str]
) -> Part:
    """A process of docflow that reports on its port when it is ready; NAME.log is its log."""
    url = f"http://127.0.0.1:{port}/health/ready"
    return Part(
        f"the {name}",
        [*DOCFLOW, *arguments],
        [port],
        folder / f"{name}.log",
        lambda: asyncio.to_thread(is_ready, url),
        environment,
    )


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
    except (http.client.HTTPException, OSError):
        # Not up yet, or killed in the middle of its answer.
        return False
