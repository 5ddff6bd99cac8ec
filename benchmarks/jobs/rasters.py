"""A raster into tiles, beside `gdalwarp -of COG` on the same tiles with as many processes."""

import asyncio
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import Final

import psutil

from adapters.files.rasters.pool import FileRasters
from benchmarks.report import Table, at_most, middle
from workflows.jobs import rasters as rules
from workflows.jobs.rasters import (
    PixelRules,
    RasterInfo,
    RasterParameters,
    TargetGrid,
    TileWindow,
    tiles,
)

SIDE: Final = 10_000
PROCESSES: Final = 2
TARGET: Final = "EPSG:3857"
_RATIO: Final = 1.15
_MEGABYTES: Final = 150
_PAUSE: Final = 0.02
_MAKE: Final = """
import sys, numpy, rasterio
from affine import Affine
side = int(sys.argv[2])
rows, columns = numpy.mgrid[0:2048, 0:2048]
waves = 128 + 60 * numpy.sin(rows / 37) * numpy.cos(columns / 53)
rng = numpy.random.default_rng(1)
profile = dict(driver="GTiff", width=side, height=side, count=3, dtype="uint8", nodata=0,
    crs="EPSG:32633", transform=Affine(10, 0, 300000, 0, -10, 5500000), tiled=True,
    compress="deflate")
with rasterio.open(sys.argv[1], "w", **profile) as file:
    for row in range(0, side, 2048):
        for column in range(0, side, 2048):
            height, width = min(2048, side - row), min(2048, side - column)
            pixels = [waves + rng.normal(0, 4, waves.shape) for _ in range(3)]
            block = numpy.clip(pixels, 1, 255).astype("uint8")[:, :height, :width]
            file.write(block, window=rasterio.windows.Window(column, row, width, height))
"""


async def tiled(folder: Path, rounds: int) -> Table:
    """Wall time of all tiles, ours and gdalwarp's, and memory of our processes."""
    source = folder / "source.tif"
    command = [sys.executable, "-c", _MAKE, str(source), str(SIDE)]
    await asyncio.to_thread(subprocess.run, command, check=True)
    table = Table(
        f"{SIDE:,} x {SIDE:,} x 3 into tiles of 2,048 with {PROCESSES} processes",
        ("by", "seconds", "MB at most in a process"),
    )
    ours: list[float] = []
    exact: list[float] = []
    peak = 0.0
    async with FileRasters(PROCESSES) as rasters:
        facts = await rasters.inspect(source, folder)
        given = RasterParameters(source="source.tif", target_crs=TARGET)
        grid = await rasters.grid(rules.grid_order(facts, given))
        pixels = rules.pixel_rules(facts, given, grid)
        for _ in range(rounds):
            seconds, megabytes = await _ours(rasters, source, facts, grid, pixels, folder)
            ours.append(seconds)
            peak = max(peak, megabytes)
            if shutil.which("gdalwarp"):
                exact.append(await _gdalwarp(source, grid, folder, ("-et", "0")))
    table.add("docflow", f"{middle(ours):.1f}", f"{peak:.0f}")
    table.notes.append(f"memory: {at_most(peak, _MEGABYTES, ' MB')}")
    if not exact:
        table.notes.append("this machine has no gdalwarp (Debian: gdal-bin)")
        return table
    table.add("gdalwarp -et 0", f"{middle(exact):.1f}", "")
    quick = await _gdalwarp(source, grid, folder, ())
    table.add("gdalwarp", f"{quick:.1f}", "")
    ratio = middle(ours) / middle(exact)
    table.notes.append(f"to gdalwarp -et 0: {at_most(ratio, _RATIO)}")
    table.notes.append("docflow also reads each tile again, compares, and takes statistics")
    table.notes.append(
        "gdalwarp alone approximates coordinates by 0.125 pixels; tiles do not join then"
    )
    return table


async def _ours(
    rasters: FileRasters,
    source: Path,
    facts: RasterInfo,
    grid: TargetGrid,
    pixels: PixelRules,
    folder: Path,
) -> tuple[float, float]:
    """Seconds, and the most memory of a process in MB."""

    async def one(index: str, window: TileWindow) -> None:
        own = folder / f"ours-{index}"
        own.mkdir(exist_ok=True)
        await rasters.tile(
            source,
            facts,
            grid,
            pixels,
            window,
            own / "tile.tif",
            overviews=True,
            progress=lambda share, said: None,
        )

    memory = _Memory()
    watching = asyncio.create_task(memory.watch())
    began = perf_counter()
    async with asyncio.TaskGroup() as group:
        for index, window in tiles(grid):
            group.create_task(one(index, window))
    seconds = perf_counter() - began
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    return seconds, memory.most


class _Memory:
    """The most memory of its own that a process below this one has had, in MB."""

    def __init__(self) -> None:
        self.most = 0.0

    async def watch(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            for child in psutil.Process().children(recursive=True):
                with suppress(psutil.NoSuchProcess):
                    self.most = max(self.most, child.memory_info().rss / 1e6)
            await asyncio.sleep(_PAUSE)


async def _gdalwarp(source: Path, grid: TargetGrid, folder: Path, more: Sequence[str]) -> float:
    """Seconds for the same tiles."""
    side, _, left, _, _, top = grid.transform
    room = asyncio.Semaphore(PROCESSES)

    async def one(index: str, window: TileWindow) -> None:
        west, north = left + window.column * side, top - window.row * side
        extent = (west, north - window.height * side, west + window.width * side, north)
        arguments = [
            *("-q", "-overwrite", "-of", "COG", "-t_srs", TARGET, "-r", "bilinear", *more),
            *("-te", *map(repr, extent), "-ts", str(window.width), str(window.height)),
            *("-co", "COMPRESS=ZSTD", "-co", "LEVEL=1", "-co", "PREDICTOR=YES"),
            *("-co", "BLOCKSIZE=512", "-co", "NUM_THREADS=1", "-co", "RESAMPLING=AVERAGE"),
            *("-wo", "XSCALE=1", "-wo", "YSCALE=1", "-wo", "SOURCE_EXTRA=8"),
            *(str(source), str(folder / f"theirs-{index}.tif")),
        ]
        async with room:
            process = await asyncio.create_subprocess_exec("gdalwarp", *arguments)
            if await process.wait():
                raise RuntimeError("gdalwarp failed")

    began = perf_counter()
    async with asyncio.TaskGroup() as group:
        for index, window in tiles(grid):
            group.create_task(one(index, window))
    return perf_counter() - began
