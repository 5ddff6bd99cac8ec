"""Rasters: what is known of one, the grid that it is put on, and the files made of it."""

from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AwareDatetime,
    ConfigDict,
    Field,
    FiniteFloat,
    StringConstraints,
    model_validator,
)

from contracts.base import Contract

TILE: Final = 2_048
"""Pixels of a tile's side, unless its bands make it too large."""
TAGS: Final = 500
"""Entries of metadata that are kept of one raster."""
TAG_CHARACTERS: Final = 1_000
BANDS: Final = 256
NOTES: Final = 50
FEW_VALUES: Final = 50
"""A band of no more whole values may hold classes."""

Affine = tuple[FiniteFloat, FiniteFloat, FiniteFloat, FiniteFloat, FiniteFloat, FiniteFloat]
"""x = a column + b row + c, y = d column + e row + f."""
Nodata = FiniteFloat | Literal["nan", "inf", "-inf"]
"""The value of a pixel that says nothing; JSON has no NaN."""
Note = Annotated[str, StringConstraints(max_length=500)]
Resampling = Literal[
    "nearest", "bilinear", "cubic", "cubic_spline", "lanczos", "average", "mode", "min", "max"
]

Validity = Literal["none", "nodata", "alpha", "mask"]
"""What says which pixels are valid."""


class RasterBand(Contract):
    """One band as its file describes it."""

    data_type: str
    """As numpy calls it: `uint8`, `float32`."""
    nodata: Nodata | None = None
    scale: float = 1.0
    offset: float = 0.0
    unit: str | None = Field(default=None, max_length=100)
    description: str | None = Field(default=None, max_length=1_000)
    colour: str = "undefined"
    """Its colour interpretation: `red`, `gray`, `palette`, `alpha`."""
    palette: dict[int, tuple[int, int, int, int]] | None = None
    """Value to red, green, blue and alpha."""
    categories: tuple[str, ...] = Field(default=(), max_length=65_536)
    """Name of each value from 0."""
    tags: dict[str, str] = Field(default_factory=dict)
    values: tuple[int, ...] = Field(default=(), max_length=FEW_VALUES)
    """Every valid value; empty: there are more, or some are not whole."""


class GroundPoint(Contract):
    """A ground control point."""

    column: FiniteFloat
    row: FiniteFloat
    x: FiniteFloat
    y: FiniteFloat
    z: FiniteFloat | None = None


class RasterFacts(Contract):
    """A raster as its file describes it; every pixel of it was decoded."""

    driver: str
    """Of GDAL."""
    width: int = Field(ge=1)
    height: int = Field(ge=1)
    bands: tuple[RasterBand, ...] = Field(min_length=1, max_length=BANDS)
    mask: Validity = "none"
    crs: str | None = Field(default=None, max_length=20_000)
    """`EPSG:32633`, or WKT 2 where it has no code."""
    transform: Affine | None = None
    ground_points: tuple[GroundPoint, ...] = Field(default=(), max_length=10_000)
    ground_residual: float | None = None
    """Pixels by which the ground control points miss the transform that was fitted to them."""
    rpcs: dict[str, str] = Field(default_factory=dict)
    tags: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Domain of metadata to its entries; the default domain is empty."""
    subdatasets: tuple[str, ...] = Field(default=(), max_length=1_000)
    """Names, in the file's order."""
    subdataset: int | None = None
    """Which of them this is, from 1."""
    member: str | None = Field(default=None, max_length=1_100)
    """Its name in the archive that holds it; None: the file is the raster."""
    placed_by: str | None = Field(default=None, max_length=2_100)
    """Name and version of the world file beside it, where that one says its place."""
    tiled: bool = False
    block_width: int = 0
    block_height: int = 0
    compression: str | None = None
    overviews: tuple[int, ...] = ()
    size: int = 0
    """Bytes of the file."""
    notes: tuple[Note, ...] = Field(default=(), max_length=NOTES)
    """What was left out, changed or assumed, a sentence each."""

    @property
    def pixels(self) -> int:
        """Of one band."""
        return self.width * self.height

    @property
    def is_classes(self) -> bool:
        """Whether values are names of classes, between which nothing may be interpolated."""
        return any(
            band.palette or band.categories or band.colour == "palette" for band in self.bands
        )


class Operation(Contract):
    """How coordinates get from one reference system to the other."""

    name: str = Field(max_length=1_000)
    accuracy_metres: float | None = None
    """None: not known."""
    ballpark: bool = False
    """The shift of the datum is left out."""
    better: tuple[str, ...] = Field(default=(), max_length=20)
    """More accurate operations that cannot be used, with the grid that each of them lacks."""


class GridOrder(Contract):
    """What a target grid is made from."""

    width: int
    height: int
    crs: str
    transform: Affine
    band_bytes: int
    """Of one pixel, all bands."""
    target_crs: str | None = None
    """None: the raster keeps its own."""
    resolution: float | None = None
    """In units of the target; None: as fine as the source."""
    allow_ballpark: bool = False


