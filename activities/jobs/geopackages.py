"""Tables of features as GeoPackages, written by `sqlite3`.

What a GeoPackage consists of before it has a table.

Source: OGC 12-128r19, with the R-tree of its annex F.3.

One GeoPackage with one table of features, written by `sqlite3`.

Source: OGC 12-128r19.

Tables of features as GeoPackages in the silver container: a version of the file for each load.

A version is never overwritten; the one with the highest number is the table. Two loads that begin
with the same version end with one of them having to begin again.
"""

import re
import shutil
import sqlite3
import struct
import tempfile
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any, Final

import numpy as np
import shapely

from activities.jobs.ports import FeatureLoad, Features, StoredTable
from activities.jobs.postgis import (
    ROWS,
    SRID,
    PostgisFeatures,
    find_postgis,
    incoming_features,
)
from adapters.database.engine import Database
from adapters.ports.blobs import Blobs
from adapters.ports.errors import Unavailable
from adapters.threads import to_end
from workflows.jobs.vectors import ColumnType, LoadMode, LoadReport, VectorTable, check_load
from workflows.shared.errors import RuleViolation

_APPLICATION: Final = 0x47504B47
_VERSION: Final = 10400
TYPES: Final = {
    ColumnType.TEXT: "TEXT",
    ColumnType.INTEGER: "INTEGER",
    ColumnType.REAL: "DOUBLE",
    ColumnType.BOOLEAN: "BOOLEAN",
    ColumnType.DATE: "DATE",
    ColumnType.TIME: "TEXT",
    # Its DATETIME is one in UTC, which is not known here.
    ColumnType.TIMESTAMP: "TEXT",
    ColumnType.INSTANT: "DATETIME",
    ColumnType.BINARY: "BLOB",
}
_WGS84: Final = (
    'GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563,'
    'AUTHORITY["EPSG","7030"]],AUTHORITY["EPSG","6326"]],PRIMEM["Greenwich",0,'
    'AUTHORITY["EPSG","8901"]],UNIT["degree",0.0174532925199433,AUTHORITY["EPSG","9122"]],'
    'AXIS["Latitude",NORTH],AXIS["Longitude",EAST],AUTHORITY["EPSG","4326"]]'
)
SCHEMA: Final = f"""
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {_VERSION};
CREATE TABLE gpkg_spatial_ref_sys (srs_name TEXT NOT NULL, srs_id INTEGER PRIMARY KEY,
  organization TEXT NOT NULL, organization_coordsys_id INTEGER NOT NULL,
  definition TEXT NOT NULL, description TEXT);
INSERT INTO gpkg_spatial_ref_sys VALUES
  ('Undefined Cartesian SRS', -1, 'NONE', -1, 'undefined', NULL),
  ('Undefined geographic SRS', 0, 'NONE', 0, 'undefined', NULL),
  ('WGS 84 geodetic', {SRID}, 'EPSG', {SRID}, '{_WGS84}', NULL);
CREATE TABLE gpkg_contents (table_name TEXT NOT NULL PRIMARY KEY, data_type TEXT NOT NULL,
  identifier TEXT UNIQUE, description TEXT DEFAULT '',
  last_change DATETIME NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')),
  min_x DOUBLE, min_y DOUBLE, max_x DOUBLE, max_y DOUBLE, srs_id INTEGER,
  CONSTRAINT fk_gc_r_srs_id FOREIGN KEY (srs_id) REFERENCES gpkg_spatial_ref_sys(srs_id));
CREATE TABLE gpkg_geometry_columns (table_name TEXT NOT NULL, column_name TEXT NOT NULL,
  geometry_type_name TEXT NOT NULL, srs_id INTEGER NOT NULL, z TINYINT NOT NULL,
  m TINYINT NOT NULL, CONSTRAINT pk_geom_cols PRIMARY KEY (table_name, column_name),
  CONSTRAINT uk_gc_table_name UNIQUE (table_name),
  CONSTRAINT fk_gc_tn FOREIGN KEY (table_name) REFERENCES gpkg_contents(table_name),
  CONSTRAINT fk_gc_srs FOREIGN KEY (srs_id) REFERENCES gpkg_spatial_ref_sys (srs_id));
CREATE TABLE gpkg_extensions (table_name TEXT, column_name TEXT, extension_name TEXT NOT NULL,
  definition TEXT NOT NULL, scope TEXT NOT NULL,
  CONSTRAINT ge_tce UNIQUE (table_name, column_name, extension_name));
CREATE TABLE docflow_loads (key TEXT PRIMARY KEY, report TEXT NOT NULL);
CREATE TABLE docflow_table (definition TEXT NOT NULL);
"""  # noqa: S608 - names are quoted
_BOX: Final = 'ST_MinX(NEW."geom"), ST_MaxX(NEW."geom"), ST_MinY(NEW."geom"), ST_MaxY(NEW."geom")'
_NEW_IS: Final = '(NEW."geom" NOTNULL AND NOT ST_IsEmpty(NEW."geom"))'
_NEW_IS_NOT: Final = '(NEW."geom" ISNULL OR ST_IsEmpty(NEW."geom"))'
_OLD_IS: Final = '(OLD."geom" NOTNULL AND NOT ST_IsEmpty(OLD."geom"))'
_OLD_IS_NOT: Final = '(OLD."geom" ISNULL OR ST_IsEmpty(OLD."geom"))'
TRIGGERS: Final = (
    (
        "insert",
        "AFTER INSERT ON {table}",
        _NEW_IS,
        f'INSERT OR REPLACE INTO {{tree}} VALUES (NEW."fid", {_BOX})',  # noqa: S608 - names are quoted
    ),
    (
        "update6",
        'AFTER UPDATE OF "geom" ON {table}',
        f'OLD."fid" = NEW."fid" AND {_NEW_IS} AND {_OLD_IS}',
        'UPDATE {tree} SET minx = ST_MinX(NEW."geom"), maxx = ST_MaxX(NEW."geom"),'
        ' miny = ST_MinY(NEW."geom"), maxy = ST_MaxY(NEW."geom") WHERE id = NEW."fid"',
    ),
    (
        "update7",
        'AFTER UPDATE OF "geom" ON {table}',
        f'OLD."fid" = NEW."fid" AND {_NEW_IS} AND {_OLD_IS_NOT}',
        f'INSERT INTO {{tree}} VALUES (NEW."fid", {_BOX})',  # noqa: S608 - names are quoted
    ),
    (
        "update2",
        'AFTER UPDATE OF "geom" ON {table}',
        f'OLD."fid" = NEW."fid" AND {_NEW_IS_NOT}',
        'DELETE FROM {tree} WHERE id = OLD."fid"',
    ),
    (
        "update5",
        "AFTER UPDATE ON {table}",
        f'OLD."fid" != NEW."fid" AND {_NEW_IS}',
        'DELETE FROM {tree} WHERE id = OLD."fid";'  # noqa: S608 - names are quoted
        f' INSERT OR REPLACE INTO {{tree}} VALUES (NEW."fid", {_BOX})',
    ),
    (
        "update4",
        "AFTER UPDATE ON {table}",
        f'OLD."fid" != NEW."fid" AND {_NEW_IS_NOT}',
        'DELETE FROM {tree} WHERE id IN (OLD."fid", NEW."fid")',
    ),
    (
        "delete",
        "AFTER DELETE ON {table}",
        'OLD."geom" NOT NULL',
        'DELETE FROM {tree} WHERE id = OLD."fid"',
    ),
)


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


