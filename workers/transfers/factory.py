"""The services of transfers over what a process has opened."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from activities.transfers.operators_files import Queue
from activities.transfers.partner_store import SqlPartnerStore
from activities.transfers.store import SqlTransferStore
from adapters.database.engine import Database
from adapters.database.records import SqlRejectedMessages
from adapters.ports.records import RejectedMessages
from workers.shared.services.quotas import Quotas
from workers.shared.services.runs import TemporalRuns
from workers.transfers.service import TransferService
from workers.transfers.settings import queues_of
from workers.transfers.starts import TransferIntake, TransferStarts

if TYPE_CHECKING:
    from temporalio.client import Client


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
        Quotas.read(environment, database),
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
