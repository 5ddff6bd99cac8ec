"""What the intakes of all pipelines share."""

import logging
import re
from datetime import timedelta
from typing import Final

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from adapters.ports import PortError, RejectedMessages, RejectionRecord
from workers.connect import reason_of
from workers.services import search_attributes
from workers.services.bodies import RefusedMessage
from workers.services.errors import TemporalUnavailable
from workers.services.verdicts import INVALID_MESSAGE, Abandon, DeadLetter

logger = logging.getLogger(__name__)

START_TIMEOUT: Final = timedelta(seconds=5)
LOUD_FROM_DELIVERY: Final = 8
"""A queue gives a message up after its tenth delivery: from here on an operator should look."""
SUMMARY_LIMIT: Final = 400
"""Bytes of a static summary that the server takes."""

PASSING: Final = frozenset(
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
"""No message is the reason: Temporal is down, busy, or does not let us in."""
_TOO_BIG = re.compile(r"exceeds|too large|too long|limit", re.IGNORECASE)


def given_back(error: RPCError) -> Abandon:
    """The verdict on a message that Temporal did not take.

    Raises:
        RefusedMessage: It never will: the message is too big.
    """
    if search_attributes.is_refusal(error):
        return Abandon(f"Temporal: {error.message}; run `docflow setup`")
    if error.status is RPCStatusCode.INVALID_ARGUMENT and _TOO_BIG.search(error.message):
        raise RefusedMessage(
            INVALID_MESSAGE, f"Temporal does not take the message: {error.message}"
        ) from error
    reason = f"Temporal: {error.status.name}: {reason_of(error)}"
    return Abandon(reason, passes=error.status in PASSING)


async def refuse(
    rejected: RejectionRecord,
    queue: str,
    message_id: str | None,
    refused: RefusedMessage,
    raw: bytes,
) -> DeadLetter | Abandon:
    """Record a message that can never be accepted.

    Returns:
        Where it goes: back, when it cannot be recorded.
    """
    try:
        await rejected.record(queue, message_id, refused.reason, refused.description, raw)
    except PortError as error:
        logger.warning("message %r: rejection not recorded: %s", message_id, error)
        return Abandon(f"rejection not recorded: {error}")
    logger.warning("message %r: %s: %s", message_id, refused.reason, refused.description)
    return DeadLetter(refused.reason, refused.description)


def warn_of_deliveries(queue: str, message_id: str | None, delivery_count: int) -> None:
    """Log that the queue itself is about to dead-letter a message.

    Args:
        queue: Its name.
        message_id: As the sender set it.
        delivery_count: Deliveries before this one; 0 the first time.
    """
    if delivery_count + 1 >= LOUD_FROM_DELIVERY:
        logger.error(
            "message %r of queue %r is at delivery %d: it will soon be dead-lettered "
            "by the queue; find out why it cannot be accepted",
            message_id,
            queue,
            delivery_count + 1,
        )


async def both_answer(client: Client, rejected: RejectedMessages) -> bool:
    """Whether Temporal takes starts, and rejected messages can be recorded."""
    try:
        await rejected.probe()
    except PortError as error:
        logger.debug("not ready: %s", error)
        return False
    return await starts_are_taken(client)


async def starts_are_taken(client: Client) -> bool:
    """Whether Temporal answers, and its namespace has the search attributes of docflow."""
    try:
        return await search_attributes.usable(client)
    except TemporalUnavailable as error:
        logger.debug("not ready: %s", error)
        return False


def short(summary: str) -> str:
    """A static summary, within the server's limit."""
    return summary.encode()[:SUMMARY_LIMIT].decode(errors="ignore")
