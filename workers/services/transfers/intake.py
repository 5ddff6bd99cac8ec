"""The one entry point of events, whatever queue, hub or host they come through."""

import logging
from typing import Final

from temporalio.client import Client
from temporalio.service import RPCError

from adapters.ports import PortError, RejectedMessages
from adapters.ports.transfers import TransferStore
from contracts.transfers import EVENT_BYTES
from domain.transfers.queues import Queue
from workers.services.bodies import RefusedMessage
from workers.services.intake import both_answer, given_back, refuse
from workers.services.transfers.starts import TransferStarts
from workers.services.verdicts import (
    INVALID_MESSAGE,
    NOT_ACCEPTED,
    Abandon,
    DeadLetter,
    Settle,
    Verdict,
)

logger = logging.getLogger(__name__)

MOST_DELIVERIES: Final = 5
"""Neither storage queues nor event hubs set a message aside after so many."""
LOUD_FROM_DELIVERY: Final = MOST_DELIVERIES - 1
"""From here on an operator should look."""


class TransferIntake:
    """Turns the body of a message into a started run, or returns why not.

    Any number of calls may run at once.

    Args:
        client: Of Temporal.
        rejected: Keeps messages that can never be accepted.
        way_in: Name of the queue or hub, for rows and that record.
        queue: Its messages are routed already, to this queue; None: they are routed by the rules.
        known: Rows of the events that came before; None: only what Temporal has is compared.
    """

    def __init__(
        self,
        client: Client,
        rejected: RejectedMessages,
        *,
        way_in: str,
        queue: Queue | None = None,
        known: TransferStore | None = None,
    ) -> None:
        self._client = client
        self._starts = TransferStarts(client, known=known)
        self._rejected = rejected
        self._way_in = way_in
        self._queue = queue

    async def accept(self, raw: bytes, delivery_count: int, message_id: str | None) -> Verdict:
        """Start the run of a message.

        May be called again with the same message: one event is one run. Another event of the same
        source and id is refused; what is not an event is recorded by its run.

        Args:
            raw: The body as it came.
            delivery_count: Deliveries before this one; 0 the first time.
            message_id: As the queue or its sender set it.
        """
        if delivery_count + 1 >= LOUD_FROM_DELIVERY:
            logger.error(
                "message %r of %r is at delivery %d: it will soon be set aside; find out why it "
                "cannot be accepted",
                message_id,
                self._way_in,
                delivery_count + 1,
            )
        try:
            return await self._start(raw)
        except RefusedMessage as refused:
            return await refuse(self._rejected, self._way_in, message_id, refused, raw)

    async def give_up(
        self, raw: bytes, delivery_count: int, message_id: str | None, reason: str
    ) -> DeadLetter | Abandon:
        """Set a message aside whose deliveries are used up; give it back before.

        To be asked only where everything that a start needs has answered meanwhile: an outage uses
        up no delivery.

        Args:
            raw: The body as it came.
            delivery_count: Deliveries before this one.
            message_id: As the queue or its sender set it.
            reason: Why it is not accepted.
        """
        if delivery_count + 1 < MOST_DELIVERIES:
            return Abandon(reason)
        refused = RefusedMessage(
            NOT_ACCEPTED,
            f"not accepted in {delivery_count + 1} deliveries, although everything that docflow "
            f"needs answers: {reason}",
        )
        return await refuse(self._rejected, self._way_in, message_id, refused, raw)

    async def ready(self) -> bool:
        """Whether Temporal and the record of rejected messages answer."""
        return await both_answer(self._client, self._rejected)

    async def _start(self, raw: bytes) -> Verdict:
        if len(raw) > EVENT_BYTES:
            raise RefusedMessage(
                INVALID_MESSAGE,
                f"the message has {len(raw):,} bytes; {EVENT_BYTES:,} are accepted",
            )
        queue = self._queue
        # What is not UTF-8 is no JSON either: its run says so.
        body = raw.decode("utf-8-sig", errors="backslashreplace")[:EVENT_BYTES]
        try:
            started = await self._starts.start(
                body, self._way_in, queue and queue.name, queue and queue.priority
            )
        except RPCError as error:
            verdict = given_back(error)
            logger.warning("an event of %r was not started: %s", self._way_in, error)
            return verdict
        except PortError as error:
            logger.warning("an event of %r was not started: %s", self._way_in, error)
            return Abandon(f"rows of transfers cannot be read: {error}")
        return Settle(started.workflow_id, duplicate=not started.created)
