"""Cloud-optimised GeoTIFFs: written under a temporary name, read again, renamed."""

import hashlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import rasterio
import rasterio.shutil
from affine import Affine
from rasterio.enums import ColorInterp

from adapters.files.rasters.source import Window, number_of, open_raster
from adapters.files.rasters.warp import Pixels
from adapters.ports import Unavailable
from contracts.jobs.rasters import BandSums, PixelRules, RasterBand, TileWindow
from domain.jobs.rasters.tiles import added

BLOCK: Final = 512
_ZSTD: Final = {"COMPRESS": "ZSTD", "BIGTIFF": "IF_SAFER", "NUM_THREADS": "1"}
_DERIVED_TAGS: Final = ("STATISTICS_", "OVERVIEW", "COMPRESSION", "INTERLEAVE")
DOCUMENTS: Final = ("xml:", "json:")
"""Beginnings of metadata domains that no TIFF of ours takes."""
_FILE_DOMAINS: Final = ("IMAGE_STRUCTURE", "TIFF", "DERIVED_SUBDATASETS")


@contextmanager
def new_tiff(
    path: Path,
    bands: tuple[RasterBand, ...],
    rules: PixelRules,
    *,
    crs: str | None,
    transform: Affine | None,
    width: int,
    height: int,
    tags: dict[str, dict[str, str]],
    compress: bool,
) -> Generator[Any]:
    """A tiled TIFF to be filled, with all that is known of the bands."""
    profile: dict[str, Any] = {
        "driver": "GTiff",
        "width": width,
        "height": height,
        "count": len(bands),
        "dtype": bands[0].data_type,
        "crs": crs,
        "transform": transform,
        "tiled": True,
        "blockxsize": BLOCK,
        "blockysize": BLOCK,
        "BIGTIFF": "IF_SAFER",
        "SPARSE_OK": "TRUE",
    }
    if rules.validity == "nodata":
        profile["nodata"] = number_of(rules.nodata)
    if bands[-1].colour == "alpha":
        profile["ALPHA"] = "UNSPECIFIED"
    if compress:
        profile |= {"COMPRESS": "ZSTD", "ZSTD_LEVEL": 1, "PREDICTOR": _predictor(bands[0])}
    with (
        rasterio.Env(GDAL_TIFF_INTERNAL_MASK="YES"),
        open_raster(path, "w", **profile) as file,
    ):
        describe(file, bands, tags)
        yield file


def describe(file: Any, bands: tuple[RasterBand, ...], tags: dict[str, dict[str, str]]) -> None:
    """Write what is known of a raster beside its pixels."""
    file.colorinterp = [_colour(band, number) for number, band in enumerate(bands, 1)]
    file.scales = [band.scale for band in bands]
    file.offsets = [band.offset for band in bands]
    file.units = [band.unit or "" for band in bands]
    for number, band in enumerate(bands, 1):
        if band.description:
            file.set_band_description(number, band.description)
        if band.palette:
            file.write_colormap(number, band.palette)
        file.update_tags(number, **_kept(band.tags))
    for domain, entries in tags.items():
        if domain in _FILE_DOMAINS or domain.startswith(DOCUMENTS):
            continue
        file.update_tags(ns=domain or None, **_kept(entries))


def _colour(band: RasterBand, number: int) -> ColorInterp:
    if band.colour == "palette" and not band.palette:
        # No TIFF has numbers of colours without their table.
        return ColorInterp.gray if number == 1 else ColorInterp.undefined
    return ColorInterp[band.colour]


def _kept(tags: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in tags.items() if not name.startswith(_DERIVED_TAGS)}


def put(file: Any, pixels: Pixels, at: TileWindow) -> None:
    """Write pixels into an open TIFF."""
    window = Window(at.column, at.row, at.width, at.height)
    file.write(pixels.bands, window=window)
    if pixels.mask is not None:
        file.write_mask(pixels.mask, window=window)


