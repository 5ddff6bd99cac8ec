"""Tiles of a grid, and what is added up over them."""

import math
from collections.abc import Iterable, Iterator

from contracts.jobs.rasters import BandSums, RasterFacts, TargetGrid, TileFacts, TileWindow

RANDOM_ACCESS_PIXELS = 2_048 * 2_048
"""A larger block costs more than the window that is read of it."""
_SEQUENTIAL = frozenset({"PNG", "GIF", "BMP", "WEBP", "AAIGrid", "JPEG"})


def tiles(grid: TargetGrid) -> Iterator[tuple[str, TileWindow]]:
    """Semantic index and window of each tile, row by row."""
    for y in range(grid.rows):
        for x in range(grid.columns):
            yield f"tile-x{x}-y{y}", window(grid, x, y)


def window(grid: TargetGrid, x: int, y: int) -> TileWindow:
    """The part of the grid that a tile covers; those at the right and lower edge are smaller."""
    column, row = x * grid.tile, y * grid.tile
    return TileWindow(
        column=column,
        row=row,
        width=min(grid.tile, grid.width - column),
        height=min(grid.tile, grid.height - row),
    )


def needs_rewriting(facts: RasterFacts, grid: TargetGrid) -> str | None:
    """Why a source is rewritten before its tiles are read; None: it is not.

    Rows that are compressed together are unpacked again for every tile in them.
    """
    nodata = {band.nodata for band in facts.bands}
    if len(nodata) > 1:
        return "its bands have different nodata values"
    if facts.member is not None:
        return "it is in an archive"
    if facts.driver == "SRTMHGT":
        return "its name says its place"
    if facts.subdataset is not None:
        return "it is a subdataset"
    if grid.columns * grid.rows == 1:
        return None
    if facts.driver in _SEQUENTIAL:
        return f"{facts.driver} can be read from its beginning only"
    if facts.block_width * facts.block_height > RANDOM_ACCESS_PIXELS:
        return f"its blocks have {facts.block_width} x {facts.block_height} pixels"
    if not facts.tiled and facts.compression is not None:
        return "it is compressed in strips"
    return None


def total(parts: Iterable[TileFacts]) -> tuple[BandSums, ...]:
    """Statistics over several tiles.

    Source of the formula: Chan, Golub and LeVeque, Updating Formulae and a Pairwise Algorithm
    for Computing Sample Variances, 1979.
    """
    sums: tuple[BandSums, ...] = ()
    for part in parts:
        sums = (
            tuple(added(one, other) for one, other in zip(sums, part.bands, strict=True))
            if sums
            else part.bands
        )
    return sums


def added(one: BandSums, other: BandSums) -> BandSums:
    """Statistics of two parts together."""
    if not one.count or not other.count:
        return one if one.count else other
    assert one.mean is not None and other.mean is not None
    count = one.count + other.count
    distance = other.mean - one.mean
    return BandSums(
        count=count,
        minimum=min(_known(one.minimum), _known(other.minimum)),
        maximum=max(_known(one.maximum), _known(other.maximum)),
        mean=one.mean + distance * other.count / count,
        squares=one.squares + other.squares + distance**2 * one.count * other.count / count,
    )


def deviation(sums: BandSums) -> float | None:
    """Standard deviation of all values; None: there are none."""
    return math.sqrt(sums.squares / sums.count) if sums.count else None


def _known(value: float | None) -> float:
    assert value is not None
    return value
