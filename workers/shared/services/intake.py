"""What the intakes of all pipelines share: duplicates, starts, rejections."""

import logging
import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from adapters.ports.errors import PortError, Unavailable
from adapters.ports.records import RejectedMessages, RejectionRecord
from workers.shared.connect import reason_of
from workers.shared.services import search_attributes
from workers.shared.services.bodies import (
    INVALID_MESSAGE,
    KEY_REUSED,
    Abandon,
    DeadLetter,
    RefusedMessage,
)
from workers.shared.services.errors import TemporalUnavailable
from workers.shared.services.runs import standing
from workflows.shared.contracts import MEMO
from workflows.shared.records import RECORD, Rejection

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


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """The newest run of a workflow id."""

    workflow_id: str
    status: WorkflowExecutionStatus
    digest: str | None
    """None: it was started by a release that kept none."""

    @property
    def is_open(self) -> bool:
        """It has not ended."""
        return self.status is WorkflowExecutionStatus.RUNNING

    @property
    def terminated(self) -> bool:
        """It was ended from outside, and what it held is free again."""
        return self.status is WorkflowExecutionStatus.TERMINATED

    def refuse_other(self, digest: str) -> None:
        """Refuse a message that is not the one that the run was started by.

        Raises:
            RefusedMessage: It is another one.
        """
        if self.digest in (None, digest):
            return
        raise RefusedMessage(
            KEY_REUSED,
            f"{self.workflow_id} was started by a message with other content and "
            f"{standing(self.status)}: this message was not used; send it again under a key that "
            "was not used before",
        )


async def earlier_run(client: Client, workflow_id: str) -> EarlierRun:
    """The run that a start has met.

    Raises:
        RPCError: Temporal does not answer, or has forgotten the run meanwhile.
    """
    found = await client.get_workflow_handle(workflow_id).describe(rpc_timeout=START_TIMEOUT)
    digest = (await found.memo()).get(MEMO)
    return EarlierRun(
        workflow_id,
        found.status or WorkflowExecutionStatus.RUNNING,
        digest if isinstance(digest, str) else None,
    )


class RecordingRuns:
    """Starts a run that records a message; a worker, which has the database, does it.

    Args:
        client: Of the namespace whose workers serve it.
        task_queue: Theirs.
    """

    def __init__(self, client: Client, task_queue: str) -> None:
        self._client = client
        self._task_queue = task_queue

    async def record(
        self, queue: str, message_id: str | None, reason: str, description: str, body: bytes
    ) -> None:
        """Have a message recorded; the same one once.

        Raises:
            Unavailable: Temporal has not accepted it.
        """
        rejection = Rejection(
            queue=queue, message_id=message_id, reason=reason, description=description, body=body
        )
        try:
            await self._client.start_workflow(
                RECORD,
                rejection,
                id=rejection.workflow_id,
                task_queue=self._task_queue,
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY,
                id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                static_summary="Record of a rejected message",
                rpc_timeout=START_TIMEOUT,
            )
        except WorkflowAlreadyStartedError:
            return
        except RPCError as error:
            raise Unavailable(f"Temporal: {error.status.name}: {reason_of(error)}") from error
