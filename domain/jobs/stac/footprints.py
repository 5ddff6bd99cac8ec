"""Footprints in degrees: from the header of a raster, across the antimeridian and over poles."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import numpy as np
import shapely
import shapely.errors
import shapely.geometry
from pyproj import CRS, Transformer
from pyproj.exceptions import CRSError

from contracts.jobs.stac import GridFacts
from domain.errors import InvalidDocument
from domain.jobs.earth import lies_on_earth, on_earth
from domain.jobs.stac.outlines import of_places, of_ring, wrapped

POINTS_PER_EDGE: Final = 64
"""Edges are straight in the raster's system and curved in degrees."""
_DIGITS: Final = 7
"""Decimals of a degree that are kept: a centimetre."""
_POLE_LATITUDE: Final = 90.0

JsonObject = dict[str, Any]
Box = tuple[float, float, float, float]


def footprint(grid: GridFacts) -> JsonObject:
    """The outline of a raster as GeoJSON in degrees (longitude, latitude), cut where RFC 7946
    demands it.

    Raises:
        InvalidDocument: The reference system is unknown, or the raster is outside of it.
    """
    shape = _shape(grid)
    if shape is None:
        raise InvalidDocument(
            f"the raster is not within the area of its reference system {_name(grid)}"
        )
    if shape.is_empty or not shape.is_valid:
        raise InvalidDocument("the raster has no footprint: its outline crosses itself")
    # Edges keep no more points than their curve needs, to a tenth of a pixel.
    rounded = shapely.set_precision(shape.simplify(_pixel(shape, grid) / 10), 10**-_DIGITS)
    return _json(shapely.geometry.mapping(rounded if not rounded.is_empty else shape))


def bounds(geometry: Mapping[str, Any]) -> Box:
    """West, south, east, north of a GeoJSON geometry; west above east crosses the antimeridian.

    Raises:
        ValueError: It is not a geometry, or has no points.
    """
    shape = read(geometry)
    west, south, east, north = shape.bounds
    if (crossing := _crossing(shape)) is not None:
        west, east = crossing
    return west, south, east, north


def check_footprint(geometry: Mapping[str, Any], grid: GridFacts) -> None:
    """See that a footprint is that of a raster, by the header of its file.

    It may be smaller, where it leaves out pixels without data; it may not reach beyond the raster
    by more than two of its pixels.

    Raises:
        InvalidDocument: It is not.
    """
    header = shapely.geometry.shape(footprint(grid))
    shape = read(geometry)
    margin = 2 * _pixel(header, grid)
    if not header.buffer(margin).covers(shape):
        raise InvalidDocument(
            f"the footprint {_box(shape)} reaches beyond the raster, whose header says "
            f"{_box(header)} degrees"
        )


def read(geometry: Mapping[str, Any]) -> Any:
    """The shape of a GeoJSON geometry.

    Raises:
        ValueError: It is not a geometry, or has no points.
    """
    try:
        shape = shapely.geometry.shape(dict(geometry))
    except (
        AttributeError,
        IndexError,
        KeyError,
        TypeError,
        shapely.errors.ShapelyError,
    ) as error:
        raise ValueError(f"it is not a GeoJSON geometry: {error}") from error
    if shape.is_empty:
        raise ValueError("the geometry has no points")
    return shape


def _shape(grid: GridFacts) -> Any:
    """The outline of a raster; None: it is not on the Earth."""
    system = _system(grid)
    xs, ys = _outline(grid)
    if system.is_geographic:
        is_there = np.abs(ys).max() - 90 <= _overlap(grid, system)
        ring: Any = np.column_stack([xs, ys])
        return shapely.orient_polygons(wrapped(shapely.Polygon(ring))) if is_there else None
    rows, columns = grid.shape
    if not lies_on_earth(system, grid.transform, columns, rows):
        return None
    poles = _poles_within(grid)
    found: Any = None
    if on_earth(system, xs, ys).all():
        degrees: Any = Transformer.from_crs(system, "EPSG:4326", always_xy=True).transform(xs, ys)
        found = of_ring(degrees[0], degrees[1], poles)
    return of_places(grid, system, poles) if found is None else found


