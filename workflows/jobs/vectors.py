"""Vector data: what a file holds, what became of it, and the table that it is loaded into."""

import codecs
import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from enum import StrEnum
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Annotated, Any, Final

from pydantic import ConfigDict, Field, StringConstraints

from workflows.jobs.datasets import ITEM_ID, CollectionId
from workflows.shared.contracts import BlobName, Contract
from workflows.shared.errors import InvalidDocument, RuleViolation

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
    organisation_id: int | None = None
    """Organisation whose jobs alone load it; None: it belongs to the installation."""


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


_PAGES: Final = MappingProxyType(
    {
        "cp437": (0x01, 0x09, 0x0B, 0x0D, 0x0F, 0x11, 0x15, 0x18, 0x19, 0x1B),
        "cp737": (0x6A, 0x86),
        "cp850": (0x02, 0x0A, 0x0E, 0x10, 0x12, 0x14, 0x16, 0x1A, 0x1D, 0x25, 0x37),
        "cp852": (0x1F, 0x22, 0x23, 0x40, 0x64, 0x87),
        "cp857": (0x6B, 0x88),
        "cp860": (0x24,),
        "cp861": (0x67,),
        "cp863": (0x1C,),
        "cp865": (0x08, 0x17, 0x66),
        "cp866": (0x26, 0x65),
        "cp874": (0x50, 0x7C),
        "cp932": (0x13, 0x7B),
        "cp936": (0x4D, 0x7A),
        "cp949": (0x4E, 0x79),
        "cp950": (0x4F, 0x78),
        "cp1250": (0xC8,),
        "cp1251": (0xC9,),
        "cp1252": (0x03, 0x57, 0x58, 0x59),
        "cp1253": (0xCB,),
        "cp1254": (0xCA,),
        "cp1257": (0xCC,),
    }
)
_LANGUAGES: Final = MappingProxyType(
    {number: codec for codec, numbers in _PAGES.items() for number in numbers}
)
"""Language byte of a DBF header to its code page; the list that ESRI's programs go by."""
_PREFIX: Final = re.compile(r"^(ansi|oem|windows|win|cp|ibm|ldid)[ _/-]*(?=\d)")


@dataclass(frozen=True, slots=True)
class Encoding:
    """An encoding, and what says so."""

    codec: str
    origin: str

    def __str__(self) -> str:
        return f"{self.codec} ({self.origin})"


class UnknownEncoding(Exception):
    """Something names an encoding that does not exist."""


def encoding_of(
    parameter: str | None, cpg: str | None, cst: str | None, language: int
) -> Encoding | None:
    """The encoding by the first of these that says one; None: none does.

    Args:
        parameter: Of the job.
        cpg: Text of the file `.cpg`, as ESRI's programs write it.
        cst: Text of the file `.cst`, as GeoServer and GeoTools write it.
        language: Byte 29 of the DBF header.

    Raises:
        UnknownEncoding: That one does not exist.
    """
    for text, origin in ((parameter, "parameter"), (cpg, ".cpg"), (cst, ".cst")):
        if text is not None and text.strip():
            return Encoding(_codec(text, origin), origin)
    codec = _LANGUAGES.get(language)
    return None if codec is None else Encoding(codec, f"language byte 0x{language:02x}")


def _codec(text: str, origin: str) -> str:
    name = text.strip().splitlines()[0].strip().lower()
    if found := re.fullmatch(r"(?:iso)?[ _-]*8859[ _-]?(\d{1,2})", name):
        name = f"iso8859-{found[1]}"
    elif name == "65001":
        name = "utf-8"
    elif name.startswith("ldid/") and name[5:].isdigit():
        name = _LANGUAGES.get(int(name[5:]), name)
    else:
        number = _PREFIX.sub("", name)
        name = f"cp{number}" if number.isdigit() else name
    try:
        found_codec = codecs.lookup(name)
        "x".encode(found_codec.name)
    except (LookupError, UnicodeError):
        raise UnknownEncoding(
            f"{origin} says {text.strip()[:50]!r}, which is not an encoding"
        ) from None
    return found_codec.name


TABLE_BYTES: Final = 50
"""PostgreSQL cuts names at 63 bytes without a word; indexes add to the table's."""
COLUMN_BYTES: Final = 63
RESERVED: Final = frozenset({"fid", "geom"})
"""Columns of docflow's own."""
_DIGEST: Final = 8


def table_name(dataset: str, layer: str | None = None) -> str:
    """Name of a table, at most 50 bytes.

    Args:
        dataset: As a parameter or the name of the file says.
        layer: Where the file has several.
    """
    text = dataset if layer is None else f"{dataset}_{layer}"
    return _fitting(_folded(text) or "layer", TABLE_BYTES)


