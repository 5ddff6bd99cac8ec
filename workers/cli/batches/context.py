"""What commands about batches use: tables, Temporal and AWS."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from contracts.batches import LARGEST_ID, BatchKey
from workers.cli.context import CliContext

if TYPE_CHECKING:
    from workers.resources.batches import BatchResources
    from workers.services.batches.runs import BatchRuns

CaseArgument = Annotated[
    int, typer.Argument(metavar="CASE", min=1, max=LARGEST_ID, help="Number of the case.")
]
BatchArgument = Annotated[
    int, typer.Argument(metavar="BATCH", min=1, max=LARGEST_ID, help="Number of the batch.")
]


def key_of(case: int, batch: int) -> BatchKey:
    """The batch that two arguments name."""
    return BatchKey(case_id=case, batch_id=batch)


def name_of(key: BatchKey) -> str:
    """How commands name a batch."""
    return f"{key.case_id} {key.batch_id}"


async def open_runs(cli: CliContext) -> "BatchRuns":
    """Temporal.

    Raises:
        TemporalUnreachable: Temporal does not answer.
    """
    from workers.services.batches import runs

    return await runs.open_runs(cli.environment)


@asynccontextmanager
async def open_cloud(cli: CliContext) -> AsyncGenerator["BatchResources"]:
    """Tables, Temporal and AWS.

    Raises:
        SettingsError: A setting is missing or wrong.
        SchemaBehind: The database waits for `docflow db upgrade`.
        TemporalUnreachable: Temporal does not answer.
    """
    from workers.connect import connect
    from workers.resources.batches import open_batches
    from workers.resources.tables import open_tables
    from workers.settings.batches import BatchSettings

    settings = BatchSettings.read(cli.environment)
    async with (
        open_tables(cli.environment) as database,
        open_batches(settings, database, await connect()) as opened,
    ):
        yield opened
