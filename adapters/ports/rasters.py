"""Rasters as files of this machine: read, put on a grid, written."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from contracts.jobs.rasters import (
    CogFacts,
    GridOrder,
    PixelRules,
    RasterFacts,
    TargetGrid,
    TileFacts,
    TileWindow,
)

Progress = Callable[[float, str], None]


@dataclass(frozen=True, slots=True)
class PlacedTile:
    """A tile of a dataset, and where it belongs."""

    path: Path
    window: TileWindow


class Rasters(Protocol):
    """Work on rasters; all of it happens in processes of their own.

    Every method raises `UnreadableDocument` when the file is damaged, hostile or too large, and
    `RuleViolation` when what is asked for would make a wrong result. Nothing is written outside
    the folder of the target; cancelling the call ends the work at once.
    """

    async def inspect(
        self, path: Path, folder: Path, subdataset: int | None = None, name: str | None = None
    ) -> RasterFacts:
        """Read what a raster says of itself, and decode all of it.

        Args:
            path: The file.
            folder: For temporary files.
            subdataset: Which of several, from 1; None: the file itself.
            name: As the file was called where it came from; None: as it is called here.
        """
        ...

    async def grid(self, order: GridOrder) -> TargetGrid:
        """The grid for a raster, in another reference system or resolution, or as it is."""
        ...

    async def prepare(
        self, path: Path, facts: RasterFacts, target: Path, name: str | None = None
    ) -> RasterFacts:
        """Rewrite a raster into a tiled TIFF, of which any window is read fast."""
        ...

    async def tile(
        self,
        path: Path,
        facts: RasterFacts,
        grid: TargetGrid,
        rules: PixelRules,
        window: TileWindow,
        target: Path,
        *,
        overviews: bool,
        progress: Progress,
    ) -> TileFacts:
        """Write a window of the grid as a COG, and read it again."""
        ...

    async def publish(
        self,
        tiles: Sequence[PlacedTile],
        grid: TargetGrid,
        rules: PixelRules,
        target: Path,
        preview: Path,
        progress: Progress,
    ) -> CogFacts:
        """Put tiles together into one COG with overviews, and make its picture (PNG)."""
        ...
