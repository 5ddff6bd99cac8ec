"""Whether the places of a raster are such as its reference system has.

Formulas of projections answer for any number: places beyond the last one begin anew somewhere else
on the Earth, and a raster would be published there, or without a pixel.
"""

from typing import Any, Final

import numpy as np
from pyproj import CRS, Transformer
from pyproj.enums import TransformDirection

from contracts.jobs.rasters import GridOrder
from domain.errors import RuleViolation

_FARTHEST_LONGITUDE: Final = 540.0
"""Degrees: a raster may begin at 180 and go around the Earth once."""
_SLACK: Final = 1_000.0
"""Units of a projection by which its formulas may be inexact; what begins anew is off by more."""
_FAR: Final = 20.0
"""Degrees outside of the area of a reference system from which on a raster has a note."""


def place(order: GridOrder, columns: Any, rows: Any) -> tuple[Any, Any]:
    """Coordinates of columns and rows, in the raster's reference system."""
    a, b, c, d, e, f = order.transform
    return a * columns + b * rows + c, d * columns + e * rows + f


def placed(order: GridOrder, source: CRS) -> list[str]:
    """See that the corners of a raster are places of its reference system.

    Returns:
        A note, where they are far from the area that the system is made for.

    Raises:
        RuleViolation: They are none.
    """
    xs, ys = _corners(order)
    if source.is_geographic:
        if np.abs(xs).max() > _FARTHEST_LONGITUDE:
            raise RuleViolation(
                f"the raster reaches longitude {xs[np.abs(xs).argmax()]:g}, so its places are not"
                f" degrees: {source.name} cannot be its reference system"
            )
        return []
    if source.geodetic_crs is None:
        return []
    degrees = Transformer.from_crs(source, source.geodetic_crs, always_xy=True)
    longitudes, latitudes = degrees.transform(xs, ys)
    slack = _SLACK + 2 * max(map(abs, (*order.transform[:2], *order.transform[3:5])))
    for x, y, longitude, latitude in zip(xs, ys, longitudes, latitudes, strict=True):
        if not _is_place(degrees, (x, y), (longitude, latitude), slack):
            raise RuleViolation(
                f"the corner {x:g}, {y:g} of the raster is not a place of {source.name}: another"
                " reference system or unit is meant, or its transform is wrong"
            )
    return _far_away(source, longitudes, latitudes)


def refuse_beyond_antimeridian(order: GridOrder, source: CRS, target: CRS) -> None:
    """Refuse to project longitudes beyond 180 degrees: what lies there would be left out.

    Raises:
        RuleViolation: There are some.
    """
    if not source.is_geographic:
        return
    xs, _ = _corners(order)
    slack = 1.5 * (abs(order.transform[0]) + abs(order.transform[1]))
    if np.abs(xs).max() > 180 + slack:
        raise RuleViolation(
            f"the raster has longitudes from {xs.min():g} to {xs.max():g}: what lies beyond the"
            f" antimeridian would be missing in {target.name}; leave target_crs out, or cut the"
            " raster there and write its longitudes from -180 to 180"
        )


def _corners(order: GridOrder) -> tuple[Any, Any]:
    return place(
        order,
        np.array([0.0, order.width, 0.0, order.width]),
        np.array([0.0, 0.0, order.height, order.height]),
    )


def _is_place(
    degrees: Transformer, at: tuple[float, float], shown: tuple[float, float], slack: float
) -> bool:
    """Whether a place is where its degrees are, or one turn around the Earth from there."""
    if not np.isfinite(shown).all():
        return False
    longitude, latitude = shown
    back = TransformDirection.INVERSE
    x, y = degrees.transform(longitude, latitude, direction=back)
    if not (np.isfinite((x, y)).all() and abs(y - at[1]) <= slack):
        return False
    off = abs(x - at[0])
    if off <= slack:
        return True
    beside = (
        degrees.transform(longitude + step, latitude, direction=back)[0] for step in (-1.0, 1.0)
    )
    turn = 360 * min(abs(each - x) for each in beside)
    return bool(abs(off - turn) <= slack)


def _far_away(source: CRS, longitudes: Any, latitudes: Any) -> list[str]:
    area = source.area_of_use
    if area is None:
        return []
    middle = area.west + (area.east - area.west) % 360 / 2
    half = (area.east - area.west) % 360 / 2 or 180.0
    beyond = np.abs((longitudes - middle + 180) % 360 - 180) - half
    above = np.maximum(latitudes - area.north, area.south - latitudes)
    off = float(np.maximum(beyond, above).max())
    if off <= _FAR:
        return []
    return [
        f"it lies {off:.0f} degrees outside of the area that {source.name} is made for: see"
        " whether its file names the right reference system"
    ]
