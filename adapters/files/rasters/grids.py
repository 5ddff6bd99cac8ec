"""Target grids: reference system, resolution and corner, fixed once for all tiles.

The resolution has no more than 24 significant bits and corners are multiples of it, so that the
place of every pixel is the same number however it is reached: that makes tiles equal the whole.
"""

import math
from typing import Any, Final

import numpy as np
from pyproj import CRS, Transformer
from pyproj.aoi import AreaOfInterest
from pyproj.enums import TransformDirection
from pyproj.exceptions import ProjError
from pyproj.transformer import TransformerGroup

from adapters.files.footprints import on_earth, within
from adapters.files.rasters.inspect import place, placed, refuse_beyond_antimeridian, slack_of
from workflows.jobs.rasters import TILE, GridInput, Operation, TargetGrid
from workflows.shared.errors import RuleViolation

_group: Any = TransformerGroup
_SAMPLES: Final = 33
_BITS: Final = 24
_GROWTH: Final = 8
"""Target to source pixels, at the source's resolution: more comes from a torn raster."""
_TILE_BYTES: Final = 32 << 20
_SMALLEST_TILE: Final = 512
_MOST_PIXELS: Final = 1 << 40


def target_grid(order: GridInput) -> TargetGrid:
    """The grid for a raster.

    Raises:
        RuleViolation: There is none that would be right; the message says what to do.
    """
    source = _crs(order.crs, "the reference system of the raster")
    target = _crs(order.target_crs, "parameter target_crs") if order.target_crs else source
    name = order.target_crs or order.crs
    same = source.equals(target)
    _refuse_beyond_poles(order, source)
    notes = placed(order, source)
    if not same:
        refuse_beyond_antimeridian(order, source, target)
    if same and order.resolution is None and _is_upright(order):
        return TargetGrid(
            crs=name,
            transform=order.transform,
            width=order.width,
            height=order.height,
            method="copy",
            tile=_tile(order),
            notes=tuple(notes),
        )
    operation = None if same else _operation(source, target, order)
    return _warped(order, source, target, name, operation, notes)


def _warped(
    order: GridInput,
    source: CRS,
    target: CRS,
    name: str,
    operation: Operation | None,
    notes: list[str],
) -> TargetGrid:
    transformer = Transformer.from_crs(source, target, always_xy=True)
    xs, ys = _sampled(order, transformer, source, target)
    if source.is_projected:
        _refuse_poles(order, source, target)
        xs = _unwrapped(xs, notes) if target.is_geographic else xs
    native = _native_resolution(order, transformer, target)
    if order.resolution is not None and order.resolution > max(native, np.ptp(xs), np.ptp(ys)):
        raise RuleViolation(
            f"parameter resolution, {order.resolution:g}, is larger than the whole raster: give it"
            f" in the units of {name}; a pixel of the raster has about {native:g}"
        )
    resolution = _quantised(order.resolution or native)
    left, top = math.floor(xs.min() / resolution), math.ceil(ys.max() / resolution)
    right, bottom = math.ceil(xs.max() / resolution), math.floor(ys.min() / resolution)
    left, right = _within_earth(target, left, right, resolution, notes)
    width, height = right - left, top - bottom
    _refuse_torn(order, (xs.max() - xs.min()) * (ys.max() - ys.min()) / native**2)
    if width * height > _MOST_PIXELS:
        raise RuleViolation(
            f"the target would have {width:,} x {height:,} pixels: choose a coarser resolution"
        )
    if resolution != (order.resolution or resolution):
        notes.append(
            f"the resolution is {resolution!r}, not {order.resolution!r}: it has to be exact in"
            " binary, so that tiles join"
        )
    scale = native / resolution
    scale = 1.0 if abs(scale - 1) < 0.05 else _quantised(scale)
    return TargetGrid(
        crs=name,
        transform=(resolution, 0, left * resolution, 0, -resolution, top * resolution),
        width=width,
        height=height,
        method="warp",
        scale_x=scale,
        scale_y=scale,
        tile=_tile(order),
        operation=operation,
        notes=tuple(notes),
    )


def _crs(text: str, which: str) -> CRS:
    try:
        found = CRS.from_user_input(text)
    except ProjError as error:
        raise RuleViolation(f"{which} is not known: {text[:100]!r}") from error
    if not (found.is_geographic or found.is_projected) or found.is_geocentric:
        raise RuleViolation(f"{which} is not a map projection and not geographic: {found.name}")
    return found


def _is_upright(order: GridInput) -> bool:
    a, b, _, d, e, _ = order.transform
    return b == 0 and d == 0 and a > 0 and e < 0


def _sampled(
    order: GridInput, transformer: Transformer, source: CRS, target: CRS
) -> tuple[Any, Any]:
    columns, rows = np.meshgrid(
        np.linspace(0, order.width, _SAMPLES), np.linspace(0, order.height, _SAMPLES)
    )
    places = place(order, columns, rows)
    if source.is_projected and not on_earth(source, *places, slack_of(order)).all():
        xs, ys = transformer.transform(*_places_on_earth(order, source))
    else:
        xs, ys = transformer.transform(*places)
    if not (np.isfinite(xs).all() and np.isfinite(ys).all()):
        raise RuleViolation(
            f"parts of the raster lie where {target.name} is not defined; choose another"
            " target_crs, or crop the raster"
        )
    return xs, ys


def _places_on_earth(order: GridInput, source: CRS) -> tuple[Any, Any]:
    """Places of a raster, half a degree from each other, that holds the edge of the Earth."""
    degrees = Transformer.from_crs(source, source.geodetic_crs, always_xy=True)
    longitudes, latitudes = np.meshgrid(np.linspace(-180, 180, 721), np.linspace(-90, 90, 361))
    size = (order.width, order.height)
    found = within(order.transform, size, degrees, longitudes, latitudes, margin=1.0)
    if not found.any():
        raise RuleViolation(
            f"the raster lies at the edge of {source.name} and is smaller than a degree; leave"
            " target_crs and resolution out"
        )
    back = TransformDirection.INVERSE
    return degrees.transform(longitudes[found], latitudes[found], direction=back)


def _refuse_beyond_poles(order: GridInput, source: CRS) -> None:
    if not source.is_geographic:
        return
    _, ys = place(order, np.array([0, order.width] * 2), np.array([0, 0, *[order.height] * 2]))
    slack = 1.5 * (abs(order.transform[3]) + abs(order.transform[4]))
    if np.abs(ys).max() > 90 + slack:
        raise RuleViolation(
            f"the raster reaches latitude {ys[np.abs(ys).argmax()]:g}, so its places are not"
            f" degrees: {source.name} cannot be its reference system"
        )


def _refuse_poles(order: GridInput, source: CRS, target: CRS) -> None:
    degrees = source.geodetic_crs
    from_degrees = Transformer.from_crs(degrees, source, always_xy=True)
    onto = Transformer.from_crs(degrees, target, always_xy=True)
    a, b, c, d, e, f = order.transform
    determinant = a * e - b * d
    for latitude, pole in ((90.0, "north"), (-90.0, "south")):
        x, y = from_degrees.transform(0.0, latitude)
        if not (math.isfinite(x) and math.isfinite(y)) or _shows(onto, target, latitude):
            continue
        column = (e * (x - c) - b * (y - f)) / determinant
        row = (a * (y - f) - d * (x - c)) / determinant
        around = place(order, column + np.array([-1, 1, 0, 0]), row + np.array([0, 0, -1, 1]))
        # A pole at the edge of a world map is no hole in it.
        is_inside = on_earth(source, *around).all()
        if is_inside and 0 <= column <= order.width and 0 <= row <= order.height:
            raise RuleViolation(
                f"the raster holds the {pole} pole, which {target.name} cannot show; leave"
                " target_crs out, or choose a polar one (EPSG:3413, EPSG:3031)"
            )


def _shows(onto: Transformer, target: CRS, latitude: float) -> bool:
    """Whether places all around a pole lie beside each other in a system."""
    beside = math.copysign(90 - 1e-6, latitude)
    found: Any = onto.transform(np.array([0.0, 90.0, 180.0, -90.0]), np.full(4, beside))
    spread = max(np.ptp(found[0]), np.ptp(found[1]))
    return bool(spread < (1e-3 if target.is_geographic else 1e3))


def _unwrapped(xs: Any, notes: list[str]) -> Any:
    """Longitudes without a jump: beyond 180 where the raster crosses the antimeridian."""
    if xs.max() - xs.min() <= 180:
        return xs
    ordered: Any = np.sort(np.unique(xs))
    gap = int(np.argmax(np.diff(ordered)))
    if ordered[gap + 1] - ordered[gap] < 180:
        return xs
    notes.append("it crosses the antimeridian: longitudes continue beyond 180 degrees")
    return xs + 360 * (xs <= ordered[gap])


