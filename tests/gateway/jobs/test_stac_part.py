"""The gateway serves the catalogue beside jobs."""

import httpx
import pytest
from fastapi import FastAPI
from temporalio.testing import WorkflowEnvironment

from tests.support.gateway import TOKENS, token
from workers.jobs.pages import open_part
from workers.shared.gateway.http.auth import Tokens
from workers.shared.register import Context
from workers.shared.resources import Resources

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_the_part_of_jobs_serves_the_catalogue_at_the_public_address(
    temporal: WorkflowEnvironment, resources: Resources
) -> None:
    environment = {
        "DOCFLOW_BLOB_FOLDER": str(resources.scratch.parent / "blobs"),
        "DOCFLOW_PUBLIC_URL": "https://docflow.example.org",
    }
    part = open_part(Context(environment, temporal.client, resources), None)
    app = FastAPI()
    app.state.tokens = Tokens(TOKENS)
    for router in part.routers:
        app.include_router(router)
    headers = {"authorization": f"Bearer {token()}"}
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(
        transport=transport, base_url="http://inside", headers=headers
    ) as client:
        landing = (await client.get("/api/stac")).json()
        assert (await client.get("/api/stac/collections")).status_code == 200
    addresses = [link["href"] for link in landing["links"]]
    assert "https://docflow.example.org/api/stac/search" in addresses
