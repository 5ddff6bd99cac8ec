"""What a raster says of itself."""

from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree

import rasterio
import rasterio.shutil
import rasterio.transform
from affine import Affine
from rasterio.enums import ColorInterp, MaskFlags
from rasterio.errors import RasterioError

from adapters.files.rasters.cog import DOCUMENTS
from adapters.files.rasters.few_values import FewValues
from adapters.files.rasters.nodata import can_have, hidden
from adapters.files.rasters.packed import Packed, unpacked
from adapters.files.rasters.png import check_png
from adapters.files.rasters.source import (
    EXACT_INTEGERS,
    check_size,
    chunks,
    nodata_of,
    opened,
    plain,
)
from adapters.ports import UnreadableDocument
from contracts.jobs.rasters import (
    NOTES,
    TAG_CHARACTERS,
    TAGS,
    GroundPoint,
    RasterBand,
    RasterFacts,
    Validity,
)
from domain.errors import RuleViolation

_from_gcps: Any = cast("Any", rasterio.transform).from_gcps
_CATEGORIES_DRIVERS = frozenset({"HFA", "NITF", "GRIB"})
"""Formats that may hold names of classes in the file."""
_MOST_CLASSES = 65_536
_APART = "are in the metadata asset and not in the file"
_NAME = "2"
_TABLE_USAGES = frozenset({"1", _NAME, "6", "7", "8", "9"})
"""Of columns that are known otherwise: counts of pixels, names, colours."""


def inspect(path: Path, subdataset: int | None, name: str = "") -> RasterFacts:
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


def _with_archive(facts: RasterFacts, packed: Packed, chosen: int | None) -> RasterFacts:
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


def _inspected(path: Path, subdataset: int | None) -> RasterFacts:
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
        facts = _facts(dataset, path, names, subdataset, notes)
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


def _without_pixels(driver: str, path: Path, names: tuple[str, ...]) -> RasterFacts:
    """A file that has nothing but several rasters."""
    return RasterFacts(
        driver=driver,
        width=1,
        height=1,
        bands=(RasterBand(data_type="none"),),
        subdatasets=tuple(name[:300] for name in names[:1_000]),
        size=path.stat().st_size,
    )


def _facts(
    dataset: Any, path: Path, names: tuple[str, ...], subdataset: int | None, notes: list[str]
) -> RasterFacts:
    transform, points, residual = _placed(dataset, notes)
    block_height, block_width = dataset.block_shapes[0]
    crs = dataset.crs or (dataset.gcps[1] if points else None)
    rpcs = dataset.tags(ns="RPC")
    if rpcs and transform is not None:
        notes.append(f"rational polynomial coefficients {_APART}; the transform counts")
    _note_hidden_nodata(dataset, path, notes)
    _note_colours(dataset, notes)
    bands = tuple(_band(dataset, number, notes) for number in dataset.indexes)
    return RasterFacts(
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
