"""Places that a reference system does not have are named when the grid is fixed."""

from pathlib import Path
from typing import Any

import pytest
import rasterio
from affine import Affine

from adapters.files.rasters.grids import target_grid
from contracts.jobs.rasters import GridOrder
from domain.errors import RuleViolation
from tests.support.jobs import rasters as made
from tests.support.jobs.raster_jobs import RasterJobs, processed

MERCATOR = "EPSG:3857"


def order(crs: str, left: float, top: float, pixel: float = 10.0, **fields: Any) -> GridOrder:
    transform = (pixel, 0.0, left, 0.0, -pixel, top)
    return GridOrder(width=200, height=100, crs=crs, transform=transform, band_bytes=1, **fields)


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
