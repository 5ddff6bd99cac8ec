"""Places on the Earth: reference systems, and footprints in degrees.

Reference systems of the Earth, and which of their places lie on it.

Formulas of projections answer for any number: what lies beyond the last place begins anew
somewhere else on the Earth.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import numpy as np
import shapely
import shapely.errors
import shapely.geometry
from pyproj import CRS, Transformer
from pyproj.enums import TransformDirection
from pyproj.exceptions import CRSError
from shapely.affinity import translate

from workflows.jobs.datasets import GridInfo
from workflows.shared.errors import InvalidDocument, RuleViolation

_RADII: Final = (6_300_000.0, 6_450_000.0)
"""Metres, between which half the longer axis of every ellipsoid and sphere of the Earth lies."""
_SAMPLES: Final = 33
"""Of a raster in each direction; an odd number, so that its centre is one of them."""
_LEAST: Final = 0.01
SLACK: Final = 1_000.0
"""Units of a projection by which its formulas may be inexact; what begins anew is off by more."""


def refuse_other_planets(crs: str, which: str) -> None:
    """See that a reference system is one of the Earth; one that is not known is no matter here.

    Args:
        crs: Code or WKT.
        which: What it is, at the beginning of the message.

    Raises:
        RuleViolation: It is not.
    """
    try:
        found = CRS.from_user_input(crs)
    except CRSError:
        return
    if found.ellipsoid is None:
        return
    radius = found.ellipsoid.semi_major_metre
    if not _RADII[0] <= radius <= _RADII[1]:
        body = found.geodetic_crs or found
        name = found.name if body.name in found.name else f"{found.name} ({body.name})"
        raise RuleViolation(
            f"{which} is not of the Earth: {name} has a radius of {radius / 1000:,.0f} km; the"
            " catalogue holds places on the Earth only"
        )


def on_earth(system: CRS, xs: Any, ys: Any, slack: float = SLACK) -> Any:
    """Of each place of a map projection, whether it lies on the Earth.

    It does if its degrees lead back to it. In a cylindrical projection, it may also lie one turn
    around the Earth from there.

    Args:
        system: Projected.
        xs: Eastings.
        ys: Northings.
        slack: By how much they may be off.
    """
    if system.geodetic_crs is None:
        return np.ones(np.shape(xs), bool)
    degrees = Transformer.from_crs(system, system.geodetic_crs, always_xy=True)
    back = TransformDirection.INVERSE
    shown: Any = degrees.transform(xs, ys)
    longitudes, latitudes = map(np.asarray, shown)
    again: Any = degrees.transform(longitudes, latitudes, direction=back)
    turn = _turn(degrees)
    with np.errstate(invalid="ignore"):
        off_x, off_y = np.abs(again[0] - xs), np.abs(again[1] - ys)
        is_near = (off_x <= slack) | (np.abs(off_x - turn) <= slack)
        return np.isfinite(longitudes) & np.isfinite(latitudes) & is_near & (off_y <= slack)


def lies_on_earth(
    system: CRS, transform: Sequence[float], width: int, height: int, slack: float = SLACK
) -> bool:
    """Whether a raster lies on the Earth: its centre does, or a hundredth of it.

    Corners of world maps and full disks do not.
    """
    a, b, c, d, e, f = transform
    across, down = np.meshgrid(np.linspace(0, width, _SAMPLES), np.linspace(0, height, _SAMPLES))
    xs, ys = a * across + b * down + c, d * across + e * down + f
    found = on_earth(system, xs, ys, slack)
    middle = _SAMPLES // 2
    return bool(found[middle, middle] or found.mean() >= _LEAST)


def _turn(degrees: Transformer) -> float:
    """Units of a turn around the Earth in a cylindrical projection; nan: it is of another kind."""
    found: Any = degrees.transform(
        np.array([-1.0, 0.0, 1.0] * 2),
        np.array([0.0] * 3 + [60.0] * 3),
        direction=TransformDirection.INVERSE,
    )
    xs: Any = np.asarray(found[0]).reshape(2, 3)
    if not np.isfinite(xs).all():
        return float("nan")
    # One of the steps may be that across its edge.
    steps: Any = np.abs(np.diff(xs, axis=1)).min(axis=1)
    is_cylindrical = np.isclose(steps[0], steps[1], rtol=1e-9)
    return float(360 * steps[0]) if is_cylindrical else float("nan")


Poles = tuple[bool, bool]
"""Whether the north pole and the south pole lie in it."""
_COLUMNS, _ROWS = 720, 360
"""Cells by which it is found where the Earth lies in a raster."""
_NEAR: Final = 1e-3
"""Degrees that a place may be off, there and back."""
_LARGE: Final = 20.0
"""Degrees from which on it is looked for on the whole Earth."""


def wrapped(polygon: Any) -> Any:
    """A polygon whose degrees may exceed those of the Earth, within them."""
    west, south, east, north = polygon.bounds
    if west >= -180 and east <= 180 and south >= -90 and north <= 90:
        return polygon
    turns = range(math.floor((west + 180) / 360), math.ceil((east - 180) / 360) + 1)
    parts = [
        translate(
            polygon.intersection(shapely.box(360 * turn - 180, -90, 360 * turn + 180, 90)),
            -360 * turn,
        )
        for turn in turns
    ]
    return shapely.union_all([part for part in parts if part.area > 0])


def of_ring(longitudes: Any, latitudes: Any, poles: Poles = (False, False)) -> Any:
    """The polygon of a ring on the Earth, cut at the antimeridian.

    None: the ring does not say what lies inside it, since it crosses itself or goes around poles
    in another way than once around one.
    """
    xs: Any = np.unwrap(np.append(longitudes, longitudes[0]), period=360)
    ys: Any = np.append(latitudes, latitudes[0])
    ring: list[Any] = list(zip(xs, ys, strict=True))
    turns = round((xs[-1] - xs[0]) / 360)
    if turns != 0:
        if abs(turns) > 1 or poles[0] == poles[1]:
            return None
        pole = 90.0 if poles[0] else -90.0
        ring += [(xs[-1], pole), (xs[0], pole)]
    elif any(poles):
        return None
    polygon = shapely.Polygon(ring)
    if not polygon.is_valid or not polygon.area:
        return None
    found = shapely.orient_polygons(wrapped(polygon))
    return found if found.is_valid and not found.is_empty else None


def of_places(grid: GridInfo, system: CRS, poles: Poles) -> Any:
    """The polygon of the places of a raster that lie on the Earth, to half a degree at the most.

    For rasters that hold the edge of the Earth as their projection shows it: world maps, full
    disks. None: no place of it does.

    Args:
        grid: The raster; its system is a map projection.
        system: Of the raster.
        poles: Which of them it holds.
    """
    rows, columns = grid.shape
    a, b, c, d, e, f = grid.transform
    across, down = np.meshgrid(np.linspace(0, columns, _SAMPLES), np.linspace(0, rows, _SAMPLES))
    xs, ys = a * across + b * down + c, d * across + e * down + f
    seen: Any = on_earth(system, xs, ys)
    if not seen.any():
        return None
    degrees = Transformer.from_crs(system, "EPSG:4326", always_xy=True)
    sampled: Any = degrees.transform(xs[seen], ys[seen])
    west, south, east, north = _frame(np.asarray(sampled[0]), np.asarray(sampled[1]), poles)
    columns_of, rows_of = (
        np.linspace(west, east, _COLUMNS + 1),
        np.linspace(south, north, _ROWS + 1),
    )
    inside: Any = within(
        grid.transform,
        (columns, rows),
        degrees,
        *np.meshgrid((columns_of[1:] + columns_of[:-1]) / 2, (rows_of[1:] + rows_of[:-1]) / 2),
    )
    cells: list[Any] = [
        shapely.box(columns_of[first], rows_of[at], columns_of[last], rows_of[at + 1])
        for at, line in enumerate(inside)
        for first, last in _runs(line)
    ]
    if not cells:
        return None
    cell = max((east - west) / _COLUMNS, (north - south) / _ROWS)
    whole = shapely.simplify(shapely.union_all(cells), cell)
    return shapely.orient_polygons(wrapped(shapely.make_valid(whole, method="structure")))


def within(
    transform: Sequence[float],
    size: tuple[int, int],
    degrees: Transformer,
    longitudes: Any,
    latitudes: Any,
    margin: float = 0.0,
) -> Any:
    """Of each place on the Earth, whether it lies in a raster.

    Args:
        transform: Of the raster.
        size: Its columns and rows.
        degrees: From its system to degrees.
        longitudes: Of the places.
        latitudes: Of the places.
        margin: Pixels around the raster that count as well.
    """
    a, b, c, d, e, f = transform
    columns, rows = size
    placed: Any = degrees.transform(longitudes, latitudes, direction=TransformDirection.INVERSE)
    found: Any = degrees.transform(placed[0], placed[1])
    with np.errstate(invalid="ignore"):
        x, y = np.asarray(placed[0]) - c, np.asarray(placed[1]) - f
        scale = a * e - b * d
        column, row = (e * x - b * y) / scale, (a * y - d * x) / scale
        inside = (column >= -margin) & (column <= columns + margin)
        inside &= (row >= -margin) & (row <= rows + margin)
        # Beyond the edge of a projection, its formulas lead to another place.
        off = np.abs((np.asarray(found[0]) - longitudes + 180) % 360 - 180)
        inside &= (off <= _NEAR) | (np.abs(latitudes) == 90)
        return inside & (np.abs(np.asarray(found[1]) - latitudes) <= _NEAR)


def _frame(longitudes: Any, latitudes: Any, poles: Poles) -> tuple[float, float, float, float]:
    """A box around places, with some room; its east may exceed 180 degrees."""
    ordered: Any = np.unique(longitudes % 360)
    gaps: Any = np.diff(np.append(ordered, ordered[0] + 360))
    widest = int(gaps.argmax())
    wide = 360 - float(gaps[widest])
    south, north = float(latitudes.min()), float(latitudes.max())
    if any(poles) or max(wide, north - south) >= _LARGE:
        return -180.0, -90.0, 180.0, 90.0
    west = float(ordered[(widest + 1) % len(ordered)])
    west -= 360 if west > 180 else 0
    margin = max(wide, north - south, 1e-3) / 4
    return (
        west - margin,
        max(-90.0, south - margin),
        west + wide + margin,
        min(90.0, north + margin),
    )


def _runs(line: Any) -> list[tuple[int, int]]:
    """Where a line of cells is inside: first cells, and those after the last ones."""
    changes: Any = np.flatnonzero(np.diff(np.concatenate([[False], line, [False]])))
    return [(int(first), int(last)) for first, last in changes.reshape(-1, 2)]


POINTS_PER_EDGE: Final = 64
"""Edges are straight in the raster's system and curved in degrees."""
_DIGITS: Final = 7
"""Decimals of a degree that are kept: a centimetre."""
_POLE_LATITUDE: Final = 90.0