def table_names(dataset: str, layers: Iterable[str]) -> Mapping[str, str]:
    """Layer to the name of its table; a single layer has the name of the dataset."""
    names = list(layers)
    if len(names) == 1:
        return {names[0]: table_name(dataset)}
    taken: set[str] = set()
    return {name: _unique(table_name(dataset, name), taken, TABLE_BYTES) for name in names}


def dataset_name(blob: str) -> str:
    """Name of a dataset, from that of its file."""
    return table_name(PurePosixPath(blob).name.partition(".")[0])


def column_names(fields: Iterable[str]) -> list[str]:
    """Names of columns, in the order of the fields.

    Letters of every script stay; case, blanks and punctuation go. Two fields that differ in these
    alone, or in nothing, are distinguished by a number.
    """
    taken = set(RESERVED)
    return [_unique(_fitting(_folded(field) or "field", COLUMN_BYTES), taken) for field in fields]


def _folded(text: str) -> str:
    plain = re.sub(r"\W+", "_", unicodedata.normalize("NFKC", text).lower()).strip("_")
    return f"n{plain}" if plain[:1].isdigit() else plain


def _fitting(name: str, most: int) -> str:
    encoded = name.encode()
    if len(encoded) <= most:
        return name
    digest = hashlib.sha256(encoded).hexdigest()[:_DIGEST]
    kept = encoded[: most - _DIGEST - 1].decode(errors="ignore")
    return f"{kept}_{digest}"


def _unique(name: str, taken: set[str], most: int = COLUMN_BYTES) -> str:
    number, candidate = 1, name
    while candidate in taken:
        number += 1
        candidate = _fitting(f"{name}_{number}", most)
    taken.add(candidate)
    return candidate


NOTES_SHOWN: Final = 10
"""Of one layer, in the result of a job; its report has all."""
_OF_ATTEMPT: Final = frozenset({LoadMode.REPLACE, LoadMode.UPSERT})


def too_many_rejected(report: LayerReport, most: float) -> str | None:
    """Describe a layer of which too much was rejected; None: it may be loaded.

    Args:
        report: Of the layer.
        most: Share of its features, 0 to 1.

    Raises:
        InvalidDocument: All were rejected.
    """
    if not report.rejected or (report.kept and report.rejected <= most * report.features):
        return None
    first = next((each for each in report.problems if each.is_rejected), None)
    where = "" if first is None else f"; feature {first.feature:,}: {_described(first)}"
    listed = f"; all are in {report.problems_blob}" if report.problems_blob else ""
    text = (
        f"layer {report.layer!r}: {report.rejected:,} of {report.features:,} features were"
        f" rejected, and max_rejected_share is {most:g}{where}{listed}"
    )
    if not report.kept:
        raise InvalidDocument(text)
    return f"{text}. Which share (0 to 1) may be skipped?"


def load_key(mode: LoadMode, job_id: str, attempt: int, layer: int) -> str:
    """Names a load: what was created or appended once is not again by another attempt."""
    by = f"{job_id}/{attempt}" if mode in _OF_ATTEMPT else job_id
    return f"{by}/{layer}"


def item_id(table: str) -> str:
    """The id of a table's item: its name, where STAC clients take it."""
    if re.fullmatch(ITEM_ID, table):
        return table
    digest = hashlib.sha256(table.encode()).hexdigest()[:8]
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", table.encode("ascii", "ignore").decode()).strip("_")
    return f"{plain or 'table'}-{digest}"


def lineage(report: SourceReport, layer: LayerReport, source: str) -> str:
    """What was done to a layer, in a sentence."""
    operation = layer.projection.operation
    moved = "kept in its degrees" if operation is None else f"brought to EPSG:4326 by {operation}"
    return (
        f"Layer {layer.layer!r} of the {report.format} {source}, {moved}; of"
        f" {layer.features:,} features {layer.rejected:,} were rejected and {layer.repaired:,}"
        " repaired."
    )[:5_000]


def summary(layer: LayerReport, load: LoadReport) -> dict[str, Any]:
    """What the result of a job says about a layer."""
    return {
        "layer": layer.layer,
        "table": load.table,
        "place": load.place,
        "features": layer.features,
        "rejected": layer.rejected,
        "repaired": layer.repaired,
        "inserted": load.inserted,
        "updated": load.updated,
        "total": load.total,
        "notes": list(layer.notes[:NOTES_SHOWN]),
        "more_notes": max(len(layer.notes) - NOTES_SHOWN, 0),
    }


def _described(problem: FeatureProblem) -> str:
    return f"{problem.field!r}: {problem.reason}" if problem.field else problem.reason


