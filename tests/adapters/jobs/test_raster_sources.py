"""What a source is packed in, what says its place, and whether it holds classes."""

import gzip
import warnings
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
from rasterio.enums import ColorInterp

from activities.jobs.api import InputNeeded
from tests.support.jobs import rasters as made
from tests.support.jobs.raster_jobs import DAY, RasterJobs, processed, refused
from workflows.shared.errors import RuleViolation

PIXELS = made.values(1, 60, 80)
WORLD = "30.0\n0,0\n0.0\n-30.0\n600015.0\n4799985.0\n"
OTHER = "60.0\n0.0\n0.0\n-60.0\n600015.0\n4799985.0\n"
HEIGHTS = (made.values(1, 1201, 1201, "int16") - 60).astype("int16")
SEA = np.zeros((1, 3601, 3601), "int16")
DEGREES = {"target_crs": "EPSG:4326"}


def tiff(pixels: Any = PIXELS, **more: Any) -> bytes:
    """A TIFF as bytes."""
    with warnings.catch_warnings(), rasterio.MemoryFile() as memory:
        warnings.simplefilter("ignore")
        made.write(memory.name, pixels, **more)  # type: ignore[arg-type]
        return bytes(memory.read())


def hgt(pixels: Any = HEIGHTS) -> bytes:
    return bytes(pixels.astype(">i2").tobytes())


def bare(pixels: Any = PIXELS, **more: Any) -> bytes:
    """Without a transform."""
    return tiff(pixels, transform=None, **more)


@dataclass(frozen=True)
class Case:
    """A file with what lies beside it, and what becomes of it."""

    name: str
    content: bytes | Mapping[str, bytes]
    """Of the file; several are put into a ZIP archive."""
    beside: Mapping[str, str] = field(default_factory=dict[str, str])
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    pixels: Any = None
    """Of the result, with the place `made.UTM` unless another one is given."""
    bounds: tuple[float, float, float, float] | None = None
    says: str = ""
    """In the notes, or why it is refused."""


