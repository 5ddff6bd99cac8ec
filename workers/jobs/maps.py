"""Maps of footprints: an outline in degrees, with coordinates and a scale.

A map is drawn from the outline alone: nothing is fetched from elsewhere.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

WIDTH: Final = 420.0
HEIGHT: Final = 300.0
_FRAME: Final = (66.0, 8.0, 412.0, 252.0)
"""Left, upper, right and lower edge of the map; coordinates and the scale are outside of it."""
_MARGIN: Final = 26.0
"""Between the frame and a footprint."""
_LINES: Final = 5
"""Meridians and parallels that are about drawn."""
_POINTS: Final = 2_000
"""Of one line; more could not be seen."""
KILOMETRES_PER_DEGREE: Final = 111.195
_SMALLEST: Final = 1e-5
"""Degrees, about a metre: a point is drawn in an area of this size."""
_POLE: Final = 89.999
"""Degrees of latitude from which on a footprint holds the pole."""
_BAR: Final = 100.0
"""Longest scale bar, in units of the drawing."""

Position = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Graduation:
    """A meridian or a parallel: its place along the frame, and what it is called."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Footprint:
    """A drawing of `WIDTH` by `HEIGHT`."""

    path: str
    """Of SVG: areas and lines."""
    points: tuple[Position, ...]
    """Centres of points."""
    bar: float
    """Length of the scale bar."""
    bar_label: str
    """What it stands for: `5 km`."""
    west: float
    south: float
    east: float
    north: float
    """Limits in degrees; an east above 180 lies beyond the antimeridian."""
    meridians: tuple[Graduation, ...]
    parallels: tuple[Graduation, ...]
    """None if it is drawn as seen from above a pole."""
    box: tuple[float, float, float, float] | None
    """Left and upper edge, width and height of what a picture of it is stretched over; None: it
    has no area, or surrounds a pole."""
    size: tuple[float, float] = (WIDTH, HEIGHT)
    frame: tuple[float, float, float, float] = _FRAME


@dataclass(frozen=True, slots=True)
class _Line:
    positions: Sequence[Position]
    closed: bool


def footprint(geometry: Mapping[str, Any]) -> Footprint | None:
    """Draw a geometry; None: it holds no position that can be drawn.

    Degrees of longitude are shortened as they are at the middle latitude, so that distances
    compare in both directions. What surrounds a pole is drawn as seen from above it.

    Args:
        geometry: GeoJSON (RFC 7946), in degrees.
    """
    try:
        lines = list(_lines(geometry))
    except (KeyError, TypeError, ValueError, IndexError):
        return None
    every = [position for line in lines for position in line.positions]
    if not every or not all(math.isfinite(number) for position in every for number in position):
        return None
    west, _, east, _ = _bounds(every)
    surrounds = any(_width(line) > 180 for line in lines)
    if east - west > 180 and not surrounds:
        # Parts on both sides of the antimeridian are drawn beside each other.
        lines = [_moved(line, _eastward) for line in lines]
        every = [position for line in lines for position in line.positions]
    west, south, east, north = _bounds(every)
    shrink = max(math.cos(math.radians((south + north) / 2)), 0.01)
    flat = _from_above(south, north) if surrounds else None
    lines = [_moved(line, flat or (lambda at: (at[0] * shrink, at[1]))) for line in lines]
    x0, y0, x1, y1 = _bounds([position for line in lines for position in line.positions])
    wide, high = max(x1 - x0, _SMALLEST), max(y1 - y0, _SMALLEST)
    left, top, right, lower = _FRAME
    scale = min((right - left - 2 * _MARGIN) / wide, (lower - top - 2 * _MARGIN) / high)
    # The middle of the footprint is the middle of the map.
    x_of, y_of = (left + right - (x0 + x1) * scale) / 2, (top + lower + (y0 + y1) * scale) / 2

    def placed(position: Position) -> Position:
        x, y = position
        return x_of + x * scale, y_of - y * scale

    is_area = any(line.closed for line in lines)
    length, label = _bar(scale)
    return Footprint(
        path="".join(_path(line, placed) for line in lines if len(line.positions) > 1),
        points=tuple(placed(each.positions[0]) for each in lines if len(each.positions) == 1),
        bar=length,
        bar_label=label,
        west=west,
        south=south,
        east=east,
        north=north,
        meridians=() if flat else _graduations(x_of, scale * shrink, (left, right), _longitude),
        parallels=() if flat else _graduations(y_of, -scale, (lower, top), _latitude),
        box=None
        if flat or not is_area
        else (*placed((x0, y1)), (x1 - x0) * scale, (y1 - y0) * scale),
    )


