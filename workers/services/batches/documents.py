"""The one entry point of a batch's documents, whether a function or a bridge brings them."""

import logging
from datetime import UTC, datetime, timedelta
from typing import Final

from temporalio.client import Client

from contracts.batches import (
    TASK_QUEUE,
    UNKNOWN_FIELDS,
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

logger = logging.getLogger(__name__)

_SENT_AT: Final = "sentAt"
CLOCKS_APART: Final = timedelta(minutes=5)
"""More than clocks that are kept differ by, and than messages overtake each other on their way."""


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
        if isinstance(event, DocumentProcessed):
            event = _dated(event, sent_at or datetime.now(UTC))
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


def _dated(event: DocumentProcessed, taken_at: datetime) -> DocumentProcessed:
    """An event with the time that counts for it, which stays with it, also as a dead letter.

    No message is sent after the queue has taken it: by the clock of a sender that had run ahead,
    what is sent later would stay behind for as long as that.
    """
    if event.sent_at is not None and event.sent_at <= taken_at + CLOCKS_APART:
        return event
    if event.sent_at is not None:
        logger.warning(
            "DOCUMENT_PROCESSED of %s in %s: sentAt %s is later than %s, when its queue took it, "
            "which counts",
            *(event.document_id, event.key, event.sent_at, taken_at),
        )
        # The notes of the document name it.
        names = dict.fromkeys((*event.unknown_fields, _SENT_AT))
        event = event.model_copy(update={"unknown_fields": tuple(names)[:UNKNOWN_FIELDS]})
    return event.model_copy(update={"sent_at": taken_at})
