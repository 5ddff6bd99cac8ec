"""Starting the runs of events and of jobs; the same event is started once."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from temporalio.client import Client
from temporalio.common import Priority, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from adapters.ports.transfers import TransferStore
from contracts.errors import KEY_REUSED
from contracts.origins import MEMO
from contracts.transfers import (
    FILE_EVENT,
    FILE_JOB,
    PARK_SECONDS,
    TASK_QUEUE,
    FileEventOrder,
    FileJobOrder,
    TransferStatus,
    file_job_id,
    queue_task_queue,
    transfer_workflow_id,
)
from domain.transfers.event_facts import fairness_of, file_of
from domain.transfers.events import NoEvent, head_of, read_event
from domain.transfers.standing import standing
from workers.services.bodies import RefusedMessage
from workers.services.duplicates import EarlierRun, earlier_run
from workers.services.intake import START_TIMEOUT, short
from workflows import attributes

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
        known: TransferStore | None = None,
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
        order = FileEventOrder(
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
                return await self.start_event(order, head.account_id)
            if await self._is_done(order.transfer_id, order.digest):
                id = file_job_id(order.transfer_id)
                return StartedTransfer(order.transfer_id, id, created=False)
            fields = order.model_dump(exclude={"body"})
            return await self.start_job(FileJobOrder(queue=queue, event=event, **fields), priority)
        return await self.start_event(order, head.account_id)

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
                f" UTC, and {standing(row.status)}: this one was not used; send it again with "
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

    async def start_event(
        self, order: FileEventOrder, account_id: str | None = None
    ) -> StartedTransfer:
        """Start the run of an event.

        Raises:
            RefusedMessage: Another event came with its source and id.
        """
        account = account_id or _UNKNOWN
        id = transfer_workflow_id(order.transfer_id)
        for reuse in _REUSES:
            try:
                await self._client.start_workflow(
                    FILE_EVENT,
                    order,
                    id=id,
                    task_queue=TASK_QUEUE,
                    id_reuse_policy=reuse,
                    id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                    request_eager_start=True,
                    memo={MEMO: order.digest},
                    search_attributes=attributes.at_start("transfers", "event", account[:500]),
                    priority=Priority(fairness_key=fairness_of(account)),
                    static_summary=short(f"Event for {account}, by {order.way_in}"),
                    rpc_timeout=START_TIMEOUT,
                )
            except WorkflowAlreadyStartedError:
                earlier = await earlier_run(self._client, id)
                if _is_other_or_done(earlier, order.digest):
                    break
            else:
                return StartedTransfer(order.transfer_id, id, created=True)
        return StartedTransfer(order.transfer_id, id, created=False)

    async def start_job(self, order: FileJobOrder, priority: int | None = None) -> StartedTransfer:
        """Start the run of a job, on its queue.

        Raises:
            RefusedMessage: Another event came with its source and id.
        """
        id, event = file_job_id(order.transfer_id), order.event
        file = file_of(event)
        for reuse in _REUSES:
            try:
                await self._client.start_workflow(
                    FILE_JOB,
                    order,
                    id=id,
                    task_queue=queue_task_queue(order.queue),
                    id_reuse_policy=reuse,
                    id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                    memo={MEMO: order.digest, **({} if file is None else {"filename": file})},
                    search_attributes=attributes.at_start(
                        "transfers", order.queue, event.account_id
                    ),
                    priority=Priority(
                        priority_key=priority, fairness_key=fairness_of(event.account_id)
                    ),
                    static_summary=short(f"{file or event.subject} for {event.account_id}"),
                    rpc_timeout=START_TIMEOUT,
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
