"""A gateway with workers of jobs behind it."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest_asyncio
from temporalio.testing import WorkflowEnvironment

from tests.support.jobs.gateway import JobStack, open_job_stack
from workers.resources.common import Resources


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def jobs(temporal: WorkflowEnvironment, resources: Resources) -> AsyncIterator[JobStack]:
    async with AsyncExitStack() as exits:
        yield await open_job_stack(exits, temporal.client, resources)
