"""Carrying out a failed transfer anew, from the action that failed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from adapters.ports import BlobNotFound, Blobs
from adapters.ports.transfers import StatusRow, TransferStore
from contracts.transfers import (
    FileJobOrder,
    Receipt,
    TransferStatus,
    file_job_id,
    receipt_blob,
    redrive_id,
)
from domain.transfers.continued import where_of
from domain.transfers.receipts import read_digest
from domain.transfers.standing import standing
from workers.services.errors import InvalidRequest, Refused, WrongState
from workers.services.identity import Identity
from workers.services.runs import temporal_errors
from workers.services.transfers.service import TransferService
from workers.services.transfers.starts import StartedTransfer, TransferStarts
from workers.services.transfers.verbs import SHOWN, run_of

REDRIVES: Final = 100
_EFFECTS: Final = frozenset({"WriteFile", "FireEvent", "CallHttp"})
"""Actions that others see; the rest only makes the files, which are removed with a failed run."""
_DONE: Final = (None, "done before")
_READS: Final = "ReadFile"


@dataclass(frozen=True, slots=True)
class Redriven:
    """A failed transfer that is carried out anew."""

    started: StartedTransfer
    from_action: int
    """From 1."""
    done_before: Sequence[str]
    """Actions that the failed one has done: they are not repeated, unless the settings, which the
    new one reads, send elsewhere in their place."""


class Redrives:
    """Starts failed transfers anew.

    Args:
        service: Finds transfers.
        store: Their rows.
        starts: Starts runs.
        client: Of Temporal, which has what a job was started with.
        blobs: Opens what holds receipts.
    """

    def __init__(
        self,
        service: TransferService,
        store: TransferStore,
        starts: TransferStarts,
        client: Client,
        blobs: Callable[[], Blobs],
    ) -> None:
        self._service, self._store, self._starts = service, store, starts
        self._client, self._blobs = client, blobs

    async def redrive(self, who: Identity, name: str, from_action: int | None = None) -> Redriven:
        """Carry out a failed transfer anew, as a transfer of its own whose receipt names it.

        Files are read, decrypted and scanned again, since they were removed with the failed run;
        what it has written, sent or called before the action is not repeated, and the run parks
        where the source has changed since.

        Args:
            who: Who asks.
            name: The transfer.
            from_action: The first action whose effects are wanted again, from 1; None: the one
                that failed.

        Raises:
            InvalidRequest: There is no such action.
            WrongState: It has not failed, or it is no longer known what it was started with.
            Refused: It is carried out anew already, or was.
        """
        row = await self._service.row(who, name)
        if row.status is not TransferStatus.FAILED:
            said = standing(row.status)
            raise WrongState(f"only what has failed is carried out anew; this {said}")
        if run_of(row) != file_job_id(row.transfer_id):
            raise WrongState(
                "no job of it has begun: send its event again, with another id or after Temporal "
                "has forgotten its run"
            )
        order = await self._order_of(row)
        receipt = await self._receipt_of(row)
        first = _first(receipt) if from_action is None else from_action - 1
        if first < 0:
            raise InvalidRequest("actions are counted from 1")
        done = tuple(each for each in _effects(receipt) if each[0] < first)
        # What it has itself passed over, or would have, had it come so far.
        inherited = (each for each in order.done_before if from_action is None or each[0] < first)
        done = tuple(sorted({*done, *inherited}))
        started = await self._started(
            order.model_copy(
                update={
                    "redriven_from": row.transfer_id,
                    "done_before": done,
                    "done_where": tuple(_sent_to(order, receipt).items()) if done else (),
                    "read_before": tuple((_reads(order, receipt)).items()) if done else (),
                    "arrived": datetime.now(UTC),
                    "way_in": "redrive",
                    "notices": True,
                }
            )
        )
        await self._store.note(
            StatusRow(
                transfer_id=row.transfer_id,
                status=TransferStatus.FAILED,
                at=datetime.now(UTC),
                source=row.source,
                event_id=row.event_id,
                queue=row.queue,
                job=row.job,
                file=row.file,
                reason=f"redriven from action {first + 1} as {started.transfer_id[:SHOWN]}",
                by=who.subject,
            )
        )
        return Redriven(started, first + 1, [f"{index + 1}. {action}" for index, action in done])

    async def _started(self, order: FileJobOrder) -> StartedTransfer:
        """Start it under the first number of which no run has failed."""
        failed = order.redriven_from or ""
        queue = self._service.queues.get(order.queue)
        for number in range(1, REDRIVES + 1):
            id = redrive_id(failed, number)
            row = await self._store.get(id)
            if row is not None and row.status is TransferStatus.FAILED:
                continue
            if row is not None:
                raise Refused(f"it was redriven as {id[:SHOWN]}, which {standing(row.status)}")
            numbered = order.model_copy(update={"transfer_id": id})
            with temporal_errors():
                started = await self._starts.start_job(numbered, queue and queue.priority)
            if not started.created:
                raise Refused(f"it was redriven as {id[:SHOWN]}, which no worker has begun yet")
            return started
        raise Refused(f"it was redriven {REDRIVES} times: send its event anew")

    async def _order_of(self, row: StatusRow) -> FileJobOrder:
        handle = self._client.get_workflow_handle(file_job_id(row.transfer_id))
        with temporal_errors():
            try:
                async for event in handle.fetch_history_events(page_size=1):
                    payloads = event.workflow_execution_started_event_attributes.input.payloads
                    [order] = await self._client.data_converter.decode(payloads, [FileJobOrder])
                    return order
            except RPCError as error:
                if error.status is not RPCStatusCode.NOT_FOUND:
                    raise
        raise WrongState("Temporal has forgotten its run: send its event again")

    async def _receipt_of(self, row: StatusRow) -> Receipt | None:
        """What it has done; None: no action has begun."""
        if row.receipt is None:
            return None
        name = receipt_blob(row.transfer_id)
        try:
            content = b"".join([piece async for piece in self._blobs().read(name)])
        except BlobNotFound:
            raise WrongState(
                "its receipt is missing, so what it has done is not known: send its event again"
            ) from None
        return Receipt.model_validate_json(content)


def _first(receipt: Receipt | None) -> int:
    """The action at which a transfer has failed."""
    steps = () if receipt is None else receipt.steps
    failed = [step.index for step in steps if step.outcome == "failed"]
    return failed[-1] if failed else max((step.index + 1 for step in steps), default=0)


def _reads(order: FileJobOrder, receipt: Receipt | None) -> Mapping[int, str]:
    """Place of each action that has read files, and the digest of what it has read."""
    steps = () if receipt is None else receipt.steps
    return {
        **dict(order.read_before),
        **{
            step.index: read_digest(step.files)
            for step in steps
            if step.action == _READS and step.outcome is None
        },
    }


def _sent_to(order: FileJobOrder, receipt: Receipt | None) -> Mapping[int, str]:
    """Place of each action that has sent something, and the partner or queue that it went to."""
    steps = () if receipt is None else receipt.steps
    sent = {
        step.index: where
        for step in steps
        if step.outcome is None and step.action in _EFFECTS and (where := where_of(step))
    }
    return {**dict(order.done_where), **sent}


def _effects(receipt: Receipt | None) -> Sequence[tuple[int, str]]:
    steps = () if receipt is None else receipt.steps
    return [
        (step.index, step.action)
        for step in steps
        if step.outcome in _DONE and step.action in _EFFECTS
    ]
