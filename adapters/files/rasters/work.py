"""Steps of a raster's way: rewrite, tile, publish."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from affine import Affine

from adapters.files.rasters import cog
from adapters.files.rasters.cog import Pixels, window_of
from adapters.files.rasters.inspect import inspect
from adapters.files.rasters.requests import Placed, Prepare, Publish, Tile
from adapters.files.rasters.source import Window, chunks, number_of, open_raster, opened, unpacked
from workflows.jobs.rasters import (
    BandSums,
    CogInfo,
    PixelRules,
    RasterInfo,
    TileInfo,
    TileWindow,
    total,
)
from workflows.shared.errors import RuleViolation

Progress = Callable[[float], None]


def prepare(order: Prepare, progress: Progress) -> RasterInfo:
    """Rewrite a source into a tiled TIFF, bands with one nodata value."""
    with unpacked(order.path, order.name, order.facts.subdataset) as packed:
        assert packed.path is not None
        return _prepared(order, packed.path, packed.subdataset, progress)


def _prepared(order: Prepare, path: Path, subdataset: int | None, progress: Progress) -> RasterInfo:
    facts = order.facts
    name = _name(path, subdataset)
    nodata = _common_nodata(path, name, facts)
    rules = PixelRules(
        crs=facts.crs or "",
        transform=(1, 0, 0, 0, 1, 0),
        resampling="nearest",
        validity="none" if facts.mask == "none" else facts.mask,
        nodata=nodata,
    )
    bands = facts.bands
    with (
        opened(path, name) as source,
        cog.new_tiff(
            order.target,
            bands,
            rules,
            crs=facts.crs,
            transform=Affine(*facts.transform) if facts.transform else None,
            width=facts.width,
            height=facts.height,
            tags=facts.tags,
            compress=True,
        ) as target,
    ):
        done = 0
        for window in chunks(source):
            pixels = source.read(window=window)
            for at, band in enumerate(bands):
                if band.nodata is not None and band.nodata != nodata:
                    other = _is(pixels[at], number_of(band.nodata))
                    pixels[at][other] = number_of(nodata)
            at = TileWindow(
                column=window.col_off, row=window.row_off, width=window.width, height=window.height
            )
            mask = source.read_masks(1, window=window) if facts.mask == "mask" else None
            cog.put(target, Pixels(pixels, mask), at)
            done += window.width * window.height
            progress(done / facts.pixels)
    found = inspect(order.target, None)
    changed = [band.model_copy(update={"nodata": nodata}) for band in bands]
    return facts.model_copy(
        update={
            "driver": found.driver,
            "bands": tuple(changed) if facts.mask == "nodata" else bands,
            "subdataset": None,
            "subdatasets": (),
            "member": None,
            "tiled": True,
            "block_width": found.block_width,
            "block_height": found.block_height,
            "compression": found.compression,
            "size": found.size,
        }
    )


def _name(path: Path, subdataset: int | None) -> str | None:
    if subdataset is None:
        return None
    with opened(path) as dataset:
        names: list[str] = dataset.subdatasets
    return names[subdataset - 1] if names else None


def _common_nodata(path: Path, name: str | None, facts: RasterInfo) -> Any:
    """A nodata value for all bands, which none of them has as a valid value.

    Raises:
        RuleViolation: There is none.
    """
    values = list(dict.fromkeys(band.nodata for band in facts.bands if band.nodata is not None))
    if len({band.nodata for band in facts.bands}) <= 1:
        return values[0] if values else None
    kind = np.dtype(facts.bands[0].data_type)
    more: list[Any] = ["nan"] if kind.kind == "f" else [np.iinfo(kind).max, np.iinfo(kind).min]
    free: list[Any] = [*values, *(value for value in more if value not in values)]
    with opened(path, name) as source:
        for window in chunks(source):
            for number, band in enumerate(facts.bands, 1):
                pixels = source.read(number, window=window)
                free = [
                    value
                    for value in free
                    if value == band.nodata or not _is(pixels, number_of(value)).any()
                ]
    if not free:
        raise RuleViolation(
            "the bands have different nodata values, and every one of them is a valid value in"
            " another band; a GeoTIFF has one for all: give the bands a common one"
        )
    return free[0] if free[0] == "nan" else float(free[0])


def _is(pixels: Any, value: float | None) -> Any:
    if value is None:
        return np.zeros(pixels.shape, bool)
    return np.isnan(pixels) if np.isnan(value) else pixels == value


def tile(order: Tile, progress: Progress) -> TileInfo:
    """Write one window of a grid as a COG."""
    with opened(order.path) as source:
        pixels = window_of(source, order.grid, order.rules, order.window, progress)
    at = TileWindow(column=0, row=0, width=order.window.width, height=order.window.height)
    raw = order.target.with_name("raw.tif")
    with _new_part(raw, order.facts, order.rules, order.grid, order.window, False) as file:
        cog.put(file, pixels, at)
    cog.check_same(raw, at, pixels)
    counted, valid = cog.counted(pixels, order.facts.bands, order.rules)
    masked = pixels.mask is not None
    # GDAL has its own copy of them now, which takes as much memory.
    del pixels
    cog.as_cog(raw, order.target, classes=order.rules.classes, overviews=order.overviews)
    cog.check_copied(order.target, raw, masked=masked)
    raw.unlink()
    return TileInfo(
        sha256=cog.digest(order.target),
        size=order.target.stat().st_size,
        bands=counted,
        valid=valid,
    )


def publish(order: Publish, progress: Progress) -> CogInfo:
    """Put tiles together into one COG, and look at it."""
    first = order.tiles[0].window
    left, top = first.column, min(each.window.row for each in order.tiles)
    left = min(each.window.column for each in order.tiles)
    whole = TileWindow(
        column=left,
        row=top,
        width=max(each.window.column + each.window.width for each in order.tiles) - left,
        height=max(each.window.row + each.window.height for each in order.tiles) - top,
    )
    facts = inspect(order.tiles[0].path, None)
    raw = order.target.with_name("raw.tif")
    parts: list[TileInfo] = []
    with _new_part(raw, facts, order.rules, order.grid, whole, True) as file:
        for number, placed in enumerate(order.tiles, 1):
            pixels = _pixels(placed, order.rules)
            cog.put(file, pixels, _within(placed.window, whole))
            counted, valid = cog.counted(pixels, facts.bands, order.rules)
            parts.append(TileInfo(sha256="", size=0, bands=counted, valid=valid))
            progress(0.5 * number / len(order.tiles))
    cog.as_cog(raw, order.target, classes=order.rules.classes, overviews=True)
    raw.unlink()
    for number, placed in enumerate(order.tiles, 1):
        cog.check_same(order.target, _within(placed.window, whole), _pixels(placed, order.rules))
        progress(0.5 + 0.5 * number / len(order.tiles))
    return _published(order, parts, total(parts))


def _published(order: Publish, parts: Sequence[TileInfo], counted: tuple[BandSums, ...]) -> CogInfo:
    with open_raster(order.target, driver="GTiff") as dataset:
        footprint = cog.footprint(dataset)
        cog.preview(dataset, order.preview)
        code = dataset.crs.to_authority(confidence_threshold=100)
        return CogInfo(
            sha256=cog.digest(order.target),
            size=order.target.stat().st_size,
            bands=counted,
            valid=sum(part.valid for part in parts),
            width=dataset.width,
            height=dataset.height,
            transform=tuple(dataset.transform)[:6],
            crs=order.grid.crs,
            code=":".join(code) if code else None,
            wkt2=None if code else dataset.crs.to_wkt(version="WKT2_2019"),
            gsd=cog.metres(dataset),
            footprint=footprint,
            preview_sha256=cog.digest(order.preview),
            preview_size=order.preview.stat().st_size,
            versions=cog.versions(),
        )


def _new_part(
    path: Path,
    facts: RasterInfo,
    rules: PixelRules,
    grid: Any,
    window: TileWindow,
    compress: bool,
) -> Any:
    return cog.new_tiff(
        path,
        facts.bands,
        rules,
        crs=grid.crs,
        transform=Affine(*grid.transform) @ Affine.translation(window.column, window.row),
        width=window.width,
        height=window.height,
        tags=facts.tags,
        compress=compress,
    )


def _pixels(placed: Placed, rules: PixelRules) -> Pixels:
    with open_raster(placed.path, driver="GTiff") as dataset:
        whole = Window(0, 0, placed.window.width, placed.window.height)
        mask = dataset.read_masks(1, window=whole) if rules.validity == "mask" else None
        return Pixels(dataset.read(window=whole), mask)


def _within(window: TileWindow, whole: TileWindow) -> TileWindow:
    return window.model_copy(
        update={"column": window.column - whole.column, "row": window.row - whole.row}
    )
