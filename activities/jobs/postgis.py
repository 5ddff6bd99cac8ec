"""Tables of features in PostGIS, filled by binary COPY from Parquet files; where PostGIS is."""

import asyncio
import hashlib
import struct
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import shapely
import sqlalchemy.exc
from arro3.io import read_parquet
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from activities.jobs.ports import FeatureLoad, StoredTable
from adapters.database.engine import Database
from adapters.files.vectors.geometry import as_multi
from adapters.files.vectors.layers import binary_of
from adapters.ports.errors import Denied, UnreadableDocument
from workflows.jobs.vectors import (
    ColumnType,
    GeometryType,
    LoadMode,
    LoadReport,
    VectorTable,
    check_load,
)
from workflows.shared.errors import RuleViolation

GEO: Final = "geo"
"""Schema of the tables."""
ROWS: Final = 10_000
"""Of one batch."""
GEOMETRY: Final = "geom"
SRID: Final = 4326
_MAGIC: Final = b"PAR1"

Geometries = np.ndarray[Any, Any]


def incoming_features(
    features: Path, incoming: VectorTable, table: VectorTable
) -> Iterator[tuple[list[Sequence[Any]], list[bytes | None]]]:
    """Columns and geometries, chunk by chunk, as a table takes them.

    Args:
        features: The file.
        incoming: What it holds.
        table: Where the features go; types of its columns, its geometry type and its heights.

    Yields:
        Values column by column, in the order of `incoming`; geometries as extended well-known
        binary, little endian, without a system.

    Raises:
        UnreadableDocument: The file is cut off.
    """
    _refuse_partial(features)
    kinds = {column.name: column.type for column in table.columns}
    fits = table.geometry in (incoming.geometry, GeometryType.GEOMETRY)
    is_single = table.geometry not in _MULTIPLE
    for batch in read_parquet(features, batch_size=ROWS):
        columns: list[Sequence[Any]] = []
        for column in incoming.columns:
            values = cast(list[Any], batch[column.name].to_pylist())
            columns.append(_as(kinds[column.name], values))
        if fits and is_single and not table.has_z:
            yield columns, cast(list[bytes | None], batch[GEOMETRY].to_pylist())
        else:
            yield columns, _changed(binary_of(batch[GEOMETRY]), table)


def _changed(binary: Geometries, table: VectorTable) -> list[bytes | None]:
    geometries = as_multi(shapely.from_wkb(binary), table.geometry)
    if table.has_z:
        flat = ~shapely.has_z(geometries) & ~shapely.is_missing(geometries)
        geometries[flat] = shapely.force_3d(geometries[flat], 0.0)
    return cast(Any, shapely.to_wkb(geometries, byte_order=1)).tolist()


_MULTIPLE: Final = frozenset(
    {GeometryType.MULTI_POINT, GeometryType.MULTI_LINE_STRING, GeometryType.MULTI_POLYGON}
)


def _without_nul(text: str) -> str:
    """PostgreSQL refuses the character; halves of surrogate pairs are none of UTF-8 here."""
    return text.replace("\0", "\ufffd")


def _refuse_partial(features: Path) -> None:
    """The library panics where the end is missing, which no `except` of ours would catch."""
    with features.open("rb") as file:
        file.seek(max(features.stat().st_size - len(_MAGIC), 0))
        if file.read() != _MAGIC:
            raise UnreadableDocument("the features that were read are cut off; read them again")


def _as(kind: ColumnType, values: Sequence[Any]) -> Sequence[Any]:
    convert = _CONVERTERS.get(kind)
    if convert is None:
        return values
    return [None if value is None else convert(value) for value in values]


_CONVERTERS: Final[dict[ColumnType, Callable[[Any], Any]]] = {
    ColumnType.TEXT: _without_nul,
    ColumnType.REAL: float,
}


