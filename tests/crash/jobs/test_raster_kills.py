"""Processes that work on rasters are killed at any moment: files end whole and the same."""

import asyncio
import contextlib
import random
from pathlib import Path

import psutil
import pytest

from adapters.files.rasters.pool import FileRasters
from tests.support.fresh_database import fresh_url
from tests.support.jobs import rasters as made
from tests.support.jobs.raster_jobs import raster_jobs


async def _killing(rounds: int, seed: int) -> None:
    """Kill a process below this one again and again, at random moments."""
    moments = random.Random(seed)
    for _ in range(rounds):
        await asyncio.sleep(moments.uniform(0.05, 0.6))
        found = [
            child
            for child in psutil.Process().children(recursive=True)
            if "adapters.files.rasters.child" in " ".join(_command(child))
        ]
        if found:
            with contextlib.suppress(psutil.NoSuchProcess):
                moments.choice(found).kill()


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


async def _digests(folder: Path, scene: Path, rounds: int) -> dict[str, str]:
    """SHA-256 of every asset of the scene."""
    folder.mkdir()
    url = fresh_url()
    async with FileRasters(1) as rasters, raster_jobs(folder, rasters, url) as jobs:
        jobs.retries = rounds + 1
        name = await jobs.put(scene)
        killing = asyncio.create_task(_killing(rounds, 1))
        given = {"datetime": "2024-05-31", "target_crs": "EPSG:3857", "resampling": "nearest"}
        try:
            await jobs.run(name, single_file_bytes=1, **given)
        finally:
            killing.cancel()
            await asyncio.gather(killing, return_exceptions=True)
        assert jobs.errors() == []
        tiles = [each.index for each in jobs.finished[3]]
        found = {}
        for index in tiles:
            x_y = index.removeprefix("tile-")
            item = await jobs.resources.catalogue.item("rasters", f"scene_{x_y}")
            assert item is not None
            found[index] = item["assets"]["data"]["file:checksum"]
        return found


@pytest.mark.chaos(alone=True)
async def test_every_tile_is_there_once_and_as_undisturbed(tmp_path: Path) -> None:
    scene = made.write(tmp_path / "scene.tif", made.values(1, 2_100, 2_500), nodata=0, tiled=True)
    calm = await _digests(tmp_path / "calm", scene, 0)
    assert len(calm) == 4
    assert await _digests(tmp_path / "killed", scene, 20) == calm
