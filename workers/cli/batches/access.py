"""What commands about batches use: tables, Temporal and AWS."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from contracts.batches import LARGEST_ID, BatchKey
from workers.cli.surroundings import Surroundings

if TYPE_CHECKING:
    from adapters.database.batches import SqlBatchStore
    from workers.batch_resources import BatchResources

CaseArgument = Annotated[int, typer.Argument(metavar="CASE", min=1, max=LARGEST_ID)]
BatchArgument = Annotated[int, typer.Argument(metavar="BATCH", min=1, max=LARGEST_ID)]


def key_of(case: int, batch: int) -> BatchKey:
    """The batch that two arguments name."""
    return BatchKey(case_id=case, batch_id=batch)


@asynccontextmanager
async def open_store(world: Surroundings) -> AsyncGenerator["SqlBatchStore"]:
    """The tables.

    Raises:
        SettingsError: `DATABASE_URL` is missing or makes no sense.
        SchemaBehind: The database waits for `docflow db upgrade`.
    """
    from adapters.database import open_database, require_current
    from adapters.database.batches import SqlBatchStore
    from workers.settings import DatabaseSettings

    async with open_database(DatabaseSettings.read(world.environment).url) as database:
        await require_current(database)
        yield SqlBatchStore(database)


@asynccontextmanager
async def open_cloud(world: Surroundings) -> AsyncGenerator["BatchResources"]:
    """Tables, Temporal and AWS.

    Raises:
        SettingsError: A setting is missing or makes no sense.
        TemporalUnreachable: Nobody answers.
    """
    from adapters.database import open_database
    from workers.batch_resources import open_batches
    from workers.batch_settings import BatchSettings
    from workers.connect import connect
    from workers.settings import DatabaseSettings

    settings = BatchSettings.read(world.environment)
    url = DatabaseSettings.read(world.environment).url
    async with (
        open_database(url) as database,
        open_batches(settings, database, await connect()) as (opened, _),
    ):
        yield opened
