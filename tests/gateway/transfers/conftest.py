"""A gateway with transfers; no worker carries any out."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

import httpx
import pytest_asyncio
from fastapi import FastAPI
from temporalio.testing import WorkflowEnvironment

from adapters.database.transfers.routes import SqlRouteStore
from adapters.database.transfers.store import SqlTransferStore
from tests.support.gateway import TOKENS, token
from workers.gateway.app import create_app
from workers.gateway.http.auth import Tokens
from workers.gateway.http.csrf import csrf_token
from workers.gateway.pages.site import COOKIE
from workers.gateway.transfers.part import part_of
from workers.pipelines.transfers import NAME
from workers.resources.common import Resources
from workers.services.inbox import Inbox
from workers.services.readiness import Readiness
from workers.services.transfers.factory import transfer_service
from workers.services.transfers.routes import RouteService
from workers.services.transfers.service import TransferService
from workers.settings.gateway import GatewaySettings


@dataclass(frozen=True)
class TransferGateway:
    """A gateway, and the rows behind it."""

    app: FastAPI
    store: SqlTransferStore
    routes: SqlRouteStore
    service: TransferService

    def api(self, *roles: str) -> httpx.AsyncClient:
        """A program with a token of these roles; an operator's without."""
        headers = {"Authorization": f"Bearer {token('olga', 1, *(roles or ('operator',)))}"}
        return self._client(headers)

    def browser(self) -> tuple[httpx.AsyncClient, Mapping[str, str]]:
        """An operator's browser, and what its forms carry."""
        session = token("olga", 1, "operator")
        return self._client({"cookie": f"{COOKIE}={session}"}), {"csrf": csrf_token(session)}

    def _client(self, headers: Mapping[str, str]) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(app=self.app)
        return httpx.AsyncClient(transport=transport, base_url="http://docflow", headers=headers)


@pytest_asyncio.fixture(loop_scope="session")
async def transfers(
    temporal: WorkflowEnvironment, resources: Resources
) -> AsyncIterator[TransferGateway]:
    store, routes = SqlTransferStore(resources.database), SqlRouteStore(resources.database)
    service = transfer_service({}, temporal.client, resources.database)
    part = part_of(
        service,
        RouteService(routes, store, ["jobs", "jobstmsroute"]),
    )
    app = create_app(
        {NAME: part},
        Inbox(temporal.client),
        Readiness(()),
        Tokens(TOKENS),
        GatewaySettings(tokens=TOKENS),
    )
    yield TransferGateway(app, store, routes, service)
    for rule in await routes.rules():
        await routes.remove(rule.queue, rule.rule, None)
