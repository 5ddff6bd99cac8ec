"""The record of rejected messages, opened for a command."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

from adapters.database.rejected import SqlRejectedMessages
from workers.resources.tables import open_tables


@asynccontextmanager
async def open_rejected(environment: Mapping[str, str]) -> AsyncGenerator[SqlRejectedMessages]:
    """The record in the database.

    Raises:
        SettingsError: `DATABASE_URL` is missing or wrong.
        SchemaBehind: The database waits for `docflow db upgrade`.
    """
    async with open_tables(environment) as database:
        yield SqlRejectedMessages(database)
