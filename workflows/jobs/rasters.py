"""Rasters: what is known of one, which pixels and tiles it has, and when it was acquired."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AwareDatetime,
    ConfigDict,
    Field,
    FiniteFloat,
    StringConstraints,
    model_validator,
)

from workflows.shared.contracts import Contract
from workflows.shared.errors import RuleViolation

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


class RasterInfo(Contract):
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


class GridInput(Contract):
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


class TileInfo(Contract):
    """A tile that was written, and read again."""

    sha256: str
    size: int
    bands: tuple[BandSums, ...]
    valid: int
    """Pixels with a valid value in any band."""


class CogInfo(TileInfo):
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
    facts: RasterInfo
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
    tile: TileInfo
    cog: CogInfo | None = None
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


_BYTES: Final = MappingProxyType({"8": 1, "16": 2, "32": 4, "64": 8})
_EXACT: Final = 1 << 53
_OVER_CLASSES: Final = ("nearest", "mode", "min", "max")
_IMPLY_CLASSES: Final = ("nearest", "mode")
_WIDE: Final = ("int64", "uint64")
_OVERVIEW: Final = 512
"""Pixels of a side from which on a file has overviews."""
_LISTED: Final = 10
GROUND_RESIDUAL: Final = 1.0
"""Pixels by which ground control points may miss the transform that is fitted to them."""


def georeferenced(facts: RasterInfo, parameters: RasterParameters) -> tuple[str, Affine]:
    """Reference system and transform of a source.

    Raises:
        RuleViolation: The file has none, and the parameters give none.
    """
    crs = facts.crs or parameters.crs
    transform = facts.transform or parameters.transform
    if transform is None:
        if facts.rpcs:
            raise RuleViolation(
                "the raster has rational polynomial coefficients and no transform:"
                " orthorectify it with an elevation model first, for example with"
                " gdalwarp -rpc -to RPC_DEM=heights.tif"
            )
        raise RuleViolation(
            "the raster has no geotransform: nothing says where its pixels are; put its world file"
            " beside it, or give parameter transform, such as transform=[30,0,600000,0,-30,4800000]"
        )
    if facts.ground_residual is not None and facts.ground_residual > GROUND_RESIDUAL:
        raise RuleViolation(
            f"the ground control points miss the transform fitted to them by"
            f" {facts.ground_residual:.1f} pixels: rectify the raster first, for example with"
            " gdalwarp -tps"
        )
    if crs is None:
        raise RuleViolation(
            "the raster has no coordinate reference system; give it as parameter crs,"
            " for example crs=EPSG:32633"
        )
    return crs, transform


def is_classes(facts: RasterInfo, parameters: RasterParameters) -> bool:
    """Whether only values of the raster itself may appear in what is made of it."""
    if facts.is_classes or any(band.data_type in _WIDE for band in facts.bands):
        return True
    implied = parameters.resampling in _IMPLY_CLASSES
    return implied if parameters.classes is None else parameters.classes


def doubt_about_classes(
    facts: RasterInfo, parameters: RasterParameters, grid: TargetGrid
) -> str | None:
    """What makes it uncertain whether values may be averaged; None: it is certain, or none are."""
    is_averaged = grid.method == "warp" or max(grid.width, grid.height) > _OVERVIEW
    if not is_averaged or is_classes(facts, parameters) or parameters.classes is not None:
        return None
    if parameters.resampling not in (None, *_OVER_CLASSES):
        return None
    for number, band in enumerate(facts.bands, 1):
        if band.colour != "alpha" and len(band.values) > 1:
            listed = ", ".join(map(str, band.values[:_LISTED]))
            more = ", ..." if len(band.values) > _LISTED else ""
            return f"band {number} holds {len(band.values)} whole values only ({listed}{more})"
    return None


def grid_order(facts: RasterInfo, parameters: RasterParameters) -> GridInput:
    """What the grid of a source is made from.

    Raises:
        RuleViolation: It has no place on earth.
    """
    crs, transform = georeferenced(facts, parameters)
    return GridInput(
        width=facts.width,
        height=facts.height,
        crs=crs,
        transform=transform,
        band_bytes=pixel_bytes(facts),
        target_crs=parameters.target_crs,
        resolution=parameters.resolution,
        allow_ballpark=parameters.allow_ballpark,
    )


def pixel_rules(facts: RasterInfo, parameters: RasterParameters, grid: TargetGrid) -> PixelRules:
    """How the pixels of a source are treated.

    Raises:
        RuleViolation: Values would be changed: classes interpolated, integers rounded.
    """
    crs, transform = georeferenced(facts, parameters)
    nodata = facts.bands[0].nodata if facts.bands[0].nodata is not None else parameters.nodata
    if facts.mask == "none" and parameters.nodata is not None:
        _refuse_impossible(facts, parameters.nodata)
    return PixelRules(
        crs=crs,
        transform=transform,
        resampling=_resampling(facts, parameters, grid),
        validity=_validity(facts, grid, nodata is not None),
        nodata=nodata,
        classes=is_classes(facts, parameters),
    )


def pixel_bytes(facts: RasterInfo) -> int:
    """Of one pixel, all bands.

    Raises:
        RuleViolation: It has complex numbers.
    """
    total = 0
    for band in facts.bands:
        if band.data_type.startswith("complex"):
            raise RuleViolation(
                f"bands of type {band.data_type} are not processed; split them into real and"
                " imaginary parts, or amplitude and phase"
            )
        total += next((size for bits, size in _BYTES.items() if band.data_type.endswith(bits)), 8)
    return total


def _resampling(facts: RasterInfo, parameters: RasterParameters, grid: TargetGrid) -> Resampling:
    wide = any(band.data_type in _WIDE for band in facts.bands)
    classes = is_classes(facts, parameters)
    wished = parameters.resampling
    if grid.method == "copy":
        return wished or "nearest"
    if classes and not wide and wished not in (None, *_OVER_CLASSES):
        raise RuleViolation(
            f"the raster holds classes, and resampling={wished} would invent values between them;"
            " leave the parameter out, or use nearest or mode"
        )
    if wide and wished not in (None, "nearest"):
        raise RuleViolation(
            f"bands with 64-bit integers are resampled by nearest only: {wished} would round them"
        )
    return wished or ("nearest" if classes else "bilinear")


def unused(facts: RasterInfo, parameters: RasterParameters) -> list[str]:
    """A note for each parameter that a source makes needless, and contradicts."""
    notes: list[str] = []
    if parameters.crs is not None and facts.crs not in (None, parameters.crs):
        notes.append("parameter crs was not used: the raster says its reference system")
    if parameters.transform is not None and facts.transform not in (None, parameters.transform):
        notes.append("parameter transform was not used: the raster says its place")
    if parameters.classes is False and is_classes(facts, parameters):
        notes.append("parameter classes was not used: the type or the colours say that it has some")
    if parameters.nodata is not None and facts.mask in ("alpha", "mask"):
        notes.append(f"parameter nodata was not used: the raster has a {facts.mask} band")
    elif parameters.nodata is not None and any(
        band.nodata not in (None, parameters.nodata) for band in facts.bands
    ):
        notes.append("parameter nodata was not used: the raster says its nodata value")
    return notes


def _refuse_impossible(facts: RasterInfo, nodata: float) -> None:
    for band in facts.bands:
        kind = band.data_type
        if not kind.startswith(("int", "uint")):
            continue
        bits = int(kind.rpartition("int")[2])
        low, high = (0, 1 << bits) if kind.startswith("u") else (-(1 << bits - 1), 1 << bits - 1)
        if nodata % 1 or not max(low, -_EXACT) <= nodata <= min(high - 1, _EXACT):
            raise RuleViolation(f"no pixel of type {kind} can have the value nodata={nodata:g}")


def _validity(facts: RasterInfo, grid: TargetGrid, has_nodata: bool) -> Validity:
    if facts.mask == "alpha":
        return "alpha"
    if facts.mask == "mask":
        return "mask"
    if has_nodata:
        return "nodata"
    # Where the source does not reach, something has to say so.
    return "none" if grid.method == "copy" else "mask"


RANDOM_ACCESS_PIXELS = 2_048 * 2_048
"""A larger block costs more than the window that is read of it."""
_SEQUENTIAL = frozenset({"PNG", "GIF", "BMP", "WEBP", "AAIGrid", "JPEG"})


def tiles(grid: TargetGrid) -> Iterator[tuple[str, TileWindow]]:
    """Semantic index and window of each tile, row by row."""
    for y in range(grid.rows):
        for x in range(grid.columns):
            yield f"tile-x{x}-y{y}", window(grid, x, y)


def window(grid: TargetGrid, x: int, y: int) -> TileWindow:
    """The part of the grid that a tile covers; those at the right and lower edge are smaller."""
    column, row = x * grid.tile, y * grid.tile
    return TileWindow(
        column=column,
        row=row,
        width=min(grid.tile, grid.width - column),
        height=min(grid.tile, grid.height - row),
    )


def needs_rewriting(facts: RasterInfo, grid: TargetGrid) -> str | None:
    """Why a source is rewritten before its tiles are read; None: it is not.

    Rows that are compressed together are unpacked again for every tile in them.
    """
    nodata = {band.nodata for band in facts.bands}
    if len(nodata) > 1:
        return "its bands have different nodata values"
    if facts.member is not None:
        return "it is in an archive"
    if facts.driver == "SRTMHGT":
        return "its name says its place"
    if facts.subdataset is not None:
        return "it is a subdataset"
    if grid.columns * grid.rows == 1:
        return None
    if facts.driver in _SEQUENTIAL:
        return f"{facts.driver} can be read from its beginning only"
    if facts.block_width * facts.block_height > RANDOM_ACCESS_PIXELS:
        return f"its blocks have {facts.block_width} x {facts.block_height} pixels"
    if not facts.tiled and facts.compression is not None:
        return "it is compressed in strips"
    return None


def total(parts: Iterable[TileInfo]) -> tuple[BandSums, ...]:
    """Statistics over several tiles.

    Source of the formula: Chan, Golub and LeVeque, Updating Formulae and a Pairwise Algorithm
    for Computing Sample Variances, 1979.
    """
    sums: tuple[BandSums, ...] = ()
    for part in parts:
        sums = (
            tuple(added(one, other) for one, other in zip(sums, part.bands, strict=True))
            if sums
            else part.bands
        )
    return sums


def added(one: BandSums, other: BandSums) -> BandSums:
    """Statistics of two parts together."""
    if not one.count or not other.count:
        return one if one.count else other
    assert one.mean is not None and other.mean is not None
    count = one.count + other.count
    distance = other.mean - one.mean
    return BandSums(
        count=count,
        minimum=min(_known(one.minimum), _known(other.minimum)),
        maximum=max(_known(one.maximum), _known(other.maximum)),
        mean=one.mean + distance * other.count / count,
        squares=one.squares + other.squares + distance**2 * one.count * other.count / count,
    )


def deviation(sums: BandSums) -> float | None:
    """Standard deviation of all values; None: there are none."""
    return math.sqrt(sums.squares / sums.count) if sums.count else None


def _known(value: float | None) -> float:
    assert value is not None
    return value


# Other digits after a sign number the files of a moment: they are not an offset.
_OFFSET: Final = r"(?:Z|[+-](?:0\d|1[0-4]):?(?:00|15|30|45)(?!\d))"

PATTERNS: Final[Mapping[str, re.Pattern[str]]] = MappingProxyType(
    {
        "sentinel": re.compile(r"(?<!\d)(?P<t>\d{8}T\d{6}(?!\d)" + _OFFSET + "?)"),
        "landsat": re.compile(r"^L[A-Z]\d{2}_[A-Z0-9]+_\d{6}_(?P<t>\d{8})_"),
        "planet": re.compile(r"^(?P<t>\d{8}_\d{6}(?!\d)" + _OFFSET + "?)"),
        "date": re.compile(r"(?<!\d)(?P<t>\d{4}-\d{2}-\d{2})(?!\d)"),
        "compact": re.compile(r"(?<!\d)(?P<t>\d{8})(?!\d)"),
        "timestamp": re.compile(
            r"(?P<t>\d{4}-\d{2}-\d{2}T\d{2}[:-]?\d{2}[:-]?\d{2}"
            # Parts of a second count where an offset follows them: else they may be another number.
            r"(?:(?:\.\d{1,6})?" + _OFFSET + ")?)"
        ),
    }
)
"""Name to where the name of a file holds its time; the first match counts."""
CERTAIN_TAGS: Final = (("IMAGERY", "ACQUISITIONDATETIME"), ("", "NITF_IDATIM"))
"""Tags that mean nothing else. `TIFFTAG_DATETIME` is when the file was written, as a rule."""

_INSTANTS: Final = (
    "%Y-%m-%dT%H:%M:%S.%f",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%d %H:%M:%S",
    "%Y:%m:%d %H:%M:%S",
    "%Y%m%dT%H%M%S",
    "%Y%m%d_%H%M%S",
    "%Y-%m-%dT%H%M%S",
    "%Y-%m-%dT%H-%M-%S",
    "%Y-%m-%dT%H%M%S.%f",
    "%Y-%m-%dT%H-%M-%S.%f",
    "%Y%m%d%H%M%S",
)
_DAYS: Final = ("%Y-%m-%d", "%Y:%m:%d", "%Y%m%d")


@dataclass(frozen=True, slots=True)
class Acquired:
    """An instant (`start` is `end`) or a range."""

    start: datetime
    end: datetime
    source: str
    """Where it was found, in words."""

    @property
    def instant(self) -> datetime | None:
        """The moment; None: it is a range."""
        return self.start if self.start == self.end else None


def acquired(parameters: RasterParameters, facts: RasterInfo, filename: str) -> Acquired | None:
    """When a raster was acquired; None: nothing says it, so a person has to.

    Raises:
        RuleViolation: What should say it is there and is not a time.
    """
    if parameters.datetime is not None:
        return _range(parameters.datetime, "parameter datetime")
    if (tag := parameters.datetime_tag) is not None:
        value = next((tags[tag] for tags in facts.tags.values() if tag in tags), None)
        return None if value is None else _range(value, f"tag {tag}")
    if (name := parameters.datetime_pattern) is not None:
        return _by_pattern(name, filename)
    for domain, tag in CERTAIN_TAGS:
        if value := facts.tags.get(domain, {}).get(tag):
            return _range(value, f"tag {tag}")
    return None


def time_said(time: str | None, pattern: str | None, filename: str) -> Acquired | None:
    """When data without tags were acquired; None: nothing says it, so a person has to.

    Raises:
        RuleViolation: What should say it is there and is not a time.
    """
    if time is not None:
        return _range(time, "parameter datetime")
    return None if pattern is None else _by_pattern(pattern, filename)


def is_mistyped(time: str | None, pattern: str | None) -> bool:
    """Whether a parameter that a person gave is why there is no time: it can be asked for again."""
    return time is not None or pattern not in (None, *PATTERNS)


def _by_pattern(name: str, filename: str) -> Acquired | None:
    pattern = PATTERNS.get(name)
    if pattern is None:
        raise RuleViolation(
            f"there is no pattern {name!r} for times in names; there are {', '.join(PATTERNS)}"
        )
    found = pattern.search(filename.rsplit("/", 1)[-1])
    return None if found is None else _range(found["t"], f"pattern {name} of the file's name")


def _range(text: str, source: str) -> Acquired:
    first, slash, last = text.strip().partition("/")
    start, end = _moment(first, source)
    if slash:
        _, end = _moment(last, source)
    if end < start:
        raise RuleViolation(f"the {source} ends before it starts: {text!r}")
    return Acquired(start, end, source)


def _moment(text: str, source: str) -> tuple[datetime, datetime]:
    """First and last moment that a text means; a day is a range. Without a zone it is UTC."""
    text = text.strip()
    for form in _DAYS:
        if (day := _parsed(text, form)) is not None:
            return day, day + timedelta(days=1, microseconds=-1)
    for form in _INSTANTS:
        if (moment := _parsed(text.removesuffix("Z"), form)) is not None:
            return moment, moment
        if (moment := _parsed(text, f"{form}%z")) is not None:
            return moment, moment
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise RuleViolation(
            f"the {source} is not a time: {text[:60]!r}; write 2024-05-31T10:00:00Z, a day, or"
            " start/end"
        ) from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return moment, moment


def _parsed(text: str, form: str) -> datetime | None:
    try:
        moment = datetime.strptime(text, form)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
