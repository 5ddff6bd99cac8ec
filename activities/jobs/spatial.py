"""What spatial data need of a PostgreSQL database: PostGIS, the schemas `geo` and `pgstac`.

The SQL of pgstac comes from the package `pypgstac`, whose files are read and which is never
imported: it brings parts under the GPL.
"""

import re
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import asyncpg
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.engine import Database
from adapters.ports.errors import Denied, PortError

EXTENSIONS: Final = ("postgis", "btree_gist")
GEO: Final = "geo"
"""Schema of the tables of vector data."""
OLDEST: Final = (0, 9, 8)
"""Release of pgstac that docflow works with, or a later one."""
_PACKAGE: Final = "pypgstac"
_LOCK: Final = 0x646F63676973
"""Advisory lock under which one process at a time makes what is missing."""
_TIMES: Final = ("created", "updated")
"""Properties that pgstac compares as texts, and so not with a time, unless they are queryables."""
_TELL_TIMES: Final = """
SET LOCAL search_path TO pgstac, public;
INSERT INTO queryables (name, definition, property_wrapper)
SELECT name, '{"type": "string", "format": "date-time"}', 'to_tstz'
FROM unnest(ARRAY['created', 'updated']) AS name
WHERE name NOT IN (SELECT known.name FROM queryables AS known);
"""
_MAINTENANCE: Final = """
SET LOCAL search_path TO pgstac, public;
SELECT run_queued_queries_intransaction();
"""
_MISSING_FILE: Final = (
    asyncpg.exceptions.FeatureNotSupportedError,
    asyncpg.exceptions.UndefinedFileError,
)


class PgstacMissing(PortError):
    """The database has no usable pgstac, and this installation has not the SQL that makes it."""


@dataclass(frozen=True, slots=True)
class Spatial:
    """What a database has of it."""

    extensions: Mapping[str, str]
    """Those that are installed, with their versions."""
    available: frozenset[str]
    """Those that the server could install."""
    geo: bool
    pgstac: str | None
    """Release; None: there is no such schema."""
    times: bool = False
    """Whether pgstac knows which properties are times."""

    @property
    def is_ready(self) -> bool:
        """Whether nothing is missing."""
        return (
            all(name in self.extensions for name in EXTENSIONS)
            and self.geo
            and self.pgstac is not None
            and is_supported(self.pgstac)
            and self.times
        )


async def spatial(database: Database) -> Spatial:
    """See what a PostgreSQL database has.

    Raises:
        Unavailable: The database is unavailable or busy.
    """
    async with database.reading() as connection:
        return await _spatial(connection)


async def make_spatial(database: Database) -> Spatial:
    """Make what is missing, all or nothing; what is there stays as it is.

    Any number of processes may do it at once.

    Returns:
        What the database has now.

    Raises:
        Denied: The server has no PostGIS, or its user may not make extensions, roles or schemas.
        PgstacMissing: pgstac is missing or too old, and so is the package `pypgstac`.
        Unavailable: The database is unavailable or busy.
    """
    async with database.transaction() as connection:
        await connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        before = await _spatial(connection)
        for name in EXTENSIONS:
            if name not in before.extensions:
                await _make_extension(connection, name, before.available)
        if not before.geo:
            await _run(connection, f"CREATE SCHEMA {GEO}", f"make the schema {GEO}")
        if before.pgstac is None or not is_supported(before.pgstac):
            await _migrate(connection, before.pgstac)
    # A migration queues maintenance of partitions, which would hold its locks to its end.
    async with database.transaction() as connection:
        await _run(connection, _MAINTENANCE, "finish the migration of pgstac")
        if not (await _spatial(connection)).times:
            await _run(connection, _TELL_TIMES, "add to the queryables of pgstac")
        return await _spatial(connection)


def is_supported(version: str) -> bool:
    """Whether docflow works with a release of pgstac."""
    return _numbers(version) >= OLDEST


def bundled() -> str | None:
    """Release of pgstac whose SQL this installation has; None: it has none."""
    found = _package()
    return None if found is None else found.version


