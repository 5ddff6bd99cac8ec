"""A gateway for tests: clubs, people with tokens, spreadsheets to upload."""

import asyncio
import csv
import io
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
from fastapi import FastAPI
from fastapi.routing import APIRoute
from sqlalchemy import insert
from starlette.types import ASGIApp
from temporalio.client import Client

from adapters.database.access import SqlApiTokens
from adapters.database.engine import open_database
from adapters.database.models.base import metadata
from adapters.database.records import SqlRejectedMessages
from adapters.database.runs import SqlRuns
from adapters.files.blobs import FolderBlobs
from stack.children import child, free_port
from stack.embedded import DOCFLOW
from tests.support.waiting import eventually
from workers.shared.gateway.app import create_app, open_parts
from workers.shared.gateway.http.auth import Tokens, mint_token
from workers.shared.gateway.http.oidc import OidcProvider
from workers.shared.gateway.http.requests import COOKIE
from workers.shared.gateway.process import serve
from workers.shared.health import Health
from workers.shared.register import Context
from workers.shared.resources import Resources
from workers.shared.services.errands import PATIENCE_SECONDS
from workers.shared.services.inbox import Inbox
from workers.shared.services.kept import kept_services
from workers.shared.services.readiness import Readiness
from workers.shared.services.requirements import schema_of
from workers.shared.services.temporal_requirements import Connection, search_attributes_of
from workers.shared.settings.common import DatabaseSettings
from workers.shared.settings.connections import ConnectionSettings
from workers.shared.settings.gateway import GatewaySettings, TokenSettings
from workers.shared.settings.sign_in import read_providers
from workers.shared.worker_factory import build_worker
from workers.spreadsheets.register import SPREADSHEETS
from workers.spreadsheets.resources import spreadsheet_resources
from workers.spreadsheets.service import SpreadsheetService
from workers.spreadsheets.settings import SpreadsheetSettings
from workflows.shared.notifications import NotificationPolicies

_UPLOADED = re.compile("[0-9a-f]{32}")
KEY = "a shared key for tests, 32 bytes or more"
TOKENS = TokenSettings(key=KEY)
OURS, THEIRS, TRIED, TAUGHT = 1, 2, 3, 4
"""Organisations: what requests made up at random do to `TRIED`, and what `TAUGHT` remembers of its
files, concerns no other test."""
EVENT, THEIR_EVENT, TRIED_EVENT, TAUGHT_EVENT = 7, 8, 9, 10
JUNIOR, SENIOR, MASTERS = 42, 43, 44
CLUBS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "events": [
        {"id": EVENT, "organisation_id": OURS, "name": "City Marathon"},
        {"id": THEIR_EVENT, "organisation_id": THEIRS, "name": "Night Run"},
        {"id": TRIED_EVENT, "organisation_id": TRIED, "name": "Trial Run"},
        {"id": TAUGHT_EVENT, "organisation_id": TAUGHT, "name": "Forest Run"},
    ],
    "event_categories": [
        {"id": id + added, "event_id": event, "name": name, "spellings": "[]"}
        for event, added in ((EVENT, 0), (TRIED_EVENT, 10), (TAUGHT_EVENT, 20))
        for id, name in (
            (JUNIOR, "Junior (U18)"),
            (SENIOR, "Senior (18+)"),
            (MASTERS, "Masters (40+)"),
        )
    ],
}
HEADER = ("First name", "Last name", "Email", "Category")
STRANGE = ("First name", "Nachnahme?", "Email", "Category", "Shoe size")
"""A required field without a column, and a column without a field."""
GOOD = (
    ("Anna", "Meier", "anna@example.org", "Junior (U18)"),
    ("Ben", "Novak", "ben@example.org", "Senior (18+)"),
)
ODD = (*GOOD, ("Cleo", "Diaz", "cleo@example.org", "Kids"))
"""A category that there is not."""


async def insert_clubs(url: str) -> None:
    """Organisations with an event each."""
    async with open_database(url) as database, database.transaction() as connection:
        for name, rows in CLUBS.items():
            await connection.execute(insert(metadata.tables[name]), list(rows))