def _overlap(grid: GridFacts, system: CRS) -> float:
    """Degrees by which pixels whose centres lie on a pole reach beyond it."""
    _, _, _, d, e, _ = grid.transform
    return max(abs(d), abs(e)) if system.is_geographic else 0.0


def _outline(grid: GridFacts) -> tuple[Any, Any]:
    """Eastings and northings of the raster's edge, counter-clockwise as the pixels lie."""
    rows, columns = grid.shape
    share = np.arange(POINTS_PER_EDGE) / POINTS_PER_EDGE
    zero, one = np.zeros(POINTS_PER_EDGE), np.ones(POINTS_PER_EDGE)
    across = np.concatenate([zero, share, one, 1 - share]) * columns
    down = np.concatenate([share, one, 1 - share, zero]) * rows
    a, b, c, d, e, f = grid.transform
    return a * across + b * down + c, d * across + e * down + f


def _system(grid: GridFacts) -> CRS:
    try:
        return CRS.from_user_input(grid.system)
    except CRSError as error:
        raise InvalidDocument(f"the reference system {_name(grid)} is not known") from error


def _poles_within(grid: GridFacts) -> tuple[bool, bool]:
    """Whether the north pole and the south pole lie in a raster."""
    a, b, c, d, e, f = grid.transform
    scale = a * e - b * d
    rows, columns = grid.shape
    system = CRS.from_user_input(grid.system)
    if scale == 0 or system.is_geographic:
        # In degrees a pole is an edge, and no point.
        return (False, False)
    back = Transformer.from_crs("EPSG:4326", system, always_xy=True)

    def contains(latitude: float) -> bool:
        x, y = back.transform(0.0, latitude)
        if not _is_finite((x, y)):
            return False
        column = (e * (x - c) - b * (y - f)) / scale
        row = (a * (y - f) - d * (x - c)) / scale
        return 0 < column < columns and 0 < row < rows

    return contains(_POLE_LATITUDE), contains(-_POLE_LATITUDE)


def _crossing(shape: Any) -> tuple[float, float] | None:
    """West and east of what touches the antimeridian from both sides; None: it does not.

    What also lies at the zero meridian has bounds all around the Earth.
    """
    boxes = [part.bounds for part in getattr(shape, "geoms", [shape])]
    eastern = [box for box in boxes if box[0] >= 0]
    western = [box for box in boxes if box[2] <= 0]
    if len(eastern) + len(western) < len(boxes):
        return None
    if not any(box[2] == 180 for box in eastern) or not any(box[0] == -180 for box in western):
        return None
    return min(box[0] for box in eastern), max(box[2] for box in western)


def _pixel(header: Any, grid: GridFacts) -> float:
    """Degrees that a pixel covers at the most."""
    west, south, east, north = header.bounds
    if (crossing := _crossing(header)) is not None:
        west, east = crossing[0], crossing[1] + 360
    rows, columns = grid.shape
    return max((east - west) / columns, (north - south) / rows)


def _box(shape: Any) -> str:
    return "[" + ", ".join(f"{value:.5f}" for value in shape.bounds) + "]"


def _name(grid: GridFacts) -> str:
    return grid.code or "of its header"


def _is_finite(point: tuple[float, float]) -> bool:
    return all(map(math.isfinite, point))


def _json(mapping: Mapping[str, Any]) -> JsonObject:
    """Tuples as the lists that they are in JSON."""

    def lists(value: Any) -> Any:
        if not isinstance(value, tuple | list):
            return value
        return [lists(part) for part in cast(Sequence[Any], value)]

    return {"type": mapping["type"], "coordinates": lists(mapping["coordinates"])}
