"""What a raster says of itself, and whether that can be.

Whether the places of a raster are such as its reference system has.

Formulas of projections answer for any number: places beyond the last one begin anew somewhere else
on the Earth, and a raster would be published there, or without a pixel.
"""

import re
import struct
from pathlib import Path
from typing import Any, Final, cast
from xml.etree import ElementTree

import numpy as np
import rasterio
import rasterio.shutil
import rasterio.transform
from affine import Affine
from pydantic import ValidationError
from pyproj import CRS, Transformer
from rasterio.enums import ColorInterp, MaskFlags
from rasterio.errors import RasterioError

from adapters.files.footprints import SLACK, lies_on_earth, on_earth
from adapters.files.rasters.cog import DOCUMENTS, check_png
from adapters.files.rasters.source import (
    EXACT_INTEGERS,
    Packed,
    check_size,
    chunks,
    nodata_of,
    opened,
    plain,
    unpacked,
)
from adapters.ports.errors import UnreadableDocument
from workflows.jobs.rasters import (
    FEW_VALUES,
    NOTES,
    TAG_CHARACTERS,
    TAGS,
    GridInput,
    GroundPoint,
    RasterBand,
    RasterInfo,
    Validity,
)
from workflows.shared.contracts import problem_text
from workflows.shared.errors import RuleViolation

_TAG: Final = 42_113
"""GDAL_NODATA of a TIFF: text."""
_TEXT: Final = 2
_MOST_ENTRIES: Final = 4_096
_MOST_CHARACTERS: Final = 64
_SUBDATASET: Final = re.compile(r"GTIFF_DIR:(\d+):")


def can_have(data_type: str, value: float) -> bool:
    """Whether a pixel of a type can have a value."""
    if not data_type.startswith(("int", "uint")):
        return True
    limits = np.iinfo(data_type)
    return float(value).is_integer() and limits.min <= value <= limits.max


def hidden(dataset: Any, path: Path) -> str | None:
    """The nodata value of a TIFF that GDAL does not give, because no pixel can have it."""
    if dataset.driver != "GTiff" or any(value is not None for value in dataset.nodatavals):
        return None
    found = _SUBDATASET.match(dataset.name)
    with path.open("rb") as file:
        try:
            return _text(file, int(found[1]) if found else 1)
        except struct.error:
            # Cut off: what GDAL makes of such a directory is known already.
            return None


def _text(file: Any, directory: int) -> str | None:
    order = "<" if file.read(2) == b"II" else ">"
    is_big = struct.unpack(f"{order}H", file.read(2)) == (43,)
    # Lengths of the entries' number, of an entry, and of the offsets in it.
    number, entry, offset = ("Q", "HHQ8s", "Q") if is_big else ("H", "HHI4s", "I")
    file.seek(8 if is_big else 4)

    def read(format: str) -> tuple[Any, ...]:
        size = struct.calcsize(f"{order}{format}")
        return struct.unpack(f"{order}{format}", file.read(size))

    found: list[tuple[Any, ...]] = []
    for _ in range(directory):
        (at,) = read(offset)
        if not at:
            return None
        file.seek(at)
        (entries,) = read(number)
        if entries > _MOST_ENTRIES:
            return None
        found = [read(entry) for _ in range(entries)]
    for tag, kind, length, value in found:
        if tag == _TAG and kind == _TEXT:
            content = value[:length]
            if length > len(value):
                file.seek(struct.unpack(f"{order}{offset}", value)[0])
                content = file.read(min(length, _MOST_CHARACTERS))
            return content.split(b"\0")[0].decode("latin-1").strip() or None
    return None


_EXACT: Final = 1 << 53
_STRIDE: Final = 97
"""A look at some of the pixels tells nearly always that there are many values."""


class FewValues:
    """Collects the values of one band.

    Args:
        nodata: The value that says nothing.
    """

    def __init__(self, nodata: float | None) -> None:
        self._nodata = nodata
        self._found: set[float] | None = set()

    def add(self, pixels: Any) -> None:
        """Take more pixels in."""
        for part in (pixels.ravel()[::_STRIDE], pixels):
            if self._found is not None:
                self._found = self._joined(self._found, part)

    @property
    def values(self) -> tuple[int, ...]:
        """All of them, in order; empty: they are many, or not whole, or there is none."""
        return tuple(sorted(int(value) for value in self._found or ()))

    def _joined(self, found: set[float], pixels: Any) -> set[float] | None:
        if pixels.dtype.kind not in "iuf":
            return None
        new = np.unique(pixels)
        if self._nodata is not None:
            new = new[new != self._nodata]
        if new.dtype.kind == "f":
            new = new[np.isfinite(new)]
        is_few = len(new) <= FEW_VALUES and not (new % 1).any()
        both = found | set(map(float, new)) if is_few else found
        is_exact = all(abs(value) <= _EXACT for value in both)
        return both if is_few and is_exact and len(both) <= FEW_VALUES else None


