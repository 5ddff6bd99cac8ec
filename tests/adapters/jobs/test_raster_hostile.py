"""Damaged and hostile rasters: clear errors, nothing touched outside, bounded time and memory."""

import asyncio
import struct
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import rasterio
from affine import Affine
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.files import limits
from adapters.files.forks import Bounds
from adapters.files.rasters.pool import FileRasters
from adapters.ports.errors import UnreadableDocument
from tests.support.chaos import examples
from tests.support.jobs import rasters as made
from tests.support.jobs.vector_files import make_endless
from workflows.shared.errors import RuleViolation

BOUNDS = Bounds(memory_bytes=1024 * limits.MB, cpu_seconds=20, seconds=60, file_bytes=1 << 30)


@pytest.fixture(scope="module")
def rasters() -> Iterator[FileRasters]:
    found = FileRasters(1, BOUNDS)
    yield found
    asyncio.run(found.aclose())


async def refused(rasters: FileRasters, path: Path) -> str:
    folder = path.parent / "work"
    folder.mkdir(exist_ok=True)
    with pytest.raises(UnreadableDocument) as error:
        await rasters.inspect(path, folder)
    said = str(error.value)
    assert str(path.parent) not in said
    return said


@pytest.mark.real_rasters
async def test_a_file_that_validators_call_valid_is_damaged(rasters: FileRasters) -> None:
    with pytest.raises(UnreadableDocument, match="its pixels cannot all be read"):
        await rasters.inspect(made.SHARED / "corrupt.tif", Path("/tmp"))


