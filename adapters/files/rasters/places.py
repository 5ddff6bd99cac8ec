"""Whether the places of a raster are such as its reference system has.

Formulas of projections answer for any number: places beyond the last one begin anew somewhere else
on the Earth, and a raster would be published there, or without a pixel.
"""

from typing import Any, Final

import numpy as np
from pyproj import CRS, Transformer

from contracts.jobs.rasters import GridOrder
from domain.errors import RuleViolation
from domain.jobs.earth import SLACK, lies_on_earth, on_earth

_FARTHEST_LONGITUDE: Final = 540.0
"""Degrees: a raster may begin at 180 and go around the Earth once."""
_FAR: Final = 20.0
"""Degrees outside of the area of a reference system from which on a raster has a note."""


def place(order: GridOrder, columns: Any, rows: Any) -> tuple[Any, Any]:
    """Coordinates of columns and rows, in the raster's reference system."""
    a, b, c, d, e, f = order.transform
    return a * columns + b * rows + c, d * columns + e * rows + f


def placed(order: GridOrder, source: CRS) -> list[str]:
    """See that a raster lies where its reference system has places.

    Returns:
        A note, where they are far from the area that the system is made for.

    Raises:
        RuleViolation: It does not.
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
    slack = slack_of(order)
    if not lies_on_earth(source, order.transform, order.width, order.height, slack):
        x, y = place(order, order.width / 2, order.height / 2)
        raise RuleViolation(
            f"the centre {x:g}, {y:g} of the raster is not a place of {source.name}: another"
            " reference system or unit is meant, or its transform is wrong"
        )
    if not on_earth(source, xs, ys, slack).all():
        return []
    degrees = Transformer.from_crs(source, source.geodetic_crs, always_xy=True)
    return _far_away(source, *degrees.transform(xs, ys))


def slack_of(order: GridOrder) -> float:
    """Units by which places of a raster may be off: its edge may lie a pixel beyond the Earth."""
    return SLACK + 2 * max(map(abs, (*order.transform[:2], *order.transform[3:5])))


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
