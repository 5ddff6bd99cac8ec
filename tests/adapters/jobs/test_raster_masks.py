"""Pixels without a value: alpha bands, masks and nodata stay what they were."""

from pathlib import Path

import numpy as np
import pytest
import rasterio
from affine import Affine
from rasterio.enums import ColorInterp

from tests.support.jobs import rasters as made
from tests.support.jobs.raster_jobs import RasterJobs, processed


async def test_an_alpha_band_stays_an_alpha_band(jobs: RasterJobs, tmp_path: Path) -> None:
    pixels = made.values(4, 60, 80)
    pixels[3] = 255
    pixels[3, :, :40] = 0
    colours = [ColorInterp.red, ColorInterp.green, ColorInterp.blue, ColorInterp.alpha]
    path = made.write(tmp_path / "rgba.tif", pixels, colours=colours)
    item, out = await processed(jobs, path, target_crs="EPSG:4326")
    with rasterio.open(out) as file:
        assert file.colorinterp[3] == ColorInterp.alpha
        alpha = file.read(4)
        assert {0, 255} <= set(np.unique(alpha))
    counted = item["assets"]["data"]["bands"][0]["statistics"]["valid_percent"]
    assert 30 < counted < 60


@pytest.mark.parametrize("nodata", [-9999.0, float("nan")])
async def test_a_value_that_one_band_lacks_is_not_interpolated(
    jobs: RasterJobs, tmp_path: Path, nodata: float
) -> None:
    pixels = made.values(2, 200, 220, "float32")
    pixels[0, 50:60, 50:60] = nodata
    path = made.write(tmp_path / "hole.tif", pixels, nodata=nodata)
    item, _ = await processed(jobs, path, target_crs="EPSG:4326", resampling="cubic")
    first, second = (band["statistics"] for band in item["assets"]["data"]["bands"])
    assert first["minimum"] > 0
    assert 0 < second["valid_percent"] - first["valid_percent"] < 0.5


@pytest.mark.parametrize("target", [None, "EPSG:4326"])
async def test_an_alpha_band_may_stand_anywhere(
    jobs: RasterJobs, tmp_path: Path, target: str | None
) -> None:
    pixels = made.values(5, 60, 80)
    pixels[3] = 255
    pixels[3, :, :40] = 0
    colours = [ColorInterp.red, ColorInterp.green, ColorInterp.blue, ColorInterp.alpha]
    path = made.write(tmp_path / "five.tif", pixels, colours=[*colours, ColorInterp.undefined])
    item, out = await processed(jobs, path, target_crs=target)
    with rasterio.open(out) as file:
        assert file.colorinterp[3] == ColorInterp.alpha
    assert 30 < item["assets"]["data"]["bands"][4]["statistics"]["valid_percent"] < 60


async def test_a_nodata_value_beside_a_mask_is_named(jobs: RasterJobs, tmp_path: Path) -> None:
    mask = np.full((60, 80), 255, "uint8")
    mask[:, :20] = 0
    path = made.write(tmp_path / "both.tif", made.values(1, 60, 80), mask=mask, nodata=0)
    item, _ = await processed(jobs, path)
    assert "has a mask and a nodata value; the mask counts" in str(item["properties"])


@pytest.mark.parametrize("target", [None, "EPSG:4326"])
async def test_a_mask_stays_an_internal_mask_with_overviews(
    jobs: RasterJobs, tmp_path: Path, target: str | None
) -> None:
    mask = np.full((600, 640), 255, "uint8")
    mask[:, :320] = 0
    path = made.write(tmp_path / "masked.tif", made.values(1, 600, 640), mask=mask)
    _, out = await processed(jobs, path, target_crs=target)
    with rasterio.open(out) as file:
        assert file.mask_flag_enums[0] == [rasterio.enums.MaskFlags.per_dataset]
        assert file.overviews(1)
        assert 0.4 < (file.read_masks(1) > 0).mean() < 0.6
        assert 0.4 < (file.read_masks(1, out_shape=(150, 160)) > 0).mean() < 0.6


async def test_without_nodata_what_the_source_does_not_reach_is_masked(
    jobs: RasterJobs, tmp_path: Path
) -> None:
    turned = made.UTM @ Affine.rotation(30)
    path = made.write(tmp_path / "turned.tif", made.values(1, 100, 100), transform=turned)
    item, out = await processed(jobs, path)
    with rasterio.open(out) as file:
        assert file.nodata is None
        assert 0.3 < (file.read_masks(1) > 0).mean() < 0.8
        assert file.transform.b == file.transform.d == 0
    assert len(item["geometry"]["coordinates"][0]) < 60


async def test_nan_is_no_value(jobs: RasterJobs, tmp_path: Path) -> None:
    pixels = made.values(1, 60, 80, "float32")
    pixels[:, :30] = np.nan
    path = made.write(tmp_path / "nan.tif", pixels, nodata=float("nan"))
    item, out = await processed(jobs, path)
    band = item["assets"]["data"]["bands"][0]
    assert band["nodata"] == "nan"
    assert band["statistics"]["valid_percent"] == 50
    with rasterio.open(out) as file:
        np.testing.assert_array_equal(file.read(), pixels)


async def test_several_nodata_values_become_one_that_no_band_holds(
    jobs: RasterJobs, tmp_path: Path
) -> None:
    pixels = made.values(2, 60, 80)
    pixels[0, :5], pixels[1, :6], pixels[1, 6:10] = 0, 255, 0
    kinds = [f"<NoDataValue>{value}</NoDataValue>" for value in (0, 255)]
    path = made.imagine(tmp_path / "two.img", pixels, kinds)
    item, out = await processed(jobs, path)
    first, second = item["assets"]["data"]["bands"]
    assert first["nodata"] == second["nodata"] == 255
    assert (first["statistics"]["count"], second["statistics"]["count"]) == (55 * 80, 54 * 80)
    with rasterio.open(out) as file:
        values = file.read()
    assert (values[0, :5] == 255).all()
    np.testing.assert_array_equal(values[0, 5:], pixels[0, 5:])
    np.testing.assert_array_equal(values[1], pixels[1])
    assert any("different nodata" in note for note in item["properties"]["docflow:notes"])