def sheet(*rows: Sequence[Any]) -> bytes:
    """A CSV file."""
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def token(
    subject: str = "anna", organisation: int = OURS, *roles: str, email: str | None = None
) -> str:
    """A token that the gateway accepts."""
    return mint_token(
        TOKENS,
        subject=subject,
        organisations=[organisation],
        roles=roles or ("mapper",),
        email=email,
    )


async def sign_in(browser: httpx.AsyncClient, bearer: str) -> str:
    """Sign a browser in with a token, as the form of the page does; the value of its session."""
    answer = await browser.post("/sign-in", data={"token": bearer})
    assert answer.status_code == 303, answer.text
    return browser.cookies[COOKIE]


async def session_of(app: FastAPI, bearer: str) -> str:
    """The value of the session cookie of somebody who has signed in with a token."""
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://docflow") as browser:
        return await sign_in(browser, bearer)


@dataclass
class Stack:
    """A gateway, and what it stands on."""

    client: Client
    resources: Resources
    app: FastAPI
    service: SpreadsheetService

    def gateway(self, *, stopping: Callable[[], bool] = lambda: False, **changes: Any) -> FastAPI:
        """Another gateway over the same database, with other settings."""
        return build_app(self.client, self.resources, stopping, **changes)[0]

    def browser(
        self,
        bearer: str | None = None,
        *,
        app: FastAPI | None = None,
        address: str | None = None,
    ) -> httpx.AsyncClient:
        """A client: of an application directly, or of a server at an address."""
        transport = None if address else httpx.ASGITransport(app or self.app)
        bearer = token() if bearer is None else bearer
        return httpx.AsyncClient(
            transport=transport,
            base_url=address or "http://gateway",
            headers={"authorization": f"Bearer {bearer}"} if bearer else {},
            timeout=60,
        )


@asynccontextmanager
async def served(
    app: ASGIApp,
    stop: asyncio.Event | None = None,
    port: int | None = None,
    connections: ConnectionSettings | None = None,
) -> AsyncIterator[str]:
    """A gateway that listens on loopback; its address."""
    stop, port = stop or asyncio.Event(), port or free_port()
    async with asyncio.TaskGroup() as group:
        group.create_task(serve(app, stop, host="127.0.0.1", port=port, settings=connections))
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            stop.set()


@asynccontextmanager
async def logged_in(folder: Path, settings: dict[str, str]) -> AsyncIterator[None]:
    """A gateway as a process, at which the commands of these settings are those of an operator."""
    port, log = free_port(), folder / "gateway.log"
    command = [*DOCFLOW, "gateway", "--port", str(port)]
    async with child(command, log, {**settings, "DOCFLOW_JWT_KEY": KEY}):
        settings["DOCFLOW_ADDRESS"] = f"http://127.0.0.1:{port}"
        settings["DOCFLOW_TOKEN"] = token("ada", OURS, "operator")

        async def answers() -> bool:
            with suppress(httpx.TransportError):
                async with httpx.AsyncClient() as client:
                    ready = await client.get(f"{settings['DOCFLOW_ADDRESS']}/health/ready")
                return ready.is_success
            return False

        await eventually(answers, seconds=60)
        yield


def _now() -> datetime:
    return datetime.now(UTC)


def build_app(
    client: Client,
    resources: Resources,
    stopping: Callable[[], bool] = lambda: False,
    **changes: Any,
) -> tuple[FastAPI, SpreadsheetService]:
    """A gateway over some resources."""
    own = SpreadsheetSettings.model_fields
    of_uploads = {name: value for name, value in changes.items() if name in own}
    uploads = SpreadsheetSettings(**{"create_per_minute": 100_000, **of_uploads})
    of_gateway = {n: value for n, value in changes.items() if n in GatewaySettings.model_fields}
    of_gateway = {
        "allowed_hosts": ("gateway",),
        "requests_per_minute": 0,
        "connections": ConnectionSettings(sign_in_attempts=0),
        **of_gateway,
    }
    settings = GatewaySettings(tokens=TOKENS, **of_gateway)
    environment = {
        "DOCFLOW_BLOB_FOLDER": str(resources.scratch.parent / "blobs"),
        "DOCFLOW_SCRATCH": str(resources.scratch),
        **changes.get("environment", {}),
    }
    context = Context(environment, client, resources)
    parts = open_parts(context, {SPREADSHEETS.name: uploads})
    app = create_app(
        parts,
        Inbox(client, SqlRuns(resources.database)),
        resources.database,
        _readiness(client, resources),
        Tokens(settings.tokens, SqlApiTokens(resources.database)),
        settings,
        shared=kept_services(context, changes.get("patience", PATIENCE_SECONDS)),
        environment=environment,
        providers=[OidcProvider(each) for each in read_providers(environment).values()],
        stopping=stopping,
        now=changes.get("now", _now),
    )
    return app, parts[SPREADSHEETS.name].service