_from_gcps: Any = cast("Any", rasterio.transform).from_gcps
_CATEGORIES_DRIVERS = frozenset({"HFA", "NITF", "GRIB"})
"""Formats that may hold names of classes in the file."""
_MOST_CLASSES = 65_536
_APART = "are in the metadata asset and not in the file"
_NAME = "2"
_TABLE_USAGES = frozenset({"1", _NAME, "6", "7", "8", "9"})
"""Of columns that are known otherwise: counts of pixels, names, colours."""


def inspect(path: Path, subdataset: int | None, name: str = "") -> RasterInfo:
    """Facts of a raster, after all of it was decoded.

    Args:
        path: The file, which may be an archive.
        subdataset: Which of several, from 1.
        name: Of the file where it came from.

    Raises:
        UnreadableDocument: It is damaged, hostile, or too large.
        RuleViolation: A subdataset is named, and it has none.
    """
    with unpacked(path, name, subdataset) as packed:
        if packed.path is None:
            return _without_pixels("ZIP", path, packed.members)
        return _with_archive(_inspected(packed.path, packed.subdataset), packed, subdataset)


def _with_archive(facts: RasterInfo, packed: Packed, chosen: int | None) -> RasterInfo:
    """Facts of a raster, and what the archive that holds it adds to them."""
    if packed.member is None:
        return facts
    more: dict[str, Any] = {"member": packed.member}
    notes = [*facts.notes, f"it is {packed.member} in an archive", *packed.notes]
    if packed.members:
        if facts.subdatasets:
            raise RuleViolation(
                f"{packed.member} in the archive holds several rasters itself: unpack it, and"
                " submit it alone"
            )
        more |= {"subdatasets": packed.members, "subdataset": chosen}
    if packed.transform is not None and facts.transform is None:
        more["transform"] = packed.transform
        notes.append("placed by the world file in the archive")
    elif packed.transform is not None:
        notes.append("the world file in the archive was not used: the raster says its place")
    return facts.model_copy(update={**more, "notes": tuple(notes[:NOTES])})


def _inspected(path: Path, subdataset: int | None) -> RasterInfo:
    with opened(path) as dataset:
        names = tuple(dataset.subdatasets)
        if names and subdataset is not None and subdataset > len(names):
            # Which of them is meant is asked, again where an answer named another.
            return _without_pixels(dataset.driver, path, _subdataset_names(names, path))
    name = _chosen(names, subdataset)
    with opened(path, name) as dataset:
        if name is None and names and not dataset.count:
            return _without_pixels(dataset.driver, path, _subdataset_names(names, path))
        check_size(dataset, path.stat().st_size)
        if dataset.driver == "PNG":
            check_png(path)
        _refuse_large_nodata(dataset)
        notes: list[str] = []
        try:
            facts = _facts(dataset, path, names, subdataset, notes)
        except ValidationError as error:
            [first, *_] = error.errors()
            place = ".".join(map(str, first["loc"]))
            raise UnreadableDocument(
                f"the raster is damaged: {place}: {problem_text(first)}"
            ) from error
        categories = _categories(dataset, path, notes)
        values = _decode(dataset, path)
    bands = [
        band.model_copy(
            update={"categories": categories.get(number, ()), "values": values[number - 1]}
        )
        for number, band in enumerate(facts.bands, 1)
    ]
    return facts.model_copy(update={"bands": tuple(bands), "notes": tuple(notes[:NOTES])})


def _chosen(names: tuple[str, ...], subdataset: int | None) -> str | None:
    if subdataset is None or (not names and subdataset == 1):
        return None
    if not names:
        raise RuleViolation(f"there is no subdataset {subdataset}: the raster has none")
    return names[subdataset - 1]


def _without_pixels(driver: str, path: Path, names: tuple[str, ...]) -> RasterInfo:
    """A file that has nothing but several rasters."""
    return RasterInfo(
        driver=driver,
        width=1,
        height=1,
        bands=(RasterBand(data_type="none"),),
        subdatasets=tuple(name[:300] for name in names[:1_000]),
        size=path.stat().st_size,
    )


