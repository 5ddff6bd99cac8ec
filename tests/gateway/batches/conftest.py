"""A gateway with batches."""

from collections.abc import Mapping
from dataclasses import dataclass

import httpx
import pytest_asyncio
from fastapi import FastAPI
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment

from adapters.database.engine import Database
from adapters.database.runs import SqlRuns
from tests.support.gateway import TOKENS, session_of, token
from workers.batches.pages import open_part
from workers.batches.register import NAME
from workers.shared.gateway.app import create_app
from workers.shared.gateway.http.auth import Tokens
from workers.shared.gateway.http.requests import COOKIE, csrf_token
from workers.shared.register import Context
from workers.shared.resources import Resources
from workers.shared.services.inbox import Inbox
from workers.shared.services.kept import kept_services
from workers.shared.services.readiness import Readiness
from workers.shared.settings.gateway import GatewaySettings


@dataclass(frozen=True)
class BatchGateway:
    """A gateway, and what stands behind it."""

    app: FastAPI
    client: Client
    database: Database

    def program(self, *roles: str) -> httpx.AsyncClient:
        """A program with these roles, an operator's without."""
        return httpx.AsyncClient(
            transport=httpx.ASGITransport(app=self.app),
            base_url="http://docflow",
            headers={"authorization": f"Bearer {token('olga', 1, *(roles or ('operator',)))}"},
        )

    async def browser(self, *roles: str) -> tuple[httpx.AsyncClient, Mapping[str, str]]:
        """A browser of a person with these roles, an operator's without; what its forms carry."""
        session = await session_of(self.app, token("olga", 1, *(roles or ("operator",))))
        client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app=self.app),
            base_url="http://docflow",
            headers={"cookie": f"{COOKIE}={session}"},
        )
        return client, {"csrf": csrf_token(session)}


def gateway_of(context: Context) -> BatchGateway:
    """A gateway with batches alone."""
    database = context.resources.database
    app = create_app(
        {NAME: open_part(context, None)},
        Inbox(context.client, SqlRuns(database)),
        database,
        Readiness(()),
        Tokens(TOKENS),
        GatewaySettings(tokens=TOKENS, allowed_hosts=("*",), requests_per_minute=0),
        shared=kept_services(context),
    )
    return BatchGateway(app, context.client, database)


@pytest_asyncio.fixture(loop_scope="session")
async def gateway(temporal: WorkflowEnvironment, resources: Resources) -> BatchGateway:
    return gateway_of(Context({}, temporal.client, resources))
