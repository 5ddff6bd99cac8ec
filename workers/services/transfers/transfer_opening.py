"""The service of transfers over what a process has opened."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from adapters.database import Database
from adapters.database.transfers.store import SqlTransferStore
from workers.services.identity import OPERATOR, Identity
from workers.services.runs import TemporalRuns
from workers.services.transfers.service import TransferService
from workers.services.transfers.starts import TransferStarts
from workers.settings.transfers import queues_of

if TYPE_CHECKING:
    from temporalio.client import Client

    from workers.services.transfers.clocks import ClockService

_SECONDS_TO_ANSWER: Final = 5.0


def transfer_service(
    environment: Mapping[str, str], client: "Client", database: Database
) -> TransferService:
    """Put the service together.

    Raises:
        SettingsError: The file of queues is missing or wrong.
    """
    return TransferService(
        SqlTransferStore(database),
        TemporalRuns(client, environment, seconds_to_answer=_SECONDS_TO_ANSWER),
        TransferStarts(client),
        queues_of(environment),
    )


@asynccontextmanager
async def open_transfers(
    environment: Mapping[str, str], user: str | None
) -> AsyncGenerator[tuple[TransferService, Identity]]:
    """The service for an operator at a terminal: who has the settings may do everything.

    Raises:
        SettingsError: A setting is missing or wrong.
        SchemaBehind: The database waits for `docflow db upgrade`.
        TemporalUnreachable: Temporal does not answer.
    """
    from workers.connect import connect
    from workers.resources.tables import open_tables

    async with open_tables(environment) as database:
        service = transfer_service(environment, await connect(), database)
        yield service, Identity(user or "operator", (), frozenset({OPERATOR}))


@asynccontextmanager
async def open_clocks(environment: Mapping[str, str]) -> AsyncGenerator["ClockService"]:
    """Watches and expected files, for an operator at a terminal.

    Raises:
        SettingsError: A setting is missing or wrong.
        SchemaBehind: The database waits for `docflow db upgrade`.
        TemporalUnreachable: Temporal does not answer.
    """
    from adapters.database.transfers.expected import SqlExpectedStore
    from adapters.database.transfers.watches import SqlWatchStore
    from workers.connect import connect
    from workers.resources.tables import open_tables
    from workers.services.transfers.clocks import ClockService
    from workers.settings.errors import SettingsError
    from workers.settings.transfer_watches import WATCHES, clocks_of

    clocks = clocks_of(environment)
    if clocks is None:
        raise SettingsError(f"{WATCHES} is not set: no watch and nothing expected is declared")
    async with open_tables(environment) as database:
        stores = SqlWatchStore(database), SqlExpectedStore(database)
        yield ClockService(await connect(), clocks, *stores)