def _facts(
    dataset: Any, path: Path, names: tuple[str, ...], subdataset: int | None, notes: list[str]
) -> RasterInfo:
    transform, points, residual = _placed(dataset, notes)
    block_height, block_width = dataset.block_shapes[0]
    crs = dataset.crs or (dataset.gcps[1] if points else None)
    rpcs = dataset.tags(ns="RPC")
    if rpcs and transform is not None:
        notes.append(f"rational polynomial coefficients {_APART}; the transform counts")
    _note_hidden_nodata(dataset, path, notes)
    _note_colours(dataset, notes)
    bands = tuple(_band(dataset, number, notes) for number in dataset.indexes)
    return RasterInfo(
        driver=dataset.driver,
        width=dataset.width,
        height=dataset.height,
        bands=bands,
        mask=_mask(dataset, any(band.nodata is not None for band in bands), notes),
        crs=_crs(crs),
        transform=transform,
        ground_points=points,
        ground_residual=residual,
        rpcs=rpcs,
        tags=_tags(dataset, notes),
        subdatasets=_subdataset_names(names, path),
        subdataset=subdataset if names else None,
        tiled=bool(dataset.profile.get("tiled")),
        block_width=block_width,
        block_height=block_height,
        compression=dataset.compression.value if dataset.compression else None,
        overviews=tuple(dataset.overviews(1)),
        size=path.stat().st_size,
    )


def _placed(dataset: Any, notes: list[str]) -> tuple[Any, tuple[GroundPoint, ...], float | None]:
    gcps, _ = dataset.gcps
    points = tuple(
        GroundPoint(column=point.col, row=point.row, x=point.x, y=point.y, z=point.z)
        for point in gcps
    )
    if not dataset.transform.almost_equals(Affine.identity()):
        if points:
            notes.append(f"{len(points)} ground control points {_APART}; the transform counts")
        return tuple(dataset.transform)[:6], points, None
    if len(points) < 3:
        return None, points, None
    fitted = _from_gcps(gcps)
    inverse = ~fitted
    residual = max(
        abs(column - point.col) + abs(row - point.row)
        for point in gcps
        for column, row in [inverse @ (point.x, point.y)]
    )
    notes.append(
        f"placed by {len(points)} ground control points, which miss the transform fitted to them"
        f" by {residual:.2g} pixels"
    )
    return tuple(fitted)[:6], points, residual


def _band(dataset: Any, number: int, notes: list[str]) -> RasterBand:
    at = number - 1
    texts = [*dataset.tags(number).values(), dataset.descriptions[at] or ""]
    if any(len(text) > TAG_CHARACTERS for text in texts):
        notes.append(f"metadata of band {number} was cut: it is too long")
    nodata = dataset.nodatavals[at]
    if nodata is not None and not can_have(dataset.dtypes[at], nodata):
        notes.append(_impossible(f"{nodata:g}", dataset.dtypes[at]))
        nodata = None
    colour = dataset.colorinterp[at].name
    palette = _palette(dataset, number, notes) if colour == "palette" else None
    return RasterBand(
        data_type=dataset.dtypes[at],
        nodata=nodata_of(nodata),
        scale=dataset.scales[at],
        offset=dataset.offsets[at],
        unit=(dataset.units[at] or "")[:100] or None,
        description=(dataset.descriptions[at] or "")[:TAG_CHARACTERS] or None,
        colour=colour,
        palette=palette,
        tags=_short(dataset.tags(number)),
    )


def _palette(dataset: Any, number: int, notes: list[str]) -> Any:
    try:
        return dataset.colormap(number)
    except ValueError:
        # As rasterio says that there is none.
        notes.append(f"band {number} holds numbers of colours, and no table says which these are")
        return None


def _refuse_large_nodata(dataset: Any) -> None:
    """Refuse 64-bit nodata values that rasterio reads as none, or writes as another number."""
    for kind, value, flags in zip(
        dataset.dtypes, dataset.nodatavals, dataset.mask_flag_enums, strict=True
    ):
        if kind not in ("int64", "uint64"):
            continue
        if (value is None and MaskFlags.nodata in flags) or abs(value or 0) > EXACT_INTEGERS:
            raise RuleViolation(
                "the nodata value of 64-bit integers lies beyond 2^53 and would be changed; give"
                " the raster another one"
            )


def _note_hidden_nodata(dataset: Any, path: Path, notes: list[str]) -> None:
    if (text := hidden(dataset, path)) is not None:
        notes.append(_impossible(text, dataset.dtypes[0]))


