"""A gateway with workers of jobs behind it."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
import pytest_asyncio
from temporalio.testing import WorkflowEnvironment

from tests.support.fresh_database import fresh_url
from tests.support.jobs.gateway import JobStack, job_types, open_job_stack
from workers.jobs import factory
from workers.jobs.service import JobService
from workers.shared.resources import Resources
from workers.shared.services.identity import OPERATOR, Identity


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def jobs(temporal: WorkflowEnvironment, resources: Resources) -> AsyncIterator[JobStack]:
    async with AsyncExitStack() as exits:
        yield await open_job_stack(exits, temporal.client, resources)


@pytest.fixture
def commands(jobs: JobStack, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands use what the workers of the tests use."""

    @asynccontextmanager
    async def open_service(
        environment: Mapping[str, str],
    ) -> AsyncIterator[tuple[JobService, Identity]]:
        from workers.shared.connect import connect
        from workers.shared.resources import open_resources

        target = jobs.client.service_client.config.target_host
        client = await connect(target)
        async with open_resources(jobs.environment) as resources:
            service = factory.job_service(jobs.environment, client, resources, job_types())
            yield service, Identity("operator", (), frozenset({OPERATOR}))

    monkeypatch.setattr(factory, "open_service", open_service)


@pytest.fixture(scope="module")
def one_url() -> str:
    """URL of an empty database for all tests of a module."""
    return fresh_url()
