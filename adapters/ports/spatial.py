"""Rasters and vector data as files of this machine, and computing in a process that is bounded."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from workflows.jobs.rasters import (
    CogInfo,
    GridInput,
    PixelRules,
    RasterInfo,
    TargetGrid,
    TileInfo,
    TileWindow,
)
from workflows.jobs.vectors import SourceReport, VectorOptions, VectorTable

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
    ) -> RasterInfo:
        """Read what a raster says of itself, and decode all of it.

        Args:
            path: The file.
            folder: For temporary files.
            subdataset: Which of several, from 1; None: the file itself.
            name: As the file was called where it came from; None: as it is called here.
        """
        ...

    async def grid(self, order: GridInput) -> TargetGrid:
        """The grid for a raster, in another reference system or resolution, or as it is."""
        ...

    async def prepare(
        self, path: Path, facts: RasterInfo, target: Path, name: str | None = None
    ) -> RasterInfo:
        """Rewrite a raster into a tiled TIFF, of which any window is read fast."""
        ...

    async def tile(
        self,
        path: Path,
        facts: RasterInfo,
        grid: TargetGrid,
        rules: PixelRules,
        window: TileWindow,
        target: Path,
        *,
        overviews: bool,
        progress: Progress,
    ) -> TileInfo:
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
    ) -> CogInfo:
        """Put tiles together into one COG with overviews, and make its picture (PNG)."""
        ...


class QuestionOpen(Exception):
    """The file does not say something that a person has to.

    Attributes:
        parameter: Of the job; its name.
    """

    def __init__(self, parameter: str, question: str) -> None:
        super().__init__(question)
        self.parameter = parameter


class Vectors(Protocol):
    """Reads and writes files of vector data."""

    async def read(self, path: Path, folder: Path, options: VectorOptions) -> SourceReport:
        """Read all layers of a file: validated, repaired, in EPSG:4326.

        Args:
            path: The file, in a folder that nothing else is in.
            folder: Takes `{n}.parquet` with the features and `{n}.jsonl` with the problems of
                each layer, by its number in the report.
            options: What the job says about it.

        Raises:
            UnreadableDocument: It is of another format, damaged, hostile or too large.
            QuestionOpen: A person has to say something.
            Unavailable: The process was lost.
        """
        ...

    async def export(
        self, table: VectorTable, rows: AsyncIterator[Sequence[tuple[Any, ...]]], target: Path
    ) -> int:
        """Write a table as GeoParquet 1.1 with a covering of boxes.

        Args:
            table: Whose columns the rows have.
            rows: `fid`, the columns and the geometry as well-known binary, some thousand at a time.
            target: Written.

        Returns:
            Rows.
        """
        ...


Computation = Callable[[dict[str, Any]], dict[str, Any]]
"""A function of a module; its argument and its result are what JSON can hold."""


class SubprocessExecutor(Protocol):
    """Calls functions in processes of their own."""

    async def compute(
        self, function: Computation, argument: dict[str, Any], folder: Path
    ) -> dict[str, Any]:
        """Call a function; a caller who is cancelled ends its process at once.

        Args:
            function: Found by its name in its module, so no lambda and no inner function.
            argument: What it is given.
            folder: Its current one, and the only one that it writes into.

        Raises:
            RuleViolation: It raised that, or something that it does not explain.
            UnreadableDocument: It needs more memory or time than it may.
            Unavailable: The process was lost.
        """
        ...