_MULTI: Final = MappingProxyType(
    {
        GeometryType.POINT: GeometryType.MULTI_POINT,
        GeometryType.LINE_STRING: GeometryType.MULTI_LINE_STRING,
        GeometryType.POLYGON: GeometryType.MULTI_POLYGON,
    }
)


def geometry_type(found: Collection[GeometryType]) -> GeometryType:
    """The type of a table whose geometries are of these types.

    Single and multiple ones of a kind make the multiple; kinds that differ make `Geometry`.
    """
    if len(found) == 1:
        return next(iter(found))
    promoted = {_MULTI.get(each, each) for each in found}
    if len(promoted) != 1:
        return GeometryType.GEOMETRY
    [kind] = promoted
    return kind


def takes(table: GeometryType, geometry: GeometryType) -> bool:
    """Whether a table of a type holds geometries of another, promoted to multi if need be."""
    return table in (GeometryType.GEOMETRY, geometry, _MULTI.get(geometry))


def differences(table: VectorTable, incoming: VectorTable) -> Iterator[str]:
    """Why features cannot go into a table that exists, one sentence each."""
    known = {column.name: column for column in table.columns}
    for column in incoming.columns:
        if column.name not in known:
            yield f"the file has a column {column.name!r}, which the table has not"
        elif not _fits(known[column.name].type, column):
            expected = known[column.name].type.value
            yield f"column {column.name!r} is {column.type.value} and {expected} in the table"
    sent = {column.name for column in incoming.columns}
    for name in (name for name in known if name not in sent):
        yield f"the file lacks the column {name!r}"
    if not takes(table.geometry, incoming.geometry):
        yield f"geometries are {incoming.geometry.value} and {table.geometry.value} in the table"
    if table.has_z != incoming.has_z:
        with_z, without = ("table", "file") if table.has_z else ("file", "table")
        yield f"the {with_z} has heights (Z) and the {without} has none"


def _fits(expected: ColumnType, column: VectorColumn) -> bool:
    """Whole numbers go into reals: JSON does not distinguish 1 from 1.0."""
    if column.is_empty or column.type is expected:
        return True
    return expected is ColumnType.REAL and column.type is ColumnType.INTEGER


def check_load(
    incoming: VectorTable, mode: LoadMode, key: Sequence[str], existing: VectorTable | None
) -> VectorTable:
    """The table as it will be.

    Args:
        incoming: As the features are.
        mode: Of the load.
        key: Columns that make a row the same row.
        existing: The table of that name; None: there is none.

    Raises:
        RuleViolation: It may not be done; the message says why, and what to do.
    """
    name = incoming.name
    if existing is not None and existing.organisation_id != incoming.organisation_id:
        raise RuleViolation(f"the table {name!r} is not of this organisation; use another dataset")
    if mode is LoadMode.UPSERT:
        _check_key(incoming, key)
    elif key:
        raise RuleViolation(f"a key is for the mode upsert, not for {mode.value}")
    if mode is LoadMode.REPLACE or existing is None:
        return incoming
    if mode is LoadMode.CREATE:
        raise RuleViolation(
            f"the table {name!r} exists; use mode=replace, append or upsert, or another dataset"
        )
    found = list(differences(existing, incoming))
    if found:
        raise RuleViolation(f"the file does not fit into the table {name!r}: {'; '.join(found)}")
    return existing


def _check_key(table: VectorTable, key: Sequence[str]) -> None:
    if not key:
        raise RuleViolation("mode=upsert needs a key: the columns that make a row the same row")
    known = {column.name for column in table.columns}
    if missing := [name for name in key if name not in known]:
        listed = ", ".join(sorted(known)) or "none"
        raise RuleViolation(f"the key column {missing[0]!r} does not exist; there are: {listed}")


_INT64: Final = range(-(1 << 63), 1 << 63)
_EXACT: Final = 1 << 53
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_MOMENT: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:?\d{2})?"
)

_NUMBER: Final = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?", re.ASCII)
_EXACT_DIGITS: Final = 15
_NUMBERS: Final = frozenset({ColumnType.INTEGER, ColumnType.REAL})
_MOMENTS: Final = frozenset({ColumnType.TIMESTAMP, ColumnType.INSTANT})


def column_of(values: Sequence[Any]) -> tuple[ColumnType, list[Any], str | None]:
    """The type that holds all values, the values in it, and what had to be changed.

    Args:
        values: As JSON has them; None is not a value. Objects and lists become JSON text.
    """
    kinds: set[type[Any]] = {type(value) for value in values if value is not None}
    if not kinds:
        return ColumnType.TEXT, list(values), None
    if kinds == {str}:
        return text_column(values)
    if kinds == {bool}:
        return ColumnType.BOOLEAN, list(values), None
    if kinds == {int} and all(value is None or value in _INT64 for value in values):
        return ColumnType.INTEGER, list(values), None
    if kinds <= {int, float} and float in kinds and all(map(_is_exact, values)):
        return ColumnType.REAL, [None if v is None else float(v) for v in values], None
    return ColumnType.TEXT, [_as_text(value) for value in values], _why(kinds)


