"""Rasters opened with what is known of them, and the bounds of what is read."""

import math
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import rasterio
import rasterio.windows
from rasterio.errors import RasterioError

from adapters.files.rasters.formats import driver_of
from adapters.files.sqlite_files import check_tiles
from adapters.ports import UnreadableDocument
from contracts.jobs.rasters import BANDS, Nodata

# rasterio is typed in part: what is read through these is of any type.
open_raster: Any = cast("Any", rasterio).open
Window: Any = rasterio.windows.Window

MOST_BYTES: Final = 256 << 30
"""Uncompressed."""
EXPANSION: Final = 4_000
"""Uncompressed to stored bytes: honest files reach some hundred."""
EXPANSION_FREE_BYTES: Final = 1 << 30
MOST_BLOCK_BYTES: Final = 192 << 20
EXACT_INTEGERS: Final = 1 << 53
"""GDAL resamples in double precision, and so are nodata values kept."""
CHUNK_PIXELS: Final = 4 << 20
"""What is read at once, of one band."""


@contextmanager
def opened(path: Path, subdataset: str | None = None) -> Generator[Any]:
    """A raster, opened with the one driver of its format.

    Raises:
        UnreadableDocument: It is of no format that is read, damaged, or claims too much.
    """
    driver = driver_of(path)
    if driver == "GPKG":
        check_tiles(path)
    try:
        dataset = open_raster(subdataset or path, driver=driver)
    except RasterioError as error:
        raise UnreadableDocument(f"the raster cannot be opened: {plain(error, path)}") from error
    with dataset:
        yield dataset


def check_size(dataset: Any, stored: int) -> None:
    """Refuse what would take too long or too much, before any pixel is read.

    Args:
        dataset: Open.
        stored: Bytes of its file.

    Raises:
        UnreadableDocument: It claims too much.
    """
    if dataset.count > BANDS:
        raise UnreadableDocument(
            f"the raster has {dataset.count:,} bands; at most {BANDS} are read"
        )
    width = sum(np.dtype(_numpy(name)).itemsize for name in dataset.dtypes)
    claimed = dataset.width * dataset.height * width
    says = f"the raster claims {dataset.width:,} x {dataset.height:,} pixels, {claimed:,} bytes"
    if claimed > MOST_BYTES:
        raise UnreadableDocument(f"{says}; at most {MOST_BYTES:,} are read: split it")
    if claimed > max(EXPANSION_FREE_BYTES, EXPANSION * stored):
        raise UnreadableDocument(f"{says}, in a file of {stored:,}: it is almost empty; crop it")
    for (height, across), name in zip(dataset.block_shapes, dataset.dtypes, strict=True):
        block = height * across * np.dtype(_numpy(name)).itemsize
        if block > MOST_BLOCK_BYTES:
            raise UnreadableDocument(
                f"a block of the raster has {across:,} x {height:,} pixels, {block:,} bytes; at"
                f" most {MOST_BLOCK_BYTES:,} are read at once: save it in tiles of 512"
            )


def chunks(dataset: Any) -> Iterator[Any]:
    """Windows over whole blocks that together cover a raster, of a bounded size."""
    block_height, block_width = dataset.block_shapes[0]
    across = max(1, min(dataset.width, CHUNK_PIXELS // max(1, block_height)) // block_width)
    columns = min(dataset.width, across * block_width)
    rows = max(1, CHUNK_PIXELS // max(1, columns) // block_height) * block_height
    for row in range(0, dataset.height, rows):
        for column in range(0, dataset.width, columns):
            yield Window(
                column,
                row,
                min(columns, dataset.width - column),
                min(rows, dataset.height - row),
            )


def nodata_of(value: float | None) -> Nodata | None:
    """A nodata value in a form that JSON has."""
    if value is None:
        return None
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value


def number_of(value: Nodata | None) -> float | None:
    """The nodata value itself."""
    return None if value is None else float(value)


def plain(error: Exception, path: Path) -> str:
    """What GDAL says, without folders of the server."""
    text = str(error.__cause__ or error).replace(str(path), "the file")
    return text.replace(f"{path.parent}/", "").splitlines()[0][:300] if text else "no reason given"


def _numpy(name: str) -> str:
    return {"complex_int16": "complex64"}.get(name, name)
