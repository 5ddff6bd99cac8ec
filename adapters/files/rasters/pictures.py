"""What people see of a raster: where it lies, and a small picture."""

from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import rasterio
import rasterio.features
import shapely
import shapely.geometry
from affine import Affine
from pyproj import CRS, Transformer
from rasterio.enums import ColorInterp, Resampling

from adapters.files.rasters.source import open_raster
from domain.jobs.earth import on_earth
from domain.jobs.stac.outlines import of_ring

_shapes: Any = cast("Any", rasterio.features).shapes
_shape: Any = shapely.geometry.shape
_FOOTPRINT_PIXELS: Final = 512
_PREVIEW_PIXELS: Final = 512
_PARTS: Final = 20
"""A footprint of more polygons is their convex hull."""
_DIGITS: Final = 7
_SEGMENTS: Final = 64
_DEGREE_METRES: Final = 111_319.49
"""Of longitude at the equator."""


def footprint(dataset: Any) -> dict[str, Any] | None:
    """Where valid pixels are: a geometry of GeoJSON in degrees, cut at the antimeridian.

    None: all of them are valid, or none, or they surround a pole or reach the edge of the Earth:
    the outline of the file says it.
    """
    height, width = _shrunk(dataset, _FOOTPRINT_PIXELS)
    valid = _valid(dataset, height, width)
    if valid.all() or not valid.any():
        return None
    scale = dataset.transform @ Affine.scale(dataset.width / width, dataset.height / height)
    polygons = [
        shapely.Polygon(_shape(shape).exterior)
        for shape, _ in _shapes(valid.astype("uint8"), mask=valid, connectivity=8, transform=scale)
    ]
    merged = shapely.union_all(polygons)
    if shapely.get_num_geometries(merged) > _PARTS:
        merged = shapely.convex_hull(merged)
    merged = shapely.simplify(merged, max(map(abs, (scale.a, scale.b, scale.d, scale.e))))
    left, bottom, right, top = merged.bounds
    merged = shapely.segmentize(merged, max(right - left, top - bottom) / _SEGMENTS)
    return _in_degrees(merged, dataset.crs.to_wkt())


def _in_degrees(shape: Any, wkt: str) -> dict[str, Any] | None:
    system = CRS.from_wkt(wkt)
    degrees = Transformer.from_crs(system, "OGC:CRS84", always_xy=True)
    found: list[Any] = []
    for part in shapely.get_parts(shape):
        xs, ys = shapely.get_coordinates(part.exterior)[:-1].T
        if system.is_projected and not on_earth(system, xs, ys).all():
            return None
        placed: Any = degrees.transform(xs, ys)
        piece = of_ring(placed[0], placed[1])
        if piece is None:
            return None
        found.append(piece)
    union = shapely.set_precision(shapely.union_all(found), 10**-_DIGITS)
    west, south, east, north = union.bounds
    straight = max(east - west, north - south) / (10 * _FOOTPRINT_PIXELS)
    whole = shapely.make_valid(shapely.simplify(union, straight), method="structure")
    return dict(shapely.geometry.mapping(whole))


def metres(dataset: Any) -> float | None:
    """Between two pixels; None: not known."""
    side = float(np.hypot(dataset.transform.a, dataset.transform.d))
    if dataset.crs.is_geographic:
        return side * _DEGREE_METRES
    return side * float(dataset.crs.linear_units_factor[1]) if dataset.crs.is_projected else None


def preview(dataset: Any, target: Path) -> None:
    """Write a picture of at most 512 pixels a side, transparent where nothing is valid."""
    height, width = _shrunk(dataset, _PREVIEW_PIXELS)
    valid = _valid(dataset, height, width)
    colours = _colours(dataset, height, width, valid)
    alpha = np.where(valid, 255, 0).astype("uint8")
    with open_raster(
        target, "w", driver="PNG", width=width, height=height, count=4, dtype="uint8"
    ) as picture:
        picture.write(np.concatenate([colours, alpha[np.newaxis]]))


def _colours(dataset: Any, height: int, width: int, valid: Any) -> Any:
    how = {"out_shape": (height, width), "resampling": Resampling.nearest}
    kinds = dataset.colorinterp
    if kinds[0] == ColorInterp.palette:
        table = np.zeros((256, 3), "uint8")
        for value, colour in dataset.colormap(1).items():
            if value < len(table):
                table[value] = colour[:3]
        values = np.clip(dataset.read(1, **how), 0, 255).astype("uint8")
        return table[values].transpose(2, 0, 1)
    return np.stack(
        [_stretched(dataset.read(number, **how), valid) for number in _shown_bands(dataset)]
    )


def _shown_bands(dataset: Any) -> list[int]:
    """The bands shown as red, green and blue: by their names, their colours, or the first three."""
    kinds = dataset.colorinterp
    names = [(name or "").strip().lower() for name in dataset.descriptions]
    wished = (ColorInterp.red, ColorInterp.green, ColorInterp.blue)
    if all(colour.name in names for colour in wished):
        return [names.index(colour.name) + 1 for colour in wished]
    if all(colour in kinds for colour in wished):
        return [kinds.index(colour) + 1 for colour in wished]
    data = [number for number in dataset.indexes if kinds[number - 1] != ColorInterp.alpha]
    return data[:3] if len(data) >= 3 else data[:1] * 3


def _stretched(values: Any, valid: Any) -> Any:
    if values.dtype == np.uint8:
        return values
    counted = values[valid & np.isfinite(values)].astype("float64")
    if not counted.size:
        return np.zeros(values.shape, "uint8")
    low, high = np.percentile(counted, (2, 98))
    spread = (high - low) or 1.0
    shares = np.nan_to_num((values.astype("float64") - low) / spread, posinf=1, neginf=0)
    return (np.clip(shares, 0, 1) * 255).astype("uint8")


def _valid(dataset: Any, height: int, width: int) -> Any:
    masks = dataset.read_masks(out_shape=(dataset.count, height, width))
    valid = masks.any(axis=0)
    if dataset.dtypes[0].startswith("float"):
        values = dataset.read(out_shape=(dataset.count, height, width))
        valid &= np.isfinite(values).any(axis=0)
    return valid


def _shrunk(dataset: Any, most: int) -> tuple[int, int]:
    share = min(1.0, most / max(dataset.width, dataset.height))
    return max(1, round(dataset.height * share)), max(1, round(dataset.width * share))


def versions() -> dict[str, str]:
    """Of the programs that made a file."""
    return {
        "gdal": rasterio.__gdal_version__,
        "rasterio": rasterio.__version__,
        "docflow": version("docflow"),
    }