def _note_colours(dataset: Any, notes: list[str]) -> None:
    """Name what becomes of colours that GDAL does not give as the file has them."""
    structure = dataset.tags(ns="IMAGE_STRUCTURE")
    if structure.get("SOURCE_COLOR_SPACE") == "CMYK":
        notes.append("it is cyan, magenta, yellow and black; read as red, green and blue")
    if structure.get("MINISWHITE") == "YES":
        notes.append("0 is white in it (MinIsWhite); values stay, and viewers show 0 as black")


def _impossible(nodata: str, data_type: str) -> str:
    return (
        f"the nodata value {nodata!r} of the file was not used: no pixel of type {data_type} can"
        " have it; where pixels without a value have another one, give it as parameter nodata"
    )


def _mask(dataset: Any, has_nodata: bool, notes: list[str]) -> Validity:
    flags = dataset.mask_flag_enums[0]
    has_mask = MaskFlags.per_dataset in flags and MaskFlags.alpha not in flags
    # GDAL looks for alpha in two and four bands only.
    if ColorInterp.alpha in dataset.colorinterp:
        for other, is_there in (("nodata value", has_nodata), ("mask", has_mask)):
            if is_there:
                notes.append(f"it has an alpha band and a {other}; the alpha band counts")
        return "alpha"
    if has_mask:
        if has_nodata:
            notes.append("it has a mask and a nodata value; the mask counts")
        return "mask"
    return "nodata" if has_nodata else "none"


def _crs(crs: Any) -> str | None:
    if not crs:
        return None
    code = crs.to_authority(confidence_threshold=100)
    return ":".join(code) if code else crs.to_wkt()


def _tags(dataset: Any, notes: list[str]) -> dict[str, dict[str, str]]:
    domains = [name for name in dataset.tag_namespaces() if name != "DERIVED_SUBDATASETS"]
    found: dict[str, dict[str, str]] = {}
    room = TAGS
    for domain in ["", *domains]:
        if domain in ("RPC", "SUBDATASETS"):
            continue
        every = dataset.tags(ns=domain) if domain else dataset.tags()
        kept = dict(list(_short(every).items())[:room])
        room -= len(kept)
        if len(kept) < len(every) or any(len(value) > TAG_CHARACTERS for value in every.values()):
            notes.append(f"metadata of the domain {domain or 'default'!r} was cut: it is too long")
        if kept:
            found[domain] = kept
            if domain.startswith(DOCUMENTS):
                notes.append(f"documents of the domain {domain!r} {_APART}")
    return found


def _short(tags: dict[str, str]) -> dict[str, str]:
    return {name[:200]: value[:TAG_CHARACTERS] for name, value in tags.items()}


def _subdataset_names(names: tuple[str, ...], path: Path) -> tuple[str, ...]:
    return tuple(name.replace(str(path), "")[:300] for name in names[:1_000])


def _decode(dataset: Any, path: Path) -> list[tuple[int, ...]]:
    """Read every pixel: nothing else shows whether a raster is complete.

    Returns:
        Of each band its valid values, where they are whole and few.
    """
    found = [FewValues(nodata) for nodata in dataset.nodatavals]
    try:
        for window in chunks(dataset):
            for number in dataset.indexes:
                found[number - 1].add(dataset.read(number, window=window))
            if dataset.mask_flag_enums[0] == [MaskFlags.per_dataset]:
                dataset.read_masks(1, window=window)
    except (RasterioError, ValueError) as error:
        raise UnreadableDocument(
            f"the raster is damaged: its pixels cannot all be read ({plain(error, path)});"
            " send the file again"
        ) from error
    return [each.values for each in found]


def _categories(dataset: Any, path: Path, notes: list[str]) -> dict[int, tuple[str, ...]]:
    """Names of classes, by band: rasterio does not give them, a copy of the metadata does."""
    if dataset.driver not in _CATEGORIES_DRIVERS:
        return {}
    copy = Path("categories.tif")
    with rasterio.Env(GDAL_PAM_ENABLED="YES"):
        rasterio.shutil.copy(dataset, copy, driver="GTiff", COMPRESS="ZSTD", ZSTD_LEVEL=1)
    beside = Path(f"{copy}.aux.xml")
    found: dict[int, tuple[str, ...]] = {}
    if beside.exists():
        # Written by our own GDAL a moment ago.
        for band in ElementTree.parse(beside).getroot().iter("PAMRasterBand"):  # noqa: S314
            names = [each.text or "" for each in band.iterfind("CategoryNames/Category")]
            named = _names_in_table(band, notes)
            names = names or named
            if any(names):
                found[int(band.get("band", "1"))] = tuple(names[:_MOST_CLASSES])
        beside.unlink()
    copy.unlink()
    return found


