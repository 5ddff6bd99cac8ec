"""The database alone, for what reads or writes tables and needs nothing else."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

from adapters.database import Database, open_database, require_current
from workers.settings.database import DatabaseSettings


@asynccontextmanager
async def open_tables(environment: Mapping[str, str]) -> AsyncGenerator[Database]:
    """The database that the settings name.

    Raises:
        SettingsError: `DATABASE_URL` is missing or wrong.
        SchemaBehind: The database waits for `docflow db upgrade`.
    """
    settings = DatabaseSettings.read(environment)
    async with open_database(settings.url, settings.options) as database:
        await require_current(database)
        yield database
