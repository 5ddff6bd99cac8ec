"""Rasters of every kind, made from numbers."""

from pathlib import Path
from typing import Any

import numpy as np
import rasterio
from affine import Affine
from rasterio.control import GroundControlPoint
from rasterio.enums import ColorInterp

UTM = Affine(30.0, 0, 600_000.0, 0, -30.0, 4_800_000.0)
SHARED = Path(__file__).parents[3].parent / "shared" / "data" / "geo"
"""Real rasters, where the folder exists."""


def values(bands: int, height: int, width: int, dtype: str = "uint8", seed: int = 1) -> Any:
    """Smooth values from 1 with some noise, no two bands alike."""
    rng = np.random.default_rng(seed)
    rows, columns = np.mgrid[0:height, 0:width]
    waves = [
        100 + 60 * np.sin(rows / (7 + band)) * np.cos(columns / (11 + band))
        for band in range(bands)
    ]
    return np.clip(np.stack(waves) + rng.normal(0, 5, (bands, height, width)), 1, 250).astype(dtype)


def write(
    path: Path,
    pixels: Any,
    *,
    crs: str | None = "EPSG:32618",
    transform: Affine | None = UTM,
    driver: str = "GTiff",
    mask: Any = None,
    colours: list[ColorInterp] | None = None,
    palette: dict[int, Any] | None = None,
    points: list[GroundControlPoint] | None = None,
    **more: Any,
) -> Path:
    """Write a raster."""
    count, height, width = pixels.shape
    profile = {
        "driver": driver,
        "count": count,
        "height": height,
        "width": width,
        "dtype": pixels.dtype.name,
        "crs": crs,
        "transform": transform,
        **more,
    }
    if points:
        profile |= {"gcps": points, "transform": None}
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK="YES"), rasterio.open(path, "w", **profile) as file:
        file.write(pixels)
        if mask is not None:
            file.write_mask(mask)
        if colours:
            file.colorinterp = colours
        if palette:
            file.write_colormap(1, palette)
    return path


def points(width: int, height: int, bend: float = 0.0) -> list[GroundControlPoint]:
    """Ground control points of a grid of `UTM`; `bend` pixels off a plane in the middle."""
    places = [(0, 0), (0, width), (height, 0), (height, width), (height / 2, width / 2)]
    return [
        GroundControlPoint(row, column, *(UTM * (column + (bend if at == 4 else 0), row)))
        for at, (row, column) in enumerate(places)
    ]
