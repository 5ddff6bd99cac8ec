"""What is known of a dataset, from which its STAC item and collection are made.

Readers of rasters and of vectors fill these alike; `domain.jobs.stac` makes the JSON.
"""

from typing import Annotated, Final, Literal, Self

from pydantic import AwareDatetime, Field, FiniteFloat, StringConstraints, model_validator

from contracts.base import Contract
from contracts.jobs.records import JsonObject

ITEM_ID: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$"
"""What every id of an item looks like; a collection may declare a narrower pattern."""
COLLECTION_ID: Final = r"^[a-z0-9][a-z0-9_-]{0,99}$"
COG: Final = "image/tiff; application=geotiff; profile=cloud-optimized"
PNG: Final = "image/png"
GEOPACKAGE: Final = "application/geopackage+sqlite3"
GEOJSON: Final = "application/geo+json"
PARQUET: Final = "application/vnd.apache.parquet"

ItemId = Annotated[str, StringConstraints(pattern=ITEM_ID)]
CollectionId = Annotated[str, StringConstraints(pattern=COLLECTION_ID)]
AssetKey = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]
Uri = Annotated[str, StringConstraints(min_length=1, max_length=2_048)]
Degrees = tuple[FiniteFloat, FiniteFloat, FiniteFloat, FiniteFloat]
"""West, south, east, north; west above east crosses the antimeridian."""
DataType = Literal[
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "cint16",
    "cint32",
    "cfloat32",
    "cfloat64",
    "other",
]


class BandStatistics(Contract):
    """Over the valid pixels alone."""

    minimum: FiniteFloat
    maximum: FiniteFloat
    mean: FiniteFloat | None = None
    stddev: FiniteFloat | None = None
    count: int | None = Field(default=None, ge=0)
    """Valid pixels."""
    valid_percent: float | None = Field(default=None, ge=0, le=100)


class BandFacts(Contract):
    """One band of a raster."""

    name: str = Field(min_length=1, max_length=200)
    description: str | None = Field(default=None, max_length=1_000)
    data_type: DataType
    nodata: FiniteFloat | Literal["nan", "inf", "-inf"] | None = None
    unit: str | None = Field(default=None, max_length=100)
    scale: FiniteFloat | None = None
    offset: FiniteFloat | None = None
    statistics: BandStatistics | None = None
    """None: no pixel is valid, or they were not made."""
    more: JsonObject = Field(default_factory=dict)
    """Further fields, with their prefix: `eo:common_name`."""


class GridFacts(Contract):
    """Where the pixels of a raster are, as the header of its file says."""

    code: str | None = Field(default=None, pattern=r"^[A-Z]+:[0-9A-Za-z]+$")
    """`EPSG:32631`; None: the reference system has no code."""
    wkt2: str | None = Field(default=None, max_length=20_000)
    """Where it has no code."""
    shape: tuple[int, int]
    """Rows and columns."""
    transform: tuple[FiniteFloat, FiniteFloat, FiniteFloat, FiniteFloat, FiniteFloat, FiniteFloat]
    """x = a column + b row + c, y = d column + e row + f, in the units of the system."""

    @property
    def system(self) -> str:
        """The reference system, as PROJ reads it."""
        return self.code or self.wkt2 or ""

    @model_validator(mode="after")
    def _has_a_system(self) -> Self:
        if not self.system:
            raise ValueError("code or wkt2 is needed")
        return self


class ColumnFacts(Contract):
    """One column of a vector table."""

    name: str = Field(min_length=1, max_length=200)
    type: str = Field(min_length=1, max_length=100)
    description: str | None = Field(default=None, max_length=1_000)


class TableFacts(Contract):
    """The table of a vector dataset."""

    columns: tuple[ColumnFacts, ...] = Field(max_length=2_000)
    primary_geometry: str | None = None
    row_count: int = Field(ge=0)


class AssetFacts(Contract):
    """One file, or one table, that an item is about."""

    href: Uri
    media_type: str = Field(min_length=1, max_length=200)
    roles: tuple[str, ...] = Field(min_length=1, max_length=10)
    """`data`, `overview`, `thumbnail`, `metadata`, `source`."""
    title: str | None = Field(default=None, max_length=500)
    size: int | None = Field(default=None, ge=0)
    """Bytes; None: it is not a file."""
    sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    bands: tuple[BandFacts, ...] = Field(default=(), max_length=10_000)
    grid: GridFacts | None = None
    """Where it differs from that of the item."""


class LinkFacts(Contract):
    """A link of an item beside those that the API adds."""

    rel: str = Field(min_length=1, max_length=100)
    """`via` and `derived_from` for the source, `item` for the tiles of a dataset."""
    href: Uri
    type: str | None = Field(default=None, max_length=200)
    title: str | None = Field(default=None, max_length=500)


class ItemFacts(Contract):
    """A dataset, or a tile of one."""

    id: ItemId
    """The same id again replaces the item, whatever its datetime."""
    collection: CollectionId
    geometry: JsonObject
    """GeoJSON in degrees, cut at the antimeridian; `domain.jobs.stac.footprint` makes it."""
    bbox: Degrees | None = None
    """None: of the geometry."""
    datetime: AwareDatetime | None = None
    """When it was acquired; None: over the range below."""
    start: AwareDatetime | None = None
    end: AwareDatetime | None = None
    created: AwareDatetime
    updated: AwareDatetime
    title: str | None = Field(default=None, max_length=500)
    description: str | None = Field(default=None, max_length=5_000)
    gsd: float | None = Field(default=None, gt=0)
    """Metres on the ground between pixels."""
    grid: GridFacts | None = None
    table: TableFacts | None = None
    assets: dict[AssetKey, AssetFacts] = Field(min_length=1, max_length=100)
    links: tuple[LinkFacts, ...] = Field(default=(), max_length=10_000)
    software: dict[str, str] = Field(default_factory=dict)
    """Name of a program to its version: `docflow`, `gdal`, `proj`."""
    lineage: str | None = Field(default=None, max_length=5_000)
    """What was done to the source, in a sentence."""
    more: JsonObject = Field(default_factory=dict)
    """Further properties, with their prefix: `docflow:job_id`."""

    @model_validator(mode="after")
    def _has_a_time(self) -> Self:
        start, end = self.start, self.end
        if (start is None) != (end is None):
            raise ValueError("start and end come together")
        if start is not None and end is not None and start > end:
            raise ValueError("start is after end")
        if self.datetime is None and start is None:
            raise ValueError("datetime, or start and end, are needed")
        return self


class CollectionFacts(Contract):
    """A collection, before its first item."""

    id: CollectionId
    title: str | None = Field(default=None, max_length=500)
    description: str = Field(min_length=1, max_length=5_000)
    license: str = Field(default="other", min_length=1, max_length=100)
    """An SPDX identifier, or `other`."""
    keywords: tuple[str, ...] = Field(default=(), max_length=50)
    item_ids: str = Field(default=ITEM_ID, max_length=500)
    """Pattern of the ids of its items: one that does not match is refused."""
