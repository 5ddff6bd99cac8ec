"""Bringing a database to the schema of this release, and refusing one that is not there."""

from pathlib import Path
from typing import Final

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, func, select

from adapters.database.engine import Database, open_database

_MIGRATIONS: Final = Path(__file__).parent / "migrations"
_UPGRADE_LOCK: Final = 0x646F63666C6F77
"""Advisory lock of PostgreSQL that makes concurrent upgrades take turns."""


class SchemaBehind(Exception):
    """The database does not have the schema of this release."""


async def upgrade(url: str) -> None:
    """Apply every migration the database lacks, all of them or none.

    Raises:
        Unavailable: The database is unavailable or busy.
    """
    async with open_database(url) as database, database.transaction() as connection:
        if database.dialect == "postgresql":
            await connection.execute(select(func.pg_advisory_xact_lock(_UPGRADE_LOCK)))
        await connection.run_sync(_upgrade)


async def current(url: str) -> str | None:
    """Revision of the database; None when it is empty.

    Raises:
        Unavailable: The database is unavailable or busy.
    """
    async with open_database(url) as database:
        return await _revision(database)


async def require_current(database: Database) -> None:
    """Check that the database has the schema of this release.

    Raises:
        SchemaBehind: It has not; the message says what to do.
        Unavailable: The database is unavailable or busy.
    """
    scripts = ScriptDirectory.from_config(_config())
    revision = await _revision(database)
    if revision == scripts.get_current_head():
        return
    if revision is None:
        raise SchemaBehind("the database is empty: run `docflow db upgrade`")
    if revision in {script.revision for script in scripts.walk_revisions()}:
        raise SchemaBehind(
            f"the database schema is behind (at {revision}): run `docflow db upgrade`"
        )
    raise SchemaBehind(
        f"the database schema ({revision}) is not of this docflow: install the newer docflow "
        "that upgraded it"
    )


async def _revision(database: Database) -> str | None:
    async with database.reading() as connection:
        return await connection.run_sync(
            lambda sync: MigrationContext.configure(sync).get_current_revision()
        )


def _upgrade(connection: Connection) -> None:
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
