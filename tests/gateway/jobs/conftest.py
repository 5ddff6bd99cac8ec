"""A gateway with workers of jobs behind it."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio
from temporalio.testing import WorkflowEnvironment

from tests.gateway.test_commands import OPERATOR, Terminal
from tests.support.fresh_database import fresh_url
from tests.support.gateway import served
from tests.support.jobs.gateway import JobStack, open_job_stack
from workers.shared.resources import Resources


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def jobs(temporal: WorkflowEnvironment, resources: Resources) -> AsyncIterator[JobStack]:
    async with AsyncExitStack() as exits:
        yield await open_job_stack(exits, temporal.client, resources)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def olga(jobs: JobStack) -> AsyncIterator[Terminal]:
    """An operator at a terminal."""
    async with served(jobs.app) as address:
        yield Terminal(address, OPERATOR)


@pytest.fixture(scope="module")
def one_url() -> str:
    """URL of an empty database for all tests of a module."""
    return fresh_url()
