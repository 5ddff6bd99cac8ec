"""What operations on batches use: their tables."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from activities.batches.store import SqlBatchStore


@asynccontextmanager
async def open_store(environment: Mapping[str, str]) -> AsyncGenerator["SqlBatchStore"]:
    """The tables of batches.

    Raises:
        SettingsError: `DATABASE_URL` is missing or wrong.
        SchemaBehind: The database waits for `docflow db upgrade`.
    """
    from activities.batches.store import SqlBatchStore
    from workers.shared.tables import open_tables

    async with open_tables(environment) as database:
        yield SqlBatchStore(database)
