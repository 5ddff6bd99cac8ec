"""Events that jobs and watches send: started as those that arrive are."""

from collections.abc import Mapping
from typing import Final

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from adapters.ports import NotYet, Unavailable
from adapters.ports.transfers import TransferStore
from contracts.transfers import file_job_id
from domain.errors import RuleViolation
from domain.transfers.queues import Queue
from workers.services.bodies import RefusedMessage
from workers.services.duplicates import earlier_run
from workers.services.intake import PASSING
from workers.services.transfers.starts import TransferStarts

WAY_IN = "fire-event"
_AGAIN_SECONDS: Final = 5.0
"""After which an event is sent again that Temporal was too slow for."""


class StartedEvents:
    """Starts the runs of events, as `EventSender`, and knows those of jobs, as `StartedJobs`.

    Args:
        client: Of the namespace.
        queues: Those that there are, by name.
        known: Rows of the events that came before.
        way_in: Where the events come from.
    """

    def __init__(
        self,
        client: Client,
        queues: Mapping[str, Queue],
        known: TransferStore,
        way_in: str = WAY_IN,
    ) -> None:
        self._client = client
        self._starts = TransferStarts(client, known=known)
        self._queues = queues
        self._way_in = way_in

    async def send(self, body: str, queue: str | None) -> str:
        """Start what an event starts; the same event is started once."""
        if queue is not None and queue not in self._queues:
            raise RuleViolation(
                f"there is no queue {queue}; there are {', '.join(sorted(self._queues))}"
            )
        priority = None if queue is None else self._queues[queue].priority
        try:
            started = await self._starts.start(body, self._way_in, queue, priority)
        except RefusedMessage as error:
            raise RuleViolation(str(error)) from error
        except RPCError as error:
            reason = f"Temporal does not take the event: {error.message}"
            if error.status in PASSING:
                # No failure of the event: it is sent again, and no retry is used up.
                raise NotYet(reason, _AGAIN_SECONDS) from error
            raise Unavailable(reason) from error
        return started.transfer_id

    async def job_digest(self, transfer_id: str) -> str | None:
        """Digest of the event that the job of a transfer was started by; None: it is not known."""
        try:
            return (await earlier_run(self._client, file_job_id(transfer_id))).digest
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return None
            raise Unavailable(f"Temporal does not answer: {error.message}") from error
