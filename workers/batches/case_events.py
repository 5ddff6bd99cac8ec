"""The one entry point of case events: each is taken by the run of its case."""

import asyncio
import hashlib
import logging
from datetime import UTC, datetime, timedelta
from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import (
    Client,
    WithStartWorkflowOperation,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.common import Priority, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError

from adapters.ports.records import RejectedMessages
from workers.batches.messages import read_case_event
from workers.shared.services.bodies import KEY_REUSED, Abandon, RefusedMessage, Settle, Verdict
from workers.shared.services.intake import START_TIMEOUT, both_answer, given_back, refuse, short
from workflows.batches.case_queue import CaseQueue
from workflows.batches.events import CaseEvent
from workflows.batches.names import TASK_QUEUE, Timings
from workflows.batches.runs import CaseInput
from workflows.shared import attributes
from workflows.shared.contracts import digest_of


class CaseRuns:
    """Runs of cases in one namespace.

    Args:
        client: Of the namespace in which batches run.
        timings: Of every batch that brings none of its own.
    """

    def __init__(self, client: Client, timings: Timings) -> None:
        self._client = client
        self._timings = timings

    async def deliver(self, event: CaseEvent, update_id: str) -> None:
        """Deliver an event and wait until its case has accepted it.

        Args:
            event: Recorded once, however often it is delivered under the same id.
            update_id: Of the delivery.

        Raises:
            WorkflowUpdateFailedError: The case cannot accept it now.
            WorkflowUpdateRPCTimeoutOrCancelledError: No worker answered.
            RPCError: Temporal does not accept it.
        """
        start = self._start(event)
        # Errors of the start surface both here and on the handle: both have to be awaited.
        started = asyncio.create_task(start.workflow_handle())
        try:
            await self._client.execute_update_with_start_workflow(
                CaseQueue.take,
                event,
                start_workflow_operation=start,
                id=update_id,
                rpc_timeout=START_TIMEOUT,
            )
        except WorkflowUpdateRPCTimeoutOrCancelledError as error:
            # The client raises this for a cancellation as well, which must not be swallowed.
            if isinstance(error.__cause__, asyncio.CancelledError):
                raise asyncio.CancelledError from error
            raise
        finally:
            started.cancel()
            await asyncio.gather(started, return_exceptions=True)

    def _start(self, event: CaseEvent) -> WithStartWorkflowOperation[CaseQueue, object]:
        return WithStartWorkflowOperation(
            CaseQueue.run,
            CaseInput(case_id=event.case_id, timings=self._timings),
            id=event.key.case_workflow_id,
            task_queue=TASK_QUEUE,
            # Its batches and their steps inherit it.
            priority=Priority(fairness_key=event.key.fairness_key),
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            search_attributes=attributes.at_start("batches", event.event_type, str(event.case_id)),
            static_summary=short(f"Batches of case {event.case_id}"),
        )


logger = logging.getLogger(__name__)

TAKE_SECONDS: Final = 10.0
"""A case answers in a fraction of a second, when there is a worker to run it."""
POLLED_WITHIN: Final = timedelta(seconds=90)
"""A worker that lives asks for work at least once a minute."""


class CaseEventIntake:
    """Forwards case events to their cases, or returns why not.

    Events of different cases may come side by side; those of one case one after the other.

    Args:
        client: Of the namespace in which batches run.
        rejected: Keeps messages that can never be accepted.
        queue: Name of the case-events queue, for that record.
        timings: Of every batch that brings none of its own.
    """

    def __init__(
        self,
        client: Client,
        rejected: RejectedMessages,
        *,
        queue: str,
        timings: Timings | None = None,
    ) -> None:
        self._client = client
        self._rejected = rejected
        self._queue = queue
        self._cases = CaseRuns(client, timings or Timings())

    async def accept(self, raw: bytes, delivery_count: int, message_id: str | None) -> Verdict:
        """Have an event taken by the run of its case, which is started when there is none.

        May be called again with the same message: it is one update of the case's run, and what
        an event asks for is written down once. A batch that is started again with other timings,
        before it has ended, is refused.

        Args:
            raw: The body as it came.
            delivery_count: Deliveries before this one; 0 the first time.
            message_id: As the queue gave it.
        """
        try:
            event = read_case_event(raw)
            return await self._take(event, _update_id(event, message_id))
        except RefusedMessage as refused:
            return await refuse(self._rejected, self._queue, message_id, refused, raw)

    def ordering_key(self, raw: bytes) -> int | None:
        """The case of an event: what must not be overtaken by what; None: it is not an event."""
        try:
            return read_case_event(raw).case_id
        except RefusedMessage:
            return None

    async def ready(self) -> bool:
        """Whether Temporal and the record answer, and a worker is there to run cases."""
        return await both_answer(self._client, self._rejected) and await self._is_worked_on()

    async def _take(self, event: CaseEvent, update_id: str) -> Verdict:
        workflow_id = event.key.case_workflow_id
        try:
            async with asyncio.timeout(TAKE_SECONDS):
                await self._cases.deliver(event, update_id)
        except (TimeoutError, WorkflowUpdateRPCTimeoutOrCancelledError):
            logger.warning("%s has not taken %s in time", workflow_id, event.event_type)
            return Abandon(f"{workflow_id} does not answer; is a worker of batches running?")
        except WorkflowUpdateFailedError as error:
            cause = error.cause
            if isinstance(cause, ApplicationError) and cause.type == KEY_REUSED:
                raise RefusedMessage(KEY_REUSED, cause.message) from error
            logger.warning("%s does not take %s now: %s", workflow_id, event.event_type, cause)
            return Abandon(f"{workflow_id}: {cause}")
        except RPCError as error:
            verdict = given_back(error)
            logger.warning("%s has not taken %s: %s", workflow_id, event.event_type, error)
            return verdict
        return Settle(workflow_id)

    async def _is_worked_on(self) -> bool:
        try:
            answer = await self._client.workflow_service.describe_task_queue(
                DescribeTaskQueueRequest(
                    namespace=self._client.namespace,
                    task_queue=TaskQueue(name=TASK_QUEUE),
                    task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
                ),
                timeout=START_TIMEOUT,
            )
        except RPCError as error:
            logger.debug("not ready: %s", error)
            return False
        return any(_is_recent(poller.last_access_time) for poller in answer.pollers)


def _is_recent(moment: Timestamp) -> bool:
    return datetime.now(UTC) - moment.ToDatetime(UTC) < POLLED_WITHIN


def _update_id(event: CaseEvent, message_id: str | None) -> str:
    """The same whenever the same message comes again."""
    content = f"{event.event_type}\0{digest_of(event)}\0{message_id or ''}"
    return hashlib.sha256(content.encode()).hexdigest()
