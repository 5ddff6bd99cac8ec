"""GeoPackage, through GDAL: its layers as Arrow, in chunks.

Source: OGC 12-128r19. Only for processes of `adapters.files.vectors.child`.
"""

import sqlite3
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import shapely
from arro3.core import Array, DataType
from shapely.geometry.base import BaseGeometry

from adapters.files.sqlite_files import opened_sqlite, views
from adapters.files.vectors import ogr
from adapters.files.vectors.layers import (
    Chunk,
    Layer,
    Refused,
    Source,
    SourceField,
    array_of,
    arrow_type,
    binary_of,
)
from adapters.ports import UnreadableDocument
from contracts.jobs.vectors import ColumnType, FeatureProblem
from domain.jobs.vectors.values import text_column

_CURVES: Final = frozenset({8, 9, 10, 11, 12, 13, 14})
"""Well-known binary of circular strings, compound curves, curve polygons and their multiples."""
_EXPECTED_EXTENSIONS: Final = ("gpkg_rtree_index", "gpkg_geom_", "gpkg_crs_wkt")
_NUMBERS: Final = frozenset({"fid", "ogc_fid"})
"""Names of keys that programs give; a key of another name is data."""
_UNDEFINED: Final = frozenset({-1, 0, 99999})
"""Numbers of the SRS of a layer that says none."""
_HEAD_BYTES: Final = 8
"""Of a geometry, to the end of its SRS."""
_MOMENT: Final = "OFTDateTime"
_BOOLEAN: Final = "OFSTBoolean"
_TYPES: Final = {
    "OFTString": ColumnType.TEXT,
    "OFTInteger": ColumnType.INTEGER,
    "OFTInteger64": ColumnType.INTEGER,
    "OFTReal": ColumnType.REAL,
    "OFTDate": ColumnType.DATE,
    "OFTTime": ColumnType.TIME,
    "OFTBinary": ColumnType.BINARY,
}


def open_geopackage(path: Path) -> Source:
    """Read the names of layers and tables.

    Raises:
        Refused: It is damaged, or no GeoPackage.
    """
    computed = _computed(path)
    try:
        names = ogr.layers(path)
    except ogr.FAILURES as error:
        raise Refused(f"the file is damaged, or no GeoPackage ({ogr.first_line(error)})") from error
    left_out: list[str] = []
    layers: list[Layer] = []
    for name, geometry in names:
        if name.lower() in computed:
            left_out.append(
                f"layer {name!r} is a view, and is left out: save what it shows as a layer"
            )
        elif geometry is None:
            left_out.append(f"layer {name!r} has no geometries, and is left out")
        else:
            layers.append(_layer(path, name))
    left_out += _others(path, {name for name, _ in names})
    return Source("GeoPackage", layers, left_out)


def _computed(path: Path) -> frozenset[str]:
    """Views of the file; GDAL is not to look at a file whose own tables are some.

    Raises:
        Refused: They are, or the file is damaged.
    """
    with _database(path) as connection:
        found = views(connection)
        if own := sorted(name for name in found if name.startswith("gpkg_")):
            raise Refused(
                f"{own[0]} of the GeoPackage is a view, and has to be a table: what it computes is "
                "not read"
            )
        return found


@contextmanager
def _database(path: Path) -> Generator[sqlite3.Connection]:
    try:
        with opened_sqlite(path, "GeoPackage") as connection:
            yield connection
    except UnreadableDocument as error:
        raise Refused(str(error)) from error


def _others(path: Path, layers: set[str]) -> Iterator[str]:
    """What the file holds beside its layers."""
    with _database(path) as connection:
        for name, kind in connection.execute("SELECT table_name, data_type FROM gpkg_contents"):
            if name not in layers:
                yield f"{kind} {name!r} are not features, and are left out"
        known = "SELECT 1 FROM sqlite_master WHERE name = 'gpkg_extensions'"
        if connection.execute(known).fetchone():
            query = "SELECT DISTINCT extension_name FROM gpkg_extensions ORDER BY 1"
            for (name,) in connection.execute(query):
                if not str(name).startswith(_EXPECTED_EXTENSIONS):
                    yield f"content of the extension {name!r} is left out"


def _layer(path: Path, name: str) -> Layer:
    try:
        info = ogr.layer_info(path, name)
    except ogr.FAILURES as error:
        raise Refused(f"layer {name!r} is damaged ({ogr.first_line(error)})") from error
    layer = Layer(
        name=name,
        crs=info.crs,
        fields=(),
        chunks=lambda: iter(()),
        bounds=info.bounds,
        encoding="utf-8 (GeoPackage)",
    )
    fields: list[SourceField] = []
    keeps_key = info.key is not None and info.key.lower() not in _NUMBERS
    if info.key is not None and keeps_key:
        fields.append(SourceField(info.key, ColumnType.INTEGER))
    for field, ogr_type, subtype in info.fields:
        kind = _TYPES.get(ogr_type, ColumnType.TEXT)
        if subtype == _BOOLEAN:
            kind = ColumnType.BOOLEAN
        elif ogr_type == _MOMENT:
            kind, _, note = text_column(_texts(path, name, field))
            if note is not None:
                layer.notes.append(f"field {field!r}: {note}")
        fields.append(SourceField(field, kind))
    layer.fields = fields
    layer.chunks = lambda: _chunks(path, layer, keeps_key=keeps_key)
    return layer


