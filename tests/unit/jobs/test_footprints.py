"""Footprints are drawn to scale."""

import re
from typing import Any

import pytest

from workers.jobs.maps import HEIGHT, KILOMETRES_PER_DEGREE, WIDTH, footprint


def square(west: float, south: float, size: float) -> dict[str, Any]:
    east, north = west + size, south + size
    ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    return {"type": "Polygon", "coordinates": [ring]}


def numbers(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"([\d.-]+) ([\d.-]+)", path)]


def extent(path: str) -> tuple[float, float]:
    xs, ys = zip(*numbers(path), strict=True)
    assert min(xs) >= 0 and max(xs) <= WIDTH and min(ys) >= 0 and max(ys) <= HEIGHT
    return max(xs) - min(xs), max(ys) - min(ys)


def test_a_degree_of_longitude_is_as_short_as_it_is_at_its_latitude() -> None:
    at_equator, at_sixty = footprint(square(10, -0.5, 1)), footprint(square(10, 59.5, 1))
    assert at_equator and at_sixty
    wide, high = extent(at_equator.path)
    assert wide / high == pytest.approx(1, abs=0.01)
    wide, high = extent(at_sixty.path)
    assert wide / high == pytest.approx(0.5, abs=0.01)


def test_the_bar_has_the_length_that_it_names() -> None:
    drawn = footprint(square(10, 50, 1))
    assert drawn
    _, high = extent(drawn.path)
    kilometres = float(drawn.bar_label.removesuffix(" km"))
    assert drawn.bar / high == pytest.approx(kilometres / KILOMETRES_PER_DEGREE, abs=0.01)
    small = footprint(square(10, 50, 0.001))
    assert small and small.bar_label.endswith(" m")


def test_parts_on_both_sides_of_the_antimeridian_lie_beside_each_other() -> None:
    east, west = square(179, 0, 1), square(-180, 0, 1)
    both = {"type": "MultiPolygon", "coordinates": [east["coordinates"], west["coordinates"]]}
    drawn = footprint(both)
    assert drawn and (drawn.west, drawn.east) == (179, 181)
    wide, high = extent(drawn.path)
    assert wide / high == pytest.approx(2, abs=0.01)


@pytest.mark.parametrize("pole", [90, -90])
def test_what_surrounds_a_pole_is_drawn_as_seen_from_above_it(pole: int) -> None:
    edge = pole - 3 if pole > 0 else pole + 3
    around = [[longitude, edge] for longitude in range(-180, 181, 5)]
    ring = [*around, [180, pole], [-180, pole], [-180, edge]]
    drawn = footprint({"type": "Polygon", "coordinates": [ring]})
    assert drawn and (drawn.west, drawn.east) == (-180, 180)
    wide, high = extent(drawn.path)
    assert wide == pytest.approx(high, abs=0.5)
    kilometres = float(drawn.bar_label.removesuffix(" km"))
    assert drawn.bar / high == pytest.approx(kilometres / KILOMETRES_PER_DEGREE / 6, abs=0.01)
    # Greenwich is below the north pole, and above the south pole.
    middle = sum(y for _, y in numbers(drawn.path)[:72]) / 72
    greenwich = numbers(drawn.path)[36][1]
    assert (greenwich > middle) == (pole > 0)


def test_the_whole_world_is_as_wide_as_it_is() -> None:
    ring = [[-180, -90], [180, -90], [180, 90], [-180, 90], [-180, -90]]
    drawn = footprint({"type": "Polygon", "coordinates": [ring]})
    assert drawn and (drawn.west, drawn.east) == (-180, 180)
    wide, high = extent(drawn.path)
    assert wide / high == pytest.approx(2, abs=0.01)


@pytest.mark.parametrize(
    ("geometry", "points", "lines"),
    [
        ({"type": "Point", "coordinates": [10, 50, 300]}, 1, 0),
        ({"type": "MultiPoint", "coordinates": [[10, 50], [11, 51]]}, 2, 0),
        ({"type": "LineString", "coordinates": [[10, 50], [11, 51]]}, 0, 1),
        ({"type": "MultiLineString", "coordinates": [[[10, 50], [11, 51]]] * 2}, 0, 2),
        (
            {
                "type": "GeometryCollection",
                "geometries": [square(10, 50, 1), {"type": "Point", "coordinates": [10, 50]}],
            },
            1,
            1,
        ),
    ],
)
def test_every_kind_of_geometry_is_drawn(geometry: dict[str, Any], points: int, lines: int) -> None:
    drawn = footprint(geometry)
    assert drawn and (len(drawn.points), drawn.path.count("M")) == (points, lines)


@pytest.mark.parametrize(
    "geometry",
    [
        {},
        {"type": "Polygon", "coordinates": []},
        {"type": "Polygon", "coordinates": [[["a", "b"]]]},
        {"type": "Polygon", "coordinates": None},
        {"type": "Circle", "coordinates": [1, 2]},
        {"type": "Point", "coordinates": [float("nan"), 1]},
        {"type": "Point", "coordinates": [1]},
    ],
)
def test_what_cannot_be_drawn_is_left_out(geometry: dict[str, Any]) -> None:
    assert footprint(geometry) is None


def test_long_outlines_are_thinned() -> None:
    ring = [[10 + number / 1e5, 50 + (number % 7) / 1e3] for number in range(100_000)]
    drawn = footprint({"type": "Polygon", "coordinates": [ring]})
    assert drawn and len(numbers(drawn.path)) <= 2_000
