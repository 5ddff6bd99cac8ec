"""Shapefiles: geometries through GDAL, attributes through `dbf`.

Only for processes of `adapters.files.vectors.child`.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from adapters.files.vectors import dbf, ogr, ogr_layers
from adapters.files.vectors.layers import (
    Layer,
    Refused,
    Unsure,
    bounds_of,
    in_chunks,
)
from workflows.jobs.vectors import Encoding, FeatureProblem, UnknownEncoding, encoding_of

PARTS: Final = ("shp", "shx", "dbf", "prj", "cpg", "cst")
DERIVED: Final = frozenset({"sbn", "sbx", "qix", "qpj", "qmd", "fbn", "fbx", "ain", "aih", "xml"})
"""Indexes, and what is known from the other parts."""
_HEAD_BYTES: Final = 28
_LENGTH: Final = slice(24, 28)
"""Where a .shp says its length, in words of 16 bits."""
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


def open_shapefile(name: str, files: Mapping[str, Path], encoding: str | None) -> Layer:
    """Read a Shapefile.

    Args:
        name: What its files are called.
        files: By their suffix; GDAL sees the geometries alone.
        encoding: Of the attributes, in place of what the files say.

    Raises:
        Refused: It is damaged.
        Unsure: Nothing says the encoding, and it matters.
    """
    parts = _Parts(name, files)
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
    with parts.files["shp"].open("rb") as file:
        stated = 2 * int.from_bytes(file.read(_HEAD_BYTES)[_LENGTH], "big")
    if parts.files["shp"].stat().st_size < stated:
        raise Refused(f"the .shp of {parts.name!r} is cut off: it says {stated:,} bytes")
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
