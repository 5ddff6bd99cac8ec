"""Chance that can be repeated, and the outcome of imports that nothing disturbs."""

import asyncio
import fcntl
import json
import os
import random
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
import pytest_asyncio

from tests.crash.documents import ALL, earlier
from tests.crash.harness import WORKER_WITH_BRIDGE, running_system
from workers.shared.resources import Resources, open_resources


@pytest.fixture(scope="module")
def chance() -> random.Random:
    """Random moments; `DOCFLOW_CRASH_SEED` repeats those of an earlier run."""
    seed = os.environ.get("DOCFLOW_CRASH_SEED") or str(random.randrange(10**6))
    print(f"DOCFLOW_CRASH_SEED={seed}")
    return random.Random(seed)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def calm_settings(
    tmp_path_factory: pytest.TempPathFactory, worker_id: str
) -> Mapping[str, str]:
    """Where all documents were imported, one set after the other, without any disturbance.

    Test processes that run side by side share one: the first imports, the others wait for it.
    """
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "calm"
    folder.mkdir(exist_ok=True)
    settings = folder / "settings.json"
    with (folder / "lock").open("w") as lock:
        await asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX)
        if not settings.exists():
            settings.write_text(json.dumps(dict(await _import_calmly(folder / "system"))))
    return json.loads(settings.read_text())


async def _import_calmly(folder: Path) -> Mapping[str, str]:
    folder.mkdir()
    async with running_system(folder, WORKER_WITH_BRIDGE) as system:
        await system.import_all(earlier(ALL))
        await system.import_all(ALL)
        return system.settings


@pytest.fixture
async def calm(calm_settings: Mapping[str, str]) -> AsyncIterator[Resources]:
    """The outcome of the undisturbed imports."""
    async with open_resources(calm_settings) as resources:
        yield resources
