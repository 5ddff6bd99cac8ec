"""Events on their way to runs: received, checked, started once.

CloudEvents as HTTP carries them, made JSON in structured mode: one form for all ways in.

Source: CloudEvents 1.0, "HTTP Protocol Binding".
"""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import unquote

from temporalio.client import Client
from temporalio.common import Priority, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from activities.transfers.cloud_events import EventHead, NoEvent, head_of, read_event
from activities.transfers.operators_files import Queue
from activities.transfers.store import SqlTransferStore
from adapters.ports.errors import NotYet, PortError, Unavailable
from adapters.ports.records import RejectedMessages
from workers.shared.services.bodies import (
    INVALID_MESSAGE,
    NOT_ACCEPTED,
    Abandon,
    DeadLetter,
    RefusedMessage,
    Settle,
    Verdict,
)
from workers.shared.services.errors import TooLarge, UnsupportedFile
from workers.shared.services.intake import (
    PASSING,
    START_TIMEOUT,
    EarlierRun,
    both_answer,
    earlier_run,
    given_back,
    refuse,
    short,
)
from workflows.shared import attributes
from workflows.shared.contracts import MEMO
from workflows.shared.errors import KEY_REUSED, RuleViolation
from workflows.shared.fairness import fairness_key
from workflows.transfers.events import (
    EVENT_BYTES,
    FILE_EVENT,
    FILE_JOB,
    TASK_QUEUE,
    TransferStatus,
    file_of,
    queue_task_queue,
)
from workflows.transfers.runs import (
    PARK_SECONDS,
    FileEventInput,
    FileJobInput,
    file_job_id,
    status_label,
    transfer_workflow_id,
)


class EventTooLarge(TooLarge):
    """More bytes than an event may have."""

    title = "The event is too large"


class UnsupportedEvent(UnsupportedFile):
    """A batch of events, or an event in another format than JSON."""

    kind = "unsupported-event"
    title = "Not an event in a supported format"


STRUCTURED: Final = "application/cloudevents+json"
BATCH: Final = "application/cloudevents-batch+json"
_PREFIX: Final = "ce-"


def structured(headers: Mapping[str, str], body: bytes) -> str:
    """An event in structured mode.

    Args:
        headers: Names in lower case.
        body: Of the request.

    Raises:
        EventTooLarge: The event is longer than one may be.
        UnsupportedEvent: It is a batch, or an event in another format than JSON.
    """
    if len(body) > EVENT_BYTES:
        raise EventTooLarge(f"an event has at most {EVENT_BYTES:,} bytes")
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type == BATCH:
        raise UnsupportedEvent("batches are not accepted: send one event per request")
    if media_type.startswith("application/cloudevents") and media_type != STRUCTURED:
        raise UnsupportedEvent(f"events are accepted as {STRUCTURED}, or in binary mode")
    attributes = {
        name.removeprefix(_PREFIX): unquote(value)
        for name, value in headers.items()
        if name.startswith(_PREFIX)
    }
    text = body.decode("utf-8-sig", errors="backslashreplace")
    if media_type == STRUCTURED or not attributes:
        return text
    event: dict[str, Any] = {**attributes, "datacontenttype": media_type or "application/json"}
    if body:
        event["data"] = _data(text)
    return json.dumps(event, ensure_ascii=False)


