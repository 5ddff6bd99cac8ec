"""Files of vector data for tests, honest and otherwise."""

import json
import sqlite3
import struct
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyogrio
import pyogrio.raw
import shapely
from pyproj import CRS

SQUARE = "POLYGON ((9 48, 9 49, 10 49, 10 48, 9 48))"
BOW_TIE = "POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))"


def dbf(
    fields: Sequence[tuple[bytes, str, int, int]],
    rows: Sequence[Sequence[bytes]],
    language: int = 0,
    deleted: Sequence[int] = (),
) -> bytes:
    """A dBASE table; a field is its name, type, width and decimals, a row its values."""
    length = 1 + sum(width for _, _, width, _ in fields)
    start = 32 + 32 * len(fields) + 1
    head = struct.pack("<B3xLHH17xB2x", 3, len(rows), start, length, language)
    described = b"".join(
        struct.pack("<11sc4xBB14x", name, kind.encode(), width, decimals)
        for name, kind, width, decimals in fields
    )
    body = b"".join(
        (b"*" if number in deleted else b" ")
        + b"".join(value.ljust(width) for value, (_, _, width, _) in zip(row, fields, strict=True))
        for number, row in enumerate(rows)
    )
    return head + described + b"\r" + body + b"\x1a"


def shapefile(
    path: Path,
    shapes: Sequence[str | None],
    table: bytes | None = None,
    *,
    crs: str | None = "EPSG:4326",
    name: str = "parcels",
    more: Mapping[str, bytes] | None = None,
    without: Sequence[str] = (),
) -> Path:
    """A zipped Shapefile whose attributes are this table."""
    folder = path.parent / f"{path.name}-parts"
    folder.mkdir()
    wkb = _binary(shapes)
    kind = next(shapely.from_wkt(s).geom_type for s in shapes if s is not None)
    pyogrio.raw.write(
        folder / "layer.shp",
        wkb,
        [],
        [],
        geometry_type=kind,
        crs="EPSG:4326",
        driver="ESRI Shapefile",
    )
    parts = {each.suffix[1:]: each.read_bytes() for each in folder.iterdir()}
    parts.pop("cpg", None)
    parts.pop("prj", None)
    if table is None:
        parts.pop("dbf", None)
    else:
        parts["dbf"] = table
    if crs is not None:
        parts["prj"] = CRS(crs).to_wkt("WKT1_ESRI").encode()
    parts |= more or {}
    with zipfile.ZipFile(path, "a") as archive:
        for suffix, content in parts.items():
            if suffix not in without:
                archive.writestr(f"{name}.{suffix}", content)
    return path


def geojson(path: Path, features: Sequence[Any], **members: Any) -> Path:
    """A collection; a feature may be a pair of geometry and properties."""
    found = [
        each
        if isinstance(each, dict)
        else {
            "type": "Feature",
            "geometry": None if each[0] is None else _mapping(each[0]),
            "properties": each[1],
        }
        for each in features
    ]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": found, **members}))
    return path


def geopackage(
    path: Path,
    shapes: Sequence[str | None],
    columns: Mapping[str, Any] | None = None,
    *,
    layer: str = "parcels",
    crs: str | None = "EPSG:4326",
    geometry_type: str = "Unknown",
) -> Path:
    """A layer in a GeoPackage, beside those that it has."""
    wkb = _binary(shapes)
    columns = columns or {}
    pyogrio.raw.write(
        path,
        wkb,
        [np.array(values) for values in columns.values()],
        list(columns),
        geometry_type=geometry_type,
        crs=crs,
        driver="GPKG",
        layer=layer,
        append=path.exists(),
    )
    return path


def set_blob(path: Path, fid: int, system: int, wkb: bytes, table: str = "parcels") -> None:
    """Put a geometry into a GeoPackage that no library would write."""
    connection = sqlite3.connect(path)
    try:
        triggers = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        for (name,) in triggers.fetchall():
            connection.execute(f'DROP TRIGGER "{name}"')
        blob = b"GP\0\1" + struct.pack("<i", system) + wkb
        connection.execute(f'UPDATE "{table}" SET geom = ? WHERE fid = ?', (blob, fid))
        connection.commit()
    finally:
        connection.close()


def _mapping(text: str) -> dict[str, Any]:
    return json.loads(shapely.to_geojson(shapely.from_wkt(text)))


def _binary(shapes: Sequence[str | None]) -> np.ndarray[Any, Any]:
    # An array of bytes would lose the zeros at their ends.
    found = [None if s is None else shapely.to_wkb(shapely.from_wkt(s)) for s in shapes]
    return np.array([*found, None], dtype=object)[:-1]


def make_endless(path: Path, table: str) -> None:
    """Replace a table of a GeoPackage by a view whose query does not end."""
    with closing(sqlite3.connect(path)) as database:
        names = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
        columns = ", ".join(f"i AS {name}" for name in names)
        database.executescript(
            f"DROP TABLE {table};"
            f"CREATE VIEW {table} AS WITH RECURSIVE n(i) AS "
            f"(SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT {columns} FROM n WHERE i < 0;"
        )
