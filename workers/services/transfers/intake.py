"""The one entry point of events, whatever queue, hub or host they come through."""

import logging
from typing import Final

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from adapters.ports import RejectedMessages
from contracts.transfers import EVENT_BYTES
from domain.transfers.queues import Queue
from workers.services import search_attributes
from workers.services.bodies import RefusedMessage
from workers.services.intake import both_answer, given_back, refuse
from workers.services.transfers.starts import TransferStarts
from workers.services.verdicts import INVALID_MESSAGE, NOT_ACCEPTED, Abandon, Settle, Verdict

logger = logging.getLogger(__name__)

DELIVERIES: Final = 5
"""So often a message is tried that Temporal refuses; then it is set aside."""
_PASSES: Final = frozenset(
    {
        RPCStatusCode.ABORTED,
        RPCStatusCode.CANCELLED,
        RPCStatusCode.DEADLINE_EXCEEDED,
        RPCStatusCode.NOT_FOUND,
        RPCStatusCode.PERMISSION_DENIED,
        RPCStatusCode.RESOURCE_EXHAUSTED,
        RPCStatusCode.UNAUTHENTICATED,
        RPCStatusCode.UNAVAILABLE,
    }
)
"""Not for the message's sake: Temporal is down, busy, or does not let us in."""


class TransferIntake:
    """Turns the body of a message into a started run, or returns why not.

    Any number of calls may run at once.

    Args:
        client: Of Temporal.
        rejected: Keeps messages that can never be accepted.
        way_in: Name of the queue or hub, for rows and that record.
        queue: Its messages are routed already, to this queue; None: they are routed by the rules.
    """

    def __init__(
        self,
        client: Client,
        rejected: RejectedMessages,
        *,
        way_in: str,
        queue: Queue | None = None,
    ) -> None:
        self._client = client
        self._starts = TransferStarts(client)
        self._rejected = rejected
        self._way_in = way_in
        self._queue = queue

    async def accept(self, raw: bytes, delivery_count: int, message_id: str | None) -> Verdict:
        """Start the run of a message.

        May be called again with the same message: one event is one run. Another event of the same
        source and id is refused; what is no event is recorded by its run. What Temporal refuses
        for the message's own sake is recorded and set aside at its fifth delivery.

        Args:
            raw: The body as it came.
            delivery_count: Deliveries before this one; 0 the first time.
            message_id: As the queue or its sender set it.
        """
        try:
            return await self._start(raw, delivery_count, message_id)
        except RefusedMessage as refused:
            return await refuse(self._rejected, self._way_in, message_id, refused, raw)

    async def ready(self) -> bool:
        """Whether Temporal and the record of rejected messages answer."""
        return await both_answer(self._client, self._rejected)

    async def _start(self, raw: bytes, delivery_count: int, message_id: str | None) -> Verdict:
        if len(raw) > EVENT_BYTES:
            raise RefusedMessage(
                INVALID_MESSAGE,
                f"the message has {len(raw):,} bytes; {EVENT_BYTES:,} are accepted",
            )
        queue = self._queue
        # What is no UTF-8 is no JSON either: its run says so.
        body = raw.decode("utf-8-sig", errors="backslashreplace")[:EVENT_BYTES]
        try:
            started = await self._starts.start(
                body, self._way_in, queue and queue.name, queue and queue.priority
            )
        except RPCError as error:
            verdict = given_back(error)
            self._warn(verdict, delivery_count, message_id)
            if delivery_count + 1 >= DELIVERIES and not _passes(error):
                raise RefusedMessage(
                    NOT_ACCEPTED, f"not accepted at {DELIVERIES} deliveries: {verdict.reason}"
                ) from error
            return verdict
        return Settle(started.workflow_id, duplicate=not started.created)

    def _warn(self, verdict: Abandon, delivery_count: int, message_id: str | None) -> None:
        is_late = delivery_count + 2 >= DELIVERIES
        logger.log(
            logging.ERROR if is_late else logging.WARNING,
            "message %r of %r was not started at delivery %d: %s",
            message_id,
            self._way_in,
            delivery_count + 1,
            verdict.reason,
        )


def _passes(error: RPCError) -> bool:
    """Whether a start that was refused may be accepted later, by itself or by `docflow setup`."""
    return error.status in _PASSES or search_attributes.is_refusal(error)
