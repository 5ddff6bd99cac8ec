"""Bringing a database to the schema of this release, and refusing one that is not there.

The countries that the schema comes with, as they were when it was made.

Migrations read them from a file, so that every database has the same ones, whenever it is made.
"""

import json
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Column, Connection, MetaData, String, Table, func, inspect, select

from adapters.database.engine import Database, DatabaseOptions, open_database
from adapters.database.errors import refused_at
from adapters.ports.errors import PortError

MIGRATIONS: Final = Path(__file__).parent / "migrations"
_REVISION: Final = Table("alembic_version", MetaData(), Column("version_num", String(32)))
"""Where Alembic keeps the revision. It is read without Alembic, which takes a fifth of a second to
load, at every command and process that only has to know whether the schema is current."""
_UPGRADE_LOCK: Final = 0x646F63666C6F77
"""Advisory lock that makes concurrent upgrades take turns."""


class SchemaBehind(PortError):
    """The database does not have the schema of this release."""


class SchemaUnknown(SchemaBehind):
    """Its schema is of another release than this one and those before it."""


async def upgrade(url: str, options: DatabaseOptions | None = None) -> str | None:
    """Apply every migration the database lacks, all of them or none.

    Returns:
        The revision before; None when the database was empty.

    Raises:
        Denied: There is no such database, or it refuses us.
        Unavailable: The database is unavailable or busy.
    """
    async with open_database(url, options) as database:
        with refused_at(database.place):
            async with database.transaction() as connection:
                await connection.execute(select(func.pg_advisory_xact_lock(_UPGRADE_LOCK)))
                before = await connection.run_sync(_revision_of)
                await connection.run_sync(_upgrade)
                return before


async def current(url: str, options: DatabaseOptions | None = None) -> str | None:
    """Revision of the database; None when it is empty.

    Raises:
        Denied: There is no such database, or it refuses us.
        Unavailable: The database is unavailable or busy.
    """
    async with open_database(url, options) as database:
        return await _revision(database)


async def require_current(database: Database) -> None:
    """Check that the database has the schema of this release.

    Raises:
        Denied: There is no such database, or it refuses us.
        SchemaBehind: It has not; the message says what to do.
        SchemaUnknown: It has one that no upgrade of this release leads from.
        Unavailable: The database is unavailable or busy.
    """
    known = revisions()
    revision = await _revision(database)
    if revision == known[-1]:
        return
    if revision is None:
        raise SchemaBehind("the database is empty: run `docflow db upgrade`")
    if revision in known:
        raise SchemaBehind(
            f"the database schema is behind (at {revision}): run `docflow db upgrade`"
        )
    raise SchemaUnknown(
        f"the database schema ({revision}) is not of this docflow: install the newer docflow "
        "that upgraded it"
    )


def statements_of(file: str) -> list[str]:
    """SQL that stands beside the migrations, statement by statement; `;;` is between them."""
    return (MIGRATIONS / "versions" / file).read_text(encoding="utf-8").split("\n;;\n")


def revisions() -> tuple[str, ...]:
    """The revisions that this release knows, the newest last; each file begins with its own."""
    files = (MIGRATIONS / "versions").glob("[0-9]*_*.py")
    return tuple(sorted(file.name.partition("_")[0] for file in files))


async def _revision(database: Database) -> str | None:
    with refused_at(database.place):
        async with database.reading() as connection:
            return await connection.run_sync(_revision_of)


def _revision_of(connection: Connection) -> str | None:
    if not inspect(connection).has_table(_REVISION.name):
        return None
    return connection.execute(select(_REVISION.c.version_num)).scalar()


def _upgrade(connection: Connection) -> None:
    # Only this needs Alembic.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


_FILE: Final = Path(__file__).with_name("migrations") / "countries.tsv"
"""ISO 3166-1: numeric code, two letters, three letters, and names, the usual one first."""


def country_rows() -> list[dict[str, Any]]:
    """Rows of the table `countries`; spellings are codes and English names, as JSON."""
    return [_row(*line.split("\t")) for line in _FILE.read_text(encoding="utf-8").splitlines()]


def _row(number: str, alpha2: str, alpha3: str, listed: str) -> dict[str, Any]:
    names = listed.split("|")
    return {
        "id": int(number),
        "alpha2": alpha2,
        "alpha3": alpha3,
        "name": names[0],
        "spellings": json.dumps([alpha2, alpha3, *names], ensure_ascii=False),
    }
