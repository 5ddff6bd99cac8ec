"""The gateway over a real Temporal server, a real worker and a database on disk."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial

import pytest
import pytest_asyncio
from temporalio.testing import WorkflowEnvironment

from stack.temporal import TUNING, temporal_binary
from tests.support.dev_server import started
from tests.support.fresh_database import fresh_url
from tests.support.gateway import KEY, Stack, insert_clubs, open_stack
from workers.shared.plugin import docflow_plugin
from workers.shared.resources import Resources, open_resources
from workflows.shared import attributes


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def temporal() -> AsyncIterator[WorkflowEnvironment]:
    arguments: list[str] = []
    for value in TUNING:
        arguments += ["--dynamic-config-value", value]
    start = partial(
        WorkflowEnvironment.start_local,
        dev_server_existing_path=temporal_binary(),
        dev_server_extra_args=arguments,
        search_attributes=attributes.ALL,
        plugins=[docflow_plugin()],
    )
    environment = await started(start)
    async with environment:
        yield environment


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def resources(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Resources]:
    """What gateway and worker share, with two clubs."""
    folder = tmp_path_factory.mktemp("stack")
    url = fresh_url()
    await insert_clubs(url)
    environment = {
        "DATABASE_URL": url,
        "DOCFLOW_BLOB_FOLDER": str(folder / "blobs"),
        "DOCFLOW_SCRATCH": str(folder / "scratch"),
        "DOCFLOW_JWT_KEY": KEY,
    }
    async with open_resources(environment) as resources:
        yield resources


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def stack(temporal: WorkflowEnvironment, resources: Resources) -> AsyncIterator[Stack]:
    """A gateway with a worker behind it."""
    async with AsyncExitStack() as exits:
        yield await open_stack(exits, temporal.client, resources)
