"""The services of transfers over what a process has opened."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from activities.transfers.operators_files import Queue
from activities.transfers.partner_store import SqlPartnerStore
from activities.transfers.store import SqlTransferStore
from adapters.database.engine import Database
from adapters.database.records import SqlRejectedMessages
from adapters.files.openpgp.keyring import GnuPg
from adapters.ports.records import RejectedMessages
from workers.shared.services.access import noted
from workers.shared.services.identity import Identity, local_identity
from workers.shared.services.runs import TemporalRuns
from workers.shared.tables import open_tables
from workers.transfers.partners import PartnerService
from workers.transfers.resources import partner_places, partner_secrets
from workers.transfers.routes import RouteService
from workers.transfers.service import TransferService
from workers.transfers.settings import queues_of
from workers.transfers.starts import TransferIntake, TransferStarts

if TYPE_CHECKING:
    from temporalio.client import Client

    from workers.transfers.redrive import Redrives
    from workers.transfers.watch_commands import ClockService


_SECONDS_TO_ANSWER: Final = 5.0


def transfer_service(
    environment: Mapping[str, str], client: "Client", database: Database
) -> TransferService:
    """The service of transfers.

    Raises:
        SettingsError: The file of queues is missing or wrong.
    """
    return TransferService(
        SqlTransferStore(database),
        SqlPartnerStore(database),
        TemporalRuns(client, environment, seconds_to_answer=_SECONDS_TO_ANSWER),
        TransferStarts(client),
        queues_of(environment),
        SqlRejectedMessages(database),
    )


def intake_of(
    client: "Client",
    rejected: RejectedMessages,
    queues: Mapping[str, Queue],
    known: SqlTransferStore,
) -> Callable[[str], TransferIntake]:
    """What decides about the messages of a queue or hub, by its name.

    Args:
        client: Of Temporal.
        rejected: Keeps messages that can never be accepted.
        queues: Those whose messages are routed already; all others are routed by the rules.
        known: Rows of the events that came before.
    """
    return lambda name: TransferIntake(
        client, rejected, way_in=name, queue=queues.get(name), known=known
    )


@asynccontextmanager
async def open_transfers(
    environment: Mapping[str, str],
) -> AsyncGenerator[tuple[TransferService, Identity]]:
    """The service for an operator at a terminal: who has the settings may do everything.

    Raises:
        SettingsError: A setting is missing or wrong.
        SchemaBehind: The database waits for `docflow db upgrade`.
        TemporalUnreachable: Temporal does not answer.
    """
    async with _opened(environment) as (client, database):
        yield transfer_service(environment, client, database), local_identity(environment)


@asynccontextmanager
async def open_redrives(
    environment: Mapping[str, str],
) -> AsyncGenerator[tuple["Redrives", Identity]]:
    """What starts failed transfers anew, for an operator at a terminal.

    Raises:
        SettingsError: A setting is missing or wrong.
        SchemaBehind: The database waits for `docflow db upgrade`.
        TemporalUnreachable: Temporal does not answer.
    """
    from workers.shared.settings.common import BlobSettings
    from workers.shared.tables import open_blobs
    from workers.transfers.redrive import Redrives

    async with _opened(environment) as (client, database):
        service = transfer_service(environment, client, database)
        yield (
            Redrives(service, lambda: open_blobs(BlobSettings.read(environment))),
            local_identity(environment),
        )


@asynccontextmanager
async def open_routes(
    environment: Mapping[str, str], *, action: str = "", object: str = ""
) -> AsyncGenerator[tuple[RouteService, Identity]]:
    """The service of routes for an operator at a terminal.

    Args:
        environment: Settings.
        action: The command that changes something, for the audit; empty: it changes nothing.
        object: What it changes.

    Raises:
        SettingsError: A setting is missing or wrong.
        SchemaBehind: The database waits for `docflow db upgrade`.
    """
    from workers.shared.tables import open_tables
    from workers.transfers.resources import route_store

    queues = tuple(queues_of(environment))
    async with (
        open_tables(environment) as database,
        noted(database, environment, action, object),
    ):
        store = route_store(environment, database)
        yield RouteService(store, SqlTransferStore(database), queues), local_identity(environment)


@asynccontextmanager
async def open_clocks(environment: Mapping[str, str]) -> AsyncGenerator["ClockService"]:
    """Watches and expected files, for an operator at a terminal.

    Raises:
        SettingsError: A setting is missing or wrong.
        SchemaBehind: The database waits for `docflow db upgrade`.
        TemporalUnreachable: Temporal does not answer.
    """
    from activities.transfers.watch_store import SqlExpectedStore, SqlWatchStore
    from workers.shared.connect import connect
    from workers.shared.errors import SettingsError
    from workers.shared.tables import open_tables
    from workers.transfers.settings import WATCHES, clocks_of
    from workers.transfers.watch_commands import ClockService

    clocks = clocks_of(environment)
    if clocks is None:
        raise SettingsError(f"{WATCHES} is not set: no watch and nothing expected is declared")
    async with open_tables(environment) as database:
        stores = SqlWatchStore(database), SqlExpectedStore(database)
        yield ClockService(await connect(), clocks, *stores)


@asynccontextmanager
async def _opened(
    environment: Mapping[str, str],
) -> AsyncGenerator[tuple["Client", Database]]:
    from workers.shared.connect import connect
    from workers.shared.services.accepted import noting_starts
    from workers.shared.tables import open_tables

    async with open_tables(environment) as database:
        yield noting_starts(await connect(), database), database


@asynccontextmanager
async def open_partners(
    environment: Mapping[str, str], *, action: str = "", object: str = ""
) -> AsyncGenerator[tuple[PartnerService, Identity]]:
    """The service, and who asks it: a user who may use the database may do everything.

    Args:
        environment: Settings.
        action: The command that changes something, for the audit; empty: it changes nothing.
        object: What it changes.

    Raises:
        SettingsError: A setting is missing or wrong.
        SchemaBehind: The database waits for `docflow db upgrade`.
    """
    secrets = partner_secrets(environment)
    async with (
        open_tables(environment) as database,
        noted(database, environment, action, object),
    ):
        store = SqlPartnerStore(database)
        places = partner_places(environment, store, secrets)
        service = PartnerService(store, places, GnuPg(secrets))
        yield service, local_identity(environment)
