"""GeoPackage, through GDAL: its layers as Arrow, in chunks.

Source: OGC 12-128r19. Only for processes of `adapters.files.vectors.child`.
"""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyogrio
import pyogrio.raw
import shapely
from arro3.core import Array, DataType, RecordBatchReader

from adapters.files.vectors.layers import (
    CHUNK,
    Chunk,
    Layer,
    Refused,
    Source,
    SourceField,
    array_of,
    arrow_type,
    binary_of,
)
from contracts.jobs.vectors import ColumnType, FeatureProblem
from domain.jobs.vectors.values import text_column

_CURVES: Final = frozenset({8, 9, 10, 11, 12, 13, 14})
"""Well-known binary of circular strings, compound curves, curve polygons and their multiples."""
_EXPECTED_EXTENSIONS: Final = ("gpkg_rtree_index", "gpkg_geom_", "gpkg_crs_wkt")
_MOMENT: Final = "OFTDateTime"
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
    try:
        names = pyogrio.list_layers(path)
    except pyogrio.errors.DataSourceError as error:
        raise Refused(f"the file is damaged, or no GeoPackage ({_short(error)})") from error
    left_out: list[str] = []
    layers: list[Layer] = []
    for name, geometry in names:
        if geometry is None:
            left_out.append(f"layer {name!r} has no geometries, and is left out")
        else:
            layers.append(_layer(path, name))
    left_out += _others(path, {name for name, _ in names})
    return Source("GeoPackage", layers, left_out)


def _others(path: Path, layers: set[str]) -> Iterator[str]:
    """What the file holds beside its layers."""
    connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    try:
        for name, kind in connection.execute("SELECT table_name, data_type FROM gpkg_contents"):
            if name not in layers:
                yield f"{kind} {name!r} are no features, and are left out"
        known = "SELECT 1 FROM sqlite_master WHERE name = 'gpkg_extensions'"
        if connection.execute(known).fetchone():
            query = "SELECT DISTINCT extension_name FROM gpkg_extensions ORDER BY 1"
            for (name,) in connection.execute(query):
                if not str(name).startswith(_EXPECTED_EXTENSIONS):
                    yield f"content of the extension {name!r} is left out"
    except sqlite3.Error as error:
        raise Refused(f"the GeoPackage is damaged ({error})") from error
    finally:
        connection.close()


def _layer(path: Path, name: str) -> Layer:
    try:
        meta: dict[str, Any] = pyogrio.read_info(path, layer=name, force_total_bounds=True)
    except pyogrio.errors.DataSourceError as error:
        raise Refused(f"layer {name!r} is damaged ({_short(error)})") from error
    layer = Layer(
        name=name,
        crs=meta["crs"] or None,
        fields=(),
        chunks=lambda: iter(()),
        bounds=meta["total_bounds"],
        encoding="utf-8 (GeoPackage)",
    )
    kinds: list[ColumnType] = []
    for field, ogr, subtype in zip(
        meta["fields"], meta["ogr_types"], meta["ogr_subtypes"], strict=True
    ):
        kind = ColumnType.BOOLEAN if subtype == "OFSTBoolean" else _TYPES.get(ogr, ColumnType.TEXT)
        if ogr == _MOMENT:
            kind, _, note = text_column(_texts(path, name, str(field)))
            if note is not None:
                layer.notes.append(f"field {field!r}: {note}")
        kinds.append(kind)
    layer.fields = [
        SourceField(str(field), kind) for field, kind in zip(meta["fields"], kinds, strict=True)
    ]
    layer.chunks = lambda: _chunks(path, layer)
    return layer


def _texts(path: Path, layer: str, field: str) -> list[str | None]:
    """Dates and times of a layer, as they are written."""
    with pyogrio.raw.open_arrow(
        path, layer=layer, columns=[field], read_geometry=False, datetime_as_string=True
    ) as (_, stream):
        batches = RecordBatchReader.from_arrow(stream)
        return [value for batch in batches for value in batch[field].to_pylist()]


def _chunks(path: Path, layer: Layer) -> Iterator[Chunk]:
    foreign = _foreign_systems(path, layer.name)
    first = 1
    curved = 0
    with pyogrio.raw.open_arrow(
        path, layer=layer.name, return_fids=True, batch_size=CHUNK, datetime_as_string=True
    ) as (meta, stream):
        geometry = meta["geometry_name"] or "wkb_geometry"
        for batch in RecordBatchReader.from_arrow(stream):
            fids = batch.column(0).to_numpy()
            binary = binary_of(batch[geometry])
            numbers = np.arange(first, first + len(fids))
            curves = _curves(binary)
            if curves:
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
            columns = [_converted(batch[each.name], each.type) for each in layer.fields]
            yield Chunk(numbers, shapes, columns, problems)
            first += len(fids)
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
        return array_of(kind, text_column(column.to_pylist())[1])
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
        closed = shapely.from_wkb(binary[place], on_invalid="fix")
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
    """The same geometries, with arcs as straight pieces; GDAL does it where Arrow is not asked."""
    _, found, geometries, _ = pyogrio.raw.read(
        path, layer=layer, fids=fids[places], columns=[], return_fids=True
    )
    straight = dict(zip(found.tolist(), geometries, strict=True))
    changed = binary.copy()
    for place in places:
        changed[place] = straight[int(fids[place])]
    return changed


def _foreign_systems(path: Path, layer: str) -> dict[int, int]:
    """Features whose geometry says another SRS than their layer does; GDAL does not look."""
    connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    try:
        query = "SELECT column_name, srs_id FROM gpkg_geometry_columns WHERE table_name = ?"
        row = connection.execute(query, (layer,)).fetchone()
        if row is None:
            return {}
        column, expected = row
        blob = f'CAST("{_quoted(column)}" AS BLOB)'
        # Bit 0 of the flags is the order of bytes; the SRS follows them.
        heads = f'SELECT rowid, substr({blob}, 1, 8) FROM "{_quoted(layer)}"'  # noqa: S608 - quoted
        return {
            fid: system
            for fid, head in connection.execute(heads)
            if head is not None and len(head) == 8
            if (system := _system(head)) != expected
        }
    except sqlite3.Error as error:
        raise Refused(f"layer {layer!r} is damaged ({error})") from error
    finally:
        connection.close()


def _system(head: bytes) -> int:
    return int.from_bytes(head[4:8], "little" if head[3] & 1 else "big", signed=True)


def _quoted(name: str) -> str:
    return str(name).replace('"', '""')


def _short(error: Exception) -> str:
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__
