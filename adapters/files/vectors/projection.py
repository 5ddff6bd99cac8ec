"""From the CRS of a layer to EPSG:4326, and how exact that is.

Source: PROJ picks operations by area; the first that it knows for the area of the data is taken,
and what would be better with a grid that is missing is said.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, cast

import numpy as np
import pyproj
from pyproj.aoi import AreaOfInterest
from pyproj.exceptions import CRSError, ProjError
from pyproj.transformer import TransformerGroup

from adapters.files.vectors.layers import Refused, Unsure
from workflows.jobs.vectors import Projection

TARGET: Final = "EPSG:4326"
_CONFIDENCE: Final = 70
_BALLPARK: Final = "ballpark"
_UNDEFINED: Final = "undefined"
"""What GeoPackages call a CRS that is not known."""

Coordinates = np.ndarray[Any, Any]


class _NotUnderstood(Refused):
    """A text that is not a coordinate reference system."""


@dataclass(frozen=True, slots=True)
class ToDegrees:
    """Brings coordinates to longitude and latitude."""

    report: Projection
    notes: list[str] = field(default_factory=list[str])
    transformer: pyproj.Transformer | None = None
    """None: they are in them already."""
    in_degrees: bool = True
    """They are in degrees, perhaps of another datum."""

    def __call__(self, points: Coordinates) -> Coordinates:
        """Points of shape (n, 2), or (n, 3) whose heights stay as they are."""
        if self.transformer is None:
            return points
        x, y = self.transformer.transform(points[:, 0], points[:, 1])
        return np.column_stack([x, y, *points.T[2:]])


def to_degrees(
    crs: str | None,
    parameter: str | None,
    layer: str,
    bounds: tuple[float, float, float, float] | None,
    *,
    allow_ballpark: bool,
) -> ToDegrees:
    """The operation for a layer.

    Args:
        crs: As the layer says.
        parameter: For one that says none, or none that can be understood.
        layer: Its name.
        bounds: Of its coordinates; None: it has none.
        allow_ballpark: Take coordinates of another datum as they are, if need be.

    Raises:
        Refused: The datum has no operation.
        Unsure: Nothing says the CRS, or what says it cannot be understood.
    """
    notes: list[str] = []
    text = crs or parameter
    if text is None:
        raise Unsure(
            "source_crs",
            f"layer {layer!r} does not say its coordinate reference system"
            f"{_extent(bounds)}. Which one is it (for example EPSG:25832)?",
        )
    try:
        try:
            system = _system(text, layer)
        except _NotUnderstood as error:
            if crs is None or parameter is None:
                raise
            notes.append(f"{error}, so source_crs={parameter[:80]!r} is used")
            crs = None
            system = _system(parameter, layer)
    except Refused as error:
        if crs is not None and not isinstance(error, _NotUnderstood):
            raise
        # A person can give it, or another one.
        raise Unsure("source_crs", f"{error}; which one is it?") from error
    name = _name(system)
    if system.is_geocentric:
        raise Refused(
            f"layer {layer!r} is in {name}, whose coordinates are distances from the centre of the"
            " Earth; bring it to longitude and latitude"
        )
    notes += _notes(system, crs, parameter)
    if system.to_2d().equals(pyproj.CRS(TARGET), ignore_axis_order=True):
        return ToDegrees(Projection(source=name, accuracy=0), notes)
    area: Any = _area(system, bounds)
    with warnings.catch_warnings():
        # It warns of the grid that the note below names.
        warnings.simplefilter("ignore", UserWarning)
        group = TransformerGroup(system, TARGET, always_xy=True, area_of_interest=area)
    usable = [each for each in group.transformers if _BALLPARK not in each.description.lower()]
    if not group.best_available and group.unavailable_operations:
        best = group.unavailable_operations[0]
        grids = ", ".join(grid.short_name for grid in best.grids if not grid.available)
        notes.append(f"a better operation, {best.name}, lacks the grid {grids or 'that it needs'}")
    if not usable and not (allow_ballpark and group.transformers):
        raise Refused(
            f"layer {layer!r}: no operation is known from {name} to {TARGET} but to take the datum"
            " for the same; allow_ballpark=true does that"
        )
    chosen = (usable or group.transformers)[0]
    accuracy = chosen.accuracy if chosen.accuracy >= 0 else None
    report = Projection(source=name, operation=chosen.description[:1_000], accuracy=accuracy)
    return ToDegrees(report, notes, chosen, in_degrees=system.is_geographic)


def _system(text: str, layer: str) -> pyproj.CRS:
    try:
        system = pyproj.CRS.from_user_input(text)
        if system.to_authority() is None and (found := system.to_epsg(_CONFIDENCE)) is not None:
            system = pyproj.CRS.from_epsg(found)
    except (CRSError, ProjError) as error:
        message = f"layer {layer!r}: its CRS {text[:80]!r} cannot be understood"
        raise _NotUnderstood(message) from error
    if system.is_engineering or system.name.lower().startswith(_UNDEFINED):
        raise _NotUnderstood(f"layer {layer!r}: its CRS {_name(system)} is no place on the Earth")
    return system


def _notes(system: pyproj.CRS, crs: str | None, parameter: str | None) -> Iterator[str]:
    if crs and parameter:
        yield f"the layer says its CRS, so the parameter source_crs={parameter[:80]!r} is not used"
    if len(system.axis_info) > 2 or system.is_compound:
        yield "heights stay as they are: their datum is not changed"


def _area(
    system: pyproj.CRS, bounds: tuple[float, float, float, float] | None
) -> AreaOfInterest | None:
    if bounds is None:
        return None
    base = system.geodetic_crs
    try:
        plain = pyproj.Transformer.from_crs(system, base, always_xy=True)
        west, south, east, north = plain.transform_bounds(*bounds)
    except ProjError:
        return None
    if not np.isfinite([west, south, east, north]).all() or west > east:
        return None
    return AreaOfInterest(max(west, -180), max(south, -90), min(east, 180), min(north, 90))


def _name(system: pyproj.CRS) -> str:
    authority = cast(tuple[str, str] | None, system.to_authority())
    return system.name if authority is None else f"{':'.join(authority)} ({system.name})"


def _extent(bounds: tuple[float, float, float, float] | None) -> str:
    if bounds is None:
        return ""
    return " (coordinates from {:g} {:g} to {:g} {:g})".format(*bounds)
