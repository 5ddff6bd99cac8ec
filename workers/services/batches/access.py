"""What operations on batches use: their tables."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adapters.database import Database
    from adapters.database.batches import SqlBatchStore


@asynccontextmanager
async def open_tables(environment: Mapping[str, str]) -> AsyncGenerator["Database"]:
    """The database.

    Raises:
        SettingsError: `DATABASE_URL` is missing or wrong.
        SchemaBehind: The database waits for `docflow db upgrade`.
    """
    from adapters.database import open_database, require_current
    from workers.settings.common import DatabaseSettings

    async with open_database(DatabaseSettings.read(environment).url) as database:
        await require_current(database)
        yield database


@asynccontextmanager
async def open_store(environment: Mapping[str, str]) -> AsyncGenerator["SqlBatchStore"]:
    """The tables of batches.

    Raises:
        SettingsError: `DATABASE_URL` is missing or wrong.
        SchemaBehind: The database waits for `docflow db upgrade`.
    """
    from adapters.database.batches import SqlBatchStore

    async with open_tables(environment) as database:
        yield SqlBatchStore(database)