async def unconnected_app() -> FastAPI:
    """A gateway of which nothing but its routes is wanted."""
    with TemporaryDirectory() as folder:
        database = open_database("postgresql://localhost/none")
        resources = Resources(
            database=database,
            rejected=SqlRejectedMessages(database),
            blobs=FolderBlobs(Path(folder)),
            notices={},
            policies=NotificationPolicies(),
            scratch=Path(folder) / "scratch",
        )
        client = await Client.connect("localhost:1", lazy=True)
        return build_app(client, resources)[0]


async def page_routes() -> Sequence[tuple[str, str]]:
    """Method and path of all that no document of an API describes, in the order of the routes."""
    routers = [getattr(each, "original_router", each) for each in (await unconnected_app()).routes]
    return [
        (method, route.path)
        for router in routers
        for route in getattr(router, "routes", (router,))
        if isinstance(route, APIRoute) and not route.include_in_schema
        for method in route.methods
    ]


def _readiness(client: Client, resources: Resources) -> Readiness:
    async def connected() -> Client:
        return client

    settings = DatabaseSettings(url=str(resources.database.engine.url))
    schema = schema_of(resources.database, settings)
    needed = (search_attributes_of(Connection(connected)), schema)
    return Readiness(needed, Health(ready=True))


async def open_stack(exits: AsyncExitStack, client: Client, resources: Resources) -> Stack:
    """A gateway with a worker behind it."""
    sheets = spreadsheet_resources(resources.database)
    await exits.enter_async_context(build_worker(client, SPREADSHEETS, resources, sheets))
    app, service = build_app(client, resources)
    return Stack(client, resources, app, service)


async def upload(
    browser: httpx.AsyncClient,
    content: bytes | None = None,
    *,
    filename: str = "registrations.csv",
    headers: Mapping[str, str] | None = None,
    **fields: str,
) -> httpx.Response:
    """Upload a spreadsheet of participants."""
    given = {"importType": "EVENT_PARTICIPANT", "contextId": str(EVENT), **fields}
    return await browser.post(
        "/api/imports",
        data={name: value for name, value in given.items() if value},
        files={"file": (filename, sheet(HEADER, *GOOD) if content is None else content)},
        headers=dict(headers or {}),
    )


async def import_in(
    browser: httpx.AsyncClient, state: str, content: bytes | None = None, **fields: str
) -> str:
    """Identifier of an import that has come to a state by itself."""
    answer = await upload(browser, content, **fields)
    assert answer.status_code == 201, answer.text
    uuid = answer.json()["identifier"]
    await until(browser, uuid, state)
    return uuid


async def until(browser: httpx.AsyncClient, uuid: str, state: str) -> dict[str, Any]:
    """Wait until an import is in a state; its status."""
    status: dict[str, Any] = {}

    async def there() -> bool:
        nonlocal status
        status = (await browser.get(f"/api/imports/{uuid}")).json()
        return status["status"] == state

    await eventually(there)
    return status


async def page_of(browser: httpx.AsyncClient, uuid: str) -> str:
    """The page of an import that waits for a person, once the top of its file is read."""
    page = ""

    async def is_read() -> bool:
        nonlocal page
        page = (await browser.get(f"/uploads/{uuid}")).text
        return "docflow is reading the file" not in page

    await eventually(is_read)
    return page


def uploaded_files(stack: Stack) -> set[str]:
    """Names of the blobs that were uploaded, without those that runs make of them."""
    folder = stack.resources.scratch.parent / "blobs"
    return {path.name for path in folder.rglob("*") if _UPLOADED.fullmatch(path.name)}