def _graduations(
    zero: float, scale: float, edges: tuple[float, float], name: Callable[[float, int], str]
) -> tuple[Graduation, ...]:
    """Lines at even numbers of degrees between two edges of the frame."""
    first, last = ((edge - zero) / scale for edge in edges)
    step, digits = _step((last - first) / _LINES)
    numbers = range(math.ceil(first / step), math.floor(last / step) + 1)
    return tuple(
        Graduation(round(zero + number * step * scale, 1), label)
        for number in numbers
        if (label := name(number * step, digits))
    )


def _step(wanted: float) -> tuple[float, int]:
    """The least of 1, 2 and 5 times a power of ten that is not below, and its decimals."""
    power = math.floor(math.log10(wanted))
    step = next(each for each in (1, 2, 5, 10) if each * 10.0**power >= wanted) * 10.0**power
    return step, max(0, -math.floor(math.log10(step) + 1e-9))


def _longitude(degrees: float, digits: int) -> str:
    if abs(degrees) > 180:
        degrees -= math.copysign(360, degrees)
    return _degrees(degrees, digits, "E", "W")


def _latitude(degrees: float, digits: int) -> str:
    """Empty: there is no such latitude."""
    return "" if abs(degrees) > 90 else _degrees(degrees, digits, "N", "S")


def _degrees(degrees: float, digits: int, above: str, below: str) -> str:
    text = f"{abs(degrees):.{digits}f}"
    side = "" if float(text) in (0, 180) else above if degrees > 0 else below
    return f"{text}°{side}"


def _bounds(positions: Sequence[Position]) -> tuple[float, float, float, float]:
    xs, ys = [x for x, _ in positions], [y for _, y in positions]
    return min(xs), min(ys), max(xs), max(ys)


def _width(line: _Line) -> float:
    west, _, east, _ = _bounds(line.positions)
    return east - west


def _moved(line: _Line, move: Callable[[Position], Position]) -> _Line:
    return _Line([move(each) for each in line.positions], line.closed)


def _from_above(south: float, north: float) -> Callable[[Position], Position] | None:
    """Degrees from a pole in every direction; None: there is nothing around one pole alone."""
    if south > 0 and north >= _POLE:
        side = 1.0
    elif north < 0 and south <= -_POLE:
        side = -1.0
    else:
        return None

    def move(position: Position) -> Position:
        angle, distance = math.radians(position[0]), 90 - side * position[1]
        return distance * math.sin(angle), -side * distance * math.cos(angle)

    return move


def _lines(geometry: Mapping[str, Any]) -> Iterator[_Line]:
    kind = geometry["type"]
    if kind == "GeometryCollection":
        for each in geometry["geometries"]:
            yield from _lines(each)
        return
    found = geometry["coordinates"]
    match kind:
        case "Point":
            yield _Line([_position(found)], closed=False)
        case "MultiPoint":
            yield from (_Line([_position(each)], closed=False) for each in found)
        case "LineString":
            yield _line(found, closed=False)
        case "MultiLineString":
            yield from (_line(each, closed=False) for each in found)
        case "Polygon":
            yield from (_line(each, closed=True) for each in found)
        case "MultiPolygon":
            yield from (_line(ring, closed=True) for each in found for ring in each)
        case _:
            raise ValueError(kind)


def _line(found: Sequence[Any], *, closed: bool) -> _Line:
    step = max(1, math.ceil(len(found) / _POINTS))
    return _Line([_position(each) for each in found[::step]], closed)


def _position(found: Sequence[Any]) -> Position:
    return float(found[0]), float(found[1])


def _eastward(position: Position) -> Position:
    x, y = position
    return (x + 360 if x < 0 else x), y


def _path(line: _Line, placed: Any) -> str:
    positions = (placed(each) for each in line.positions)
    drawn = "L".join(f"{x:.1f} {y:.1f}" for x, y in positions)
    return f"M{drawn}{'Z' if line.closed else ''}"


def _bar(scale: float) -> tuple[float, str]:
    """The longest of 1, 2 and 5 times a power of ten that fits, and its name."""
    per_kilometre = scale / KILOMETRES_PER_DEGREE
    fitting = _BAR / per_kilometre
    power = 10.0 ** math.floor(math.log10(fitting))
    kilometres = max(factor * power for factor in (1, 2, 5) if factor * power <= fitting)
    label = f"{kilometres:,.0f} km" if kilometres >= 1 else f"{kilometres * 1000:,.3g} m"
    return kilometres * per_kilometre, label
