"""Events that jobs and watches send: started as those that arrive are."""

from collections.abc import Mapping

from temporalio.client import Client
from temporalio.service import RPCError

from adapters.ports import Unavailable
from domain.errors import RuleViolation
from domain.transfers.queues import Queue
from workers.services.bodies import RefusedMessage
from workers.services.transfers.starts import TransferStarts

WAY_IN = "fire-event"


class StartedEvents:
    """Starts the runs of events, as `EventSender`.

    Args:
        client: Of the namespace.
        queues: Those that there are, by name.
        way_in: Where the events come from.
    """

    def __init__(self, client: Client, queues: Mapping[str, Queue], way_in: str = WAY_IN) -> None:
        self._starts = TransferStarts(client)
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
            raise Unavailable(f"Temporal does not take the event: {error.message}") from error
        return started.transfer_id
