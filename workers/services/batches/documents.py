"""The one entry point of a batch's documents, whether a function or a bridge brings them."""

import logging

from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError

from contracts.batches import TASK_QUEUE, BatchKey, DocumentEvent, LoadOrder
from contracts.origins import MEMO, Origin, digest_of
from workers.services.batches.messages import read_document_event
from workers.services.bodies import RefusedMessage
from workers.services.duplicates import earlier_run
from workers.services.intake import START_TIMEOUT, given_back, refuse, short, starts_are_taken
from workers.services.rejections import RecordingRuns
from workers.services.verdicts import INVALID_MESSAGE, Abandon, Settle, Verdict
from workflows import attributes

logger = logging.getLogger(__name__)


class DocumentIntake:
    """Turns the messages of one batch's queue into started loads, or returns why not.

    Any number of calls may run at once.

    Args:
        client: Of the namespace in which batches run.
        key: The batch whose queue it is.
        queue: Name of that queue.
    """

    def __init__(self, client: Client, key: BatchKey, queue: str) -> None:
        self._client = client
        self._key = key
        self._queue = queue
        # Nothing here has a database: a worker records what is refused.
        self._rejected = RecordingRuns(client, TASK_QUEUE)

    async def accept(self, raw: bytes, delivery_count: int, message_id: str | None) -> Verdict:
        """Start the load that a message asks for.

        May be called again with the same message: one document is one workflow, started again
        only when it has failed or was terminated. One that is still running is settled: it becomes
        a dead letter by itself when it fails. Another message of the same document is refused,
        unless the run of the first one was terminated; what is refused is recorded.

        Args:
            raw: The body as it came.
            delivery_count: Deliveries before this one; 0 the first time.
            message_id: As the queue gave it.
        """
        try:
            event = read_document_event(raw)
            if event is None:
                return Settle(self._key.workflow_id)
            self._check_batch(event)
            return await self._start(event, message_id)
        except RefusedMessage as refused:
            return await refuse(self._rejected, self._queue, message_id, refused, raw)

    async def ready(self) -> bool:
        """Whether Temporal takes starts."""
        return await starts_are_taken(self._client)

    def _check_batch(self, event: DocumentEvent) -> None:
        for name, given, own in (
            ("caseId", event.case_id, self._key.case_id),
            ("batchId", event.batch_id, self._key.batch_id),
        ):
            if given != own:
                raise RefusedMessage(
                    INVALID_MESSAGE, f"{name}: {given}, but this is the queue of {self._key}"
                )

    async def _start(self, event: DocumentEvent, message_id: str | None) -> Verdict:
        workflow_id = event.workflow_id
        origin = Origin(queue=self._queue, message_id=message_id, digest=digest_of(event))
        try:
            if await self._is_started(event, origin, WorkflowIDReusePolicy.REJECT_DUPLICATE):
                return Settle(workflow_id)
            earlier = await earlier_run(self._client, workflow_id)
            if not earlier.terminated:
                earlier.refuse_other(origin.digest)
            if earlier.may_run_again:
                again = WorkflowIDReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY
                if await self._is_started(event, origin, again):
                    return Settle(workflow_id)
                return Abandon(f"{workflow_id} was started by another message at the same moment")
        except RPCError as error:
            verdict = given_back(error)
            logger.warning("message %r: %s not started: %s", message_id, workflow_id, error)
            return verdict
        logger.info(
            "message %r: %s was started before by the same message", message_id, workflow_id
        )
        return Settle(workflow_id, duplicate=True)

    async def _is_started(
        self, event: DocumentEvent, origin: Origin, reuse: WorkflowIDReusePolicy
    ) -> bool:
        """Start a load; False: there is one already."""
        try:
            await self._client.start_workflow(
                # By its name: the function that comes through here is packed without the
                # libraries that loading takes.
                "DocumentLoad",
                LoadOrder(event=event, origin=origin),
                id=event.workflow_id,
                task_queue=TASK_QUEUE,
                id_reuse_policy=reuse,
                id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                memo={MEMO: origin.digest},
                search_attributes=attributes.at_start(
                    "batches", event.event_type, str(event.case_id)
                ),
                static_summary=short(f"Document {event.document_id} of {event.key}"),
                rpc_timeout=START_TIMEOUT,
            )
        except WorkflowAlreadyStartedError:
            return False
        return True
