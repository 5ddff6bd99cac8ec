"""GeoPackage: what GDAL does not see of its tables. Its layers come through `ogr_layers`.

SQLite keeps any value in any column, and GDAL makes a number or a date of each; a geometry says an
SRS of its own, at which GDAL does not look.

Source: OGC 12-128r19. Only for processes of `adapters.files.vectors.child`.
"""

import sqlite3
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from adapters.files.sqlite_files import opened_sqlite, views_of_geopackage
from adapters.files.vectors import ogr
from adapters.files.vectors.layers import NUL, Refused, Source
from adapters.files.vectors.ogr_layers import Finding, Format, layer_of
from adapters.ports.errors import UnreadableDocument

_FORMAT: Final = Format("GeoPackage", "GPKG", has_count=False)
_EXPECTED_EXTENSIONS: Final = ("gpkg_rtree_index", "gpkg_geom_", "gpkg_crs_wkt")
_UNDEFINED: Final = frozenset({-1, 0, 99999})
"""Numbers of the SRS of a layer that says none."""
_HEAD_BYTES: Final = 8
"""Of a geometry, to the end of its SRS."""
_SHOWN: Final = 40
_DAY: Final = (
    "date(substr({0}, 1, 10), '+0 days') IS substr({0}, 1, 10) AND substr({0}, 1, 4) > '0000'"
)
_WHOLE: Final = "typeof({0}) = 'integer'", "a whole number"
_REAL: Final = "typeof({0}) IN ('integer', 'real')", "a number"
_EXPECTED: Final[Mapping[str, tuple[str, str]]] = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "integer", "bigint"), _WHOLE),
    **dict.fromkeys(("float", "double", "real", "numeric"), _REAL),
    "boolean": ("{0} IN (0, 1)", "a boolean"),
    "date": (f"length({{0}}) = 10 AND {_DAY}", "a date"),
    "datetime": (f"length({{0}}) > 10 AND {_DAY} AND julianday({{0}}) NOTNULL", "a time"),
    # GDAL ends a text at its first NUL.
    "text": ("NOT instr(CAST({0} AS BLOB), x'00')", "a text without NUL"),
}
"""What a column of a type has to hold, in SQL, and what people call it."""


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
    source = Source("GeoPackage", [])
    for name, geometry in names:
        if name.lower() in computed:
            source.left_out.append(
                f"layer {name!r} is a view, and is left out: save what it shows as a layer"
            )
        elif geometry is None:
            source.left_out.append(f"layer {name!r} has no geometries, and is left out")
        else:
            check = partial(_findings, path, name)
            source.layers.append(layer_of(path, name, _FORMAT, check))
    source.left_out += _others(path, {name for name, _ in names})
    return source


def _computed(path: Path) -> frozenset[str]:
    """Views of the file; GDAL is not to look at a file whose own tables are some.

    Raises:
        Refused: They are, or the file is damaged.
    """
    with _database(path) as connection:
        return views_of_geopackage(connection)


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


def _findings(path: Path, layer: str, fids: Sequence[int]) -> list[Finding]:
    """What is wrong with some features."""
    table = _quoted(layer)
    asked = set(fids)
    with _database(path) as connection:
        connection.text_factory = partial(str, encoding="utf-8", errors="replace")

        def rows(columns: str, where: str) -> Iterator[tuple[Any, ...]]:
            query = (
                f"SELECT rowid, {columns} FROM {table}"  # noqa: S608 - quoted
                f" WHERE rowid BETWEEN ? AND ? AND {where}"
            )
            found = connection.execute(query, (min(fids), max(fids)))
            return (row for row in found if row[0] in asked)

        found: list[Finding] = []
        for _, name, kind, *_ in connection.execute(f"PRAGMA table_info({table})").fetchall():
            expected = _EXPECTED.get(kind.lower().partition("(")[0].strip())
            if expected is None:
                continue
            column, (rule, noun) = _quoted(name), expected
            where = f"{column} NOTNULL AND NOT coalesce({rule.format(column)}, 0)"
            found += [_wrong(fid, name, value, noun) for fid, value in rows(column, where)]
        return [*found, *_foreign(connection, layer, rows)]


def _wrong(fid: int, name: str, value: Any, noun: str) -> Finding:
    if isinstance(value, str) and "\0" in value:
        changed = value.replace("\0", "\ufffd")
        return Finding(fid, NUL, name, changed)
    return Finding(fid, f"{str(value)[:_SHOWN]!r} is not {noun}; left empty", name)


def _foreign(connection: sqlite3.Connection, layer: str, rows: Any) -> Iterator[Finding]:
    """Features whose geometry says another SRS than their layer does."""
    query = "SELECT column_name, srs_id FROM gpkg_geometry_columns WHERE table_name = ?"
    row = connection.execute(query, (layer,)).fetchone()
    if row is None:
        return
    blob, expected = f"CAST({_quoted(row[0])} AS BLOB)", int(row[1])
    # Both orders of bytes are right.
    usual = [expected.to_bytes(4, order, signed=True).hex() for order in ("little", "big")]
    where = f"substr({blob}, 5, 4) NOT IN (x'{usual[0]}', x'{usual[1]}')"
    found = {
        fid: int.from_bytes(head[4:8], "little" if head[3] & 1 else "big", signed=True)
        for fid, head in rows(f"substr({blob}, 1, {_HEAD_BYTES})", where)
        if head is not None and len(head) == _HEAD_BYTES
    }
    if expected in _UNDEFINED and len(set(found.values())) == 1:
        # The layer says none, so they do not contradict it.
        return
    for fid, system in found.items():
        reason = f"its geometry is in the SRS {system}, unlike its layer"
        yield Finding(fid, reason, is_rejected=True)


def _quoted(name: str) -> str:
    return '"{}"'.format(str(name).replace('"', '""'))