async def _spatial(connection: AsyncConnection) -> Spatial:
    asked = text(
        "SELECT name, installed_version FROM pg_available_extensions WHERE name = ANY(:names)"
    )
    found = (await connection.execute(asked, {"names": list(EXTENSIONS)})).all()
    schemas = text(
        "SELECT to_regnamespace(:geo) IS NOT NULL, to_regclass('pgstac.migrations') IS NOT NULL"
    )
    geo, pgstac = (await connection.execute(schemas, {"geo": GEO})).one()
    version, times = None, False
    if pgstac:
        known = text("SELECT count(DISTINCT name) FROM pgstac.queryables WHERE name = ANY(:names)")
        times = (await connection.execute(known, {"names": list(_TIMES)})).scalar() == len(_TIMES)
        latest = (
            "SELECT version FROM pgstac.migrations ORDER BY datetime DESC, version DESC LIMIT 1"
        )
        version = (await connection.execute(text(latest))).scalar()
    return Spatial(
        extensions={name: installed for name, installed in found if installed is not None},
        available=frozenset(name for name, _ in found),
        geo=geo,
        pgstac=version,
        times=times,
    )


async def _make_extension(
    connection: AsyncConnection, name: str, available: frozenset[str]
) -> None:
    if name not in available:
        raise Denied(
            f"the database server has no extension {name}: install it there "
            "(Debian: apt-get install postgresql-15-postgis-3)"
        )
    await _run(connection, f"CREATE EXTENSION IF NOT EXISTS {name}", f"make the extension {name}")


async def _migrate(connection: AsyncConnection, present: str | None) -> None:
    package = _package()
    if package is None:
        raise PgstacMissing(
            "the SQL of pgstac is not installed: install docflow[pgstac], "
            "or run `pypgstac migrate` from elsewhere"
        )
    folder = Path(str(package.locate_file(f"{_PACKAGE}/migrations")))
    for file in migration_path(
        [path.name for path in folder.glob("*.sql")], present, package.version
    ):
        await _run(connection, _without_transaction((folder / file).read_text()), f"apply {file}")
    # The scripts leave their role and search path behind.
    await _run(connection, "RESET ROLE; RESET search_path", "leave pgstac's role")


async def _run(connection: AsyncConnection, script: str, what: str) -> None:
    """Execute a script of several statements within the transaction.

    Raises:
        Denied: The user may not.
    """
    raw = await connection.get_raw_connection()
    driver: Any = raw.driver_connection
    try:
        await driver.execute(script)
    except asyncpg.InsufficientPrivilegeError as error:
        raise Denied(f"the database does not let us {what}: {error}") from error
    except _MISSING_FILE as error:
        raise Denied(f"the database server cannot {what}: {error}") from error


def migration_path(files: Sequence[str], present: str | None, wanted: str) -> Sequence[str]:
    """Names of the scripts that lead from one release of pgstac to another, in order.

    Args:
        files: `pgstac.0.10.0.sql` makes a release, `pgstac.0.9.9-0.10.0.sql` leads to one.
        present: Release of the database; None: it has none.
        wanted: Release to reach.

    Raises:
        PgstacMissing: No scripts lead there.
    """
    if present is None:
        return [f"pgstac.{wanted}.sql"]
    steps: dict[str, list[str]] = defaultdict(list)
    for name in files:
        before, dash, after = name.removeprefix("pgstac.").removesuffix(".sql").partition("-")
        if dash:
            steps[before].append(after)
    paths = deque([[present]])
    seen = {present}
    while paths:
        path = paths.popleft()
        if path[-1] == wanted:
            return [f"pgstac.{a}-{b}.sql" for a, b in pairwise(path)]
        for following in steps[path[-1]]:
            if following not in seen:
                seen.add(following)
                paths.append([*path, following])
    raise PgstacMissing(f"no migration leads from pgstac {present} to {wanted}")


def _without_transaction(script: str) -> str:
    """The script for a transaction that is already open."""
    begun, count = re.subn(r"\A\s*BEGIN\s*;", "", script, flags=re.IGNORECASE)
    return re.sub(r"COMMIT\s*;\s*\Z", "", begun, flags=re.IGNORECASE) if count else script


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def _package() -> Distribution | None:
    try:
        return distribution(_PACKAGE)
    except PackageNotFoundError:
        return None
