"""Reference systems of the Earth, and which of their places lie on it.

Formulas of projections answer for any number: what lies beyond the last place begins anew
somewhere else on the Earth.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from pyproj import CRS, Transformer
from pyproj.enums import TransformDirection
from pyproj.exceptions import CRSError

from domain.errors import RuleViolation

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