class TargetGrid(Contract):
    """The one grid that all tiles of a dataset lie on."""

    crs: str
    transform: Affine
    width: int
    height: int
    method: Literal["copy", "warp"]
    """`copy`: the pixels stay as they are."""
    scale_x: float = 1.0
    """Target pixels per source pixel; fixed, so that it is the same for every tile."""
    scale_y: float = 1.0
    tile: int = TILE
    operation: Operation | None = None
    notes: tuple[Note, ...] = ()

    @property
    def columns(self) -> int:
        """Tiles side by side."""
        return -(-self.width // self.tile)

    @property
    def rows(self) -> int:
        """Tiles one below the other."""
        return -(-self.height // self.tile)


class TileWindow(Contract):
    """A part of the target grid, in pixels."""

    column: int
    row: int
    width: int
    height: int


class PixelRules(Contract):
    """How pixels are treated, the same for every tile."""

    crs: str
    """Of the source, also where the file does not say it."""
    transform: Affine
    resampling: Resampling
    validity: Validity
    """What says in the target which pixels are valid."""
    nodata: Nodata | None = None
    classes: bool = False
    """Overviews take the nearest value, not the average."""


class BandSums(Contract):
    """Statistics of a band over valid pixels, in a form that can be added up."""

    count: int = 0
    minimum: float | None = None
    maximum: float | None = None
    mean: float | None = None
    squares: float = 0.0
    """Sum of the squared distances from the mean."""


class TileFacts(Contract):
    """A tile that was written, and read again."""

    sha256: str
    size: int
    bands: tuple[BandSums, ...]
    valid: int
    """Pixels with a valid value in any band."""


class CogFacts(TileFacts):
    """A COG that is published, with its picture."""

    width: int
    height: int
    transform: Affine
    crs: str
    code: str | None = None
    """`EPSG:32633`."""
    wkt2: str | None = Field(default=None, max_length=20_000)
    """Where it has no code."""
    gsd: float | None = None
    """Metres between pixels, roughly where the system is geographic."""
    footprint: dict[str, Any] | None
    """Of the valid pixels: GeoJSON in degrees, cut at the antimeridian; None: the whole raster."""
    preview_sha256: str = ""
    preview_size: int = 0
    versions: dict[str, str] = Field(default_factory=dict)


class DatasetPlan(Contract):
    """How one raster becomes a dataset; lies in a blob, where its tiles find it."""

    number: int
    """Of the source in the job, from 0."""
    name: str
    """Of the source in the bronze container."""
    etag: str | None = None
    size: int
    sha256: str
    item: str
    """Id in the catalogue."""
    facts: RasterFacts
    grid: TargetGrid
    rules: PixelRules
    is_single: bool
    """Tiles are put together into one file; else each is a file and an item of its own."""
    prepared: str | None = None
    """Blob of the silver container with the source, rewritten."""
    start: AwareDatetime
    end: AwareDatetime
    time_source: str
    notes: tuple[Note, ...] = ()


class PlacedAsset(Contract):
    """A tile that lies in the silver container."""

    index: str
    asset: str
    """Name of the blob."""
    window: TileWindow
    tile: TileFacts
    cog: CogFacts | None = None
    """Where the tile is published as it is."""
    preview: str | None = None


class TileList(Contract):
    """The tiles of one dataset; lies in a blob."""

    tiles: tuple[PlacedAsset, ...]


class RasterParameters(Contract):
    """Parameters of `process_raster`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str | Annotated[tuple[str, ...], Field(min_length=1)]
    """Blobs of the bronze container; `name/` is a folder, `@name` a list of names."""
    collection: str = Field(default="rasters", pattern=r"^[a-z0-9][a-z0-9_-]{0,99}$")
    datetime: str | None = None
    """When it was acquired: RFC 3339, a day, or `start/end`."""
    datetime_tag: str | None = Field(default=None, max_length=100)
    """The tag that says it."""
    datetime_pattern: str | None = Field(default=None, max_length=50)
    """The named pattern by which the name of the file says it."""
    crs: str | None = Field(default=None, max_length=20_000)
    """Of a source that does not say it."""
    nodata: float | None = None
    """Of a source that does not say it."""
    transform: Affine | None = None
    """Of a source that does not say it: a, b, c, d, e, f of the corner, as in `Affine`."""
    classes: bool | None = None
    """Whether values are classes, which are never averaged; None: docflow asks if in doubt."""
    subdataset: int | None = Field(default=None, ge=1)
    target_crs: str | None = Field(default=None, max_length=200)
    resolution: float | None = Field(default=None, gt=0)
    resampling: Resampling | None = None
    allow_ballpark: bool = False
    single_file_bytes: int = Field(default=4 << 30, ge=1)
    """Uncompressed; a larger dataset stays in tiles, an item each."""
    item: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,149}$")
    """Id of a single source in the catalogue; None: after the name of its file."""
    keep_old_hours: float = Field(default=168.0, ge=0)
    """Files that a newer dataset has replaced stay for so long."""
    only_changed: bool = True
    """Of several sources, leave out those that are catalogued from the same bytes already."""

    @model_validator(mode="after")
    def _item_names_one(self) -> Self:
        if self.item is not None and self.is_many:
            raise ValueError("item names a single source")
        return self

    @property
    def sources(self) -> tuple[str, ...]:
        """Names, folders and lists."""
        return (self.source,) if isinstance(self.source, str) else self.source

    @property
    def is_many(self) -> bool:
        """Whether more than one raster may be meant."""
        folders = [name for name in self.sources if name.startswith("@") or name.endswith("/")]
        return len(self.sources) > 1 or bool(folders)