FOLDER: Final = "geo"
_ATTEMPTS: Final = 5
_MOST_VERSIONS: Final = 1_000_000
_FILE_VERSION: Final = re.compile(r"/(\d+)\.gpkg$")


class GeoPackageFeatures:
    """A `Features` without a server.

    Args:
        silver: The container.
        scratch: Folder for files while they are worked on.
    """

    def __init__(self, silver: Blobs, scratch: Path) -> None:
        self._silver = silver
        self._scratch = scratch

    async def load(self, load: FeatureLoad) -> LoadReport:
        """Load features into a table, all or none."""
        for _ in range(_ATTEMPTS):
            with tempfile.TemporaryDirectory(dir=self._scratch) as folder:
                try:
                    return await self._load(load, Path(folder))
                except FileExistsError:
                    # Another load was first: this one sees what it has made of the table.
                    continue
        raise Unavailable(f"other loads of the table {load.table.name!r} do not end")

    async def table(self, name: str) -> StoredTable | None:
        """A table; None: there is none."""
        with tempfile.TemporaryDirectory(dir=self._scratch) as folder:
            path = Path(folder) / "table.gpkg"
            if not await self._download(name, path):
                return None
            return await to_end(_stored, path)

    async def rows(self, name: str) -> AsyncIterator[Sequence[tuple[Any, ...]]]:
        """All rows of the version that is the newest when the first are read."""
        with tempfile.TemporaryDirectory(dir=self._scratch) as folder:
            path = Path(folder) / "table.gpkg"
            if not await self._download(name, path):
                raise RuleViolation(f"there is no table {name!r}")
            with open_package(path) as package:
                for found in package.rows():
                    yield found

    async def _load(self, load: FeatureLoad, folder: Path) -> LoadReport:
        version = await self._newest(load.table.name)
        before = folder / "before.gpkg"
        if version:
            await self._silver.download(_name(load.table.name, version), before)
        after = folder / "after.gpkg"
        place = _name(load.table.name, version + 1)
        report, is_new = await to_end(
            _written_file, load, before if version else None, after, place
        )
        if is_new:
            await self._silver.upload(after, place, overwrite=False)
        return report

    async def _download(self, name: str, target: Path) -> int:
        version = await self._newest(name)
        if version:
            await self._silver.download(_name(name, version), target)
        return version

    async def _newest(self, name: str) -> int:
        """Number of the newest version, 0 when there is none; older ones may have been removed."""
        found = await self._silver.list(f"{FOLDER}/{name}/", _MOST_VERSIONS)
        numbers = [
            int(version[1]) for each in found if (version := _FILE_VERSION.search(each.name))
        ]
        return max(numbers, default=0)