_TYPES: Final = {
    ColumnType.TEXT: "text",
    ColumnType.INTEGER: "bigint",
    ColumnType.REAL: "double precision",
    ColumnType.BOOLEAN: "boolean",
    ColumnType.DATE: "date",
    ColumnType.TIME: "time",
    ColumnType.TIMESTAMP: "timestamp",
    ColumnType.INSTANT: "timestamptz",
    ColumnType.BINARY: "bytea",
}
_OWN_TABLES: Final = (
    f"CREATE TABLE IF NOT EXISTS {GEO}.docflow_tables"
    " (name text PRIMARY KEY, definition json NOT NULL)",
    f"CREATE TABLE IF NOT EXISTS {GEO}.docflow_loads (key text PRIMARY KEY,"
    " report json NOT NULL, loaded_at timestamptz NOT NULL DEFAULT now())",
)
_REMEMBER: Final = (
    f"INSERT INTO {GEO}.docflow_loads (key, report) VALUES (:key, :report)"  # noqa: S608 - our own
    " ON CONFLICT (key) DO UPDATE SET report = EXCLUDED.report"
)
_POSTGIS: Final = (
    "SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace"
    " WHERE e.extname = 'postgis'"
)
_INCOMING: Final = "docflow_incoming"
_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtext('docflow geo'), hashtext(:name))"
_HEAD: Final = struct.Struct("<BL")
_HAS_SYSTEM: Final = 0x2000_0000
_SYSTEM: Final = SRID.to_bytes(4, "little")
_IS_PREPARED: Final = f"SELECT to_regclass('{GEO}.docflow_loads') IS NOT NULL"
_FOUND: Final = text(
    "SELECT (SELECT installed_version FROM pg_available_extensions WHERE name = 'postgis'), "
    "(SELECT count(*) > 0 FROM pg_available_extensions WHERE name = 'postgis'), "
    "to_regnamespace(:geo) IS NOT NULL"
)
_NOT_ALLOWED: Final = frozenset({"42501", "0A000", "58P01"})
"""No right to make an extension or a schema, or the server lacks a file of it."""


@dataclass(frozen=True, slots=True)
class Postgis:
    """What a database has of it."""

    version: str | None
    """None: it is not installed in the database."""
    is_available: bool
    """Whether the server could install it."""
    has_schema: bool
    """Whether there is the schema `geo`."""

    @property
    def is_ready(self) -> bool:
        """Whether tables can be made."""
        return self.version is not None and self.has_schema


async def find_postgis(database: Database) -> Postgis:
    """See what a database has of PostGIS.

    Raises:
        Unavailable: The database is unavailable or busy.
    """
    async with database.reading() as connection:
        return Postgis(*(await connection.execute(_FOUND, {"geo": GEO})).one())


async def make_postgis(database: Database) -> None:
    """Make the extension and the schema `geo`, all or nothing; any number of processes at once.

    Raises:
        Denied: The user of the database may not make them.
        Unavailable: The database is unavailable or busy.
    """
    async with database.transaction() as connection:
        await connection.execute(text(_LOCK), {"name": ""})
        try:
            for made in ("EXTENSION IF NOT EXISTS postgis", f"SCHEMA IF NOT EXISTS {GEO}"):
                await connection.exec_driver_sql(f"CREATE {made}")
        except sqlalchemy.exc.DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) not in _NOT_ALLOWED:
                raise
            raise Denied(f"the database does not let us make PostGIS: {error.orig}") from error