class Texts:
    """The type of a column of texts, found chunk by chunk: what all of them are.

    Args:
        has_numbers: Texts that are written as numbers make a column of numbers; `007` is none.
        are_times: Texts that are none do not count.
    """

    def __init__(self, *, has_numbers: bool = False, are_times: bool = False) -> None:
        self._has_numbers = has_numbers
        self._are_times = are_times
        self._kinds: set[ColumnType] = set()
        self._is_shifted = False

    def add(self, texts: Iterable[str | None]) -> None:
        """Look at some more of them."""
        for text in texts:
            if ColumnType.TEXT in self._kinds:
                return
            if text is not None:
                kind = self._kind_of(text)
                if not self._are_times or kind in _MOMENTS:
                    self._kinds.add(kind)

    def _kind_of(self, text: str) -> ColumnType:
        if self._has_numbers and _NUMBER.fullmatch(text):
            # More digits than a number of 64 bits keeps are text.
            is_exact = len(text.lstrip("-").replace(".", "")) <= _EXACT_DIGITS
            kind = ColumnType.REAL if "." in text else ColumnType.INTEGER
            return kind if is_exact else ColumnType.TEXT
        try:
            if _DATE.fullmatch(text):
                date.fromisoformat(text)
                return ColumnType.DATE
            if (found := _MOMENT.fullmatch(text)) is None:
                return ColumnType.TEXT
            self._is_shifted |= bool(datetime.fromisoformat(text).utcoffset())
        except ValueError:
            return ColumnType.TEXT
        return ColumnType.INSTANT if found[3] else ColumnType.TIMESTAMP

    @property
    def kind(self) -> ColumnType:
        """The type that holds all of them."""
        if frozenset(self._kinds) == _NUMBERS:
            return ColumnType.REAL
        return max(self._kinds) if len(self._kinds) == 1 else ColumnType.TEXT

    @property
    def note(self) -> str | None:
        """What has to be changed."""
        if frozenset(self._kinds) == _MOMENTS:
            return "some times have a zone and some have none; kept as text"
        if self._is_shifted and self.kind is ColumnType.INSTANT:
            return "times of other zones were brought to UTC; the instant is the same"
        return None


def text_column(values: Iterable[str | None]) -> tuple[ColumnType, list[Any], str | None]:
    """A column of dates, of dates and times, or of text: what all values are."""
    texts, found = list(values), Texts()
    found.add(texts)
    return found.kind, from_texts(found.kind, texts), found.note


def from_texts(kind: ColumnType, texts: Iterable[str | None]) -> list[Any]:
    """Values of texts, of the type that `Texts` has found."""
    read = _READ.get(kind)
    return [text if text is None or read is None else read(text) for text in texts]


def _in_utc(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


_READ: Final[Mapping[ColumnType, Callable[[str], Any]]] = MappingProxyType(
    {
        ColumnType.INTEGER: int,
        ColumnType.REAL: float,
        ColumnType.DATE: date.fromisoformat,
        ColumnType.TIMESTAMP: datetime.fromisoformat,
        ColumnType.INSTANT: _in_utc,
    }
)


def ordinal_of(value: Any) -> int | None:
    """A date as days, a time or moment as microseconds since 1970 or midnight."""
    if value is None:
        return None
    if isinstance(value, datetime):
        delta = value.replace(tzinfo=None) - datetime(1970, 1, 1)
        return delta // (delta.resolution)
    if isinstance(value, time):
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        return seconds * 1_000_000 + value.microsecond
    return value.toordinal() - date(1970, 1, 1).toordinal()


def _is_exact(value: Any) -> bool:
    if isinstance(value, float):
        # JSON has no infinity: it is what a number beyond all others was read as.
        return math.isfinite(value)
    return value is None or -_EXACT <= value <= _EXACT


def _as_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _why(kinds: set[type[Any]]) -> str:
    if kinds <= {dict, list}:
        return "objects and lists are kept as JSON text"
    if kinds <= {int, float}:
        return "numbers that 64 bits cannot hold exactly are kept as text"
    names = ", ".join(sorted(_NAMES[kind] for kind in kinds))
    return f"values are of several types ({names}) and are kept as text"


_NAMES: Final = MappingProxyType(
    {
        str: "text",
        bool: "boolean",
        int: "integer",
        float: "number",
        dict: "object",
        list: "list",
    }
)