def _name(table: str, version: int) -> str:
    return f"{FOLDER}/{table}/{version:06d}.gpkg"


def _stored(path: Path) -> StoredTable:
    with open_package(path) as package:
        return StoredTable(package.definition(), package.count(), package.extent())


def _written_file(
    load: FeatureLoad, before: Path | None, after: Path, place: str
) -> tuple[LoadReport, bool]:
    """Make the next version; False: the load has been done already."""
    existing, loads = None, list[tuple[str, str]]()
    if before is not None:
        with open_package(before) as package:
            if (done := package.done(load.key)) is not None:
                return done, False
            existing, loads = package.definition(), package.loads()
    table = check_load(load.table, load.mode, load.upsert_by, existing)
    keep = before is not None and load.mode is not LoadMode.REPLACE
    if keep and before is not None:
        shutil.copy(before, after)
    with open_package(after) as package:
        if not keep:
            package.create(table, loads)
        return package.load(load, table, place), True


class InstalledFeatures:
    """A `Features` in PostGIS if the database has it and the schema `geo`, else in GeoPackages.

    Which of them is decided with the first use, and holds as long as the process.

    Args:
        database: That may have PostGIS.
        silver: The container of GeoPackages.
        scratch: Folder for files while they are worked on.
    """

    def __init__(self, database: Database, silver: Blobs, scratch: Path) -> None:
        self._database = database
        self._packages = GeoPackageFeatures(silver, scratch)
        self._chosen: Features | None = None

    async def _store(self) -> Features:
        if self._chosen is None:
            found = await find_postgis(self._database)
            self._chosen = PostgisFeatures(self._database) if found.is_ready else self._packages
        return self._chosen

    async def load(self, load: FeatureLoad) -> LoadReport:
        """Load features into a table, all or none."""
        return await (await self._store()).load(load)

    async def table(self, name: str) -> StoredTable | None:
        """A table; None: there is none."""
        return await (await self._store()).table(name)

    async def rows(self, name: str) -> AsyncIterator[Sequence[tuple[Any, ...]]]:
        """All rows, some thousand at a time."""
        async for part in (await self._store()).rows(name):
            yield part
