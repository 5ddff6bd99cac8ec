"""Chance that can be repeated, and the outcome of imports that nothing disturbs."""

import os
import random
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
import pytest_asyncio

from tests.crash.documents import ALL, earlier
from tests.crash.harness import WORKER_WITH_BRIDGE, running_system
from workers.resources.common import Resources, open_resources


@pytest.fixture(scope="module")
def chance() -> random.Random:
    """Random moments; `DOCFLOW_CRASH_SEED` repeats those of an earlier run."""
    seed = os.environ.get("DOCFLOW_CRASH_SEED") or str(random.randrange(10**6))
    print(f"DOCFLOW_CRASH_SEED={seed}")
    return random.Random(seed)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def calm_settings(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Where all documents were imported, one set after the other, without any disturbance."""
    folder: Path = tmp_path_factory.mktemp("calm")
    async with running_system(folder, WORKER_WITH_BRIDGE) as system:
        await system.import_all(earlier(ALL))
        await system.import_all(ALL, within=120)
        return system.settings


@pytest.fixture
async def calm(calm_settings: Mapping[str, str]) -> AsyncIterator[Resources]:
    """The outcome of the undisturbed imports."""
    async with open_resources(calm_settings) as resources:
        yield resources