def _data(text: str) -> Any:
    """JSON where it is some; what is none stays text, and the check of the event refuses it."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


_UNKNOWN: Final = "unknown"


@dataclass(frozen=True, slots=True)
class StartedTransfer:
    """What became of an event."""

    transfer_id: str
    workflow_id: str
    created: bool
    """False: the same event came before."""


class TransferStarts:
    """Starts runs. Its methods raise `RPCError` when Temporal does not take them.

    Args:
        client: Of the namespace.
        park_for_seconds: How long runs wait for a person.
        known: Rows of the events that came before, which outlast the runs of Temporal; None: only
            what Temporal has is compared.
    """

    def __init__(
        self,
        client: Client,
        park_for_seconds: int = PARK_SECONDS,
        *,
        known: SqlTransferStore | None = None,
    ) -> None:
        self._client = client
        self._known = known
        self._park_for_seconds = park_for_seconds

    async def start(
        self, body: str, way_in: str, queue: str | None = None, priority: int | None = None
    ) -> StartedTransfer:
        """Have a message checked and carried out, whatever it is.

        Args:
            body: As it came: JSON in structured mode.
            way_in: Where it came.
            queue: It stands on this queue, routed already; None: it is routed.
            priority: Of that queue.

        Raises:
            RefusedMessage: Another event came with its source and id.
            Unavailable: Rows cannot be read.
        """
        arrived = datetime.now(UTC)
        head = head_of(body)
        order = FileEventInput(
            transfer_id=head.transfer_id,
            body=body,
            digest=head.digest,
            arrived=arrived,
            way_in=way_in,
            park_for_seconds=self._park_for_seconds,
            notices=True,
        )
        if queue is not None:
            try:
                event = read_event(body, arrived)
            except NoEvent:
                # The run of an event says what is wrong with it.
                return await self.start_event(order, head)
            if await self._is_done(order.transfer_id, order.digest):
                id = file_job_id(order.transfer_id)
                return StartedTransfer(order.transfer_id, id, created=False)
            fields = order.model_dump(exclude={"body"})
            return await self.start_job(FileJobInput(queue=queue, event=event, **fields), priority)
        return await self.start_event(order, head)

    async def _is_done(self, transfer_id: str, digest: str) -> bool:
        """Whether a routed event has its job, or was carried out when Temporal has forgotten it.

        Raises:
            RefusedMessage: The row is that of another event.
        """
        row = None if self._known is None else await self._known.get(transfer_id)
        if row is None or row.digest is None:
            return False
        if row.digest != digest:
            if await self._has_job(transfer_id, digest):
                return True
            raise RefusedMessage(
                KEY_REUSED,
                f"another event came with the source and id of this one, at {row.at:%Y-%m-%d %H:%M}"
                f" UTC, and {status_label(row.status)}: this one was not used; send it again with "
                "another id",
            )
        return row.status is TransferStatus.SUCCEEDED

    async def _has_job(self, transfer_id: str, digest: str) -> bool:
        """Whether an event has the job of its id, although the row is still that of another one.

        Both came at once, and the job has not written yet.
        """
        try:
            earlier = await earlier_run(self._client, file_job_id(transfer_id))
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return False
            raise
        return earlier.digest == digest and not earlier.terminated

    async def start_event(self, order: FileEventInput, head: EventHead) -> StartedTransfer:
        """Start the run of an event.

        Args:
            order: Its input.
            head: What it is known by.

        Raises:
            RefusedMessage: Another event came with its source and id.
        """
        account = head.account_id or _UNKNOWN
        return await self._started(
            order,
            FILE_EVENT,
            transfer_workflow_id(order.transfer_id),
            task_queue=TASK_QUEUE,
            request_eager_start=True,
            memo={MEMO: order.digest},
            search_attributes=attributes.at_start(
                "transfers", "event", account[:500], head.organisation_id
            ),
            priority=Priority(fairness_key=fairness_key(head.organisation_id, account)),
            static_summary=short(f"Event for {account}, by {order.way_in}"),
        )

    async def start_job(self, order: FileJobInput, priority: int | None = None) -> StartedTransfer:
        """Start the run of a job, on its queue.

        Raises:
            RefusedMessage: Another event came with its source and id.
        """
        event = order.event
        file, account = file_of(event), event.account_id
        return await self._started(
            order,
            FILE_JOB,
            file_job_id(order.transfer_id),
            task_queue=queue_task_queue(order.queue),
            memo={MEMO: order.digest, **({} if file is None else {"filename": file})},
            search_attributes=attributes.at_start(
                "transfers", order.queue, account, event.organisation_id
            ),
            priority=Priority(
                priority_key=priority, fairness_key=fairness_key(event.organisation_id, account)
            ),
            static_summary=short(f"{file or event.subject} for {account}"),
        )

    async def _started(
        self, order: FileEventInput | FileJobInput, workflow: str, id: str, **options: Any
    ) -> StartedTransfer:
        for reuse in _REUSES:
            try:
                await self._client.start_workflow(
                    workflow,
                    order,
                    id=id,
                    id_reuse_policy=reuse,
                    id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                    rpc_timeout=START_TIMEOUT,
                    **options,
                )
            except WorkflowAlreadyStartedError:
                earlier = await earlier_run(self._client, id)
                if _is_other_or_done(earlier, order.digest):
                    break
            else:
                return StartedTransfer(order.transfer_id, id, created=True)
        return StartedTransfer(order.transfer_id, id, created=False)


_REUSES: Final = (
    WorkflowIDReusePolicy.REJECT_DUPLICATE,
    # After a run that was terminated, the same message may run again.
    WorkflowIDReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY,
)


def _is_other_or_done(earlier: EarlierRun, digest: str) -> bool:
    """Whether the message is to be left alone: it was started, and not terminated.

    Raises:
        RefusedMessage: That run is of another message.
    """
    if earlier.terminated:
        return False
    earlier.refuse_other(digest)
    return True


WAY_IN = "fire-event"
_AGAIN_SECONDS: Final = 5.0
"""After which an event is sent again that Temporal was too slow for."""


class StartedEvents:
    """Starts the runs of events, as `EventSender`, and knows those of jobs, as `StartedJobs`.

    Args:
        client: Of the namespace.
        queues: Those that there are, by name.
        known: Rows of the events that came before.
        way_in: Where the events come from.
    """

    def __init__(
        self,
        client: Client,
        queues: Mapping[str, Queue],
        known: SqlTransferStore,
        way_in: str = WAY_IN,
    ) -> None:
        self._client = client
        self._starts = TransferStarts(client, known=known)
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
            reason = f"Temporal does not take the event: {error.message}"
            if error.status in PASSING:
                # No failure of the event: it is sent again, and no retry is used up.
                raise NotYet(reason, _AGAIN_SECONDS) from error
            raise Unavailable(reason) from error
        return started.transfer_id

    async def job_digest(self, transfer_id: str) -> str | None:
        """Digest of the event that the job of a transfer was started by; None: it is not known."""
        try:
            return (await earlier_run(self._client, file_job_id(transfer_id))).digest
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return None
            raise Unavailable(f"Temporal does not answer: {error.message}") from error


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
        known: SqlTransferStore | None = None,
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