async def test_an_exception_of_the_reader_is_named_with_its_type(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    failing = "tests.support.jobs.failing_raster_child"
    monkeypatch.setattr("adapters.files.rasters.pool._CHILD", failing)
    path = made.write(tmp_path / "sound.tif", made.values(1, 20, 20))
    async with FileRasters(1, BOUNDS) as rasters:
        said = await refused(rasters, path)
    assert "unexpected KeyError at failing_raster_child.py:11: 'no band of sound.tif'" in said
    assert "damaged" not in said and "memory" not in said


@pytest.mark.parametrize("replaced", ["gpkg_contents", "scene"])
async def test_a_table_that_is_an_endless_view_is_not_read(
    rasters: FileRasters, tmp_path: Path, replaced: str
) -> None:
    path = made.write(tmp_path / "scene.gpkg", made.values(1, 20, 20), driver="GPKG")
    make_endless(path, replaced)
    assert f"{replaced} of the GeoPackage is a view" in await refused(rasters, path)


async def test_a_place_that_is_no_number_is_named(rasters: FileRasters, tmp_path: Path) -> None:
    pixels = np.ones((1, 4, 4), "uint8")
    nowhere = Affine(1, 0, 0, 0, float("nan"), float("nan"))
    path = made.write(tmp_path / "a.tif", pixels, transform=nowhere)
    assert "the raster is damaged: transform.4" in await refused(rasters, path)


async def test_a_truncated_file_is_damaged(rasters: FileRasters, tmp_path: Path) -> None:
    path = made.write(
        tmp_path / "scene.tif", made.values(1, 600, 600), tiled=True, compress="deflate"
    )
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert "damaged" in await refused(rasters, path)


async def test_a_virtual_dataset_named_tif_reads_nothing(
    rasters: FileRasters, tmp_path: Path
) -> None:
    secret = made.write(tmp_path / "secret.tif", made.values(1, 10, 10))
    path = tmp_path / "scene.tif"
    path.write_text(
        '<VRTDataset rasterXSize="10" rasterYSize="10"><VRTRasterBand dataType="Byte" band="1">'
        f"<SimpleSource><SourceFilename>{secret}</SourceFilename><SourceBand>1</SourceBand>"
        "</SimpleSource></VRTRasterBand></VRTDataset>"
    )
    assert "not a raster of a format that is read" in await refused(rasters, path)


async def test_overviews_beside_a_file_are_not_opened(rasters: FileRasters, tmp_path: Path) -> None:
    victim = tmp_path / "victim.txt"
    victim.write_text("keep me")
    path = made.write(tmp_path / "scene.tif", made.values(1, 600, 600))
    beside = tmp_path / "scene.tif.ovr"
    beside.write_text(
        '<VRTDataset rasterXSize="300" rasterYSize="300"><OverviewList>2</OverviewList>'
        f"<SourceFilename>{victim}</SourceFilename></VRTDataset>"
    )
    work = tmp_path / "work"
    work.mkdir()
    facts = await rasters.inspect(path, work)
    assert facts.overviews == ()
    assert victim.read_text() == "keep me"
    assert beside.exists()
    assert list(work.iterdir()) == []


@pytest.mark.parametrize(
    ("side", "block", "more", "said"),
    [
        (1_400_000, 16_384, {"BIGTIFF": "YES"}, "claims 1,400,000 x 1,400,000 pixels"),
        (100_000, 4_096, {}, "almost empty; crop it"),
        (20_000, 20_000, {"compress": "deflate"}, "at most 201,326,592 are read at once"),
    ],
    ids=["terabytes", "almost empty", "a block that fills the memory"],
)
async def test_a_sparse_raster_is_refused(
    rasters: FileRasters, tmp_path: Path, side: int, block: int, more: dict[str, str], said: str
) -> None:
    path = tmp_path / "sparse.tif"
    layout = {"SPARSE_OK": "TRUE", "tiled": True, "blockxsize": block, "blockysize": block, **more}
    profile = {"width": side, "height": side, "count": 1, "dtype": "uint8", **layout}
    with rasterio.open(path, "w", driver="GTiff", crs="EPSG:3857", transform=made.UTM, **profile):
        pass
    assert path.stat().st_size < 200_000
    assert said in await refused(rasters, path)


async def test_a_raster_that_needs_more_memory_than_the_limit_is_reported(tmp_path: Path) -> None:
    path = made.write(
        tmp_path / "scene.tif",
        made.values(8, 2_048, 2_048),
        tiled=True,
        interleave="pixel",
        blockxsize=2_048,
        blockysize=2_048,
    )
    async with FileRasters(1, memory_bytes=256 * limits.MB) as rasters:
        said = await refused(rasters, path)
    assert said == (
        "reading the raster needs more than 256 MB of memory (DOCFLOW_JOBS_HEAVY_MEMORY_MB);"
        " split it"
    )


def picture_bomb(side: int) -> bytes:
    """A PNG of one colour that packs a thousandfold."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">L", len(body)) + kind + body + struct.pack(">L", zlib.crc32(kind + body))
        )

    rows = zlib.compress(bytes(side * (side // 8 + 1)), 9)
    head = struct.pack(">LLBBBBB", side, side, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


async def test_a_bomb_of_a_picture_costs_no_more_than_its_bounds(
    rasters: FileRasters, tmp_path: Path
) -> None:
    path = tmp_path / "bomb.tif"
    path.write_bytes(picture_bomb(60_000))
    assert "almost empty" in await refused(rasters, path)


@pytest.mark.parametrize("content", [b"", b"II*\0", b"PK\3\4rest", b"\0" * 5000, b"II*\0" * 999])
async def test_what_is_no_raster_is_refused(
    rasters: FileRasters, tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "scene.tif"
    path.write_bytes(content)
    await refused(rasters, path)


@settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    changes=st.lists(
        st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=12
    ),
    cut=st.sampled_from([1.0, 1.0, 0.97, 0.5]),
    kind=st.sampled_from(["tiled", "strips", "png"]),
    head=st.booleans(),
)
async def test_a_mutation_is_refused_or_read_and_never_more(
    rasters: FileRasters,
    tmp_path_factory: pytest.TempPathFactory,
    changes: list[tuple[float, int]],
    cut: float,
    kind: str,
    head: bool,
) -> None:
    folder = tmp_path_factory.mktemp("mutation")
    pixels = made.values(1, 64, 64)
    if kind == "png":
        with pytest.warns(rasterio.errors.NotGeoreferencedWarning):
            path = made.write(folder / "s.png", pixels, driver="PNG", crs=None, transform=None)
    else:
        path = made.write(
            folder / "s.tif",
            pixels,
            nodata=0,
            compress="deflate",
            tiled=kind == "tiled",
            blockxsize=64,
            blockysize=16 if kind == "strips" else 64,
        )
    body = bytearray(path.read_bytes())
    reach = min(600, len(body)) if head else len(body)
    for place, value in changes:
        body[int(place * reach)] = value
    path.write_bytes(bytes(body[: int(cut * len(body))]))
    work = folder / "work"
    work.mkdir()
    try:
        facts = await rasters.inspect(path, work)
    except (UnreadableDocument, RuleViolation):
        return
    assert facts.pixels <= 64 * 64 * 4096
    assert len(facts.model_dump_json()) < 1_000_000
    target = work / "prepared.tif"
    try:
        await rasters.prepare(path, facts, target)
    except (UnreadableDocument, RuleViolation):
        return
    # What is passed on is what the file holds: no pixel was made up for one that is damaged.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        with (
            rasterio.Env(GDAL_PAM_ENABLED="NO", GDAL_DISABLE_READDIR_ON_OPEN="EMPTY_DIR"),
            rasterio.open(path) as read,
            rasterio.open(target) as written,
        ):
            np.testing.assert_array_equal(read.read(), written.read())


async def test_values_are_read_again_after_they_were_written(
    rasters: FileRasters, tmp_path: Path
) -> None:
    path = made.write(tmp_path / "scene.tif", made.values(1, 64, 64))
    facts = await rasters.inspect(path, tmp_path)
    target = tmp_path / "out" / "prepared.tif"
    target.parent.mkdir()
    await rasters.prepare(path, facts, target)
    with rasterio.open(target) as file:
        np.testing.assert_array_equal(file.read(), made.values(1, 64, 64))
        assert file.profile["tiled"]
