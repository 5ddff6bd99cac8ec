"""What goes to the process that works on rasters, and what comes back."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field, JsonValue, TypeAdapter

from workflows.jobs.rasters import GridInput, PixelRules, RasterInfo, TargetGrid, TileWindow


class Inspect(BaseModel):
    """Read what a raster says, and decode it."""

    do: Literal["inspect"] = "inspect"
    path: Path
    name: str
    """As it was called where it came from."""
    subdataset: int | None


class Grid(BaseModel):
    """Make a target grid."""

    do: Literal["grid"] = "grid"
    order: GridInput


class Prepare(BaseModel):
    """Rewrite a source."""

    do: Literal["prepare"] = "prepare"
    path: Path
    name: str
    facts: RasterInfo
    target: Path


class Tile(BaseModel):
    """Write one window of a grid."""

    do: Literal["tile"] = "tile"
    path: Path
    facts: RasterInfo
    grid: TargetGrid
    rules: PixelRules
    window: TileWindow
    target: Path
    overviews: bool


class Placed(BaseModel):
    """A tile, and where it belongs."""

    path: Path
    window: TileWindow


class Publish(BaseModel):
    """Put tiles together."""

    do: Literal["publish"] = "publish"
    tiles: tuple[Placed, ...]
    grid: TargetGrid
    rules: PixelRules
    target: Path
    preview: Path


RasterOrder = Annotated[Inspect | Grid | Prepare | Tile | Publish, Field(discriminator="do")]
ORDERS: TypeAdapter[RasterOrder] = TypeAdapter(RasterOrder)


class Answer(BaseModel):
    """One piece of what comes back; the last one is a result or a failure."""

    progress: float | None = None
    said: str = ""
    result: JsonValue = None
    unreadable: str | None = None
    violated: str | None = None
