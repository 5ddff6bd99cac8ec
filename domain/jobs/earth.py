"""Reference systems of the Earth, and of no other planet or moon."""

from typing import Final

from pyproj import CRS
from pyproj.exceptions import CRSError

from domain.errors import RuleViolation

_RADII: Final = (6_300_000.0, 6_450_000.0)
"""Metres, between which half the longer axis of every ellipsoid and sphere of the Earth lies."""


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
