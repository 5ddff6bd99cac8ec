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
GROUND_RESIDUAL: Final = 1.0
"""Pixels by which ground control points may miss the transform that is fitted to them."""


def georeferenced(facts: RasterFacts, parameters: RasterParameters) -> tuple[str, Affine]:
    """Reference system and transform of a source.

    Raises:
        RuleViolation: The file has none, and the parameters give none.
    """
    crs = facts.crs or parameters.crs
    if facts.transform is None:
        if facts.rpcs:
            raise RuleViolation(
                "the raster has rational polynomial coefficients and no transform:"
                " orthorectify it with an elevation model first, for example with"
                " gdalwarp -rpc -to RPC_DEM=heights.tif"
            )
        raise RuleViolation(
            "the raster has no geotransform: nothing says where its pixels are;"
            " files beside it (world files, .aux.xml) are not read, so write it into a GeoTIFF"
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
    return crs, facts.transform


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
        classes=facts.is_classes,
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
    wide = any(band.data_type in ("int64", "uint64") for band in facts.bands)
    wished = parameters.resampling
    if grid.method == "copy":
        return wished or "nearest"
    if facts.is_classes and wished not in (None, *_OVER_CLASSES):
        raise RuleViolation(
            f"the raster holds classes, and resampling={wished} would invent values between them;"
            " leave the parameter out, or use nearest or mode"
        )
    if wide and wished not in (None, "nearest"):
        raise RuleViolation(
            f"bands with 64-bit integers are resampled by nearest only: {wished} would round them"
        )
    return wished or ("nearest" if facts.is_classes or wide else "bilinear")


def unused(facts: RasterFacts, parameters: RasterParameters) -> list[str]:
    """A note for each parameter that a source makes needless, and contradicts."""
    notes: list[str] = []
    if parameters.crs is not None and facts.crs not in (None, parameters.crs):
        notes.append("parameter crs was not used: the raster says its reference system")
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
