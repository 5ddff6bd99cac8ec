"""Footprints across the antimeridian, over poles and beyond 180 degrees."""

import pytest
import shapely.geometry
from pytest import approx

from adapters.files.footprints import bounds, check_footprint, footprint
from workflows.jobs.datasets import GridInfo, split_box
from workflows.shared.errors import InvalidDocument, RuleViolation

Transform = tuple[float, float, float, float, float, float]


def grid(code: str, shape: tuple[int, int], transform: Transform) -> GridInfo:
    return GridInfo(code=code, shape=shape, transform=transform)


@pytest.mark.parametrize(
    ("raster", "parts", "expected"),
    [
        (
            grid("EPSG:32631", (1000, 1000), (10, 0, 500000, 0, -10, 5600000)),
            1,
            (3, 50.46191, 3.14116, 50.55193),
        ),
        (
            grid("EPSG:32601", (1000, 1000), (1000, 0, 100000, 0, -1000, 6600000)),
            2,
            (175.958, 50.246, -166.494, 59.538),
        ),
        (
            grid("EPSG:3413", (1000, 1000), (1000, 0, -2500000, 0, -1000, 2500000)),
            2,
            (165.964, 58.174, -165.964, 70.598),
        ),
        (
            grid("EPSG:3413", (1000, 1000), (5000, 0, -2500000, 0, -5000, 2500000)),
            1,
            (-180, 58.174, 180, 90),
        ),
        (
            grid("EPSG:3031", (1000, 1000), (5000, 0, -2500000, 0, -5000, 2500000)),
            1,
            (-180, -90, 180, -58.264),
        ),
        (grid("EPSG:4326", (180, 360), (1, 0, -180, 0, -1, 90)), 1, (-180, -90, 180, 90)),
        (grid("EPSG:4326", (180, 360), (1, 0, 0, 0, -1, 90)), 1, (-180, -90, 180, 90)),
        (grid("EPSG:4326", (20, 20), (1, 0, 170, 0, -1, 20)), 2, (170, 0, -170, 20)),
        (grid("EPSG:4326", (20, 20), (1, 0, 350, 0, -1, 20)), 1, (-10, 0, 10, 20)),
        (
            grid("EPSG:4326", (721, 1440), (0.25, 0, -0.125, 0, -0.25, 90.125)),
            1,
            (-180, -90, 180, 90),
        ),
        (
            grid("EPSG:32631", (1000, 1000), (7, 7, 500000, 7, -7, 5600000)),
            1,
            (3, 50.48894, 3.19762, 50.61484),
        ),
        (
            grid("EPSG:32631", (1000, 1000), (10, 0, 500000, 0, 10, 5600000)),
            1,
            (3, 50.55185, 3.14143, 50.64186),
        ),
    ],
    ids=[
        "utm",
        "utm across 180",
        "polar across 180",
        "north pole",
        "south pole",
        "world",
        "0 to 360",
        "170 to 190",
        "350 to 370",
        "centres on the poles",
        "rotated",
        "south up",
    ],
)
def test_footprints_are_cut_and_valid(
    raster: GridInfo, parts: int, expected: tuple[float, ...]
) -> None:
    made = footprint(raster)
    shape = shapely.geometry.shape(made)
    assert shape.is_valid and shape.area > 0
    assert len(getattr(shape, "geoms", [shape])) == parts
    assert bounds(made) == approx(expected, abs=1e-3)
    check_footprint(made, raster)


@pytest.mark.parametrize(
    "raster",
    [
        grid("EPSG:999999", (10, 10), (10, 0, 500000, 0, -10, 5600000)),
        grid("EPSG:32631", (10, 10), (1e9, 0, 500000, 0, 1e9, 5600000)),
        grid("EPSG:4326", (200, 20), (1, 0, 0, 0, -1, 90)),
    ],
    ids=["unknown system", "outside of it", "beyond the pole"],
)
def test_what_has_no_place_is_refused(raster: GridInfo) -> None:
    with pytest.raises(InvalidDocument, match="reference system"):
        footprint(raster)


def test_a_footprint_may_leave_out_pixels_and_not_reach_beyond_them() -> None:
    raster = grid("EPSG:4326", (100, 100), (0.01, 0, 10, 0, -0.01, 50))
    inner = shapely.geometry.mapping(shapely.box(10.2, 49.3, 10.4, 49.8))
    check_footprint(inner, raster)
    beyond = shapely.geometry.mapping(shapely.box(10.2, 48.9, 10.4, 49.8))
    with pytest.raises(InvalidDocument, match=r"reaches beyond the raster.*\[10\.00000, 49"):
        check_footprint(beyond, raster)


def test_bounds_of_what_lies_around_the_earth_do_not_cross() -> None:
    parts = shapely.MultiPolygon(
        [shapely.box(177, 0, 180, 1), shapely.box(-180, 0, -178, 1), shapely.box(-10, 0, 10, 1)]
    )
    assert bounds(shapely.geometry.mapping(parts)) == (-180, 0, 180, 1)


def test_a_box_across_the_antimeridian_is_searched_in_two_parts() -> None:
    assert split_box((170, -10, -170, 10)) == [(170, -10, 180, 10), (-180, -10, -170, 10)]
    assert split_box((1, 2, 3, 4)) == [(1, 2, 3, 4)]
    for wrong in ((0, 10, 1, 5), (-181, 0, 0, 1), (0, 0, 1, float("nan"))):
        with pytest.raises(RuleViolation, match="is not a box in degrees"):
            split_box(wrong)