JsonObject = dict[str, Any]
Box = tuple[float, float, float, float]


def footprint(grid: GridInfo) -> JsonObject:
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


def check_footprint(geometry: Mapping[str, Any], grid: GridInfo) -> None:
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


def _shape(grid: GridInfo) -> Any:
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


def _overlap(grid: GridInfo, system: CRS) -> float:
    """Degrees by which pixels whose centres lie on a pole reach beyond it."""
    _, _, _, d, e, _ = grid.transform
    return max(abs(d), abs(e)) if system.is_geographic else 0.0


def _outline(grid: GridInfo) -> tuple[Any, Any]:
    """Eastings and northings of the raster's edge, counter-clockwise as the pixels lie."""
    rows, columns = grid.shape
    share = np.arange(POINTS_PER_EDGE) / POINTS_PER_EDGE
    zero, one = np.zeros(POINTS_PER_EDGE), np.ones(POINTS_PER_EDGE)
    across = np.concatenate([zero, share, one, 1 - share]) * columns
    down = np.concatenate([share, one, 1 - share, zero]) * rows
    a, b, c, d, e, f = grid.transform
    return a * across + b * down + c, d * across + e * down + f


def _system(grid: GridInfo) -> CRS:
    try:
        return CRS.from_user_input(grid.system)
    except CRSError as error:
        raise InvalidDocument(f"the reference system {_name(grid)} is not known") from error


def _poles_within(grid: GridInfo) -> tuple[bool, bool]:
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


def _pixel(header: Any, grid: GridInfo) -> float:
    """Degrees that a pixel covers at the most."""
    west, south, east, north = header.bounds
    if (crossing := _crossing(header)) is not None:
        west, east = crossing[0], crossing[1] + 360
    rows, columns = grid.shape
    return max((east - west) / columns, (north - south) / rows)


def _box(shape: Any) -> str:
    return "[" + ", ".join(f"{value:.5f}" for value in shape.bounds) + "]"


def _name(grid: GridInfo) -> str:
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