CASES = {
    "world file": Case("a.tif", bare(), {"a.tfw": WORLD}, pixels=PIXELS, says="laced by a.tfw"),
    "world file in capitals": Case("A.TIF", bare(), {"A.TFW": WORLD}, pixels=PIXELS),
    "wld": Case("a.tif", bare(), {"a.wld": WORLD}, pixels=PIXELS),
    "world file with a mark of its encoding": Case(
        "a.tif", bare(), {"a.tfw": f"\ufeff{WORLD}"}, pixels=PIXELS
    ),
    "tifw": Case("a.tif", bare(), {"a.tifw": WORLD}, pixels=PIXELS),
    "two that agree": Case("a.tif", bare(), {"a.wld": WORLD, "a.tfw": WORLD}, pixels=PIXELS),
    "two that differ": Case(
        "a.tif", bare(), {"a.wld": WORLD, "a.tfw": OTHER}, says="place a.tif differently"
    ),
    "no world file": Case("a.tif", bare(), {"a.tfw": "<html>"}, says="a.tfw is not a world file"),
    "no size": Case("a.tif", bare(), {"a.tfw": "0 " * 6}, says="a.tfw gives pixels no size"),
    "no place": Case("a.tif", bare(), says="put its world file beside it, or give parameter"),
    "own place": Case(
        "a.tif", tiff(), {"a.tfw": OTHER}, pixels=PIXELS, says="a.tfw lies beside it and was not"
    ),
    "parameter": Case(
        "a.tif",
        bare(),
        {"a.tfw": OTHER},
        {"transform": list(made.UTM)[:6]},
        pixels=PIXELS,
        says="a.tfw lies beside it and was not",
    ),
    "parameter that is not needed": Case(
        "a.tif", tiff(), {}, {"transform": [1, 0, 0, 0, -1, 0]}, PIXELS, says="transform was not"
    ),
    "ZIP": Case("a.zip", {"in/a.tif": tiff()}, pixels=PIXELS, says="t is in/a.tif in an archive"),
    "ZIP with litter": Case(
        "a.zip",
        {"a.tif": tiff(), "__MACOSX/._a.tif": tiff(), "read.me": b"x"},
        pixels=PIXELS,
        says="not read in the archive: read.me",
    ),
    "ZIP with a world file": Case(
        "a.zip",
        {"a.tif": bare(), "a.TFW": WORLD.encode()},
        pixels=PIXELS,
        says="laced by the world",
    ),
    "world file beside a ZIP": Case(
        "a.zip", {"a.tif": bare()}, {"a.wld": WORLD}, pixels=PIXELS, says="laced by a.wld"
    ),
    "world file of a raster in a ZIP": Case(
        "a.zip", {"b.tif": bare()}, {"a.tfw": WORLD}, pixels=PIXELS, says="laced by a.tfw"
    ),
    "world file of a gzip": Case(
        "a.tif.gz", gzip.compress(bare(), 1), {"a.tfw": WORLD}, pixels=PIXELS, says="laced by a.tfw"
    ),
    "ZIP of two, one chosen": Case(
        "a.zip",
        {"a.tif": tiff(PIXELS + 1), "b.tif": tiff()},
        parameters={"subdataset": 2},
        pixels=PIXELS,
        says="of its 2 rasters, number 2",
    ),
    "ZIP without a raster": Case("a.zip", {"read.me": b"x"}, says="holds no raster"),
    "ZIP that is cut off": Case(
        "a.zip", b"PK\x03\x04 and no more", says="the archive is damaged or cut off"
    ),
    "gzip": Case(
        "a.tif.gz", gzip.compress(tiff(), 1), pixels=PIXELS, says="t is a.tif in an archive"
    ),
    "gzip that is cut off": Case(
        "a.tif.gz", gzip.compress(tiff(), 1)[:-20], says="gzip file is damaged or cut off"
    ),
    "ZIP of the sea": Case("sea.zip", {"N00E000.hgt": bytes(2 * 3601 * 3601)}, pixels=SEA),
    "ZIP of hgt files in folders": Case(
        "x.zip", {"a/N48E011.hgt": hgt(), "a/N48E011.pdf": b"%PDF"}, pixels=HEIGHTS
    ),
    "hgt": Case(
        "N48E011.hgt",
        hgt(),
        pixels=HEIGHTS,
        bounds=(11 - 1 / 2400, 48 - 1 / 2400, 12 + 1 / 2400, 49 + 1 / 2400),
    ),
    "hgt in capitals, southwest": Case(
        "s01w072.SRTMGL3.HGT",
        hgt(),
        pixels=HEIGHTS,
        bounds=(-72 - 1 / 2400, -1 - 1 / 2400, -71 + 1 / 2400, 1 / 2400),
    ),
    "zipped hgt": Case("x.zip", {"N48E011.hgt": hgt()}, pixels=HEIGHTS),
    "gzipped hgt": Case("N48E011.hgt.gz", gzip.compress(hgt(), 1), pixels=HEIGHTS),
    "hgt without a place": Case("heights.hgt", hgt(), says="heights.hgt does not say where"),
    "hgt that is cut off": Case("N48E011.hgt", hgt()[:-7], says="has 2,884,795 bytes, so it"),
    "Moon by parameter": Case(
        "a.tif", tiff(crs=None), parameters={"crs": "IAU_2015:30100"}, says="Moon (2015)"
    ),
    "Mars by target": Case(
        "a.tif", tiff(), parameters={"target_crs": "ESRI:104905"}, says="GCS_Mars_2000"
    ),
    "Moon by file": Case("a.tif", tiff(crs="ESRI:104903"), says="GCS_Moon_2000"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_a_source(jobs: RasterJobs, tmp_path: Path, case: Case) -> None:
    path = tmp_path / case.name
    if isinstance(case.content, bytes):
        path.write_bytes(case.content)
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in case.content.items():
                archive.writestr(name, content)
    for name, text in case.beside.items():
        beside = tmp_path / "beside"
        beside.write_text(text)
        await jobs.put(beside, name)
    parameters = {"item": "it", **case.parameters}
    if case.pixels is None:
        try:
            said = await refused(jobs, path, **parameters)
        except RuleViolation as error:
            said = str(error)
        assert case.says in said
        return
    item, out = await processed(jobs, path, **parameters)
    with rasterio.open(out) as file:
        np.testing.assert_array_equal(file.read(), case.pixels)
        if case.bounds is not None:
            assert tuple(file.bounds) == pytest.approx(case.bounds, abs=1e-9)
        elif case.pixels is PIXELS:
            assert file.transform == made.UTM
    assert case.says in str(item["properties"]["docflow:notes"])


async def test_a_world_file_that_has_changed_makes_the_dataset_anew(
    jobs: RasterJobs, tmp_path: Path
) -> None:
    path, world = tmp_path / "a.tif", tmp_path / "world"
    path.write_bytes(bare())
    await jobs.put(path, "in/a.tif")
    made_of: list[int] = []
    for text in (WORLD, WORLD, OTHER):
        world.write_text(text)
        if text == OTHER or not made_of:
            await jobs.put(world, "in/a.tfw")
        result = await jobs.run("in/", listed=["in/a.tif", "in/a.tfw"], **DAY)
        made_of.append(result.get("datasets", 0))
    assert made_of == [1, 0, 1]
    item = await jobs.resources.catalogue.item("rasters", "a")
    assert item is not None
    assert item["properties"]["proj:transform"][0] == 60


async def test_which_raster_of_an_archive_is_meant_is_asked(
    jobs: RasterJobs, tmp_path: Path
) -> None:
    path = tmp_path / "two.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.tif", tiff())
        archive.writestr("b.tif", tiff())
    with pytest.raises(InputNeeded, match=r"holds 2 rasters \(1: a.tif; 2: b.tif\)") as asked:
        await jobs.run(await jobs.put(path), **DAY)
    assert asked.value.parameter == "subdataset"


def classes(dtype: str, high: int = 5) -> Any:
    rng = np.random.default_rng(4)
    return rng.integers(1, high, (1, 1100, 1200)).astype(dtype)


MASK = np.where(np.arange(1200) % 3 == 0, 0, 255).astype("uint8")[None].repeat(1100, 0)


@pytest.mark.parametrize(
    ("pixels", "more", "parameters"),
    [
        (classes("uint8"), {}, {"classes": True}),
        (classes("int16"), {"nodata": -1}, {"resampling": "mode"}),
        (classes("float32"), {"nodata": -9999}, {"resampling": "nearest", **DEGREES}),
        (classes("uint8"), {"mask": MASK}, {"resampling": "mode", **DEGREES}),
        (classes("uint8", 200), {}, {"classes": True}),
        (classes("int64", 200), {}, {}),
        (classes("uint8"), {"palette": {1: (255, 0, 0, 255)}}, {}),
        (
            np.concatenate([classes("uint8"), MASK[None]]),
            {"colours": [ColorInterp.gray, ColorInterp.alpha]},
            {"classes": True, **DEGREES},
        ),
    ],
)
async def test_overviews_of_classes_hold_values_of_the_base_only(
    jobs: RasterJobs, tmp_path: Path, pixels: Any, more: Any, parameters: Any
) -> None:
    path = made.write(tmp_path / "classes.tif", pixels, **more)
    _, out = await processed(jobs, path, **parameters)
    with rasterio.open(out) as file:
        base, levels = set(np.unique(file.read(1))), file.overviews(1)
    assert base <= {*np.unique(pixels), *(more.get("nodata", 0),)}
    assert levels
    for level in range(len(levels)):
        with rasterio.open(out, overview_level=level) as file:
            assert set(np.unique(file.read(1))) <= base


@pytest.mark.parametrize(
    ("pixels", "parameters", "asked"),
    [
        (classes("uint8"), {}, "Band 1 holds 4 whole values only (1, 2, 3, 4)"),
        (classes("float32"), DEGREES, "Band 1 holds 4 whole values only"),
        (classes("uint8", 40), {"resampling": "min"}, "Band 1 holds 39 whole values only"),
        (classes("uint8"), {"classes": False}, None),
        (classes("uint8"), {"resampling": "average", **DEGREES}, None),
        (classes("uint8", 99), {}, None),
        (classes("float32") + 0.5, {}, None),
        (classes("uint8", 2), {}, None),
        # Small enough to have no overviews: nothing is averaged.
        (classes("uint8")[:, :300, :300], {}, None),
    ],
)
async def test_whole_values_that_are_few_are_asked_about(
    jobs: RasterJobs, tmp_path: Path, pixels: Any, parameters: Any, asked: str | None
) -> None:
    path = made.write(tmp_path / "few.tif", pixels)
    if asked is None:
        await processed(jobs, path, **parameters)
        return
    with pytest.raises(InputNeeded) as needed:
        await jobs.run(await jobs.put(path), **DAY, **parameters)
    assert needed.value.parameter == "classes"
    assert asked in str(needed.value)


async def test_numbers_of_colours_without_a_table_are_classes(
    jobs: RasterJobs, tmp_path: Path
) -> None:
    pixels = np.concatenate([classes("uint8"), classes("uint8")])
    path = made.write(tmp_path / "p.tif", pixels, colours=[ColorInterp.gray, ColorInterp.palette])
    item, out = await processed(jobs, path)
    assert "band 2 holds numbers of colours, and no table" in str(item["properties"])
    with rasterio.open(out, overview_level=0) as file:
        assert set(np.unique(file.read())) <= {1, 2, 3, 4}
