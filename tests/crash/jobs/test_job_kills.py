"""Workers of jobs and their tile processes, killed at any moment of rasters and greetings."""

import asyncio
import contextlib
import hashlib
import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
from temporalio.client import Client, WorkflowExecutionStatus

from adapters.database.jobs.catalogue import open_catalogue
from adapters.database.jobs.store import SqlJobStore
from contracts.jobs import JobRequest, TaskRecord, TaskStatus, job_workflow_id
from tests.crash.harness import Part, System, running_system, until
from tests.support.chaos import kills
from tests.support.jobs import rasters as made
from workers.services.identity import OPERATOR, Identity
from workers.services.jobs.opening import TIERS, job_service
from workers.services.jobs.service import JobService

pytestmark = pytest.mark.chaos

KILLS = kills(3, 20)
WITHIN = 900
"""Seconds: a killed worker is noticed after ten, and each attempt waits longer."""
WHO = Identity("operator", (), frozenset({OPERATOR}))
GIVEN = {
    "source": "scene.tif",
    "datetime": "2024-05-31",
    "target_crs": "EPSG:3857",
    "resampling": "nearest",
    # An item for each tile.
    "single_file_bytes": 1,
}
GREETINGS = 200

Found = dict[str, Any]


@dataclass
class Jobs:
    """Jobs that are in progress, or were."""

    system: System
    service: JobService
    client: Client
    rasters: dict[str, str] = field(default_factory=dict[str, str])
    """Collection to job."""
    greetings: list[str] = field(default_factory=list[str])

    async def begin(self) -> None:
        """Start what is not in progress; every job is another one."""
        if not await self._runs(*self.rasters.values()):
            collection = f"c{len(self.rasters)}"
            self.rasters[collection] = await self._submit(
                "process_raster", {**GIVEN, "collection": collection}
            )
        if not await self._runs(*self.greetings):
            message = f"Hello {len(self.greetings)}"
            self.greetings.append(
                await self._submit("hello_world", {"n": GREETINGS, "message": message})
            )

    async def ended(self) -> None:
        """Wait until all have ended well."""
        async with asyncio.timeout(WITHIN):
            for job in (*self.rasters.values(), *self.greetings):
                await self.client.get_workflow_handle(job_workflow_id(job)).result()

    async def _submit(self, job_type: str, parameters: dict[str, Any]) -> str:
        request = JobRequest(job_type=job_type, parameters=parameters)
        return (await self.service.submit(WHO, request)).job_id

    async def _runs(self, *jobs: str) -> bool:
        found = [
            (await self.client.get_workflow_handle(job_workflow_id(job)).describe()).status
            for job in jobs[-1:]
        ]
        return found == [WorkflowExecutionStatus.RUNNING]

    async def tiles(self, collection: str) -> Found:
        """Tile to the SHA-256 of its file, which is as its item says."""
        tasks = await self._tasks(self.rasters[collection], 3)
        catalogue = open_catalogue(self.system.resources.database)
        found: Found = {}
        for task in tasks:
            x_y = task.task_index.removeprefix("tile-")
            item = await catalogue.item(collection, f"scene_{x_y}")
            assert item is not None
            asset = item["assets"]["data"]
            name = asset["href"].partition("://")[2]
            content = (self.system.folder / "blobs" / "silver" / name).read_bytes()
            digest = hashlib.sha256(content).hexdigest()
            assert asset["file:checksum"].endswith(digest)
            assert task.task_index not in found
            found[task.task_index] = digest
        return found

    async def replies(self, job: str) -> Counter[str]:
        """What was replied, and how often."""
        return Counter(task.result_data["reply"] for task in await self._tasks(job, 2))

    async def _tasks(self, job: str, stage: int) -> list[TaskRecord]:
        store = SqlJobStore(self.system.resources.database)
        tasks = (await store.tasks(job, stage=stage, limit=10_000)).tasks
        assert {task.status for task in tasks} == {TaskStatus.COMPLETED}
        return list(tasks)


async def test_every_tile_and_greeting_is_there_once_and_as_undisturbed(
    tmp_path: Path, chance: random.Random
) -> None:
    for tier in TIERS:
        (tmp_path / "blobs" / tier).mkdir(parents=True)
    pixels = made.values(1, 2_100, 2_500)
    made.write(tmp_path / "blobs/bronze/scene.tif", pixels, nodata=0, tiled=True)
    async with running_system(tmp_path, ("worker", "jobs")) as system:
        client = await system.client()
        service = job_service(system.settings, client, system.resources)
        jobs = Jobs(system, service, client)
        await jobs.begin()
        await jobs.ended()
        calm = await jobs.tiles("c0")
        assert len(calm) == 4

        (worker,) = system.docflow
        for number in range(KILLS):
            await jobs.begin()
            if number % 2:
                await asyncio.sleep(chance.uniform(0, 4))
                await worker.kill()
                await worker.start()
            else:
                await _kill_tile_process(jobs, worker, chance)
        await jobs.ended()

        for collection in jobs.rasters:
            assert await jobs.tiles(collection) == calm
        expected = Counter(f"Hello to task {number}" for number in range(GREETINGS))
        for job in jobs.greetings:
            assert await jobs.replies(job) == expected
    print(f"{KILLS} kills, {len(jobs.rasters)} rasters, {len(jobs.greetings)} greetings")


async def _kill_tile_process(jobs: Jobs, worker: Part, chance: random.Random) -> None:
    """Kill one of the processes that work on tiles, as soon as there is one."""

    async def is_there() -> bool:
        await jobs.begin()
        return bool(_tile_processes(worker))

    await until(is_there, "a raster is worked on", within=WITHIN, every=0.2)
    await asyncio.sleep(chance.uniform(0, 1))
    with contextlib.suppress(psutil.NoSuchProcess, IndexError):
        chance.choice(_tile_processes(worker)).kill()


def _tile_processes(worker: Part) -> list[psutil.Process]:
    children = psutil.Process(worker.running().pid).children(recursive=True)
    return [each for each in children if "adapters.files.rasters.child" in _command(each)]


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []
