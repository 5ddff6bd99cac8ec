"""Which rule each kind of pixel falls under; what would be a wrong result is refused."""

from types import MappingProxyType
from typing import Final

from contracts.jobs.rasters import (
    Affine,
    GridOrder,
    PixelRules,
    RasterFacts,
    RasterParameters,
    Resampling,
    TargetGrid,
    Validity,
)
from domain.errors import RuleViolation

_BYTES: Final = MappingProxyType({"8": 1, "16": 2, "32": 4, "64": 8})
_EXACT: Final = 1 << 53
_OVER_CLASSES: Final = ("nearest", "mode", "min", "max")
_IMPLY_CLASSES: Final = ("nearest", "mode")
_WIDE: Final = ("int64", "uint64")
_OVERVIEW: Final = 512
"""Pixels of a side from which on a file has overviews."""
_LISTED: Final = 10
GROUND_RESIDUAL: Final = 1.0
"""Pixels by which ground control points may miss the transform that is fitted to them."""


def georeferenced(facts: RasterFacts, parameters: RasterParameters) -> tuple[str, Affine]:
    """Reference system and transform of a source.

    Raises:
        RuleViolation: The file has none, and the parameters give none.
    """
    crs = facts.crs or parameters.crs
    transform = facts.transform or parameters.transform
    if transform is None:
        if facts.rpcs:
            raise RuleViolation(
                "the raster has rational polynomial coefficients and no transform:"
                " orthorectify it with an elevation model first, for example with"
                " gdalwarp -rpc -to RPC_DEM=heights.tif"
            )
        raise RuleViolation(
            "the raster has no geotransform: nothing says where its pixels are; put its world file"
            " beside it, or give parameter transform, such as transform=[30,0,600000,0,-30,4800000]"
        )
    if facts.ground_residual is not None and facts.ground_residual > GROUND_RESIDUAL:
        raise RuleViolation(
            f"the ground control points miss the transform fitted to them by"
            f" {facts.ground_residual:.1f} pixels: rectify the raster first, for example with"
            " gdalwarp -tps"
        )
    if crs is None:
        raise RuleViolation(
            "the raster has no coordinate reference system; give it as parameter crs,"
            " for example crs=EPSG:32633"
        )
    return crs, transform


def is_classes(facts: RasterFacts, parameters: RasterParameters) -> bool:
    """Whether only values of the raster itself may appear in what is made of it."""
    if facts.is_classes or any(band.data_type in _WIDE for band in facts.bands):
        return True
    implied = parameters.resampling in _IMPLY_CLASSES
    return implied if parameters.classes is None else parameters.classes


def doubt_about_classes(
    facts: RasterFacts, parameters: RasterParameters, grid: TargetGrid
) -> str | None:
    """What makes it uncertain whether values may be averaged; None: it is certain, or none are."""
    is_averaged = grid.method == "warp" or max(grid.width, grid.height) > _OVERVIEW
    if not is_averaged or is_classes(facts, parameters) or parameters.classes is not None:
        return None
    if parameters.resampling not in (None, *_OVER_CLASSES):
        return None
    for number, band in enumerate(facts.bands, 1):
        if band.colour != "alpha" and len(band.values) > 1:
            listed = ", ".join(map(str, band.values[:_LISTED]))
            more = ", ..." if len(band.values) > _LISTED else ""
            return f"band {number} holds {len(band.values)} whole values only ({listed}{more})"
    return None


def grid_order(facts: RasterFacts, parameters: RasterParameters) -> GridOrder:
    """What the grid of a source is made from.

    Raises:
        RuleViolation: It has no place on earth.
    """
    crs, transform = georeferenced(facts, parameters)
    return GridOrder(
        width=facts.width,
        height=facts.height,
        crs=crs,
        transform=transform,
        band_bytes=pixel_bytes(facts),
        target_crs=parameters.target_crs,
        resolution=parameters.resolution,
        allow_ballpark=parameters.allow_ballpark,
    )


def pixel_rules(facts: RasterFacts, parameters: RasterParameters, grid: TargetGrid) -> PixelRules:
    """How the pixels of a source are treated.

    Raises:
        RuleViolation: Values would be changed: classes interpolated, integers rounded.
    """
    crs, transform = georeferenced(facts, parameters)
    nodata = facts.bands[0].nodata if facts.bands[0].nodata is not None else parameters.nodata
    if facts.mask == "none" and parameters.nodata is not None:
        _refuse_impossible(facts, parameters.nodata)
    return PixelRules(
        crs=crs,
        transform=transform,
        resampling=_resampling(facts, parameters, grid),
        validity=_validity(facts, grid, nodata is not None),
        nodata=nodata,
        classes=is_classes(facts, parameters),
    )


def pixel_bytes(facts: RasterFacts) -> int:
    """Of one pixel, all bands.

    Raises:
        RuleViolation: It has complex numbers.
    """
    total = 0
    for band in facts.bands:
        if band.data_type.startswith("complex"):
            raise RuleViolation(
                f"bands of type {band.data_type} are not processed; split them into real and"
                " imaginary parts, or amplitude and phase"
            )
        total += next((size for bits, size in _BYTES.items() if band.data_type.endswith(bits)), 8)
    return total


def _resampling(facts: RasterFacts, parameters: RasterParameters, grid: TargetGrid) -> Resampling:
    wide = any(band.data_type in _WIDE for band in facts.bands)
    classes = is_classes(facts, parameters)
    wished = parameters.resampling
    if grid.method == "copy":
        return wished or "nearest"
    if classes and not wide and wished not in (None, *_OVER_CLASSES):
        raise RuleViolation(
            f"the raster holds classes, and resampling={wished} would invent values between them;"
            " leave the parameter out, or use nearest or mode"
        )
    if wide and wished not in (None, "nearest"):
        raise RuleViolation(
            f"bands with 64-bit integers are resampled by nearest only: {wished} would round them"
        )
    return wished or ("nearest" if classes else "bilinear")


def unused(facts: RasterFacts, parameters: RasterParameters) -> list[str]:
    """A note for each parameter that a source makes needless, and contradicts."""
    notes: list[str] = []
    if parameters.crs is not None and facts.crs not in (None, parameters.crs):
        notes.append("parameter crs was not used: the raster says its reference system")
    if parameters.transform is not None and facts.transform not in (None, parameters.transform):
        notes.append("parameter transform was not used: the raster says its place")
    if parameters.classes is False and is_classes(facts, parameters):
        notes.append("parameter classes was not used: the type or the colours say that it has some")
    if parameters.nodata is not None and facts.mask in ("alpha", "mask"):
        notes.append(f"parameter nodata was not used: the raster has a {facts.mask} band")
    elif parameters.nodata is not None and any(
        band.nodata not in (None, parameters.nodata) for band in facts.bands
    ):
        notes.append("parameter nodata was not used: the raster says its nodata value")
    return notes


def _refuse_impossible(facts: RasterFacts, nodata: float) -> None:
    for band in facts.bands:
        kind = band.data_type
        if not kind.startswith(("int", "uint")):
            continue
        bits = int(kind.rpartition("int")[2])
        low, high = (0, 1 << bits) if kind.startswith("u") else (-(1 << bits - 1), 1 << bits - 1)
        if nodata % 1 or not max(low, -_EXACT) <= nodata <= min(high - 1, _EXACT):
            raise RuleViolation(f"no pixel of type {kind} can have the value nodata={nodata:g}")


def _validity(facts: RasterFacts, grid: TargetGrid, has_nodata: bool) -> Validity:
    if facts.mask == "alpha":
        return "alpha"
    if facts.mask == "mask":
        return "mask"
    if has_nodata:
        return "nodata"
    # Where the source does not reach, something has to say so.
    return "none" if grid.method == "copy" else "mask"
