"""Rasters: what is known of one, the grid that it is put on, and the files made of it."""

from typing import Annotated, Final, Literal, Self

from pydantic import ConfigDict, Field, FiniteFloat, StringConstraints, model_validator

from contracts.base import Contract

TILE: Final = 2_048
"""Pixels of a tile's side, unless its bands make it too large."""
TAGS: Final = 500
"""Entries of metadata that are kept of one raster."""
TAG_CHARACTERS: Final = 1_000
BANDS: Final = 256
NOTES: Final = 50

Affine = tuple[FiniteFloat, FiniteFloat, FiniteFloat, FiniteFloat, FiniteFloat, FiniteFloat]
"""x = a column + b row + c, y = d column + e row + f."""
Nodata = FiniteFloat | Literal["nan", "inf", "-inf"]
"""The value of a pixel that says nothing; JSON has no NaN."""
Note = Annotated[str, StringConstraints(max_length=500)]
Resampling = Literal[
    "nearest", "bilinear", "cubic", "cubic_spline", "lanczos", "average", "mode", "min", "max"
]


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
    mask: Literal["none", "nodata", "alpha", "mask"] = "none"
    """What says which pixels are valid."""
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
        return any(band.palette or band.categories for band in self.bands)


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
    validity: Literal["none", "nodata", "alpha", "mask"]
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
    footprint: dict[str, object] | None
    """GeoJSON in degrees, cut at the antimeridian; None: no pixel is valid."""
    bbox: tuple[float, float, float, float] | None
    """West above east: it crosses the antimeridian."""
    preview_sha256: str = ""
    preview_size: int = 0
    versions: dict[str, str] = Field(default_factory=dict)


class RasterParameters(Contract):
    """Parameters of `process_raster`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str | tuple[str, ...] | None = None
    """Blobs of the bronze container; `name/` is a prefix."""
    manifest: str | None = None
    """A blob of the bronze container with the name of a raster on each line."""
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
    subdataset: int | None = Field(default=None, ge=1)
    target_crs: str | None = Field(default=None, max_length=200)
    resolution: float | None = Field(default=None, gt=0)
    resampling: Resampling | None = None
    allow_ballpark: bool = False
    single_file_bytes: int = Field(default=4 << 30, ge=1)
    """Uncompressed; a larger dataset stays in tiles, an item each."""
    only_changed: bool = True
    """Of several sources, leave out those that are catalogued from the same bytes already."""

    @model_validator(mode="after")
    def _has_a_source(self) -> Self:
        if not self.source and self.manifest is None:
            raise ValueError("source or manifest is needed")
        return self

    @property
    def sources(self) -> tuple[str, ...]:
        """Names and prefixes."""
        if isinstance(self.source, str):
            return (self.source,)
        return self.source or ()
