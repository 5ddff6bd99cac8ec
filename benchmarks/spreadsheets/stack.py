"""What spreadsheet imports run on: Temporal, a database, a worker and a gateway, each a process."""

import asyncio
import os
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import httpx
import psutil
from temporalio.client import Client, WorkflowHandle

from adapters.database.engine import open_database
from adapters.database.schema import upgrade
from benchmarks.spreadsheets import workload
from benchmarks.spreadsheets.workload import ORGANISATION, Club
from stack.children import free_port
from stack.embedded import docflow_part, gateway_part
from stack.parts import Part
from stack.temporal import temporal_server
from workers.shared.connect import connect
from workers.shared.gateway.http.auth import mint_token
from workers.shared.services.identity import MAPPER
from workers.shared.settings.gateway import TokenSettings
from workflows.spreadsheets.runs import SpreadsheetResult, SpreadsheetStatus, workflow_id
from workflows.spreadsheets.spreadsheet_import import SpreadsheetImport

TIMEOUT: Final = 900.0
_LOOK_SECONDS: Final = 0.05


@dataclass(frozen=True)
class SheetStack:
    """A running stack and a person who may import for its club."""

    folder: Path
    environment: Mapping[str, str]
    client: Client
    api: httpx.AsyncClient
    worker: psutil.Process
    gateway: psutil.Process
    club: Club

    @property
    def blobs(self) -> Path:
        """Folder of the blob container."""
        return self.folder / "blobs" / "imports"

    async def upload(self, file: Path, *, auto_start: bool = False, review: bool = False) -> str:
        """Send a file to the gateway; the uuid of its import."""
        fields = {
            "importType": "EVENT_PARTICIPANT",
            "contextId": str(self.club.event_id),
            "autoStart": str(auto_start).lower(),
            "review": str(review).lower(),
        }
        with file.open("rb") as opened:
            answer = await self.api.post(
                "/api/imports", data=fields, files={"file": (file.name, opened)}
            )
        return answer.raise_for_status().json()["identifier"]

    async def until_staged(self, uuid: str) -> None:
        """Wait until every row is staged, as while a person looks at the columns."""
        handle = self.handle(uuid)

        async def is_staged() -> bool:
            return (await self.status(handle)).total is not None

        await until(is_staged)

    async def start(self, uuid: str) -> None:
        """Confirm all that matched by itself."""
        (await self.api.post(f"/api/imports/{uuid}/start")).raise_for_status()

    async def status(self, handle: WorkflowHandle[Any, Any]) -> SpreadsheetStatus:
        """The status that the run reports."""
        return await handle.query("status", result_type=SpreadsheetStatus)

    async def finished(self, uuid: str) -> SpreadsheetResult:
        """Wait for the end."""
        return await self.handle(uuid).result(rpc_timeout=timedelta(seconds=TIMEOUT))

    async def events(self, uuid: str) -> int:
        """Events of a run's history."""
        described = await self.handle(uuid).describe()
        return described.raw_description.workflow_execution_info.history_length

    def handle(self, uuid: str) -> WorkflowHandle[SpreadsheetImport, SpreadsheetResult]:
        """The run of an import."""
        return self.client.get_workflow_handle_for(SpreadsheetImport.run, workflow_id(uuid))


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    """Look until something is so."""
    async with asyncio.timeout(TIMEOUT):
        while not await is_so():
            await asyncio.sleep(_LOOK_SECONDS)


async def is_reviewed(stack: SheetStack, uuid: str) -> bool:
    """Whether all rows of a review are checked."""
    answer = await stack.api.get(f"/api/v1/uploads/{uuid}/review")
    return answer.status_code == 200 and answer.json()["is_checked"]


@asynccontextmanager
async def open_sheet_stack(
    folder: Path, database_url: str, settings: Mapping[str, str] | None = None
) -> AsyncGenerator[SheetStack]:
    """Start everything around a database, and import a few rows to warm it up.

    Args:
        folder: Blobs, logs and Temporal's file; created when missing.
        database_url: An empty database.
        settings: Further ones, for worker and gateway.
    """
    folder.mkdir(parents=True, exist_ok=True)
    await upgrade(database_url)
    async with open_database(database_url) as database:
        club = await workload.make_club(database)
    async with AsyncExitStack() as stack:
        temporal = await stack.enter_async_context(temporal_server(folder / "temporal", ui=False))
        # As installed, with bytecode: without it each process compiles what it imports.
        inherited = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        environment = {
            **inherited,
            "TEMPORAL_ADDRESS": temporal.address,
            "DOCFLOW_BLOB_FOLDER": str(folder / "blobs"),
            "AZURE_STORAGE_CONTAINER_NAME": "imports",
            "DATABASE_URL": database_url,
            "DOCFLOW_SCRATCH": str(folder / "scratch"),
            "DOCFLOW_JWT_KEY": secrets.token_urlsafe(32),
            "DOCFLOW_CREATE_PER_MINUTE": "100000",
            "DOCFLOW_REQUESTS_PER_MINUTE": "0",
            **(settings or {}),
        }
        worker = await stack.enter_async_context(worker_part(folder, environment).ready())
        port = free_port()
        gateway = await stack.enter_async_context(gateway_part(folder, environment, port).ready())
        api = await stack.enter_async_context(
            httpx.AsyncClient(
                base_url=f"http://127.0.0.1:{port}",
                headers={"Authorization": f"Bearer {_token(environment)}"},
                timeout=TIMEOUT,
            )
        )
        client = await connect(temporal.address)
        processes = psutil.Process(worker.pid), psutil.Process(gateway.pid)
        running = SheetStack(folder, environment, client, api, *processes, club)
        await _warm(running)
        yield running


def worker_part(folder: Path, environment: Mapping[str, str]) -> Part:
    """A worker for spreadsheets."""
    port = free_port()
    arguments = ["worker", "spreadsheets", "--health-port", str(port)]
    return docflow_part("worker", arguments, port, folder, environment)


def _token(environment: Mapping[str, str]) -> str:
    return mint_token(
        TokenSettings.read(environment),
        subject="bench",
        organisations=[ORGANISATION],
        roles=[MAPPER],
        lasts=timedelta(days=1),
    )


async def _warm(stack: SheetStack) -> None:
    file = stack.folder / "warm.xlsx"
    workload.write_workbook(file, workload.WARM_ROWS, tag="warm")
    await stack.finished(await stack.upload(file, auto_start=True))