class PostgisFeatures:
    """The schema `geo`; a `Features`.

    A load is one transaction, whose rows and note in `geo.docflow_loads` are committed together.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load(self, load: FeatureLoad) -> LoadReport:
        """Load features into a table, all or none."""
        await self._prepare()
        async with self._database.transaction() as connection:
            # Loads of one table take turns; those of others are not held up.
            await connection.execute(text(_LOCK), {"name": load.table.name})
            existing = await _definition(connection, load.table.name)
            done = await _done(connection, load.key)
            if done is not None and existing is not None:
                return done
            table = check_load(load.table, load.mode, load.upsert_by, existing)
            async with _geometries_as_bytes(connection) as driver:
                report = await _Loading(connection, driver, load, table, existing).run()
            values = {"key": load.key, "report": report.model_dump_json()}
            await connection.execute(text(_REMEMBER), values)
        return report

    async def table(self, name: str) -> StoredTable | None:
        """A table; None: there is none."""
        async with self._database.reading() as connection:
            definition = await _definition(connection, name)
            if definition is None:
                return None
            box = await connection.execute(
                text(
                    "SELECT ST_XMin(box), ST_YMin(box), ST_XMax(box), ST_YMax(box)"  # noqa: S608 - names are quoted
                    f" FROM (SELECT ST_Extent(geom) AS box FROM {_table(name)}) AS extent"
                )
            )
            west, south, east, north = box.one()
            extent = None if west is None else (west, south, east, north)
            return StoredTable(definition, await _count(connection, name), extent)

    async def rows(self, name: str) -> AsyncIterator[Sequence[tuple[Any, ...]]]:
        """All rows, as the table stood when the first were read."""
        async with self._database.transaction() as connection:
            definition = await _definition(connection, name)
            if definition is None:
                raise RuleViolation(f"there is no table {name!r}")
            columns = "".join(f", {_quoted(column.name)}" for column in definition.columns)
            query = text(
                f"SELECT fid{columns}, ST_AsBinary(geom) FROM {_table(name)} ORDER BY fid"  # noqa: S608 - names are quoted
            )
            result = await connection.stream(query, execution_options={"yield_per": ROWS})
            async for part in result.partitions():
                yield [tuple(row) for row in part]

    async def _prepare(self) -> None:
        """Make the tables of docflow's own, once."""
        async with self._database.reading() as connection:
            if await connection.scalar(text(_IS_PREPARED)):
                return
        async with self._database.transaction() as connection:
            await connection.execute(text(_LOCK), {"name": ""})
            for statement in _OWN_TABLES:
                await connection.exec_driver_sql(statement)


