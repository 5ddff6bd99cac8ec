"""Geometries made valid and brought to degrees; what cannot be is rejected with its reason."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import antimeridian
import numpy as np
import shapely
from shapely.geometry.base import BaseGeometry

from workflows.jobs.vectors import GeometryType

Geometries = np.ndarray[Any, Any]

_HALF_TURN: Final = 180.0
_PIECES: Final = 32
"""Into how many an edge is cut to see whether it crosses the antimeridian."""
_FULL_TURN: Final = 360.0
_SLACK: Final = 1e-5
"""Degrees by which a coordinate may exceed its range: a metre, as 32 bits round it."""
_WORLD: Final = np.array([-180.0, -90.0, 180.0, 90.0])
_TYPES: Final = {
    0: GeometryType.POINT,
    1: GeometryType.LINE_STRING,
    2: GeometryType.LINE_STRING,
    3: GeometryType.POLYGON,
    4: GeometryType.MULTI_POINT,
    5: GeometryType.MULTI_LINE_STRING,
    6: GeometryType.MULTI_POLYGON,
    7: GeometryType.COLLECTION,
}


@dataclass(slots=True)
class Cleaned:
    """What became of some geometries."""

    geometries: Geometries
    rejected: dict[int, str] = field(default_factory=dict[int, str])
    """Place to reason."""
    changed: dict[int, str] = field(default_factory=dict[int, str])
    """Place to what was done to a geometry that is kept."""
    repaired: int = 0
    collapsed: int = 0
    area_change: float = 0.0
    measured: int = 0
    """Geometries whose M values were left out."""
    filled: int = 0
    """Geometries with heights at some of their places, which have height 0 at the others now."""


def clean(
    geometries: Geometries,
    transform: Callable[[Geometries], Geometries] | None,
    max_area_change: float,
    *,
    in_degrees: bool = True,
    cuts: bool = True,
) -> Cleaned:
    """Make geometries valid, and bring them to longitude and latitude.

    Args:
        geometries: Of `shapely`; None stays None.
        transform: From their coordinates, shape (n, 2) or (n, 3), to degrees; None: they are.
        max_area_change: A repair that changes the area by a larger share rejects the geometry.
        in_degrees: Coordinates are degrees, perhaps of another datum.
        cuts: Edges of more than 180 of these degrees cross the antimeridian, and are cut there.
    """
    found = Cleaned(geometries.copy())
    _drop_measures(found)
    _fill_heights(found)
    _refuse_unreal(found, "it has coordinates that are not numbers")
    if transform is None and cuts:
        _cut_at_antimeridian(found)
    _repair(found, max_area_change)
    if transform is not None:
        source = found.geometries
        found.geometries = _transformed(source, transform)
        _refuse_unreal(found, "its coordinates cannot be brought to EPSG:4326")
        if not in_degrees:
            _cut_at_antimeridian(found, transform, source)
        elif cuts:
            _cut_at_antimeridian(found)
        _repair(found, max_area_change)
    _shift(found)
    _clip(found)
    _repair(found, max_area_change)
    _refuse_outside(found)
    return found


def types_of(geometries: Geometries) -> frozenset[GeometryType]:
    """All types among geometries; None has none."""
    return frozenset(
        _TYPES[each] for each in np.unique(shapely.get_type_id(geometries)) if each >= 0
    )


def as_multi(geometries: Geometries, target: GeometryType) -> Geometries:
    """Geometries as a table of a type takes them: single ones become multiple where it says so."""
    build = _BUILDERS.get(target)
    if build is None:
        return geometries
    single = _SINGLE[target]
    found = geometries.copy()
    for place in np.flatnonzero(shapely.get_type_id(geometries) == single):
        found[place] = build([geometries[place]])
    return found


_SINGLE: Final = {
    GeometryType.MULTI_POINT: 0,
    GeometryType.MULTI_LINE_STRING: 1,
    GeometryType.MULTI_POLYGON: 3,
}
_BUILDERS: Final[dict[GeometryType, Callable[[Any], Any]]] = {
    GeometryType.MULTI_POINT: shapely.multipoints,
    GeometryType.MULTI_LINE_STRING: shapely.multilinestrings,
    GeometryType.MULTI_POLYGON: shapely.multipolygons,
}


def _drop_measures(found: Cleaned) -> None:
    measured = shapely.has_m(found.geometries)
    if measured.any():
        found.measured += int(measured.sum())
        for place in np.flatnonzero(measured):
            found.geometries[place] = _unmeasured(found.geometries[place])


def _unmeasured(geometry: BaseGeometry) -> BaseGeometry:
    if not shapely.has_z(geometry):
        return shapely.force_2d(geometry)
    # Extended binary of a geometry with Z and M, of which three ordinates are written.
    return shapely.from_wkb(shapely.to_wkb(geometry, output_dimension=3))


def _fill_heights(found: Cleaned) -> None:
    """Give height 0 to the places that lack one in a geometry with heights."""
    high = np.flatnonzero(shapely.has_z(found.geometries))
    points, owners = shapely.get_coordinates(
        found.geometries[high], include_z=True, return_index=True
    )
    for place in high[np.unique(owners[np.isnan(points[:, 2])])]:
        # Parts of two dimensions first: only those of three have a height to be filled.
        geometry = shapely.force_3d(found.geometries[place], 0.0)
        found.geometries[place] = shapely.transform(geometry, _grounded, include_z=True)
        found.filled += 1


def _grounded(points: Geometries) -> Geometries:
    points[np.isnan(points[:, 2]), 2] = 0.0
    return points


def _refuse_unreal(found: Cleaned, reason: str) -> None:
    points, owners = shapely.get_coordinates(found.geometries, return_index=True)
    for place in np.unique(owners[~np.isfinite(points).all(axis=1)]):
        _reject(found, int(place), reason)


def _reject(found: Cleaned, place: int, reason: str) -> None:
    found.geometries[place] = None
    found.changed.pop(place, None)
    found.rejected[place] = reason


def _repair(found: Cleaned, most: float) -> None:
    there = ~shapely.is_missing(found.geometries)
    invalid = np.flatnonzero(there & ~shapely.is_valid(found.geometries))
    for place in map(int, invalid):
        before: BaseGeometry = found.geometries[place]
        reason: Any = shapely.is_valid_reason(before)
        after: Any = shapely.make_valid(before, method="structure", keep_collapsed=False)
        if shapely.is_empty(after) or not shapely.is_valid(after):
            _reject(found, place, f"it is not valid ({reason}), and nothing is left when repaired")
            continue
        change = _area_change(before, after)
        if change > most:
            text = f"it is not valid ({reason}), and a repair changes its area by {change:.1%}"
            _reject(found, place, text)
            continue
        whole: Any = shapely.make_valid(before, method="structure", keep_collapsed=True)
        lost = _collapsed(whole, int(shapely.get_dimensions(before)))
        found.repaired += place not in found.changed
        found.collapsed += lost
        found.area_change = max(found.area_change, change)
        text = f"it was not valid ({reason}); a repair changed its area by {change:.2%}"
        _change(found, place, after, f"{text} and {lost} parts collapsed" if lost else text)


def _change(found: Cleaned, place: int, geometry: BaseGeometry, reason: str) -> None:
    found.geometries[place] = geometry
    before = found.changed.get(place)
    found.changed[place] = reason if before is None else f"{before}; {reason}"


def _area_change(before: BaseGeometry, after: BaseGeometry) -> float:
    first, second = float(shapely.area(before)), float(shapely.area(after))
    largest = max(first, second)
    return abs(first - second) / largest if largest > 0 and math.isfinite(largest) else 0.0


def _collapsed(geometry: BaseGeometry, dimensions: int) -> int:
    """Parts of fewer dimensions than the geometry had; lines that touch are one."""
    parts = shapely.get_parts(shapely.get_parts(geometry))
    lost = parts[shapely.get_dimensions(parts) < dimensions]
    if len(lost) == 0:
        return 0
    joined = shapely.union_all(lost)
    merged = shapely.line_merge(joined) if shapely.get_dimensions(joined) == 1 else joined
    return int(shapely.get_num_geometries(merged))


def _transformed(
    geometries: Geometries, transform: Callable[[Geometries], Geometries]
) -> Geometries:
    has_z = shapely.has_z(geometries)
    result = geometries.copy()
    for with_z in (False, True):
        chosen = has_z == with_z
        if chosen.any():
            result[chosen] = shapely.transform(geometries[chosen], transform, include_z=with_z)
    return result


def _cut_at_antimeridian(
    found: Cleaned,
    transform: Callable[[Geometries], Geometries] | None = None,
    source: Geometries | None = None,
) -> None:
    """Cut what is as wide as the world because it crosses the antimeridian.

    An edge of more than 180 degrees crosses it. One that was transformed may really be as long: its
    pieces show which.
    """
    bounds = shapely.bounds(found.geometries)
    wide = np.flatnonzero(bounds[:, 2] - bounds[:, 0] > _HALF_TURN)
    for place in map(int, wide):
        geometry = found.geometries[place]
        if not _jumps(geometry):
            continue
        if transform is not None and source is not None:
            length = float(np.ptp(shapely.bounds(source[place]).reshape(2, 2), axis=0).max())
            pieces = shapely.segmentize(source[place], max(length / _PIECES, 1e-9))
            if not _jumps(shapely.transform(pieces, transform)):
                continue
        cut = _cut(geometry)
        if cut is None:
            _reject(found, place, "it crosses the antimeridian and cannot be cut there")
            continue
        _change(found, place, cut, "it crosses the antimeridian and was cut there")


def _jumps(geometry: BaseGeometry) -> bool:
    """Whether an edge within the world is longer than its half; its own edge is as long."""
    lines = shapely.get_parts(shapely.get_rings(shapely.get_parts(geometry)))
    if len(lines) == 0:
        lines = shapely.get_parts(geometry)
    return any(map(_has_long_edge, lines))


def _has_long_edge(line: BaseGeometry) -> bool:
    if shapely.get_dimensions(line) != 1:
        return False
    x = shapely.get_coordinates(line)[:, 0]
    is_inside = np.abs(x) < _HALF_TURN - _SLACK
    return bool(((np.abs(np.diff(x)) > _HALF_TURN) & is_inside[1:] & is_inside[:-1]).any())


def _cut(geometry: BaseGeometry) -> BaseGeometry | None:
    kind = _TYPES[int(shapely.get_type_id(geometry))]
    if kind is GeometryType.COLLECTION:
        return None
    cut: list[Any] = []
    try:
        for part in shapely.get_parts(geometry):
            found = _cut_part(part) if _jumps(part) else part
            if found is None:
                return None
            cut += shapely.get_parts(found).tolist()
    except shapely.errors.GEOSException:
        return None
    is_area = shapely.get_dimensions(geometry) == 2
    return shapely.multipolygons(cut) if is_area else shapely.multilinestrings(cut)


def _cut_part(part: BaseGeometry) -> BaseGeometry | None:
    """A polygon or a line, unrolled beyond 180 degrees, then cut there."""
    is_area, has_z = isinstance(part, shapely.Polygon), bool(shapely.has_z(part))
    unrolled: list[Geometries] = []
    for line in shapely.get_rings(part) if is_area else [part]:
        points = shapely.get_coordinates(line, include_z=has_z)
        points[:, 0] = np.unwrap(points[:, 0], period=_FULL_TURN)
        if isinstance(part, shapely.Polygon) and abs(points[0, 0] - points[-1, 0]) > _SLACK:
            # It goes around a pole.
            return None if has_z else antimeridian.fix_polygon(part, great_circle=False)
        # A hole goes where its outer ring is.
        away = unrolled[0][:, 0].mean() - points[:, 0].mean() if unrolled else 0.0
        points[:, 0] += _FULL_TURN * np.round(away / _FULL_TURN)
        unrolled.append(points)
    west = float(unrolled[0][:, 0].min())
    turns = _FULL_TURN * np.floor((west + _HALF_TURN) / _FULL_TURN)
    for points in unrolled:
        points[:, 0] -= turns
    # Its functions take one geometry or many, and their types do not say which.
    make: Any = shapely
    if not is_area:
        return _shifted(make.linestrings(unrolled[0]), west - turns)
    outer, *holes = map(make.linearrings, unrolled)
    return _shifted(make.polygons(outer, holes or None), west - turns)


def _shift(found: Cleaned) -> None:
    """Bring longitudes from 180 to 360 to the west; what crosses the antimeridian is cut there."""
    west, south, east, north = shapely.bounds(found.geometries).T
    is_far = (east > _HALF_TURN + _SLACK) & (east <= _FULL_TURN + _SLACK)
    is_real = (west >= -_HALF_TURN - _SLACK) & (east - west <= _FULL_TURN + _SLACK)
    is_real &= (south >= -90 - _SLACK) & (north <= 90 + _SLACK)
    for place in map(int, np.flatnonzero(is_far & is_real)):
        shifted = _shifted(found.geometries[place], float(west[place]))
        if shifted is not None:
            _change(found, place, shifted, "its longitudes beyond 180 degrees were shifted by -360")


def _shifted(geometry: BaseGeometry, west: float) -> BaseGeometry | None:
    kind = _TYPES[int(shapely.get_type_id(geometry))]
    if kind is GeometryType.COLLECTION:
        return None
    size = int(shapely.get_dimensions(geometry))
    if size == 0:
        return _moved(geometry, _wrapped)
    if west >= _HALF_TURN - _SLACK:
        return _moved(geometry, _westward)
    near: Any = shapely.intersection(geometry, shapely.box(-200, -100, _HALF_TURN, 100))
    far: Any = shapely.intersection(geometry, shapely.box(_HALF_TURN, -100, 600, 100))
    parts = shapely.get_parts([near, _moved(far, _westward)])
    # Where it only touches the edge, what is left there has fewer dimensions.
    parts = [each for each in parts if shapely.get_dimensions(each) == size]
    return shapely.union_all(parts) if size == 2 else shapely.multilinestrings(parts)


def _moved(geometry: BaseGeometry, move: Callable[[Geometries], Geometries]) -> BaseGeometry:
    return shapely.transform(geometry, move, include_z=bool(shapely.has_z(geometry)))


def _westward(points: Geometries) -> Geometries:
    points[:, 0] -= _FULL_TURN
    return points


def _wrapped(points: Geometries) -> Geometries:
    points[points[:, 0] > _HALF_TURN + _SLACK, 0] -= _FULL_TURN
    return points


def _clip(found: Cleaned) -> None:
    """Bring coordinates to the edge of the world that rounding has put beside it."""
    bounds = shapely.bounds(found.geometries)
    excess = np.maximum(_WORLD[:2] - bounds[:, :2], bounds[:, 2:] - _WORLD[2:]).max(axis=1)
    for place in map(int, np.flatnonzero((excess > 0) & (excess <= _SLACK))):
        clipped = _moved(found.geometries[place], _clipped)
        reason = f"its coordinates were clipped: they lay {excess[place]:.1g} degrees off the world"
        _change(found, place, clipped, reason)


def _clipped(points: Geometries) -> Geometries:
    points[:, :2] = np.clip(points[:, :2], _WORLD[:2], _WORLD[2:])
    return points


def _refuse_outside(found: Cleaned) -> None:
    bounds = shapely.bounds(found.geometries)
    low = (bounds[:, :2] < _WORLD[:2] - _SLACK).any(axis=1)
    high = (bounds[:, 2:] > _WORLD[2:] + _SLACK).any(axis=1)
    for place in map(int, np.flatnonzero(low | high)):
        west, south, east, north = bounds[place]
        _reject(
            found,
            place,
            f"it lies outside of the world ({west:.6g} {south:.6g} to {east:.6g} {north:.6g}"
            " degrees): is its CRS right?",
        )