def as_cog(source: Path, target: Path, *, classes: bool, overviews: bool) -> None:
    """Copy a TIFF into a COG, beside its later name."""
    with open_raster(source, driver="GTiff") as dataset:
        rasterio.shutil.copy(
            dataset,
            target,
            driver="COG",
            LEVEL="1",
            PREDICTOR="YES",
            BLOCKSIZE=str(BLOCK),
            OVERVIEWS="IGNORE_EXISTING" if overviews else "NONE",
            RESAMPLING="NEAREST" if classes else "AVERAGE",
            **_ZSTD,
        )


def strips(height: int) -> Iterator[slice]:
    """Rows that are worked on together: what is made of them stays small."""
    for first in range(0, height, BLOCK):
        yield slice(first, min(first + BLOCK, height))


def check_same(path: Path, at: TileWindow, pixels: Pixels) -> None:
    """Read a part of a file that was written, and compare.

    Raises:
        Unavailable: It holds something else: the disk or the memory is broken.
    """
    with open_raster(path, driver="GTiff") as dataset:
        for rows in strips(at.height):
            window = Window(at.column, at.row + rows.start, at.width, rows.stop - rows.start)
            mask = None if pixels.mask is None else pixels.mask[rows]
            _check(dataset, window, Pixels(pixels.bands[:, rows], mask))


def check_copied(path: Path, original: Path, *, masked: bool) -> None:
    """Read a file that was made of another one, and compare all of it.

    Raises:
        Unavailable: It holds something else.
    """
    with (
        open_raster(original, driver="GTiff") as source,
        open_raster(path, driver="GTiff") as dataset,
    ):
        for rows in strips(source.height):
            window = Window(0, rows.start, source.width, rows.stop - rows.start)
            mask = source.read_masks(1, window=window) if masked else None
            _check(dataset, window, Pixels(source.read(window=window), mask))


def _check(dataset: Any, window: Any, expected: Pixels) -> None:
    is_float = expected.bands.dtype.kind == "f"
    found = dataset.read(window=window)
    is_same = np.array_equal(found, expected.bands, equal_nan=is_float)
    if is_same and expected.mask is not None:
        is_same = np.array_equal(dataset.read_masks(1, window=window), expected.mask)
    if not is_same:
        raise Unavailable("a file holds other pixels than were written to it; try again")


def counted(
    pixels: Pixels, bands: tuple[RasterBand, ...], rules: PixelRules
) -> tuple[tuple[BandSums, ...], int]:
    """Statistics of each band, and how many pixels have a valid value in any."""
    found = (BandSums(),) * len(bands)
    total = 0
    for rows in strips(pixels.bands.shape[1]):
        mask = None if pixels.mask is None else pixels.mask[rows]
        part = Pixels(pixels.bands[:, rows], mask)
        valid = valid_pixels(part, bands, rules)
        found = tuple(
            added(before, sums(values, counts))
            for before, values, counts in zip(found, part.bands, valid, strict=True)
        )
        total += int(valid.any(axis=0).sum())
    return found, total


def valid_pixels(pixels: Pixels, bands: tuple[RasterBand, ...], rules: PixelRules) -> Any:
    """Of each band: which pixels count."""
    values = pixels.bands
    valid = np.ones(values.shape, bool)
    if values.dtype.kind == "f":
        valid &= np.isfinite(values)
    if rules.validity == "nodata":
        nodata = number_of(rules.nodata)
        if nodata is not None and np.isfinite(nodata):
            valid &= values != values.dtype.type(nodata)
    elif rules.validity == "alpha":
        alpha = next(at for at, band in enumerate(bands) if band.colour == "alpha")
        valid &= values[alpha] > 0
    elif pixels.mask is not None:
        valid &= pixels.mask > 0
    return valid


def sums(values: Any, valid: Any) -> BandSums:
    """Statistics of one band."""
    chosen = values if valid.all() else values[valid]
    if not chosen.size:
        return BandSums()
    mean = float(chosen.mean(dtype="float64"))
    deviation = float(chosen.std(dtype="float64", mean=mean))
    return BandSums(
        count=chosen.size,
        minimum=float(chosen.min()),
        maximum=float(chosen.max()),
        mean=mean,
        squares=deviation**2 * chosen.size,
    )


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _predictor(band: RasterBand) -> int:
    return 3 if band.data_type.startswith("float") else 2
