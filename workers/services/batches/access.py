"""What operations on batches use: their tables."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adapters.database.batches.store import SqlBatchStore
    from adapters.ports.leases import LeaseWait
    from contracts.batches import BatchKey


@asynccontextmanager
async def open_store(environment: Mapping[str, str]) -> AsyncGenerator["SqlBatchStore"]:
    """The tables of batches.

    Raises:
        SettingsError: `DATABASE_URL` is missing or wrong.
        SchemaBehind: The database waits for `docflow db upgrade`.
    """
    from adapters.database.batches.store import SqlBatchStore
    from workers.resources.tables import open_tables

    async with open_tables(environment) as database:
        yield SqlBatchStore(database)


async def lease_wait(environment: Mapping[str, str], key: "BatchKey") -> "LeaseWait | None":
    """What of the account a batch waits for, and its position; None: nothing.

    Raises:
        SettingsError: `DATABASE_URL` is missing or wrong.
        SchemaBehind: The database waits for `docflow db upgrade`.
    """
    from adapters.database.leases import SqlLeases
    from workers.resources.tables import open_tables

    async with open_tables(environment) as database:
        return await SqlLeases(database).waits(key.workflow_id)
