"""Zipped Shapefiles: geometries through GDAL, attributes through `dbf`.

Only for processes of `adapters.files.vectors.child`.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

import numpy as np

from adapters.files import limits
from adapters.files.package import Package, open_package
from adapters.files.vectors import dbf, ogr, ogr_layers
from adapters.files.vectors.layers import (
    Layer,
    Refused,
    Source,
    Unsure,
    bounds_of,
    in_chunks,
)
from contracts.jobs.vectors import FeatureProblem
from domain.jobs.vectors.encodings import Encoding, UnknownEncoding, encoding_of

_PARTS: Final = ("shp", "shx", "dbf", "prj", "cpg", "cst")
_DERIVED: Final = frozenset({"sbn", "sbx", "qix", "qpj", "qmd", "fbn", "fbx", "ain", "aih", "xml"})
"""Indexes, and what is known from the other parts."""
_MAC: Final = "__MACOSX"
"""Folder in which macOS keeps a second file `._NAME` for each file, with what only it can use."""
_TEXT_BYTES: Final = 64 * 1024
_PREVIEW: Final = ("utf-8", "cp1252", "cp850")

_WIDE: Final = frozenset({"cp932", "cp936", "gbk", "cp949", "cp950"})
"""Encodings whose short texts may be valid UTF-8 by chance."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """Files of one Shapefile, under names of our own."""

    name: str
    files: Mapping[str, Path]

    def text(self, part: str) -> str | None:
        """What a small part says."""
        path = self.files.get(part)
        if path is None:
            return None
        return path.read_bytes()[:_TEXT_BYTES].decode("latin-1").replace("\0", "")


def open_shapefiles(path: Path, folder: Path, encoding: str | None) -> Source:
    """Unpack an archive and read the Shapefiles in it.

    Args:
        path: The archive.
        folder: Takes the files; nothing is written elsewhere, whatever their names are.
        encoding: Of the attributes, in place of what the files say.

    Raises:
        Refused: There is none, or one is damaged.
        Unsure: Nothing says the encoding, and it matters.
        UnreadableDocument: The archive is damaged, hostile or too large.
    """
    with open_package(path, "archive") as package:
        groups, others = _groups(package)
        if not groups:
            raise Refused("the archive holds no .shp; zip all files of a Shapefile together")
        size = sum(package.size(each) for group in groups.values() for each in group.values())
        if size > limits.SHAPEFILE_BYTES:
            raise Refused(
                f"the archive unpacks to more than {limits.SHAPEFILE_BYTES:,} bytes;"
                " send the data as GeoPackage"
            )
        unpacked = [
            _unpacked(package, name, group, folder / str(number))
            for number, (name, group) in enumerate(groups.items(), start=1)
        ]
    layers = [_layer(parts, encoding) for parts in unpacked]
    return Source("Shapefile", layers, [f"file {name!r} is left out" for name in others])


def _groups(package: Package) -> tuple[dict[str, dict[str, str]], list[str]]:
    """Layer to the names of its parts in the archive, and the names of other files."""
    _refuse_twins(package)
    stems: dict[str, dict[str, str]] = {}
    mac: list[str] = []
    for name in package.names():
        pure = PurePosixPath(name)
        if pure.is_absolute() or ".." in pure.parts or "\\" in name or ":" in name:
            raise Refused(
                f"the archive holds a file {name[:100]!r}, whose name leads out of it;"
                " nothing was unpacked"
            )
        if _MAC in pure.parts or pure.name.startswith("._"):
            mac.append(name)
            continue
        stem, _, suffix = name.rpartition(".")
        stems.setdefault(stem.lower(), {})[suffix.lower()] = name
    found: dict[str, dict[str, str]] = {}
    others: list[str] = []
    for stem, parts in stems.items():
        if "shp" in parts:
            display = PurePosixPath(parts["shp"]).stem
            found[display if display not in found else stem] = parts
        is_whole = "shp" in parts
        others += [
            each
            for suffix, each in parts.items()
            if not each.endswith("/")
            and not (is_whole and (suffix in _PARTS or suffix in _DERIVED))
            and not (suffix == "xml" and stem.endswith(".shp"))
        ]
    return found, [*others, *(name for name in mac if not name.endswith("/"))]


def _refuse_twins(package: Package) -> None:
    """Refuse parts of one name: which of them belong together, nothing says."""
    seen: dict[str, str] = {}
    for name, _, _ in package.files():
        twin = seen.get(name.lower())
        seen[name.lower()] = name
        if twin is not None and name.lower().rpartition(".")[2] in _PARTS:
            raise Refused(
                f"the archive holds {twin[:100]!r} and {name[:100]!r}, which are one name but for"
                " case; rename one of them"
            )


def _unpacked(package: Package, name: str, group: Mapping[str, str], folder: Path) -> _Parts:
    folder.mkdir()
    files: dict[str, Path] = {}
    for part in _PARTS:
        if part in group:
            files[part] = folder / f"layer.{part}"
            with files[part].open("xb") as file:
                for block in package.stream(group[part], limits.SHAPEFILE_BYTES):
                    file.write(block)
    return _Parts(name, files)


def _layer(parts: _Parts, encoding: str | None) -> Layer:
    layer = Layer(parts.name, (parts.text("prj") or "").strip() or None, (), lambda: iter(()))
    geometries, problems = _geometries(parts, layer)
    layer.bounds = bounds_of(geometries)
    if "dbf" not in parts.files:
        layer.notes.append("there is no .dbf: features have no attributes")
        layer.chunks = lambda: in_chunks(geometries, (), (), problems)
        return layer
    table = dbf.open_dbf(parts.files["dbf"])
    if table.records != len(geometries):
        raise Refused(
            f"Shapefile {parts.name!r} has {len(geometries):,} geometries and"
            f" {table.records:,} rows of attributes; save it again"
        )
    found = _encoding(parts, table, encoding)
    if found.codec != "utf-8" and found.origin != "parameter" and dbf.is_all_utf8(table):
        if found.codec in _WIDE:
            raise Unsure(
                "encoding",
                f"the attributes of {parts.name!r} say {found}, and every text beyond ASCII is"
                " valid UTF-8 as well. Which one is it?",
            )
        layer.notes.append(
            f"every text beyond ASCII is valid UTF-8, so texts are read as UTF-8 and not as"
            f" {found}; if they look wrong, give encoding={found.codec}"
        )
        found = Encoding("utf-8", "all texts are valid in it")
    layer.encoding = str(found)
    attributes = dbf.read_attributes(table, found)
    layer.fields = attributes.fields
    layer.notes += attributes.notes
    kept = ~attributes.deleted
    numbers = np.flatnonzero(kept) + 1
    values = attributes.values
    if not kept.all():
        layer.notes.append(f"{(~kept).sum():,} features are marked as deleted and are left out")
        values = [[value for value, keep in zip(c, kept, strict=True) if keep] for c in values]
    layer.chunks = lambda: in_chunks(
        geometries[kept], layer.fields, values, problems + attributes.problems, numbers
    )
    return layer


def _encoding(parts: _Parts, table: dbf.Dbf, parameter: str | None) -> Encoding:
    try:
        found = encoding_of(parameter, parts.text("cpg"), parts.text("cst"), table.language)
    except UnknownEncoding as error:
        raise Unsure("encoding", f"{parts.name!r}: {error}. Which one is it?") from None
    if found is not None:
        return found
    undecided = dbf.undecided_text(table)
    if undecided is None:
        return Encoding("ascii", "nothing says one, and all texts are ASCII")
    field, row, sample = undecided
    shown = ", ".join(f"{codec}: {_shown(sample, codec)}" for codec in _PREVIEW)
    raise Unsure(
        "encoding",
        f"nothing says which encoding the attributes of {parts.name!r} are in."
        f" Field {field!r} of row {row:,} would be, in {shown}. Which one is it?",
    )


def _shown(sample: bytes, codec: str) -> str:
    try:
        return repr(sample.decode(codec)[:40])
    except UnicodeDecodeError:
        return "not valid"


def _geometries(parts: _Parts, layer: Layer) -> tuple[np.ndarray[Any, Any], list[FeatureProblem]]:
    """All geometries, and what is wrong with them; GDAL sees these two files alone."""
    own = parts.files["shp"].parent / "geometry"
    own.mkdir()
    shutil.move(parts.files["shp"], own / "layer.shp")
    if "shx" in parts.files:
        shutil.move(parts.files["shx"], own / "layer.shx")
    else:
        ogr.restore_indexes()
        layer.notes.append("the index .shx is missing, and was made from the .shp")
    shapes: list[np.ndarray[Any, Any]] = [np.empty(0, dtype=object)]
    problems: list[FeatureProblem] = []
    try:
        for some, wrong in ogr_layers.geometries(own / "layer.shp"):
            shapes.append(some)
            problems += wrong
    except ogr.FAILURES as error:
        raise Refused(f"Shapefile {parts.name!r} is damaged ({ogr.first_line(error)})") from error
    return np.concatenate(shapes), problems
