"""`process_raster` as a whole: one, many, changed ones, tiles, times that nobody knows."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio

from activities.jobs.api import InputNeeded
from activities.jobs.stac_items import check_item
from adapters.ports.errors import BlobNotFound
from tests.support.jobs import rasters as made
from tests.support.jobs.raster_jobs import RasterJobs
from workflows.jobs.records import JobOutputs, TaskStatus
from workflows.shared.errors import InvalidDocument

DAY = {"datetime": "2024-05-31"}
ROOT = Path(__file__).parents[3]


async def item_of(jobs: RasterJobs, id: str) -> Any:
    return await jobs.resources.catalogue.item("rasters", id)


async def test_a_scene_becomes_a_cog_and_an_item(jobs: RasterJobs, tmp_path: Path) -> None:
    scene = tmp_path / "scene.tif"
    command = [sys.executable, ROOT / "samples" / "make_scene.py", scene, "--size", "300"]
    await asyncio.to_thread(subprocess.run, command, check=True)
    result = await jobs.run(await jobs.put(scene))
    assert result["datasets"] == 1
    shown = JobOutputs.of(result)
    assert shown.preview is not None
    assert shown.footprint is not None
    assert [file.title for file in shown.files] == ["scene"]
    item = await item_of(jobs, "scene")
    assert item["properties"]["datetime"] == "2024-06-21T10:20:31Z"
    assert item["properties"]["proj:code"] == "EPSG:32632"
    assert [band["name"] for band in item["assets"]["data"]["bands"]][:3] == [
        "blue",
        "green",
        "red",
    ]
    assert set(item["assets"]) == {"data", "thumbnail", "metadata"}
    collection = await jobs.resources.catalogue.collection("rasters")
    assert collection is not None
    check_item(dict(item), dict(collection))
    with (
        rasterio.open(scene) as source,
        rasterio.open(await jobs.file(item["assets"]["data"]["href"])) as found,
    ):
        np.testing.assert_array_equal(found.read(), source.read())


async def test_of_many_the_good_ones_are_made_and_the_bad_ones_reported(
    jobs: RasterJobs, tmp_path: Path
) -> None:
    names = []
    for seed in range(2):
        path = made.write(tmp_path / f"s{seed}.tif", made.values(1, 40, 50, seed=seed))
        names.append(await jobs.put(path))
    broken = tmp_path / "broken.tif"
    broken.write_bytes(b"II*\0nothing")
    names.append(await jobs.put(broken))
    result = await jobs.run(*names, **DAY)
    assert result["datasets"] == 2
    sizes = [(tmp_path / f"s{seed}.tif").stat().st_size for seed in range(2)]
    assert jobs.results[1] == {"tasks": 2, "bytes": sum(sizes)}
    assert [task.index for task in jobs.finished[1] if task.status is TaskStatus.FAILED] == ["d2"]
    assert (await item_of(jobs, "s0")) is not None
    assert (await item_of(jobs, "broken")) is None


async def test_what_is_catalogued_from_the_same_bytes_is_left_out(
    jobs: RasterJobs, tmp_path: Path
) -> None:
    names = []
    for seed in range(2):
        path = made.write(tmp_path / f"s{seed}.tif", made.values(1, 40, 50, seed=seed))
        names.append(await jobs.put(path))
    await jobs.run(*names, **DAY)
    assert (await jobs.run(*names, attempt=2, **DAY))["datasets"] == 0
    changed = made.write(tmp_path / "s1.tif", made.values(1, 40, 50, seed=9))
    await jobs.put(changed)
    assert (await jobs.run(*names, attempt=3, **DAY))["datasets"] == 1
    assert [task.index for task in jobs.finished[1]] == ["d1"]
    assert (await jobs.run(*names, attempt=4, only_changed=False, **DAY))["datasets"] == 2


async def test_of_a_folder_or_list_files_beside_rasters_are_left_out(
    jobs: RasterJobs, tmp_path: Path
) -> None:
    path = made.write(tmp_path / "listed.tif", made.values(1, 40, 50))
    await jobs.put(path, "in/listed.tif")
    beside = tmp_path / "beside"
    beside.write_text("x")
    await jobs.put(beside, "in/listed.tif.aux.xml")
    listed = ["in/listed.tif", "in/listed.tif.aux.xml"]
    result = await jobs.run("in/", listed=listed, **DAY)
    assert [each["source"] for each in result["items"]] == ["in/listed.tif"]
    with pytest.raises(InvalidDocument, match="only files beside rasters"):
        await jobs.run("@list.txt", listed=listed[1:], **DAY)


async def test_a_time_that_nothing_says_is_asked_for(jobs: RasterJobs, tmp_path: Path) -> None:
    name = await jobs.put(made.write(tmp_path / "x20240531.tif", made.values(1, 40, 50)))
    with pytest.raises(InputNeeded, match=r"when was x20240531\.tif acquired") as asked:
        await jobs.run(name)
    assert asked.value.parameter == "datetime"
    for mistyped in ({"datetime": "2024-13-40"}, {"datetime_pattern": "nosuch"}):
        with pytest.raises(InputNeeded, match=r"is not a time|no pattern") as asked:
            await jobs.run(name, **mistyped)
        assert asked.value.parameter == "datetime"
    await jobs.run(name, datetime_pattern="compact")
    properties = (await item_of(jobs, "x20240531"))["properties"]
    assert properties["start_datetime"] == "2024-05-31T00:00:00Z"


@pytest.mark.parametrize("single_file_bytes", [1, 10**9])
async def test_a_trial_run_publishes_no_part_of_a_dataset(
    jobs: RasterJobs, tmp_path: Path, single_file_bytes: int
) -> None:
    path = made.write(tmp_path / "wide.tif", made.values(1, 20, 4_200), tiled=True)
    name = await jobs.put(path)
    given = {"single_file_bytes": single_file_bytes, **DAY}
    tried = await jobs.run(name, limit=2, **given)
    assert await item_of(jobs, "wide") is None
    assert tried["items"][0]["items"] == 0
    (note,) = JobOutputs.of(tried).notes
    assert note == "2 of 3 tiles were made in a trial run; nothing was published"
    await jobs.run(name, attempt=2, **given)
    assert await item_of(jobs, "wide") is not None


async def test_a_large_dataset_stays_in_tiles_and_shrinks_without_leftovers(
    jobs: RasterJobs, tmp_path: Path
) -> None:
    pixels = made.values(1, 1000, 2100)
    pixels[:, :, 2048:] = 0
    path = made.write(tmp_path / "large.tif", pixels, nodata=0, tiled=True)
    name = await jobs.put(path)
    result = await jobs.run(name, single_file_bytes=1, **DAY)
    assert (result["items"][0]["items"], result["items"][0]["empty"]) == (2, 1)
    tile = await item_of(jobs, "large_x0-y0")
    whole = await item_of(jobs, "large")
    assert [link["href"] for link in whole["links"] if link["rel"] == "item"] == ["./large_x0-y0"]
    with rasterio.open(await jobs.file(tile["assets"]["data"]["href"])) as file:
        assert (file.width, file.height) == (2048, 1000)
        assert file.overviews(1) == [2, 4]
    await jobs.run(name, attempt=2, keep_old_hours=0, **DAY)
    assert await item_of(jobs, "large_x0-y0") is None
    with pytest.raises(BlobNotFound):
        await jobs.file(tile["assets"]["data"]["href"])
    with rasterio.open(
        await jobs.file((await item_of(jobs, "large"))["assets"]["data"]["href"])
    ) as f:
        np.testing.assert_array_equal(f.read(), pixels)


async def test_a_source_in_one_strip_is_rewritten_first(jobs: RasterJobs, tmp_path: Path) -> None:
    pixels = made.values(1, 300, 2100)
    path = made.write(tmp_path / "strip.tif", pixels, blockysize=300, compress="deflate")
    await jobs.run(await jobs.put(path), **DAY)
    item = await item_of(jobs, "strip")
    assert any("rewritten" in note for note in item["properties"]["docflow:notes"])
    with rasterio.open(await jobs.file(item["assets"]["data"]["href"])) as file:
        np.testing.assert_array_equal(file.read(), pixels)


async def test_a_task_that_runs_twice_changes_nothing(jobs: RasterJobs, tmp_path: Path) -> None:
    name = await jobs.put(made.write(tmp_path / "twice.tif", made.values(1, 40, 50)))
    await jobs.run(name, **DAY)
    first = (await item_of(jobs, "twice"))["assets"]
    await jobs.run(name, **DAY)
    assert jobs.errors() == []
    assert (await item_of(jobs, "twice"))["assets"] == first


async def test_an_item_of_another_source_is_replaced_with_a_note(
    jobs: RasterJobs, tmp_path: Path
) -> None:
    for folder, seed in (("north", 1), ("south", 2)):
        path = made.write(tmp_path / "same.tif", made.values(1, 40, 50, seed=seed))
        await jobs.put(path, f"{folder}/same.tif")
    first = await jobs.run("north/same.tif", **DAY)
    assert first["items"][0]["notes"] == []
    said = ["it replaces the item same that was made of bronze://north/same.tif"]
    for _ in range(2):
        # The second time the task finds its own item.
        again = await jobs.run("south/same.tif", **DAY)
        assert again["items"][0]["notes"] == said
    properties = (await item_of(jobs, "same"))["properties"]
    assert properties["docflow:notes"] == said


async def test_sources_that_differ_in_their_endings_alone_are_both_published(
    jobs: RasterJobs, tmp_path: Path
) -> None:
    names = []
    for ending, seed in (("tif", 1), ("tiff", 2)):
        path = made.write(tmp_path / f"twin.{ending}", made.values(1, 40, 50, seed=seed))
        names.append(await jobs.put(path))
    result = await jobs.run(*names, **DAY)
    items = {each["item"]: each["source"] for each in result["items"]}
    assert sorted(items.values()) == ["twin.tif", "twin.tiff"]
    for id, source in items.items():
        assert (await item_of(jobs, id))["properties"]["docflow:source"] == f"bronze://{source}"


async def test_a_source_that_is_replaced_meanwhile_is_refused(
    jobs: RasterJobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = await jobs.put(made.write(tmp_path / "moving.tif", made.values(1, 40, 50)))
    before = await jobs._identity(name)
    await jobs.put(made.write(tmp_path / "moving.tif", made.values(1, 40, 50, seed=5)))

    async def stale(_: str) -> Any:
        return before

    monkeypatch.setattr(jobs, "_identity", stale)
    with pytest.raises(InvalidDocument, match="was replaced while its job was running"):
        await jobs.run(name, **DAY)