class _Loading:
    """One load within its transaction."""

    def __init__(
        self,
        connection: AsyncConnection,
        driver: Any,
        load: FeatureLoad,
        table: VectorTable,
        existing: VectorTable | None,
    ) -> None:
        self._connection = connection
        self._driver = driver
        self._load = load
        self._table = table
        self._existing = existing
        self._digest = hashlib.sha256(load.key.encode()).hexdigest()[:6]

    async def run(self) -> LoadReport:
        """Do it."""
        load, name = self._load, self._table.name
        updated = 0
        if self._existing is None or load.mode is LoadMode.REPLACE:
            inserted = await self._fill_new()
            if load.mode is LoadMode.UPSERT:
                await self._make_key()
        elif load.mode is LoadMode.APPEND:
            inserted = await self._copy(name, GEO)
        else:
            inserted, updated = await self._upsert()
        return LoadReport(
            table=name,
            mode=load.mode,
            inserted=inserted,
            updated=updated,
            total=await _count(self._connection, name),
            place=f"postgresql:{GEO}.{name}",
        )

    async def _fill_new(self) -> int:
        """Fill a table beside the one that may exist, then let it take its place."""
        name = self._table.name
        fresh = f"{name}_{self._digest}_new"
        await self._run(f"DROP TABLE IF EXISTS {_table(fresh)}")
        await self._run(f"CREATE TABLE {_table(fresh)} ({_columns(self._table)})")
        count = await self._copy(fresh, GEO, numbered=True)
        await self._run(f"ALTER TABLE {_table(fresh)} ALTER COLUMN fid RESTART WITH {count + 1}")
        await self._run(
            f"ALTER TABLE {_table(fresh)}"
            f" ADD CONSTRAINT {_quoted(f'{name}_{self._digest}_pkey')} PRIMARY KEY (fid)"
        )
        await self._run(
            f"CREATE INDEX {_quoted(f'{name}_{self._digest}_geom')}"
            f" ON {_table(fresh)} USING gist (geom)"
        )
        for column in self._table.columns:
            if column.source != column.name:
                source = column.source.replace("'", "''").replace("\0", "")
                place = f"{_table(fresh)}.{_quoted(column.name)}"
                await self._run(f"COMMENT ON COLUMN {place} IS '{source}'")
        await self._run(f"DROP TABLE IF EXISTS {_table(name)}")
        await self._run(f"ALTER TABLE {_table(fresh)} RENAME TO {_quoted(name)}")
        await self._connection.execute(
            text(
                f"INSERT INTO {GEO}.docflow_tables (name, definition) VALUES (:name, :definition)"  # noqa: S608 - names are quoted
                " ON CONFLICT (name) DO UPDATE SET definition = EXCLUDED.definition"
            ),
            {"name": name, "definition": self._table.model_dump_json()},
        )
        return count

    async def _upsert(self) -> tuple[int, int]:
        """Copy into a temporary table, check its keys, and merge."""
        columns = [column.name for column in self._load.table.columns]
        await self._run(
            f"CREATE TEMP TABLE {_INCOMING} ON COMMIT DROP AS"  # noqa: S608 - names are quoted
            f" SELECT {_listed(columns)}geom FROM {_table(self._table.name)} LIMIT 0"
        )
        await self._copy(_INCOMING, None)
        await self._make_key()
        key = list(self._load.upsert_by)
        await self._refuse_unusable_keys(key)
        changed = ", ".join(
            f"{_quoted(name)} = EXCLUDED.{_quoted(name)}"
            for name in (*columns, "geom")
            if name not in key
        )
        merged = await self._connection.execute(
            text(
                f"WITH merged AS (INSERT INTO {_table(self._table.name)}"  # noqa: S608 - names are quoted
                f" ({_listed(columns)}geom) SELECT {_listed(columns)}geom FROM {_INCOMING}"
                f" ON CONFLICT ({', '.join(map(_quoted, key))}) DO UPDATE SET {changed}"
                " RETURNING xmax = 0 AS is_new)"
                " SELECT count(*) FILTER (WHERE is_new), count(*) FILTER (WHERE NOT is_new)"
                " FROM merged"
            )
        )
        inserted, updated = merged.one()
        await self._run(f"DROP TABLE {_INCOMING}")
        return inserted, updated

    async def _refuse_unusable_keys(self, key: Sequence[str]) -> None:
        listed = ", ".join(map(_quoted, key))
        empty = " OR ".join(f"{_quoted(name)} IS NULL" for name in key)
        count = await self._connection.scalar(
            text(f"SELECT count(*) FROM {_INCOMING} WHERE {empty}")  # noqa: S608 - names are quoted
        )
        if count:
            raise RuleViolation(f"{count:,} features lack a value of the key {', '.join(key)}")
        twice = await self._connection.execute(
            text(
                f"SELECT {listed}, count(*) FROM {_INCOMING} GROUP BY {listed}"  # noqa: S608 - names are quoted
                f" HAVING count(*) > 1 ORDER BY {listed} LIMIT 1"
            )
        )
        if (row := twice.first()) is not None:
            *values, count = row
            shown = ", ".join(f"{n}={v!r}" for n, v in zip(key, values, strict=True))
            raise RuleViolation(f"{count:,} features have the key {shown}; it must be unique")

    async def _make_key(self) -> None:
        name = self._table.name
        key = list(self._load.upsert_by)
        digest = hashlib.sha256("\0".join(key).encode()).hexdigest()[:6]
        columns = ", ".join(map(_quoted, key))
        empty = " OR ".join(f"{_quoted(each)} IS NULL" for each in key)
        if self._existing is None:
            count = await self._connection.scalar(
                text(f"SELECT count(*) FROM {_table(name)} WHERE {empty}")  # noqa: S608 - names are quoted
            )
            if count:
                raise RuleViolation(f"{count:,} features lack a value of the key {', '.join(key)}")
        try:
            await self._run(
                f"CREATE UNIQUE INDEX IF NOT EXISTS {_quoted(f'{name}_{digest}_key')}"
                f" ON {_table(name)} ({columns})"
            )
        except sqlalchemy.exc.IntegrityError as error:
            detail = getattr(error.orig.__cause__ if error.orig else None, "detail", None)
            raise RuleViolation(
                f"the key {', '.join(key)} is not unique: {detail or 'rows share it'}"
            ) from error

    async def _copy(self, target: str, schema: str | None, *, numbered: bool = False) -> int:
        """Copy all features; the next rows are prepared while the server takes these."""
        names = [column.name for column in self._load.table.columns] + ["geom"]
        if numbered:
            names.insert(0, "fid")
        source = _rows(self._load, self._table, numbered=numbered)
        count = 0
        coming = asyncio.create_task(asyncio.to_thread(next, source, None))
        try:
            while (rows := await coming) is not None:
                coming = asyncio.create_task(asyncio.to_thread(next, source, None))
                await self._driver.copy_records_to_table(
                    target, schema_name=schema, columns=names, records=rows
                )
                count += len(rows)
        finally:
            coming.cancel()
        return count

    async def _run(self, sql: str) -> None:
        await self._connection.exec_driver_sql(sql)


