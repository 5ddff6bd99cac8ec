"""Workers of jobs and their tile processes, killed at any moment of rasters and greetings."""

import asyncio
import contextlib
import hashlib
import json
import random
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import rasterio
from temporalio.client import Client, WorkflowExecutionStatus

from activities.jobs.catalogue import Catalogue
from activities.jobs.completion import SupersededFiles, files_of
from activities.jobs.ports import CatalogueQuery
from activities.jobs.store import SqlJobStore
from activities.shared.scratch import sweep
from tests.crash.harness import Part, System, running_system, until
from tests.support.jobs import rasters as made
from workers.jobs.factory import TIERS, job_service
from workers.jobs.service import JobService
from workers.shared.services.identity import OPERATOR, Identity
from workflows.jobs.rasters import PixelRules, TargetGrid
from workflows.jobs.records import TaskRecord, TaskStatus
from workflows.jobs.runs import JobRequest, job_workflow_id

pytestmark = pytest.mark.chaos(alone=True)

KILLS = 20
WITHIN = 900
"""Seconds: a killed worker is noticed after ten, and each attempt waits longer."""
WHO = Identity("operator", (), frozenset({OPERATOR}))
GIVEN = {
    "source": "scene.tif",
    "datetime": "2024-05-31",
    "target_crs": "EPSG:3857",
    "resampling": "bilinear",
}
AN_ITEM_FOR_EACH_TILE = {"single_file_bytes": 1}
TILES = 4
PLANS = re.compile(r"[0-9a-f]{64}/(plans|tiles)/[0-9a-f]{32}\.json")
"""What tasks of a job are given; it goes with the job."""
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
            # In turn: tiles that are put together, and tiles that are published.
            more = AN_ITEM_FOR_EACH_TILE if len(self.rasters) % 2 else {}
            self.rasters[collection] = await self._submit(
                "process_raster", {**GIVEN, **more, "collection": collection}
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
        """Tile, or the whole, to the SHA-256 of its file, which is as its item says."""
        tasks = await self._tasks(self.rasters[collection], 3)
        found: Found = {}
        if not int(collection[1:]) % 2:
            assert len(tasks) == TILES
            return {"whole": hashlib.sha256(await self.content(collection, "scene")).hexdigest()}
        for task in tasks:
            x_y = task.task_index.removeprefix("tile-")
            content = await self.content(collection, f"scene_{x_y}")
            assert task.task_index not in found
            found[task.task_index] = hashlib.sha256(content).hexdigest()
        assert len(found) == TILES
        return found

    async def stage(self) -> int:
        """Of the newest raster."""
        job = list(self.rasters.values())[-1]
        record = await SqlJobStore(self.system.resources.database).job(job)
        return 0 if record is None else record.stage

    async def item(self, collection: str, id: str) -> Mapping[str, Any]:
        """From the catalogue."""
        item = await Catalogue(self.system.resources.database).item(collection, id)
        assert item is not None
        return item

    def path_of(self, asset: Mapping[str, Any]) -> Path:
        """The file of an asset."""
        return self.silver / asset["href"].removeprefix("silver://")

    async def content(self, collection: str, id: str) -> bytes:
        """The file of an item, which is as the item says."""
        asset = (await self.item(collection, id))["assets"]["data"]
        content = self.path_of(asset).read_bytes()
        assert asset["file:checksum"].endswith(hashlib.sha256(content).hexdigest())
        return content

    @property
    def silver(self) -> Path:
        """The container."""
        return self.system.folder / "blobs" / "silver"

    async def has_no_scratch(self) -> bool:
        """Whether the sweep finds all folders that killed workers and processes have left."""
        sweep(self.system.folder / "scratch")
        return not any((self.system.folder / "scratch").iterdir())

    async def unused(self) -> set[str]:
        """Files in silver that no item and no plan uses, and that no note will have removed."""
        catalogue = Catalogue(self.system.resources.database)
        used: set[str] = set()
        for collection in self.rasters:
            page = await catalogue.search(CatalogueQuery(collections=(collection,), limit=100))
            assert len(page.items) == (1 + TILES if int(collection[1:]) % 2 else 1)
            used.update(uri for item in page.items for uri in files_of(item))
        there = [path for path in self.silver.rglob("*") if path.is_file()]
        for path in there:
            if path.parent.name == "superseded":
                used.update(SupersededFiles.model_validate_json(path.read_bytes()).uris)
                used.add(str(path.relative_to(self.silver)))
        found = {str(path.relative_to(self.silver)) for path in there}
        plans = {name for name in found if PLANS.fullmatch(name)}
        return found - plans - {uri.removeprefix("silver://") for uri in used}

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
        for _ in range(2):
            await jobs.begin()
            await jobs.ended()
        calm = [await jobs.tiles(collection) for collection in jobs.rasters]
        await _is_one_whole_warp(jobs, "c0", tmp_path / "blobs/bronze/scene.tif")

        (worker,) = system.docflow
        for number in range(KILLS):
            await jobs.begin()
            await _tiles_are_made(jobs, worker)
            await asyncio.sleep(chance.uniform(0, 1))
            if number % 2:
                _kill_tile_process(worker, chance)
            else:
                await worker.kill()
                await worker.start()
        await jobs.ended()

        for number, collection in enumerate(jobs.rasters):
            assert await jobs.tiles(collection) == calm[number % 2]
        assert await jobs.unused() == set()
        # It keeps the source of its newest tiles while it runs.
        await worker.stop()
        await until(jobs.has_no_scratch, "folders of killed workers are removed")
        expected = Counter(f"Hello to task {number}" for number in range(GREETINGS))
        for job in jobs.greetings:
            assert await jobs.replies(job) == expected
    print(f"{KILLS} kills, {len(jobs.rasters)} rasters, {len(jobs.greetings)} greetings")


async def _is_one_whole_warp(jobs: Jobs, collection: str, scene: Path) -> None:
    """The published file holds what GDAL makes of the whole scene at once."""
    item = await jobs.item(collection, "scene")
    plan = json.loads(jobs.path_of(item["assets"]["metadata"]).read_bytes())
    grid = TargetGrid.model_validate(plan["grid"])
    expected = made.whole_warp(scene, grid, PixelRules.model_validate(plan["rules"]))
    with rasterio.open(jobs.path_of(item["assets"]["data"])) as found:
        assert np.array_equal(found.read(), expected)


async def _tiles_are_made(jobs: Jobs, worker: Part) -> None:
    """Wait until a raster is at its third stage, with a process that works on it."""

    async def is_there() -> bool:
        await jobs.begin()
        return bool(_tile_processes(worker)) and await jobs.stage() == 3

    await until(is_there, "tiles are made", within=WITHIN, every=0.1)


def _kill_tile_process(worker: Part, chance: random.Random) -> None:
    """Kill one of the processes that work on tiles."""
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
