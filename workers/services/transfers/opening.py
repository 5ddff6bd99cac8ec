"""The services of transfers over what a process has opened."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from temporalio.client import Client

from adapters.database.transfers.store import SqlTransferStore
from adapters.ports import RejectedMessages
from domain.transfers.queues import Queue
from workers.resources.tables import open_tables
from workers.resources.transfers import route_store
from workers.services.identity import OPERATOR, Identity
from workers.services.transfers.intake import TransferIntake
from workers.services.transfers.routes import RouteService
from workers.services.verdicts import Verdict
from workers.settings.transfers import queues_of

Accept = Callable[[bytes, int, str | None], Awaitable[Verdict]]
"""Body, deliveries before this one, message id -> what becomes of the message."""


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
    queues = tuple(queues_of(environment))
    async with open_tables(environment) as database:
        store = route_store(environment, database)
        service = RouteService(store, SqlTransferStore(database), queues)
        yield service, Identity(user or "operator", (), frozenset({OPERATOR}))


def intake_of(
    client: Client, rejected: RejectedMessages, queues: Mapping[str, Queue]
) -> Callable[[str], tuple[Accept, Callable[[], Awaitable[bool]]]]:
    """What decides about the messages of a queue or hub, by its name.

    Args:
        client: Of Temporal.
        rejected: Keeps messages that can never be accepted.
        queues: Those whose messages are routed already; all others are routed by the rules.
    """

    def of(name: str) -> tuple[Accept, Callable[[], Awaitable[bool]]]:
        intake = TransferIntake(client, rejected, way_in=name, queue=queues.get(name))
        return intake.accept, intake.ready

    return of
