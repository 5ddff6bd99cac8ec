"""Pixels of one window of a target grid.

Whatever the window, a pixel comes out the same: the scale of the resampling, the margin of the
source and the whole grid are fixed, coordinates are exact to a billionth of a pixel, and columns
are warped in blocks that begin at multiples of `_BLOCK`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import rasterio.vrt
from affine import Affine
from rasterio.enums import ColorInterp, Resampling

from adapters.files.rasters.source import EXACT_INTEGERS, Window, number_of
from contracts.jobs.rasters import PixelRules, TargetGrid, TileWindow
from domain.errors import RuleViolation

_WarpedVRT: Any = rasterio.vrt.WarpedVRT
_BLOCK: Final = 512
_TOLERANCE: Final = 1e-9
"""Pixels of the source by which coordinates may be approximated; GDAL's default is 0.125."""
_MARGIN: Final = 8
"""Pixels of the source around what a window seems to need, at full scale."""
_MEMORY_MB: Final = 24


@dataclass(frozen=True, slots=True)
class Pixels:
    """A window of a raster."""

    bands: Any
    """Array of bands, rows, columns."""
    mask: Any | None
    """0 where no band is valid, else 255; None: the values say it, or all are."""


def window_of(
    dataset: Any,
    grid: TargetGrid,
    rules: PixelRules,
    window: TileWindow,
    progress: Callable[[float], None] = lambda share: None,
) -> Pixels:
    """Read a window of the grid from a source.

    Raises:
        RuleViolation: Integers would be rounded.
    """
    if grid.method == "copy":
        return _copied(dataset, rules, window)
    with _WarpedVRT(dataset, **_options(dataset, grid, rules)) as warped:
        found = np.empty((warped.count, window.height, window.width), warped.dtypes[0])
        for first in range(0, window.width, _BLOCK):
            columns = min(_BLOCK, window.width - first)
            part = Window(window.column + first, window.row, columns, window.height)
            warped.read(window=part, out=found[:, :, first : first + columns])
            progress((first + columns) / window.width)
    bands = found[: dataset.count]
    _refuse_rounding(bands)
    mask = _as_mask(found[dataset.count]) if rules.validity == "mask" else None
    return Pixels(bands, mask)


def _copied(dataset: Any, rules: PixelRules, window: TileWindow) -> Pixels:
    part = Window(window.column, window.row, window.width, window.height)
    mask = _as_mask(dataset.read_masks(1, window=part)) if rules.validity == "mask" else None
    return Pixels(dataset.read(window=part), mask)


def _as_mask(coverage: Any) -> Any:
    return np.where(coverage > 0, 255, 0).astype("uint8")


def _options(dataset: Any, grid: TargetGrid, rules: PixelRules) -> dict[str, Any]:
    nodata = number_of(rules.nodata) if rules.validity == "nodata" else None
    margin = math.ceil(_MARGIN / min(1.0, grid.scale_x, grid.scale_y))
    options: dict[str, Any] = {
        "src_crs": rules.crs,
        "src_transform": Affine(*rules.transform),
        "crs": grid.crs,
        "transform": Affine(*grid.transform),
        "width": grid.width,
        "height": grid.height,
        "resampling": Resampling[rules.resampling],
        "tolerance": _TOLERANCE,
        "warp_mem_limit": _MEMORY_MB,
        "src_nodata": nodata,
        "nodata": nodata,
        "XSCALE": repr(grid.scale_x),
        "YSCALE": repr(grid.scale_y),
        "SOURCE_EXTRA": str(margin),
        "SAMPLE_GRID": "YES",
        # rasterio's YES counts a pixel in which one band has a value as valid in all of them, and
        # interpolates the nodata values of the others. This is what gdalwarp does.
        "UNIFIED_SRC_NODATA": "PARTIAL",
    }
    if rules.validity == "alpha":
        alpha = dataset.colorinterp.index(ColorInterp.alpha) + 1
        options |= {"src_alpha": alpha, "dst_alpha": alpha}
    elif rules.validity == "mask":
        options["add_alpha"] = True
    return options


def _refuse_rounding(bands: Any) -> None:
    if bands.dtype.kind not in "iu" or bands.dtype.itemsize < 8 or not bands.size:
        return
    if int(bands.max()) > EXACT_INTEGERS or int(bands.min()) < -EXACT_INTEGERS:
        raise RuleViolation(
            "integers beyond 2^53 would be rounded by the reprojection; leave target_crs and"
            " resolution out, or convert the bands first"
        )
