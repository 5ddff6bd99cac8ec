"""What is known of a dataset, from which its STAC item and collection are made.

What is known of a dataset, from which its STAC item and collection are made.

Readers of rasters and of vectors fill these alike; `domain.jobs.stac` makes the JSON.

Whether fields of STAC's extensions hold what their schemas allow.

The models are docflow's own, so that checking needs no network and none of the schemas' text. They
follow projection 2.0.0, raster 2.0.0, file 2.1.0, table 1.2.0, processing 1.2.0, classification
2.0.0, and of eo 2.0.0 the covers; other extensions are not checked.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, Self, cast

from pydantic import AwareDatetime, Field, FiniteFloat, StringConstraints, model_validator

from workflows.jobs.records import JsonObject
from workflows.shared.contracts import Contract
from workflows.shared.errors import RuleViolation

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


class BandInfo(Contract):
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


class GridInfo(Contract):
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


class ColumnInfo(Contract):
    """One column of a vector table."""

    name: str = Field(min_length=1, max_length=200)
    type: str = Field(min_length=1, max_length=100)
    description: str | None = Field(default=None, max_length=1_000)


class TableInfo(Contract):
    """The table of a vector dataset."""

    columns: tuple[ColumnInfo, ...] = Field(max_length=2_000)
    primary_geometry: str | None = None
    row_count: int = Field(ge=0)


class AssetInfo(Contract):
    """One file, or one table, that an item is about."""

    href: Uri
    media_type: str = Field(min_length=1, max_length=200)
    roles: tuple[str, ...] = Field(min_length=1, max_length=10)
    """`data`, `overview`, `thumbnail`, `metadata`, `source`."""
    title: str | None = Field(default=None, max_length=500)
    size: int | None = Field(default=None, ge=0)
    """Bytes; None: it is not a file."""
    sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    bands: tuple[BandInfo, ...] = Field(default=(), max_length=10_000)
    grid: GridInfo | None = None
    """Where it differs from that of the item."""


class LinkInfo(Contract):
    """A link of an item beside those that the API adds."""

    rel: str = Field(min_length=1, max_length=100)
    """`via` and `derived_from` for the source, `item` for the tiles of a dataset."""
    href: Uri
    type: str | None = Field(default=None, max_length=200)
    title: str | None = Field(default=None, max_length=500)


class ItemInfo(Contract):
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
    grid: GridInfo | None = None
    table: TableInfo | None = None
    assets: dict[AssetKey, AssetInfo] = Field(min_length=1, max_length=100)
    links: tuple[LinkInfo, ...] = Field(default=(), max_length=10_000)
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


class CollectionInfo(Contract):
    """A collection, before its first item."""

    id: CollectionId
    title: str | None = Field(default=None, max_length=500)
    description: str = Field(min_length=1, max_length=5_000)
    license: str = Field(default="other", min_length=1, max_length=100)
    """An SPDX identifier, or `other`."""
    keywords: tuple[str, ...] = Field(default=(), max_length=50)
    item_ids: str = Field(default=ITEM_ID, max_length=500)
    """Pattern of the ids of its items: one that does not match is refused."""


Box = tuple[float, float, float, float]


def split_box(box: Sequence[float]) -> Sequence[Box]:
    """West, south, east, north: the box itself, or its two parts where it crosses 180 degrees.

    Raises:
        RuleViolation: It is not a box in degrees.
    """
    west, south, east, north = box
    if not (-180 <= west <= 180 and -180 <= east <= 180 and -90 <= south <= north <= 90):
        raise RuleViolation(
            f"bbox {', '.join(f'{value:g}' for value in box)} is not a box in degrees: "
            "west, south, east, north with longitudes from -180 to 180 and south not above north"
        )
    if west <= east:
        return [(west, south, east, north)]
    return [(west, south, 180.0, north), (-180.0, south, east, north)]


def box_geometry(boxes: Sequence[Box]) -> JsonObject:
    """GeoJSON of boxes that do not cross the antimeridian."""
    rings = [
        [[[west, south], [east, south], [east, north], [west, north], [west, south]]]
        for west, south, east, north in boxes
    ]
    if len(rings) == 1:
        return {"type": "Polygon", "coordinates": rings[0]}
    return {"type": "MultiPolygon", "coordinates": rings}


def widened(collection: Mapping[str, Any], items: Iterable[Mapping[str, Any]]) -> JsonObject | None:
    """The collection with an extent that holds items too; None: it holds them already.

    The first items replace the extent of a collection that has none, which is the whole Earth at
    any time.
    """
    extent = collection["extent"]
    boxes = [tuple(item["bbox"]) for item in items]
    times = [_times(item["properties"]) for item in items]
    if not boxes:
        return None
    known = extent["temporal"]["interval"][0]
    if known != [None, None]:
        boxes.append(tuple(extent["spatial"]["bbox"][0]))
        times.append((known[0], known[1]))
    made = {
        "spatial": {"bbox": [list(_around(boxes))]},
        "temporal": {"interval": [[min(t[0] for t in times), max(t[1] for t in times)]]},
    }
    return None if made == extent else {**collection, "extent": made}


def _times(properties: Mapping[str, Any]) -> tuple[str, str]:
    """First and last moment; all are in UTC and of one form, so that texts are in order."""
    moment = properties["datetime"]
    return properties.get("start_datetime") or moment, properties.get("end_datetime") or moment


def _around(boxes: Sequence[Sequence[float]]) -> Box:
    wests, souths, easts, norths = zip(*(_without_height(box) for box in boxes), strict=True)
    if any(west > east for west, east in zip(wests, easts, strict=True)):
        return (-180.0, min(souths), 180.0, max(norths))
    return (min(wests), min(souths), max(easts), max(norths))


def _without_height(box: Sequence[float]) -> Sequence[float]:
    return (box[0], box[1], box[3], box[4]) if len(box) == 6 else box


SCHEMAS: Final = MappingProxyType(
    {
        "proj:": "https://stac-extensions.github.io/projection/v2.0.0/schema.json",
        "raster:": "https://stac-extensions.github.io/raster/v2.0.0/schema.json",
        "file:": "https://stac-extensions.github.io/file/v2.1.0/schema.json",
        "table:": "https://stac-extensions.github.io/table/v1.2.0/schema.json",
        "processing:": "https://stac-extensions.github.io/processing/v1.2.0/schema.json",
        "classification:": "https://stac-extensions.github.io/classification/v2.0.0/schema.json",
        "eo:": "https://stac-extensions.github.io/eo/v2.0.0/schema.json",
    }
)
"""Prefix of the fields of an extension to its schema."""
_CODE: Final = re.compile(r"[A-Z]+:[A-Za-z0-9]+")
_MULTIHASH: Final = re.compile(r"[0-9a-f]{8,}")
_CLASS: Final = re.compile(r"[0-9A-Za-z_-]+")
_COLOUR: Final = re.compile(r"[0-9A-Fa-f]{6}")

JsonMapping = Mapping[str, Any]
Check = Callable[[Any], bool]


def extension_problems(item: JsonMapping) -> Iterator[str]:
    """What is wrong with the fields of extensions in an item, its assets and their bands."""
    declared = set(item.get("stac_extensions", ()))
    used: set[str] = set()
    for path, part in _parts(item):
        for name, value in part.items():
            prefix = f"{name.partition(':')[0]}:"
            if prefix not in SCHEMAS or prefix == name:
                continue
            used.add(prefix)
            check = _FIELDS.get(name)
            if check is not None and not check(value):
                yield f"{path}.{name}: {str(value)[:100]} is not what its extension allows"
    for prefix in sorted(used):
        if SCHEMAS[prefix] not in declared:
            yield f"stac_extensions: {SCHEMAS[prefix]} is used and missing"


def _parts(item: JsonMapping) -> Iterator[tuple[str, JsonMapping]]:
    """Where fields of extensions may stand."""
    yield "properties", item["properties"]
    for number, band in enumerate(item["properties"].get("bands", ())):
        yield f"properties.bands.{number}", band
    for key, asset in item["assets"].items():
        yield f"assets.{key}", asset
        for number, band in enumerate(asset.get("bands", ())):
            yield f"assets.{key}.bands.{number}", band


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_percent(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= 100


def _numbers(*lengths: int) -> Check:
    return lambda value: (
        isinstance(value, list)
        and len(cast(Sequence[Any], value)) in lengths
        and all(map(_is_number, cast(Sequence[Any], value)))
    )


def _matches(pattern: re.Pattern[str]) -> Check:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def _one_of(*values: str) -> Check:
    return lambda value: value in values


def _or_null(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_shape(value: Any) -> bool:
    return _numbers(2)(value) and all(map(_is_count, value))


def _is_software(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_text, cast(Mapping[str, Any], value).values()))


def _objects_with(**fields: Check) -> Check:
    """A list of objects; a field whose name ends with an underscore may be missing."""

    def check(value: Any) -> bool:
        return isinstance(value, list) and all(map(fits, cast(Sequence[Any], value)))

    def fits(each: Any) -> bool:
        if not isinstance(each, dict):
            return False
        known = cast(Mapping[str, Any], each)
        return all(
            of(known[name.rstrip("_")]) if name.rstrip("_") in known else name.endswith("_")
            for name, of in fields.items()
        )

    return check


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_FIELDS: Final[Mapping[str, Check]] = MappingProxyType(
    {
        "proj:code": _or_null(_matches(_CODE)),
        "proj:wkt2": _or_null(_is_text),
        "proj:projjson": _or_null(_is_object),
        "proj:geometry": _is_object,
        "proj:bbox": _numbers(4, 6),
        "proj:shape": _is_shape,
        "proj:transform": _numbers(6, 9),
        "raster:sampling": _one_of("area", "point"),
        "raster:bits_per_sample": _is_count,
        "raster:spatial_resolution": _is_number,
        "raster:scale": _is_number,
        "raster:offset": _is_number,
        "file:byte_order": _one_of("big-endian", "little-endian"),
        "file:checksum": _matches(_MULTIHASH),
        "file:header_size": _is_count,
        "file:size": _is_count,
        "file:local_path": _is_text,
        "table:columns": _objects_with(name=_is_text, description_=_is_text, type_=_is_text),
        "table:primary_geometry": _is_text,
        "table:row_count": _is_count,
        "processing:lineage": _is_text,
        "processing:level": _is_text,
        "processing:facility": _is_text,
        "processing:software": _is_software,
        "classification:classes": _objects_with(
            value=_is_whole,
            name=_matches(_CLASS),
            title_=_is_text,
            description_=_is_text,
            color_hint_=_matches(_COLOUR),
        ),
        "eo:cloud_cover": _is_percent,
        "eo:snow_cover": _is_percent,
    }
)
