"""Rasters of every kind, made from numbers."""

from pathlib import Path
from typing import Any

import numpy as np
import rasterio
import rasterio.shutil
from affine import Affine
from rasterio.control import GroundControlPoint
from rasterio.enums import ColorInterp, Resampling
from rasterio.vrt import WarpedVRT

from workflows.jobs.rasters import PixelRules, TargetGrid

UTM = Affine(30.0, 0, 600_000.0, 0, -30.0, 4_800_000.0)
SHARED = Path(__file__).parents[3].parent / "shared" / "data" / "geo"
"""Real rasters, for tests with the marker `real_rasters`."""


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


def whole_warp(path: Path, grid: TargetGrid, pixels: PixelRules) -> Any:
    """The whole grid at once, by GDAL alone."""
    nodata = None if pixels.nodata is None else float(pixels.nodata)
    options: dict[str, Any] = {"XSCALE": grid.scale_x, "YSCALE": grid.scale_y}
    with (
        rasterio.open(path) as source,
        WarpedVRT(
            source,
            src_crs=pixels.crs,
            src_transform=Affine(*pixels.transform),
            crs=grid.crs,
            transform=Affine(*grid.transform),
            width=grid.width,
            height=grid.height,
            resampling=Resampling[pixels.resampling],
            src_nodata=nodata,
            nodata=nodata,
            tolerance=1e-9,
            SOURCE_EXTRA=64,
            SAMPLE_GRID="YES",
            **options,
        ) as warped,
    ):
        return warped.read()


def points(width: int, height: int, bend: float = 0.0) -> list[GroundControlPoint]:
    """Ground control points of a grid of `UTM`; `bend` pixels off a plane in the middle."""
    places = [(0, 0), (0, width), (height, 0), (height, width), (height / 2, width / 2)]
    return [
        GroundControlPoint(row, column, *(UTM @ (column + (bend if at == 4 else 0), row)))
        for at, (row, column) in enumerate(places)
    ]


def imagine(path: Path, pixels: Any, bands: list[str]) -> Path:
    """Write an Erdas Imagine file, with more about each band than rasterio can say (as XML)."""
    plain = write(path.with_suffix(".tif"), pixels)
    _, height, width = pixels.shape
    parts = "".join(
        f'<VRTRasterBand dataType="Byte" band="{number}">{more}<SimpleSource>'
        f"<SourceFilename>{plain}</SourceFilename><SourceBand>{number}</SourceBand></SimpleSource></VRTRasterBand>"
        for number, more in enumerate(bands, 1)
    )
    place = ", ".join(map(str, UTM.to_gdal()))
    virtual = path.with_suffix(".vrt")
    virtual.write_text(
        f'<VRTDataset rasterXSize="{width}" rasterYSize="{height}"><SRS>EPSG:32618</SRS>'
        f"<GeoTransform>{place}</GeoTransform>{parts}</VRTDataset>"
    )
    with rasterio.Env(GDAL_PAM_ENABLED="NO"), rasterio.open(virtual) as file:
        rasterio.shutil.copy(file, path, driver="HFA")
    return path
