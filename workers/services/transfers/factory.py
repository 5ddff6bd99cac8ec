"""The services of transfers over what a process has opened."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from adapters.database import Database
from adapters.database.rejected import SqlRejectedMessages
from adapters.database.transfers.partners import SqlPartnerStore
from adapters.database.transfers.store import SqlTransferStore
from adapters.ports import RejectedMessages
from adapters.ports.transfers import TransferStore
from domain.transfers.queues import Queue
from workers.services.identity import OPERATOR, Identity
from workers.services.runs import TemporalRuns
from workers.services.transfers.intake import TransferIntake
from workers.services.transfers.routes import RouteService
from workers.services.transfers.service import TransferService
from workers.services.transfers.starts import TransferStarts
from workers.settings.transfers import queues_of

if TYPE_CHECKING:
    from temporalio.client import Client

    from adapters.ports import Blobs
    from workers.services.transfers.answers import TransferAnswers
    from workers.services.transfers.clocks import ClockService
    from workers.services.transfers.overview import TransferPageService
    from workers.services.transfers.parked_groups import ParkedGroups
    from workers.services.transfers.redrive import Redrives

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
        _runs(environment, client),
        TransferStarts(client),
        queues_of(environment),
        SqlRejectedMessages(database),
    )


def transfer_page_service(
    environment: Mapping[str, str],
    client: "Client",
    database: Database,
    service: TransferService,
    blobs: Callable[[], "Blobs"],
) -> "TransferPageService":
    """What the page of one transfer asks.

    Args:
        environment: For links into Temporal's Web UI.
        client: Of Temporal.
        database: With the rows.
        service: Of transfers.
        blobs: Opens what holds receipts.
    """
    from workers.services.transfers.overview import TransferPageService
    from workers.services.transfers.redrive import Redrives
    from workers.services.transfers.stored_receipts import StoredReceipts

    store = SqlTransferStore(database)
    return TransferPageService(
        service,
        store,
        _runs(environment, client),
        StoredReceipts(blobs),
        lambda: Redrives(service, store, TransferStarts(client), client, blobs),
        _answers(environment, client),
    )


def parked_groups(
    environment: Mapping[str, str], client: "Client", service: TransferService
) -> "ParkedGroups":
    """What answers transfers that wait for one cause.

    Args:
        environment: For links into Temporal's Web UI.
        client: Of Temporal.
        service: Of transfers.
    """
    from workers.services.transfers.parked_groups import ParkedGroups

    return ParkedGroups(service, _answers(environment, client))


def _answers(environment: Mapping[str, str], client: "Client") -> "TransferAnswers":
    from workers.services.transfers.answers import TransferAnswers

    return TransferAnswers(_runs(environment, client))


def _runs(environment: Mapping[str, str], client: "Client") -> TemporalRuns:
    return TemporalRuns(client, environment, seconds_to_answer=_SECONDS_TO_ANSWER)


def intake_of(
    client: "Client",
    rejected: RejectedMessages,
    queues: Mapping[str, Queue],
    known: TransferStore,
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
    environment: Mapping[str, str], user: str | None
) -> AsyncGenerator[tuple[TransferService, Identity]]:
    """The service for an operator at a terminal: who has the settings may do everything.

    Raises:
        SettingsError: A setting is missing or wrong.
        SchemaBehind: The database waits for `docflow db upgrade`.
        TemporalUnreachable: Temporal does not answer.
    """
    async with _opened(environment) as (client, database):
        yield transfer_service(environment, client, database), _operator(user)


@asynccontextmanager
async def open_groups(
    environment: Mapping[str, str], user: str | None
) -> AsyncGenerator[tuple["ParkedGroups", Identity]]:
    """What answers transfers that wait for one cause, for an operator at a terminal.

    Raises:
        SettingsError: A setting is missing or wrong.
        SchemaBehind: The database waits for `docflow db upgrade`.
        TemporalUnreachable: Temporal does not answer.
    """
    async with _opened(environment) as (client, database):
        service = transfer_service(environment, client, database)
        yield parked_groups(environment, client, service), _operator(user)


@asynccontextmanager
async def open_redrives(
    environment: Mapping[str, str], user: str | None
) -> AsyncGenerator[tuple["Redrives", Identity]]:
    """What starts failed transfers anew, for an operator at a terminal.

    Raises:
        SettingsError: A setting is missing or wrong.
        SchemaBehind: The database waits for `docflow db upgrade`.
        TemporalUnreachable: Temporal does not answer.
    """
    from workers.resources.blobs import open_blobs
    from workers.services.transfers.redrive import Redrives
    from workers.settings.blobs import BlobSettings

    async with _opened(environment) as (client, database):
        yield (
            Redrives(
                transfer_service(environment, client, database),
                SqlTransferStore(database),
                TransferStarts(client),
                client,
                lambda: open_blobs(BlobSettings.read(environment)),
            ),
            _operator(user),
        )


@asynccontextmanager
async def open_routes(
    environment: Mapping[str, str], user: str | None = None
) -> AsyncGenerator[tuple[RouteService, Identity]]:
    """The service of routes for an operator at a terminal.

    Args:
        environment: Settings.
        user: Who asks, for the trail.

    Raises:
        SettingsError: A setting is missing or wrong.
        SchemaBehind: The database waits for `docflow db upgrade`.
    """
    from workers.resources.tables import open_tables
    from workers.resources.transfers import route_store

    queues = tuple(queues_of(environment))
    async with open_tables(environment) as database:
        store = route_store(environment, database)
        yield RouteService(store, SqlTransferStore(database), queues), _operator(user)


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


@asynccontextmanager
async def _opened(
    environment: Mapping[str, str],
) -> AsyncGenerator[tuple["Client", Database]]:
    from workers.connect import connect
    from workers.resources.tables import open_tables

    async with open_tables(environment) as database:
        yield await connect(), database


def _operator(user: str | None) -> Identity:
    return Identity(user or "operator", (), frozenset({OPERATOR}))
