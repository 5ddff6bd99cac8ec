"""Outlines in degrees: cut at the antimeridian, around poles, and of what lies on the Earth."""

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import shapely
from pyproj import CRS, Transformer
from pyproj.enums import TransformDirection
from shapely.affinity import translate

from contracts.jobs.stac import GridFacts
from domain.jobs.earth import on_earth

Poles = tuple[bool, bool]
"""Whether the north pole and the south pole lie in it."""
_SAMPLES: Final = 33
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


def of_places(grid: GridFacts, system: CRS, poles: Poles) -> Any:
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