def _names_in_table(band: ElementTree.Element, notes: list[str]) -> list[str]:
    """Of a raster attribute table: its column of names; others are noted."""
    table = band.find("GDALRasterAttributeTable")
    if table is None:
        return []
    columns = [
        (field.findtext("Usage"), field.findtext("Name") or "") for field in table.iter("FieldDefn")
    ]
    usages = [usage for usage, _ in columns]
    if others := [name for usage, name in columns if usage not in _TABLE_USAGES]:
        listed = ", ".join(map(repr, others))[:500]
        notes.append(
            f"columns of the attribute table of band {band.get('band')} left out: {listed}"
        )
    if _NAME not in usages:
        return []
    at = usages.index(_NAME)
    return [row.findall("F")[at].text or "" for row in table.iterfind("Row")]


_FARTHEST_LONGITUDE: Final = 540.0
"""Degrees: a raster may begin at 180 and go around the Earth once."""
_FAR: Final = 20.0
"""Degrees outside of the area of a reference system from which on a raster has a note."""


def place(order: GridInput, columns: Any, rows: Any) -> tuple[Any, Any]:
    """Coordinates of columns and rows, in the raster's reference system."""
    a, b, c, d, e, f = order.transform
    return a * columns + b * rows + c, d * columns + e * rows + f


def placed(order: GridInput, source: CRS) -> list[str]:
    """See that a raster lies where its reference system has places.

    Returns:
        A note, where they are far from the area that the system is made for.

    Raises:
        RuleViolation: It does not.
    """
    xs, ys = _corners(order)
    if source.is_geographic:
        if np.abs(xs).max() > _FARTHEST_LONGITUDE:
            raise RuleViolation(
                f"the raster reaches longitude {xs[np.abs(xs).argmax()]:g}, so its places are not"
                f" degrees: {source.name} cannot be its reference system"
            )
        return []
    if source.geodetic_crs is None:
        return []
    slack = slack_of(order)
    if not lies_on_earth(source, order.transform, order.width, order.height, slack):
        x, y = place(order, order.width / 2, order.height / 2)
        raise RuleViolation(
            f"the centre {x:g}, {y:g} of the raster is not a place of {source.name}: another"
            " reference system or unit is meant, or its transform is wrong"
        )
    if not on_earth(source, xs, ys, slack).all():
        return []
    degrees = Transformer.from_crs(source, source.geodetic_crs, always_xy=True)
    return _far_away(source, *degrees.transform(xs, ys))


def slack_of(order: GridInput) -> float:
    """Units by which places of a raster may be off: its edge may lie a pixel beyond the Earth."""
    return SLACK + 2 * max(map(abs, (*order.transform[:2], *order.transform[3:5])))


def refuse_beyond_antimeridian(order: GridInput, source: CRS, target: CRS) -> None:
    """Refuse to project longitudes beyond 180 degrees: what lies there would be left out.

    Raises:
        RuleViolation: There are some.
    """
    if not source.is_geographic:
        return
    xs, _ = _corners(order)
    slack = 1.5 * (abs(order.transform[0]) + abs(order.transform[1]))
    if np.abs(xs).max() > 180 + slack:
        raise RuleViolation(
            f"the raster has longitudes from {xs.min():g} to {xs.max():g}: what lies beyond the"
            f" antimeridian would be missing in {target.name}; leave target_crs out, or cut the"
            " raster there and write its longitudes from -180 to 180"
        )


def _corners(order: GridInput) -> tuple[Any, Any]:
    return place(
        order,
        np.array([0.0, order.width, 0.0, order.width]),
        np.array([0.0, 0.0, order.height, order.height]),
    )


def _far_away(source: CRS, longitudes: Any, latitudes: Any) -> list[str]:
    area = source.area_of_use
    if area is None:
        return []
    middle = area.west + (area.east - area.west) % 360 / 2
    half = (area.east - area.west) % 360 / 2 or 180.0
    beyond = np.abs((longitudes - middle + 180) % 360 - 180) - half
    above = np.maximum(latitudes - area.north, area.south - latitudes)
    off = float(np.maximum(beyond, above).max())
    if off <= _FAR:
        return []
    return [
        f"it lies {off:.0f} degrees outside of the area that {source.name} is made for: see"
        " whether its file names the right reference system"
    ]
