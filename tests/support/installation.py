"""Workers and gateways as processes of their own, over one database and one Temporal server."""

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from temporalio.client import Client

from stack.children import free_port
from stack.embedded import DOCFLOW
from stack.sample_club import SampleClub, sample_club
from stack.temporal import temporal_server
from tests.crash.harness import Part
from tests.support.fresh_database import fresh_url
from workers.shared.connect import connect
from workers.shared.gateway.http.auth import mint_token
from workers.shared.resources import Resources, open_resources
from workers.shared.settings.gateway import TokenSettings

_KEY = "a key of the process tests that is long enough"


@dataclass(frozen=True)
class Installation:
    """Everything that spreadsheets need, with every process in a place where it can be killed.

    Attributes:
        folder: Database, blobs, scratch and logs.
        settings: What points docflow at it all.
        workers: Of the pipeline `spreadsheets`.
        gateways: In front of them.
        addresses: Of the gateways.
        client: Of the Temporal server.
        resources: The same adapters, for looking at the outcome.
        club: What is in the database.
    """

    folder: Path
    settings: Mapping[str, str]
    workers: Sequence[Part]
    gateways: Sequence[Part]
    addresses: Sequence[str]
    client: Client
    resources: Resources
    club: SampleClub

    def person(self, gateway: int = 0, subject: str = "ada") -> httpx.AsyncClient:
        """A person of the club who uses one of the gateways."""
        token = mint_token(
            TokenSettings.read(self.settings),
            subject=subject,
            organisations=[self.club.organisation_id],
        )
        return httpx.AsyncClient(
            base_url=self.addresses[gateway],
            headers={"authorization": f"Bearer {token}"},
            timeout=60,
        )


@asynccontextmanager
async def running_installation(
    folder: Path,
    *,
    workers: int = 1,
    gateways: int = 0,
    database_url: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> AsyncGenerator[Installation]:
    """Start everything on free ports; it ends with the block.

    Args:
        folder: For all that is kept, and logs.
        workers: How many.
        gateways: How many.
        database_url: Another database than a new one.
        settings: Further settings of the processes.
    """
    async with AsyncExitStack() as stack:
        temporal = await stack.enter_async_context(
            temporal_server(folder / "temporal", ui=False, in_memory=True)
        )
        pointers = {
            "TEMPORAL_ADDRESS": temporal.address,
            "DATABASE_URL": database_url or fresh_url(),
            "DOCFLOW_BLOB_FOLDER": str(folder / "blobs"),
            "DOCFLOW_SCRATCH": str(folder / "scratch"),
            "DOCFLOW_JWT_KEY": _KEY,
            "DOCFLOW_CREATE_PER_MINUTE": "1000",
            "DOCFLOW_REQUESTS_PER_MINUTE": "0",
            **(settings or {}),
        }
        resources = await stack.enter_async_context(open_resources(pointers))
        club = await sample_club(resources.database)
        environment = {**os.environ, **pointers}
        working = [
            _part(folder, f"worker-{n}", ("worker", "spreadsheets", "--health-port"), environment)
            for n in range(workers)
        ]
        answering = [
            _part(folder, f"gateway-{n}", ("gateway", "--port"), environment)
            for n in range(gateways)
        ]
        for part in (*working, *answering):
            stack.push_async_callback(part.stop)
        await asyncio.gather(*(part.start() for part in (*working, *answering)))
        yield Installation(
            folder,
            pointers,
            working,
            answering,
            [f"http://127.0.0.1:{part.port}" for part in answering],
            await connect(temporal.address),
            resources,
            club,
        )


def _part(
    folder: Path, name: str, arguments: Sequence[str], environment: Mapping[str, str]
) -> Part:
    port = free_port()
    command = [*DOCFLOW, *arguments, str(port)]
    return Part(name, command, folder / f"{name}.log", environment, port, has_health=True)
