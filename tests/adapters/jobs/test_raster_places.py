"""Places that a reference system does not have are named when the grid is fixed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
from affine import Affine

from adapters.files.rasters.grids import target_grid
from tests.support.jobs import rasters as made
from tests.support.jobs.raster_jobs import RasterJobs, processed
from workflows.jobs.rasters import GridInput
from workflows.shared.errors import RuleViolation

MERCATOR = "EPSG:3857"


def order(crs: str, left: float, top: float, pixel: float = 10.0, **fields: Any) -> GridInput:
    transform = (pixel, 0.0, left, 0.0, -pixel, top)
    return GridInput(width=200, height=100, crs=crs, transform=transform, band_bytes=1, **fields)


@pytest.mark.parametrize("target", [None, "EPSG:4326", MERCATOR])
@pytest.mark.parametrize(
    ("crs", "left", "top"),
    [
        ("EPSG:32633", 500_000, 1e8),
        ("EPSG:32633", 1e8, 5e6),
        ("EPSG:2154", 700_000, 5e7),
        ("EPSG:3035", 1e8, 5e6),
        (MERCATOR, 1e9, 5e6),
        (MERCATOR, 1e6, 1e9),
    ],
)
def test_what_begins_anew_somewhere_else_is_refused(
    crs: str, left: float, top: float, target: str | None
) -> None:
    """It would be published there, or without a pixel."""
    with pytest.raises(RuleViolation, match="is not a place of"):
        target_grid(order(crs, left, top, target_crs=target))


def test_longitudes_that_are_no_degrees_are_refused() -> None:
    with pytest.raises(
        RuleViolation, match="reaches longitude 1010, so its places are not degrees"
    ):
        target_grid(order("EPSG:4326", 1_000, 50, 0.05))


@pytest.mark.parametrize(
    ("crs", "left", "top"),
    [
        ("EPSG:32633", 500_000, 5e6),
        ("EPSG:32633", 100_000, 5e6),
        ("EPSG:2154", 700_000, 6.6e6),
        ("EPSG:3413", -1_000, 500),
        ("EPSG:2193", 1.6e6, 5.4e6),
        ("EPSG:3832", 3e6, 5e5),
        # Across the antimeridian, and wholly beyond it.
        (MERCATOR, 2.0037e7, 5e6),
        (MERCATOR, 2.1e7, 5e6),
    ],
)
def test_places_of_a_system_have_no_note(crs: str, left: float, top: float) -> None:
    assert target_grid(order(crs, left, top)).notes == ()


@pytest.mark.parametrize(
    ("crs", "left", "top", "degrees"),
    [
        # Easting and northing swapped; a wrong zone.
        ("EPSG:25832", 5.5e6, 5e5, 38),
        ("EPSG:32633", 1e7, 5e6, 68),
    ],
)
def test_a_raster_far_from_where_its_system_is_made_for_has_a_note(
    crs: str, left: float, top: float, degrees: int
) -> None:
    (note,) = target_grid(order(crs, left, top)).notes
    assert note.startswith(f"it lies {degrees} degrees outside of the area that")


@pytest.mark.parametrize(
    ("west", "pixel", "target"),
    [
        (0.0, 1.8, MERCATOR),
        (190.0, 0.05, MERCATOR),
        (-190.0, 0.05, MERCATOR),
        (178.0, 0.02, "EPSG:32601"),
        (175.0, 0.05, "EPSG:3413"),
    ],
)
def test_longitudes_beyond_180_are_not_projected_to_nothing(
    west: float, pixel: float, target: str
) -> None:
    with pytest.raises(RuleViolation, match="beyond the antimeridian would be missing in WGS 84"):
        target_grid(order("EPSG:4326", west, 90.0, pixel, target_crs=target))
    assert target_grid(order("EPSG:4326", west, 90.0, pixel)).method == "copy"


def test_the_middle_of_a_raster_may_lie_on_the_antimeridian() -> None:
    found = target_grid(order("EPSG:3832", 3_338_584.7, 5e5, target_crs="EPSG:4326"))
    assert 200 <= found.width <= 202
    assert found.transform[2] == pytest.approx(180 - 0.009, abs=0.001)


GOES = "+proj=geos +h=35786023 +lon_0=-75 +sweep=x +ellps=GRS80"
HOMOLOSINE = "+proj=igh +datum=WGS84"
SINUSOIDAL = "+proj=sinu +R=6371007.181"
WHOLE = (-180, -90, 180, 90)


@pytest.mark.parametrize(
    ("crs", "left", "top", "degrees", "box"),
    [
        ("ESRI:54009", -18_040_095.7, 9_020_047.85, WHOLE, WHOLE),
        ("ESRI:54030", -17_005_833.33, 8_625_154.47, WHOLE, WHOLE),
        ("EPSG:8857", -17_243_959.06, 8_392_927.6, WHOLE, WHOLE),
        (SINUSOIDAL, -20_015_109.354, 10_007_554.677, WHOLE, WHOLE),
        (HOMOLOSINE, -20_037_508.34, 8_673_000.0, WHOLE, (-180, -89.5, 180, 89.5)),
        (GOES, -5_434_894.885, 5_434_894.885, (-156.3, -81.3, 6.3, 81.3), (-156, -81, 6, 81)),
        (MERCATOR, -20_037_509.4, 20_037_508.3, (-180, -85, 180, 85), (-180, -85, 180, 85)),
        ("EPSG:3832", -20_037_508.3, 15e6, None, (-180, -79.2, 180, 79.2)),
        ("EPSG:3408", -9_036_842.76, 9_036_842.76, None, (-180, -84, 180, 90)),
        ("EPSG:6931", -9_000_000.0, 9_000_000.0, None, (-180, -84.6, 180, 90)),
        ("EPSG:6933", -17_367_530.44, 7_314_540.83, (-180, -85, 180, 85), (-180, -85, 180, 85)),
    ],
)
async def test_world_maps_and_full_disks(
    jobs: RasterJobs,
    tmp_path: Path,
    crs: str,
    left: float,
    top: float,
    degrees: tuple[float, ...] | None,
    box: tuple[float, ...],
) -> None:
    """Their corners lie beside the Earth, or begin anew on its other side."""
    height, width = (100, 100) if top == -left else (100, 200)
    transform = Affine(-2 * left / width, 0, left, 0, -2 * top / height, top)
    pixels = made.values(1, height, width)
    path = made.write(tmp_path / "world.tif", pixels, crs=crs, transform=transform)
    item, out = await processed(jobs, path)
    assert item["bbox"] == pytest.approx(box, abs=0.6)
    with rasterio.open(out) as file:
        assert (file.read() == pixels).all()
    if degrees is None:
        return
    path.rename(tmp_path / "degrees.tif")
    _, out = await processed(
        jobs, tmp_path / "degrees.tif", target_crs="EPSG:4326", allow_ballpark=True
    )
    with rasterio.open(out) as file:
        pixel = 2 * file.res[0]
        assert tuple(file.bounds) == pytest.approx(degrees, abs=max(pixel, 0.6))
        middle = file.read_masks(1)[file.height // 2]
        assert (middle > 0).mean() > 0.95


async def test_a_world_map_with_nodata_beside_the_earth(jobs: RasterJobs, tmp_path: Path) -> None:
    transform = Affine(180_400.957, 0, -18_040_095.7, 0, -180_400.957, 9_020_047.85)
    rows, columns = np.mgrid[0:100, 0:200]
    ellipse = ((columns - 99.5) / 100) ** 2 + ((rows - 49.5) / 50) ** 2 < 1
    pixels = np.where(ellipse, made.values(1, 100, 200), 0)
    path = made.write(
        tmp_path / "world.tif", pixels, crs="ESRI:54009", transform=transform, nodata=0
    )
    item, _ = await processed(jobs, path)
    assert item["bbox"] == [-180, -90, 180, 90]


async def test_a_pole_is_not_shown_by_mercator(jobs: RasterJobs, tmp_path: Path) -> None:
    with pytest.raises(RuleViolation, match="holds the north pole, which WGS 84 / Pseudo-Merc"):
        target_grid(order("EPSG:3413", -1_000, 500, target_crs=MERCATOR))
    assert target_grid(order("EPSG:3413", -1_000, 500, target_crs="EPSG:3995")).width > 199


async def test_a_raster_of_the_whole_earth_is_projected(jobs: RasterJobs, tmp_path: Path) -> None:
    world = Affine(1.8, 0, -180, 0, -1.6, 80)
    path = made.write(
        tmp_path / "world.tif", made.values(1, 100, 200), crs="EPSG:4326", transform=world
    )
    item, out = await processed(jobs, path, target_crs=MERCATOR)
    west, south, east, north = item["bbox"]
    assert -180 <= west < -178 and 178 < east <= 180 and south < -79 and north > 79
    with rasterio.open(out) as file:
        assert (file.read_masks(1) > 0).all()
    assert "goes all around the Earth" in str(jobs.results[4]["outputs"]["notes"])