def _texts(path: Path, layer: str, field: str) -> list[str | None]:
    """Dates and times of a layer, as they are written."""
    with ogr.arrow(path, layer, columns=[field], read_geometry=False) as (_, chunks):
        return [value for chunk in chunks for value in chunk[field].to_pylist()]


def _chunks(path: Path, layer: Layer, *, keeps_key: bool) -> Iterator[Chunk]:
    foreign = _foreign_systems(path, layer.name)
    first = 1
    curved = 0
    is_renumbered = False
    with ogr.arrow(path, layer.name, return_fids=True) as (geometry, found):
        for batch in found:
            fids = cast(np.ndarray[Any, Any], batch.column(0).to_numpy())
            binary = binary_of(batch[geometry])
            numbers = np.arange(first, first + len(fids))
            is_renumbered |= not np.array_equal(fids, numbers)
            try:
                shapes, problems = _shapes(binary, numbers)
            except NotImplementedError:
                curves = _curves(binary)
                curved += len(curves)
                binary = _straightened(path, layer.name, fids, binary, curves)
                shapes, problems = _shapes(binary, numbers)
            problems += [
                FeatureProblem(
                    feature=int(number),
                    reason=f"its geometry is in the SRS {foreign[int(fid)]}, unlike its layer",
                )
                for number, fid in zip(numbers, fids, strict=True)
                if int(fid) in foreign
            ]
            attributes = layer.fields[1:] if keeps_key else layer.fields
            columns = [_converted(batch[each.name], each.type) for each in attributes]
            if keeps_key:
                columns.insert(0, array_of(ColumnType.INTEGER, fids.tolist()))
            yield Chunk(numbers, shapes, columns, problems)
            first += len(fids)
    if is_renumbered and not keeps_key:
        layer.notes.append("its features are numbered anew: their fid in the file is not kept")
    if curved:
        layer.notes.append(
            f"arcs of {curved:,} curved geometries became straight pieces, of 4 degrees each"
        )


def _converted(column: Array, kind: ColumnType) -> Array:
    if column.type == arrow_type(kind):
        return column
    if kind in (ColumnType.TIMESTAMP, ColumnType.INSTANT, ColumnType.DATE) and column.type in (
        DataType.utf8(),
        DataType.large_utf8(),
    ):
        return array_of(kind, text_column(cast(list[str | None], column.to_pylist()))[1])
    return column.cast(arrow_type(kind))


def _shapes(
    binary: np.ndarray[Any, Any], numbers: np.ndarray[Any, Any]
) -> tuple[np.ndarray[Any, Any], list[FeatureProblem]]:
    """Geometries of their binary; rings that are open are closed, and what is none is named."""
    shapes = shapely.from_wkb(binary, on_invalid="ignore")
    problems: list[FeatureProblem] = []
    unread = [
        place for place in np.flatnonzero(shapely.is_missing(shapes)) if binary[place] is not None
    ]
    for place in unread:
        closed = cast(BaseGeometry | None, shapely.from_wkb(binary[place], on_invalid="fix"))
        shapes[place] = closed
        is_closed = closed is not None and not shapely.is_empty(closed)
        reason = "its ring was open and was closed" if is_closed else "its geometry is damaged"
        number = int(numbers[place])
        problems.append(FeatureProblem(feature=number, reason=reason, is_rejected=not is_closed))
    return shapes, problems


def _curves(binary: np.ndarray[Any, Any]) -> list[int]:
    return [
        place
        for place, value in enumerate(binary)
        if value is not None and len(value) > 4 and _kind(value) in _CURVES
    ]


def _kind(wkb: bytes) -> int:
    """Type of a geometry, without its dimensions."""
    number = int.from_bytes(wkb[1:5], "little" if wkb[0] else "big")
    return (number & 0x0FFF_FFFF) % 1000


def _straightened(
    path: Path,
    layer: str,
    fids: np.ndarray[Any, Any],
    binary: np.ndarray[Any, Any],
    places: list[int],
) -> np.ndarray[Any, Any]:
    """The same geometries, with arcs as straight pieces."""
    straight = ogr.straightened(path, layer, fids[places])
    changed = binary.copy()
    for place in places:
        changed[place] = straight[int(fids[place])]
    return changed


def _foreign_systems(path: Path, layer: str) -> dict[int, int]:
    """Features whose geometry says another SRS than their layer does; GDAL does not look."""
    with _database(path) as connection:
        query = "SELECT column_name, srs_id FROM gpkg_geometry_columns WHERE table_name = ?"
        row = connection.execute(query, (layer,)).fetchone()
        if row is None:
            return {}
        column, expected = row
        blob = f'CAST("{_quoted(column)}" AS BLOB)'
        # Both orders of bytes are right.
        usual = [int(expected).to_bytes(4, order, signed=True) for order in ("little", "big")]
        heads = (
            f'SELECT rowid, substr({blob}, 1, 8) FROM "{_quoted(layer)}"'  # noqa: S608 - quoted
            f" WHERE substr({blob}, 5, 4) NOT IN (?, ?)"
        )
        found = {
            fid: _system(head)
            for fid, head in connection.execute(heads, usual)
            if head is not None and len(head) == _HEAD_BYTES
        }
    if expected in _UNDEFINED and len(set(found.values())) == 1:
        # The layer says none, so they do not contradict it.
        return {}
    return found


def _system(head: bytes) -> int:
    return int.from_bytes(head[4:8], "little" if head[3] & 1 else "big", signed=True)


def _quoted(name: str) -> str:
    return str(name).replace('"', '""')
