"""Tiles: their mosaic is one whole warp, pixel for pixel, whatever the source and its target."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
from affine import Affine
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.files.rasters.pool import FileRasters
from adapters.ports.spatial import PlacedTile
from tests.support.chaos import examples
from tests.support.jobs import rasters as made
from workflows.jobs import rasters as rules
from workflows.jobs.rasters import (
    CogInfo,
    PixelRules,
    RasterInfo,
    RasterParameters,
    TargetGrid,
    deviation,
    tiles,
)


async def mosaic(
    rasters: FileRasters, path: Path, folder: Path, tile: int = 128, **parameters: Any
) -> tuple[Path, TargetGrid, PixelRules, RasterInfo, CogInfo]:
    """Tiles of a raster, put together."""
    folder.mkdir(exist_ok=True)
    given = RasterParameters(source="scene.tif", **parameters)
    facts = await rasters.inspect(path, folder)
    grid = await rasters.grid(rules.grid_order(facts, given))
    pixels = rules.pixel_rules(facts, given, grid)
    grid = grid.model_copy(update={"tile": tile})
    placed = []
    for index, window in tiles(grid):
        target = folder / f"{index}.tif"
        await rasters.tile(
            path, facts, grid, pixels, window, target, overviews=False, progress=_quiet
        )
        placed.append(PlacedTile(target, window))
    whole = folder / "whole.tif"
    cog = await rasters.publish(placed, grid, pixels, whole, folder / "whole.png", _quiet)
    return whole, grid, pixels, facts, cog


def _quiet(share: float, said: str) -> None:
    pass


@settings(
    max_examples=examples(4),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    dtype=st.sampled_from(["uint8", "int16", "float32"]),
    resampling=st.sampled_from(["nearest", "bilinear", "cubic", "average", "lanczos"]),
    crs=st.sampled_from(["EPSG:4326", "EPSG:3857", "EPSG:32617"]),
    finer=st.sampled_from([None, 0.37, 2.7]),
    tile=st.sampled_from([512, 1024]),
    turned=st.sampled_from([0.0, 27.0]),
    seed=st.integers(0, 100),
)
async def test_the_mosaic_of_tiles_is_one_whole_warp(
    rasters: FileRasters,
    tmp_path_factory: pytest.TempPathFactory,
    dtype: str,
    resampling: str,
    crs: str,
    finer: float | None,
    tile: int,
    turned: float,
    seed: int,
) -> None:
    folder = tmp_path_factory.mktemp("mosaic")
    pixels = made.values(1, 250, 330, dtype, seed)
    pixels[:, 40:60, 100:] = 0
    transform = made.UTM @ Affine.rotation(turned)
    path = made.write(folder / "scene.tif", pixels, transform=transform, nodata=0, tiled=True)
    resolution = None if finer is None else 30 / finer
    if resolution is not None and crs == "EPSG:4326":
        resolution /= 100_000
    whole, grid, chosen, _, _ = await mosaic(
        rasters,
        path,
        folder / "out",
        tile,
        target_crs=crs,
        resolution=resolution,
        resampling=resampling,
    )
    with rasterio.open(whole) as found:
        values = found.read()
    expected = made.whole_warp(path, grid, chosen)
    np.testing.assert_array_equal(values, expected)
    assert (values != 0).any()


async def test_a_turned_raster_is_the_same_in_tiles_and_in_one(
    rasters: FileRasters, tmp_path: Path
) -> None:
    pixels = made.values(1, 200, 260, "float32")
    transform = made.UTM @ Affine.rotation(27)
    path = made.write(tmp_path / "scene.tif", pixels, transform=transform, tiled=True)
    found = []
    for tile in (512, 1024):
        whole, *_ = await mosaic(rasters, path, tmp_path / str(tile), tile, resolution=13.3)
        with rasterio.open(whole) as file:
            found.append((file.read(), file.read_masks(1)))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
    assert 0 < (found[0][1] == 0).mean() < 1


async def test_tiles_of_the_same_system_keep_every_pixel(
    rasters: FileRasters, tmp_path: Path
) -> None:
    pixels = made.values(3, 300, 700)
    path = made.write(tmp_path / "scene.tif", pixels, tiled=True)
    whole, grid, _, _, cog = await mosaic(rasters, path, tmp_path / "out", 512)
    with rasterio.open(whole) as found:
        np.testing.assert_array_equal(found.read(), pixels)
        assert found.transform == made.UTM
        assert found.overviews(1) == [2]
        assert found.block_shapes[0] == (512, 512)
        assert found.compression.value == "ZSTD"
        assert found.tags(ns="IMAGE_STRUCTURE")["LAYOUT"] == "COG"
    assert (grid.method, cog.footprint) == ("copy", None)


async def test_statistics_are_those_of_valid_pixels(rasters: FileRasters, tmp_path: Path) -> None:
    pixels = made.values(2, 300, 700, "float32")
    pixels[:, :100] = -9999
    pixels[0, 150, :50] = np.nan
    path = made.write(tmp_path / "scene.tif", pixels, nodata=-9999)
    *_, cog = await mosaic(rasters, path, tmp_path / "out", 256)
    for band, sums in zip(pixels.astype("float64"), cog.bands, strict=True):
        valid = band[np.isfinite(band) & (band != -9999)]
        assert sums.count == valid.size
        assert (sums.minimum, sums.maximum) == (valid.min(), valid.max())
        assert sums.mean == pytest.approx(valid.mean())
        assert deviation(sums) == pytest.approx(valid.std(), rel=1e-6)


async def test_the_picture_and_the_outline_leave_out_the_edge_without_data(
    rasters: FileRasters, tmp_path: Path
) -> None:
    pixels = made.values(3, 400, 400, "uint16")
    pixels[:, np.tri(400, dtype=bool)] = 0
    path = made.write(tmp_path / "scene.tif", pixels, nodata=0)
    *_, cog = await mosaic(rasters, path, tmp_path / "out", 512)
    assert cog.footprint is not None
    ring = cog.footprint["coordinates"][0]
    assert 4 <= len(ring) < 40
    with (
        pytest.warns(rasterio.errors.NotGeoreferencedWarning),
        rasterio.open(tmp_path / "out" / "whole.png") as picture,
    ):
        assert (picture.count, picture.width, picture.height) == (4, 400, 400)
        alpha = picture.read(4)
    assert alpha[0, -1] == 255
    assert alpha[-1, 0] == 0


async def test_a_tile_reports_its_progress_and_is_the_same_when_made_again(
    rasters: FileRasters, tmp_path: Path
) -> None:
    path = made.write(tmp_path / "scene.tif", made.values(1, 600, 1100), tiled=True)
    facts = await rasters.inspect(path, tmp_path)
    given = RasterParameters(source="s", target_crs="EPSG:3857")
    grid = await rasters.grid(rules.grid_order(facts, given))
    pixels = rules.pixel_rules(facts, given, grid)
    _, window = next(tiles(grid))
    shares: list[float] = []
    digests = set()
    for name in ("one.tif", "two.tif"):
        tile = await rasters.tile(
            path,
            facts,
            grid,
            pixels,
            window,
            tmp_path / name,
            overviews=True,
            progress=lambda share, said: shares.append(share),
        )
        digests.add(tile.sha256)
    assert len(digests) == 1
    assert shares[-1] == 1
    assert len(shares) >= 4
