"""A gateway with transfers; no worker carries any out."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import time

import httpx
import pytest_asyncio
from fastapi import FastAPI
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from activities.shared.errands import Errands
from activities.transfers.operators_files import Clocks
from activities.transfers.partner_store import SqlPartnerStore
from activities.transfers.store import SqlRouteStore, SqlTransferStore
from activities.transfers.watch_store import SqlExpectedStore, SqlWatchStore
from adapters.database.runs import SqlRuns
from tests.gateway.test_commands import Terminal
from tests.support.gateway import TOKENS, served, session_of, token
from workers.shared.gateway.app import create_app
from workers.shared.gateway.http.auth import Tokens
from workers.shared.gateway.http.requests import COOKIE, csrf_token
from workers.shared.register import Context
from workers.shared.resources import Resources
from workers.shared.services.errands import errands_of
from workers.shared.services.inbox import Inbox
from workers.shared.services.kept import kept_services
from workers.shared.services.readiness import Readiness
from workers.shared.settings.gateway import GatewaySettings
from workers.transfers.clocks import ClockService
from workers.transfers.factory import transfer_service
from workers.transfers.pages import part_of
from workers.transfers.partners import PartnerRecords
from workers.transfers.redrive import Redrives
from workers.transfers.register import NAME, TRANSFERS
from workers.transfers.routes import RouteService
from workers.transfers.service import TransferService
from workflows.shared.errand_workflow import Errand
from workflows.transfers.watches import Expectation, Watch

WATCH = Watch(name="acme-orders", partner="acme", path="out/*.csv", account_id="TMS001")
EXPECTED = Expectation(name="orders", queue="jobs", deadline=time(6))


@dataclass(frozen=True)
class TransferGateway:
    """A gateway, and the rows behind it."""

    app: FastAPI
    store: SqlTransferStore
    routes: SqlRouteStore
    service: TransferService
    client: Client
    resources: Resources

    def api(self, *roles: str) -> httpx.AsyncClient:
        """A program with a token of these roles; an operator's without."""
        headers = {"Authorization": f"Bearer {token('olga', 1, *(roles or ('operator',)))}"}
        return self._client(headers)

    async def browser(self, *roles: str) -> tuple[httpx.AsyncClient, Mapping[str, str]]:
        """A browser of a person with these roles, an operator's without; what its forms carry."""
        session = await session_of(self.app, token("olga", 1, *(roles or ("operator",))))
        return self._client({"cookie": f"{COOKIE}={session}"}), {"csrf": csrf_token(session)}

    def _client(self, headers: Mapping[str, str]) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(app=self.app)
        return httpx.AsyncClient(transport=transport, base_url="http://docflow", headers=headers)


@pytest_asyncio.fixture(loop_scope="session")
async def transfers(
    temporal: WorkflowEnvironment, resources: Resources
) -> AsyncIterator[TransferGateway]:
    store, routes = SqlTransferStore(resources.database), SqlRouteStore(resources.database)
    client, database = temporal.client, resources.database
    partners = SqlPartnerStore(database)
    service = transfer_service({}, client, database)
    part = part_of(
        service,
        RouteService(routes, store, ["jobs", "jobstmsroute"]),
        Redrives(service, lambda: resources.blobs),
        {
            PartnerRecords: PartnerRecords(partners),
            ClockService: ClockService(
                client,
                Clocks({WATCH.name: WATCH}, {EXPECTED.name: EXPECTED}),
                SqlWatchStore(database),
                SqlExpectedStore(database),
            ),
        },
    )
    app = create_app(
        {NAME: part},
        Inbox(temporal.client, SqlRuns(resources.database)),
        resources.database,
        Readiness(()),
        Tokens(TOKENS),
        GatewaySettings(tokens=TOKENS, allowed_hosts=("*",), requests_per_minute=0),
        shared=kept_services(Context({}, client, resources)),
    )
    yield TransferGateway(app, store, routes, service, client, resources)
    for rule in await routes.rules():
        await routes.remove(rule.queue, rule.rule, None)
    for partner in await partners.all():
        await partners.remove(partner.name)


@pytest_asyncio.fixture(loop_scope="session")
async def olga(transfers: TransferGateway) -> AsyncIterator[Terminal]:
    """An operator at a terminal, who may change partners as well."""
    async with served(transfers.app) as address:
        yield Terminal(address, token("olga", 1, "admin"))


@asynccontextmanager
async def errands(transfers: TransferGateway, settings: Mapping[str, str]) -> AsyncGenerator[None]:
    """A worker of transfers that does errands."""
    context = Context(settings, transfers.client, transfers.resources)
    do = Errands(errands_of(context, TRANSFERS, None)).carry_out
    async with Worker(
        transfers.client, task_queue=TRANSFERS.task_queue, workflows=[Errand], activities=[do]
    ):
        yield
