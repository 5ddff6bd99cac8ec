"""The one entry point of a batch's documents, whether a function or a bridge brings them."""

import asyncio
import logging
import uuid
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final

from temporalio.client import Client
from temporalio.common import Priority
from temporalio.service import RPCError

from workers.batches.messages import read_document_event
from workers.shared.services.bodies import INVALID_MESSAGE, Abandon, RefusedMessage, Settle, Verdict
from workers.shared.services.intake import (
    START_TIMEOUT,
    RecordingRuns,
    given_back,
    refuse,
    short,
    starts_are_taken,
)
from workflows.batches.loads import (
    GROUP_BYTES,
    GROUP_MESSAGES,
    DocumentEvent,
    DocumentGroupInput,
    DocumentLoadInput,
    DocumentProcessed,
    message_key,
)
from workflows.batches.names import LOADING_TASK_QUEUE, TASK_QUEUE, BatchKey
from workflows.shared import attributes
from workflows.shared.contracts import Origin

LINGER_SECONDS: Final = 0.01
"""A group waits for so long for another message; those of one receive come at the same moment."""


class _Group:
    """Messages whose run is not started yet."""

    def __init__(self) -> None:
        self.loads: list[DocumentLoadInput] = []
        self.full = asyncio.Event()
        self.started: asyncio.Task[Settle | Abandon]
        self._size = 0

    def add(self, load: DocumentLoadInput, size: int) -> bool:
        """Add a message; False: there is no room for it."""
        if self.loads and self._size + size > GROUP_BYTES:
            self.full.set()
            return False
        self.loads.append(load)
        self._size += size
        if len(self.loads) == GROUP_MESSAGES:
            self.full.set()
        return True


class GroupStarts:
    """Starts the groups of one batch; any number of calls may run at once.

    Args:
        client: Of the namespace in which batches run.
        key: The batch.
    """

    def __init__(self, client: Client, key: BatchKey) -> None:
        self._client = client
        self._key = key
        self._open: _Group | None = None

    async def start(self, load: DocumentLoadInput, size: int) -> Settle | Abandon:
        """Start a load, together with those that come at the same moment.

        A message that was abandoned may be in a group nevertheless: it is loaded once.

        Args:
            load: Of the message.
            size: Bytes of its body.
        """
        group = self._open
        if group is None or group.full.is_set() or not group.add(load, size):
            group = self._open = _Group()
            group.add(load, size)
            group.started = asyncio.create_task(self._started(group))
        return await asyncio.shield(group.started)

    async def _started(self, group: _Group) -> Settle | Abandon:
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER_SECONDS):
                await group.full.wait()
        if self._open is group:
            self._open = None
        workflow_id = f"{self._key.group_prefix}{uuid.uuid4().hex}"
        try:
            await self._client.start_workflow(
                # By its name: the function that comes through here is packed without the
                # libraries that loading takes.
                "DocumentGroup",
                DocumentGroupInput(key=self._key, loads=tuple(group.loads)),
                id=workflow_id,
                task_queue=LOADING_TASK_QUEUE,
                priority=Priority(fairness_key=self._key.fairness_key),
                search_attributes=attributes.at_start("batches", "group", str(self._key.case_id)),
                static_summary=short(f"{len(group.loads)} messages of {self._key}"),
                rpc_timeout=START_TIMEOUT,
            )
        except RPCError as error:
            logger.warning("%d messages of %s not started: %s", len(group.loads), self._key, error)
            return given_back(error)
        return Settle(workflow_id)


logger = logging.getLogger(__name__)

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
        return await self._groups.start(DocumentLoadInput(event=event, origin=origin), len(raw))

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
    return event.model_copy(update={"sent_at": taken_at})