def _within_earth(
    target: CRS, left: int, right: int, resolution: float, notes: list[str]
) -> tuple[int, int]:
    """First and last column; of all around the Earth no more than there is of it."""
    if not target.is_projected or target.geodetic_crs is None:
        return left, right
    onto = Transformer.from_crs(target.geodetic_crs, target, always_xy=True)
    edge, other = (abs(onto.transform(longitude, 0.0)[0]) for longitude in (180.0, -180.0))
    if not (math.isfinite(edge) and math.isclose(edge, other)):
        return left, right
    # Wider than the whole Earth, by no more than what rounding to whole pixels adds.
    if not (-edge - 2 * resolution < left * resolution < -edge < edge < right * resolution):
        return left, right
    if right * resolution > edge + 2 * resolution:
        return left, right
    notes.append("it goes all around the Earth: less than a pixel at its edges is left out")
    return math.ceil(-edge / resolution), math.floor(edge / resolution)


def _native_resolution(order: GridInput, transformer: Transformer, target: CRS) -> float:
    """Side of a square target pixel as fine as the source's pixel in the middle."""
    column, row = order.width / 2, order.height / 2
    corners = np.array([[-0.5, -0.5], [0.5, 0.5], [-0.5, 0.5], [0.5, -0.5]])
    xs, ys = transformer.transform(*place(order, column + corners[:, 0], row + corners[:, 1]))
    if target.is_geographic:
        # The middle may lie on the antimeridian.
        xs = xs[0] + (xs - xs[0] + 180) % 360 - 180
    if not (np.isfinite(xs).all() and np.isfinite(ys).all()):
        raise RuleViolation(
            f"the middle of the raster lies where {target.name} is not defined; leave target_crs"
            " and resolution out, or crop the raster"
        )
    diagonals = (math.hypot(xs[1] - xs[0], ys[1] - ys[0]), math.hypot(xs[3] - xs[2], ys[3] - ys[2]))
    return math.sqrt(diagonals[0] * diagonals[1] / 2)


def _refuse_torn(order: GridInput, pixels: float) -> None:
    if pixels > _GROWTH * max(order.width * order.height, 64):
        raise RuleViolation(
            f"in the target the raster would be torn over {pixels:,.0f} pixels, from"
            f" {order.width * order.height:,}: it crosses the antimeridian or a pole; leave"
            " target_crs out, or choose one that is made for its place"
        )


def _quantised(value: float) -> float:
    mantissa, exponent = math.frexp(value)
    return math.ldexp(round(mantissa * (1 << _BITS)), exponent - _BITS)


def _tile(order: GridInput) -> int:
    side = TILE
    while side > _SMALLEST_TILE and side * side * order.band_bytes > _TILE_BYTES:
        side //= 2
    return side


def _operation(source: CRS, target: CRS, order: GridInput) -> Operation:
    """The operation that PROJ chooses here, and the better ones that it cannot.

    Raises:
        RuleViolation: The datum would not be shifted, and that is not allowed.
    """
    area = _area(order, source)
    group: Any = _group(source, target, always_xy=True, area_of_interest=area, allow_ballpark=False)
    lacking = tuple(
        f"{each.name} ({each.accuracy:g} m) lacks "
        + ", ".join(grid.short_name for grid in each.grids if not grid.available)
        for each in group.unavailable_operations
    )
    if group.transformers:
        best = group.transformers[0]
        return Operation(
            name=best.description[:1_000],
            accuracy_metres=best.accuracy if best.accuracy >= 0 else None,
            better=lacking[:20],
        )
    if not order.allow_ballpark:
        advice = (
            f"install a grid ({'; '.join(lacking[:3])})" if lacking else "choose another target"
        )
        raise RuleViolation(
            f"no operation from {source.name} to {target.name} shifts the datum, so places would"
            f" be wrong by up to some hundred metres: {advice}, or set allow_ballpark=true"
        )
    return Operation(name="ballpark: the datum is not shifted", ballpark=True, better=lacking[:20])


def _area(order: GridInput, source: CRS) -> AreaOfInterest | None:
    geographic = source.geodetic_crs
    if geographic is None:
        return None
    transformer = Transformer.from_crs(source, geographic, always_xy=True)
    columns, rows = (
        np.array([0, order.width, 0, order.width]),
        np.array([0, 0, order.height, order.height]),
    )
    xs, ys = transformer.transform(*place(order, columns, rows))
    if not (np.isfinite(xs).all() and np.isfinite(ys).all()):
        return None
    west, east = float(np.min(xs)), float(np.max(xs))
    if east - west > 180:
        west, east = (
            float(np.min(xs[xs > 0], initial=180)),
            float(np.max(xs[xs <= 0], initial=-180)),
        )
    return AreaOfInterest(west, float(np.min(ys)), east, float(np.max(ys)))
