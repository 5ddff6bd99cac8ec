"""The one entry point of a batch's documents, whether a function or a bridge brings them."""

from datetime import UTC, datetime

from temporalio.client import Client

from contracts.batches import (
    TASK_QUEUE,
    BatchKey,
    DocumentEvent,
    DocumentProcessed,
    LoadOrder,
    message_key,
)
from contracts.origins import Origin
from workers.services.batches.groups import GroupStarts
from workers.services.batches.messages import read_document_event
from workers.services.bodies import RefusedMessage
from workers.services.intake import refuse, starts_are_taken
from workers.services.rejections import RecordingRuns
from workers.services.verdicts import INVALID_MESSAGE, Settle, Verdict


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
        self._groups = GroupStarts(client, key)
        # Nothing here has a database: a worker records what is refused.
        self._rejected = RecordingRuns(client, TASK_QUEUE)

    async def accept(
        self,
        raw: bytes,
        delivery_count: int,
        message_id: str | None,
        sent_at: datetime | None = None,
    ) -> Verdict:
        """Start the load that a message asks for, together with those that come with it.

        May be called again with the same message, and so may any other intake: whoever loads it
        finds what was done.

        Args:
            raw: The body as it came.
            delivery_count: Deliveries before this one; 0 the first time.
            message_id: As the queue gave it.
            sent_at: When the queue took it; None: not known.
        """
        try:
            event = read_document_event(raw)
            if event is None:
                return Settle(self._key.workflow_id)
            self._check_batch(event)
        except RefusedMessage as refused:
            return await refuse(self._rejected, self._queue, message_id, refused, raw)
        origin = Origin(queue=self._queue, message_id=message_id, digest=message_key(event))
        if isinstance(event, DocumentProcessed) and event.sent_at is None:
            # It stays with the message, also as a dead letter.
            event = event.model_copy(update={"sent_at": sent_at or datetime.now(UTC)})
        return await self._groups.start(LoadOrder(event=event, origin=origin), len(raw))

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
