"""What people see of a raster: where it lies, and a small picture."""

from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import antimeridian
import numpy as np
import rasterio
import rasterio.features
import shapely
import shapely.geometry
from pyproj import CRS, Transformer
from rasterio.enums import ColorInterp, Resampling

_FOOTPRINT_PIXELS: Final = 512
_PREVIEW_PIXELS: Final = 512
_PARTS: Final = 20
"""A footprint of more polygons is their convex hull."""
_DIGITS: Final = 7


def footprint(
    dataset: Any,
) -> tuple[dict[str, object] | None, tuple[float, float, float, float] | None]:
    """Where valid pixels are: a geometry of GeoJSON in degrees, cut at the antimeridian, and its
    bounding box, whose west is above its east when it crosses; None: no pixel is valid."""
    height, width = _shrunk(dataset, _FOOTPRINT_PIXELS)
    valid = _valid(dataset, height, width)
    if not valid.any():
        return None, None
    scale = dataset.transform @ rasterio.Affine.scale(
        dataset.width / width, dataset.height / height
    )
    polygons = [
        shapely.Polygon(shapely.geometry.shape(shape).exterior)
        for shape, _ in rasterio.features.shapes(
            valid.astype("uint8"), mask=valid, connectivity=8, transform=scale
        )
    ]
    merged = shapely.union_all(polygons)
    pixel = max(abs(scale.a), abs(scale.b), abs(scale.d), abs(scale.e))
    if shapely.get_num_geometries(merged) > _PARTS:
        merged = shapely.convex_hull(merged)
    merged = shapely.simplify(merged, pixel)
    left, bottom, right, top = merged.bounds
    merged = shapely.segmentize(merged, max(right - left, top - bottom) / 20)
    return _in_degrees(merged, dataset.crs.to_wkt())


def _in_degrees(shape: Any, wkt: str) -> tuple[Any, Any]:
    crs = CRS.from_wkt(wkt)
    transformer = Transformer.from_crs(crs, "OGC:CRS84", always_xy=True)

    def placed(xy: Any) -> Any:
        xs, ys = transformer.transform(xy[:, 0], xy[:, 1])
        xs = np.where(xs > 180, xs - 360, np.where(xs < -180, xs + 360, xs))
        return np.round(np.column_stack([xs, ys]), _DIGITS)

    parts = shapely.get_parts(shapely.transform(shape, placed))
    fixed = [part for each in parts for part in _fixed(each)]
    whole = shapely.make_valid(shapely.MultiPolygon(fixed), method="structure")
    if shapely.get_num_geometries(whole) == 1:
        whole = shapely.get_geometry(whole, 0)
    box = antimeridian.bbox(shapely.geometry.mapping(whole))
    west, south, east, north = (float(value) for value in box)
    return dict(shapely.geometry.mapping(whole)), (west, south, east, north)


def _fixed(polygon: Any) -> list[Any]:
    if _no_jump(polygon):
        return [polygon]
    found = antimeridian.fix_polygon(polygon)
    return list(getattr(found, "geoms", [found]))


def _no_jump(polygon: Any) -> bool:
    xs = shapely.get_coordinates(polygon.exterior)[:, 0]
    return bool(np.abs(np.diff(xs)).max() <= 180)


def preview(dataset: Any, target: Path) -> None:
    """Write a picture of at most 512 pixels a side, transparent where nothing is valid."""
    height, width = _shrunk(dataset, _PREVIEW_PIXELS)
    valid = _valid(dataset, height, width)
    colours = _colours(dataset, height, width, valid)
    alpha = np.where(valid, 255, 0).astype("uint8")
    with rasterio.open(
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
    wished = (ColorInterp.red, ColorInterp.green, ColorInterp.blue)
    if all(colour in kinds for colour in wished):
        numbers = [kinds.index(colour) + 1 for colour in wished]
    else:
        data = [number for number in dataset.indexes if kinds[number - 1] != ColorInterp.alpha]
        numbers = data[:3] if len(data) >= 3 else data[:1] * 3
    return np.stack([_stretched(dataset.read(number, **how), valid) for number in numbers])


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