@asynccontextmanager
async def _geometries_as_bytes(connection: AsyncConnection) -> AsyncGenerator[Any]:
    """The driver's connection, which takes geometries as extended well-known binary."""
    schema = await connection.scalar(text(_POSTGIS))
    if schema is None:
        raise Denied("the database has no PostGIS: run `docflow setup`")
    raw = await connection.get_raw_connection()
    driver: Any = raw.driver_connection
    await driver.set_type_codec(
        "geometry", schema=schema, encoder=bytes, decoder=bytes, format="binary"
    )
    done = False
    try:
        yield driver
        done = True
    finally:
        if done:
            await driver.reset_type_codec("geometry", schema=schema)
        else:
            # Its state is not known, so the pool must not hand it out again.
            await connection.invalidate()


async def _done(connection: AsyncConnection, key: str) -> LoadReport | None:
    query = f"SELECT report::text FROM {GEO}.docflow_loads WHERE key = :key"  # noqa: S608 - our own
    found = await connection.scalar(text(query), {"key": key})
    return None if found is None else LoadReport.model_validate_json(found)


async def _definition(connection: AsyncConnection, name: str) -> VectorTable | None:
    there = await connection.scalar(
        text("SELECT to_regclass(:name) IS NOT NULL"), {"name": _table(name)}
    )
    if not there:
        return None
    found = await connection.scalar(
        text(f"SELECT definition::text FROM {GEO}.docflow_tables WHERE name = :name"),  # noqa: S608 - names are quoted
        {"name": name},
    )
    if found is None:
        raise RuleViolation(
            f"the table {GEO}.{name} exists and was not made by docflow; use another dataset"
        )
    return VectorTable.model_validate_json(found)


async def _count(connection: AsyncConnection, name: str) -> int:
    return await connection.scalar(text(f"SELECT count(*) FROM {_table(name)}")) or 0  # noqa: S608 - names are quoted


def _columns(table: VectorTable) -> str:
    own = "".join(f", {_quoted(each.name)} {_TYPES[each.type]}" for each in table.columns)
    geometry = f"{table.geometry.value}{'Z' if table.has_z else ''}"
    return f"fid bigint GENERATED BY DEFAULT AS IDENTITY{own}, geom geometry({geometry}, {SRID})"


def _rows(
    load: FeatureLoad, table: VectorTable, *, numbered: bool
) -> Iterator[list[tuple[Any, ...]]]:
    """Features as COPY takes them, with their numbers before them or without."""
    first = 1
    for columns, binary in incoming_features(load.features, load.table, table):
        own = [range(first, first + len(binary))] if numbered else []
        yield list(zip(*own, *columns, _ewkb(binary), strict=True))
        first += len(binary)


def _ewkb(binary: Sequence[bytes | None]) -> Iterator[bytes | None]:
    """The same geometries, with their system after the type."""
    heads: dict[bytes, bytes] = {}
    for wkb in binary:
        if wkb is None:
            yield None
            continue
        kind = wkb[: _HEAD.size]
        if (head := heads.get(kind)) is None:
            order, number = _HEAD.unpack(kind)
            head = heads[kind] = _HEAD.pack(order, number | _HAS_SYSTEM) + _SYSTEM
        yield head + wkb[_HEAD.size :]


def _table(name: str) -> str:
    return f"{GEO}.{_quoted(name)}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _listed(names: Sequence[str]) -> str:
    return "".join(f"{_quoted(name)}, " for name in names)
