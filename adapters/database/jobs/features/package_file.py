"""One GeoPackage with one table of features, written by `sqlite3`.

Source: OGC 12-128r19.
"""

import sqlite3
import struct
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any, Final

import numpy as np
import shapely

from adapters.database.jobs.features.package_schema import SCHEMA, TRIGGERS, TYPES
from adapters.database.jobs.features.parquet import ROWS, SRID, incoming_features
from adapters.ports.features import FeatureLoad
from contracts.jobs.vectors import ColumnType, LoadMode, LoadReport, VectorTable
from domain.errors import RuleViolation

_HEADER: Final = struct.Struct("<2sBBi4d")
_EMPTY_HEADER: Final = struct.Struct("<2sBBi")


class PackageFile:
    """An open file, within one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def done(self, key: str) -> LoadReport | None:
        """What a load has done; None: it has not been done."""
        row = self._connection.execute(
            "SELECT report FROM docflow_loads WHERE key = ?", (key,)
        ).fetchone()
        return None if row is None else LoadReport.model_validate_json(row[0])

    def loads(self) -> list[tuple[str, str]]:
        """All loads that have been done, with their reports."""
        return self._connection.execute("SELECT key, report FROM docflow_loads").fetchall()

    def definition(self) -> VectorTable:
        """The table."""
        (text,) = self._connection.execute("SELECT definition FROM docflow_table").fetchone()
        return VectorTable.model_validate_json(text)

    def count(self) -> int:
        """Rows of the table."""
        name = _quoted(self.definition().name)
        (count,) = self._connection.execute(f"SELECT count(*) FROM {name}").fetchone()  # noqa: S608 - names are quoted
        return count

    def extent(self) -> tuple[float, float, float, float] | None:
        """What the geometries cover; None: there is none."""
        row = self._connection.execute(
            "SELECT min_x, min_y, max_x, max_y FROM gpkg_contents"
        ).fetchone()
        west, south, east, north = row
        return None if west is None else (west, south, east, north)

    def rows(self) -> Iterator[list[tuple[Any, ...]]]:
        """All rows, in the order of `fid`; geometries as well-known binary."""
        table = self.definition()
        columns = "".join(f", {_quoted(column.name)}" for column in table.columns)
        read = [_READERS.get(column.type, _same) for column in table.columns]
        cursor = self._connection.execute(
            f'SELECT fid{columns}, "geom" FROM {_quoted(table.name)} ORDER BY fid'  # noqa: S608 - names are quoted
        )
        while found := cursor.fetchmany(ROWS):
            yield [
                (
                    fid,
                    *(
                        None if value is None else convert(value)
                        for convert, value in zip(read, values, strict=True)
                    ),
                    None if geometry is None else _wkb(geometry),
                )
                for fid, *values, geometry in found
            ]

    def create(self, table: VectorTable, loads: Sequence[tuple[str, str]]) -> None:
        """Make the table, empty; loads that were done before are known."""
        run = self._connection.execute
        name = _quoted(table.name)
        columns = "".join(f", {_quoted(c.name)} {TYPES[c.type]}" for c in table.columns)
        kind = table.geometry.value.upper()
        run(
            f"CREATE TABLE {name} (fid INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL"
            f'{columns}, "geom" {kind})'
        )
        run(
            "INSERT INTO gpkg_contents (table_name, data_type, identifier, srs_id)"
            " VALUES (?, 'features', ?, ?)",
            (table.name, table.name, SRID),
        )
        run(
            "INSERT INTO gpkg_geometry_columns VALUES (?, 'geom', ?, ?, ?, 0)",
            (table.name, kind, SRID, int(table.has_z)),
        )
        run(
            "INSERT INTO gpkg_extensions VALUES (?, 'geom', 'gpkg_rtree_index',"
            " 'http://www.geopackage.org/spec120/#extension_rtree', 'write-only')",
            (table.name,),
        )
        tree = _quoted(f"rtree_{table.name}_geom")
        run(f"CREATE VIRTUAL TABLE {tree} USING rtree(id, minx, maxx, miny, maxy)")
        for suffix, event, condition, action in TRIGGERS:
            run(
                f"CREATE TRIGGER {_quoted(f'rtree_{table.name}_geom_{suffix}')}"
                f" {event.format(table=name)} WHEN {condition}"
                f" BEGIN {action.format(tree=tree)}; END"
            )
        run("INSERT INTO docflow_table VALUES (?)", (table.model_dump_json(),))
        self._connection.executemany("INSERT INTO docflow_loads VALUES (?, ?)", loads)

    def load(self, load: FeatureLoad, table: VectorTable, place: str) -> LoadReport:
        """Write the features into the table."""
        before = self.count()
        names = [column.name for column in load.table.columns]
        if load.mode is LoadMode.UPSERT:
            self._make_key(table.name, load.upsert_by)
        sql = _insert(table.name, names, load.upsert_by)
        seen: set[tuple[Any, ...]] = set()
        count = 0
        for columns, binary in incoming_features(load.features, load.table, table):
            if load.mode is LoadMode.UPSERT:
                _check_keys([columns[names.index(key)] for key in load.upsert_by], load, seen)
            written = [
                _written(kind.type, values)
                for kind, values in zip(load.table.columns, columns, strict=True)
            ]
            self._connection.executemany(sql, zip(*written, _blobs(binary), strict=True))
            count += len(binary)
        total = self.count()
        self._note_extent(table.name)
        report = LoadReport(
            table=table.name,
            mode=load.mode,
            inserted=total - before,
            updated=count - (total - before),
            total=total,
            place=place,
        )
        self._connection.execute(
            "INSERT INTO docflow_loads VALUES (?, ?)", (load.key, report.model_dump_json())
        )
        return report

    def _note_extent(self, table: str) -> None:
        """The index has sides in single precision; of the outermost ones the exact side counts."""
        tree = _quoted(f"rtree_{table}_geom")
        for side, extreme, function in (
            ("min_x", "min(minx)", "ST_MinX"),
            ("max_x", "max(maxx)", "ST_MaxX"),
            ("min_y", "min(miny)", "ST_MinY"),
            ("max_y", "max(maxy)", "ST_MaxY"),
        ):
            name = side.replace("_", "")
            self._connection.execute(
                f"UPDATE gpkg_contents SET {side} ="  # noqa: S608 - names are quoted
                f" (SELECT {extreme[:3]}({function}(geom)) FROM {_quoted(table)} WHERE fid IN"
                f" (SELECT id FROM {tree} WHERE {name} = (SELECT {extreme} FROM {tree})))"
            )

    def _make_key(self, table: str, key: Sequence[str]) -> None:
        columns = ", ".join(map(_quoted, key))
        index = _quoted(f"{table}_key_{'_'.join(key)}")
        try:
            self._connection.execute(
                f"CREATE UNIQUE INDEX IF NOT EXISTS {index} ON {_quoted(table)} ({columns})"
            )
        except sqlite3.IntegrityError as error:
            raise RuleViolation(
                f"the key {', '.join(key)} is not unique in the table: rows share it"
            ) from error


@contextmanager
def open_package(path: Path) -> Generator[PackageFile]:
    """Open a file, or make it; committed when the block ends, unchanged when it fails."""
    is_new = not path.exists()
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        _add_functions(connection)
        if is_new:
            connection.executescript(SCHEMA)
        connection.execute("BEGIN IMMEDIATE")
        yield PackageFile(connection)
        connection.execute("COMMIT")
    finally:
        connection.close()


def _insert(table: str, columns: Sequence[str], key: Sequence[str]) -> str:
    names = [*columns, "geom"]
    listed = ", ".join(map(_quoted, names))
    marks = ", ".join("?" * len(names))
    sql = f"INSERT INTO {_quoted(table)} ({listed}) VALUES ({marks})"  # noqa: S608 - names are quoted
    if not key:
        return sql
    changed = ", ".join(f"{_quoted(n)} = excluded.{_quoted(n)}" for n in names if n not in key)
    return f"{sql} ON CONFLICT ({', '.join(map(_quoted, key))}) DO UPDATE SET {changed}"


def _check_keys(
    columns: Sequence[Sequence[Any]], load: FeatureLoad, seen: set[tuple[Any, ...]]
) -> None:
    for values in zip(*columns, strict=True):
        if None in values:
            raise RuleViolation(f"features lack a value of the key {', '.join(load.upsert_by)}")
        if values in seen:
            shown = ", ".join(f"{n}={v!r}" for n, v in zip(load.upsert_by, values, strict=True))
            raise RuleViolation(f"features share the key {shown}; it must be unique")
        seen.add(values)


def _add_functions(connection: sqlite3.Connection) -> None:
    """What the triggers of the R-tree call; the header of a geometry has its box."""
    for place, name in enumerate(("ST_MinX", "ST_MaxX", "ST_MinY", "ST_MaxY"), start=4):

        def corner(blob: bytes, place: int = place) -> float:
            return _HEADER.unpack_from(blob)[place]

        connection.create_function(name, 1, corner, deterministic=True)
    connection.create_function("ST_IsEmpty", 1, _is_empty, deterministic=True)


_EMPTY: Final = 0b0001_0000
_WITH_BOX: Final = 0b0000_0010
_LITTLE: Final = 0b0000_0001


def _blobs(binary: Sequence[bytes | None]) -> Iterator[bytes | None]:
    geometries = shapely.from_wkb(np.array([*binary, None], dtype=object)[:-1])
    boxes = shapely.bounds(geometries).tolist()
    for wkb, (west, south, east, north), is_empty in zip(
        shapely.to_wkb(geometries, byte_order=1, flavor="iso").tolist(),
        boxes,
        shapely.is_empty(geometries).tolist(),
        strict=True,
    ):
        if wkb is None:
            yield None
        elif is_empty:
            yield _EMPTY_HEADER.pack(b"GP", 0, _LITTLE | _EMPTY, SRID) + wkb
        else:
            flags = _LITTLE | _WITH_BOX
            yield _HEADER.pack(b"GP", 0, flags, SRID, west, east, south, north) + wkb


def _is_empty(blob: bytes) -> bool:
    return bool(blob[3] & _EMPTY)


def _wkb(blob: bytes) -> bytes:
    return blob[_EMPTY_HEADER.size if blob[3] & _EMPTY else _HEADER.size :]


def _written(kind: ColumnType, values: Sequence[Any]) -> Sequence[Any]:
    write = _WRITERS.get(kind)
    if write is None:
        return values
    return [None if value is None else write(value) for value in values]


def _instant(value: datetime) -> str:
    return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _same(value: Any) -> Any:
    return value


_WRITERS: Final[dict[ColumnType, Callable[[Any], Any]]] = {
    ColumnType.DATE: date.isoformat,
    ColumnType.TIME: time.isoformat,
    ColumnType.TIMESTAMP: datetime.isoformat,
    ColumnType.INSTANT: _instant,
}
_READERS: Final[dict[ColumnType, Callable[[Any], Any]]] = {
    ColumnType.BOOLEAN: bool,
    ColumnType.DATE: date.fromisoformat,
    ColumnType.TIME: time.fromisoformat,
    ColumnType.TIMESTAMP: datetime.fromisoformat,
    ColumnType.INSTANT: datetime.fromisoformat,
}


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
