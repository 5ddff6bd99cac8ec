"""Vector data: what a file holds, what became of it, and the table that it is loaded into."""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import ConfigDict, Field, StringConstraints

from contracts.base import Contract
from contracts.blobs import BlobName
from contracts.jobs.stac import CollectionId

NOTES: Final = 100
"""Notes that a layer's report holds."""
PROBLEMS: Final = 50
"""Problems that a report names; the blob beside it has all of them."""
COLUMNS: Final = 1_000
LAYERS: Final = 200

TableName = Annotated[str, StringConstraints(pattern=r"^[^\W\d]\w{0,49}$")]
"""Of a table in the schema `geo`, in lower case."""
Sentence = Annotated[str, Field(max_length=1_000)]
Name = Annotated[str, Field(max_length=1_000)]


class LoadMode(StrEnum):
    """What becomes of a table that exists, and of its rows."""

    CREATE = "create"
    """It must not exist."""
    REPLACE = "replace"
    """Another takes its place, in one transaction."""
    APPEND = "append"
    """Rows are added."""
    UPSERT = "upsert"
    """Rows with the key of a feature are replaced, others are added."""


class Antimeridian(StrEnum):
    """What becomes of edges in degrees that are longer than 180 of them."""

    CUT = "cut"
    """They cross the antimeridian, and the feature is cut there."""
    KEEP = "keep"
    """They are as long as they say."""


class ColumnType(StrEnum):
    """Types of attributes."""

    TEXT = "text"
    INTEGER = "integer"
    """64 bits."""
    REAL = "real"
    """64 bits."""
    BOOLEAN = "boolean"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"
    """Date and time of no known zone."""
    INSTANT = "instant"
    """Date and time in UTC."""
    BINARY = "binary"


class GeometryType(StrEnum):
    """What a table's geometries are; `Geometry`: of several kinds."""

    POINT = "Point"
    MULTI_POINT = "MultiPoint"
    LINE_STRING = "LineString"
    MULTI_LINE_STRING = "MultiLineString"
    POLYGON = "Polygon"
    MULTI_POLYGON = "MultiPolygon"
    COLLECTION = "GeometryCollection"
    GEOMETRY = "Geometry"


class VectorColumn(Contract):
    """An attribute."""

    name: Name
    """In the table."""
    source: Name
    """In the file."""
    type: ColumnType
    is_empty: bool = False
    """No feature has a value, so its type is a guess."""


class VectorTable(Contract):
    """A table of features, in EPSG:4326; it has `fid` and `geom` beside the columns."""

    name: TableName
    columns: tuple[VectorColumn, ...] = Field(max_length=COLUMNS)
    geometry: GeometryType
    has_z: bool = False


class FeatureProblem(Contract):
    """What is wrong with one feature."""

    feature: int
    """Its number in the layer, from 1."""
    field: Name | None = None
    """The attribute; None: the geometry."""
    reason: Sentence
    is_rejected: bool = True
    """It was left out; otherwise it was kept, changed as the reason says."""


class Projection(Contract):
    """How coordinates came to EPSG:4326."""

    source: Name
    """CRS of the layer."""
    operation: Sentence | None = None
    """None: they were in it already."""
    accuracy: float | None = None
    """Metres; None: not known."""


class LayerReport(Contract):
    """What was read of one layer."""

    layer: Name
    table: VectorTable
    features: int
    """In the file."""
    kept: int
    rejected: int = 0
    repaired: int = 0
    """Kept, with a geometry that was made valid."""
    null_geometries: int = 0
    empty_geometries: int = 0
    collapsed_parts: int = 0
    """Parts of geometries that vanished when they were made valid."""
    area_change: float = 0.0
    """The largest that a repair has made, as a share of the area."""
    projection: Projection
    encoding: Sentence | None = None
    """Of the attributes, and who says so."""
    extent: tuple[float, float, float, float] | None = None
    """West, south, east, north in degrees."""
    notes: tuple[Sentence, ...] = Field(default=(), max_length=NOTES)
    """What was changed or left out."""
    problems: tuple[FeatureProblem, ...] = Field(default=(), max_length=PROBLEMS)
    features_blob: BlobName | None = None
    """Parquet with the features as they are loaded."""
    problems_blob: BlobName | None = None
    """All problems, one JSON a line."""


class SourceReport(Contract):
    """What was read of a file."""

    format: Name
    layers: tuple[LayerReport, ...] = Field(max_length=LAYERS)
    left_out: tuple[Sentence, ...] = Field(default=(), max_length=NOTES)


class LoadReport(Contract):
    """What a load has done to its table."""

    table: TableName
    mode: LoadMode
    inserted: int
    updated: int = 0
    total: int
    """Rows of the table afterwards."""
    place: str = Field(max_length=1_100)
    """`postgresql:geo.name`, or the blob in the silver container."""


class VectorOptions(Contract):
    """What a job says about its file; `ProcessVectorParameters` explains the fields."""

    dataset: TableName
    layers: tuple[Name, ...] | None = None
    source_crs: str | None = None
    encoding: str | None = None
    allow_ballpark: bool = False
    max_area_change: float = 0.05
    antimeridian: Antimeridian = Antimeridian.CUT


class ProcessVectorParameters(Contract):
    """What a job of the type `process_vector` is asked."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: BlobName
    """In the bronze container: any format of docs/jobs-vectors.md."""
    dataset: TableName | None = None
    """Names the tables; None: the file does."""
    layers: tuple[Name, ...] | None = Field(default=None, min_length=1, max_length=LAYERS)
    """None: all of them."""
    mode: LoadMode = LoadMode.CREATE
    key: tuple[Name, ...] = Field(default=(), max_length=10)
    """Columns that make a row the same row, for the mode `upsert`."""
    source_crs: str | None = Field(default=None, max_length=10_000)
    """Of layers that do not say theirs: `EPSG:25832`, or WKT."""
    encoding: str | None = Field(default=None, max_length=50)
    """Of a Shapefile's attributes or a text file, in place of what the file says."""
    allow_ballpark: bool = False
    """Take coordinates of a datum that no operation is known for as they are."""
    max_area_change: float = Field(default=0.05, ge=0)
    """A repair that changes the area by a larger share rejects the feature."""
    antimeridian: Antimeridian = Antimeridian.CUT
    """What becomes of edges of more than 180 degrees that do not reach from -180 to 180."""
    max_rejected: float = Field(default=0.1, ge=0, le=1)
    """Former name of `max_rejected_share`; 0.1, its default, allows nothing."""
    max_rejected_share: float = Field(default=0.0, ge=0, le=1)
    """If a larger share of features is rejected, the job parks and asks."""
    collection: CollectionId = "vectors"
    """Of the STAC items."""
    datetime: str | None = Field(default=None, max_length=100)
    """When the data were acquired: RFC 3339, a day, or `start/end`."""
    datetime_pattern: str | None = Field(default=None, max_length=50)
    """The named pattern by which the name of the file says it."""
    export: bool = True
    """Write the tables to the gold container, as GeoParquet."""
