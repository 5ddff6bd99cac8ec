"""Failed and parked transfers: carried out anew, answered together, their receipts."""

import asyncio
import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from pydantic import ValidationError
from temporalio.service import RPCError, RPCStatusCode

from activities.transfers.records import Transfer
from adapters.ports.blobs import Blobs
from adapters.ports.errors import BlobNotFound, Unavailable
from workers.shared.services.errors import (
    InvalidRequest,
    NotFound,
    Refused,
    ServiceError,
    TemporalUnavailable,
    WrongState,
)
from workers.shared.services.identity import OPERATOR, Identity
from workers.shared.services.inbox import gather_bounded
from workers.shared.services.runs import started_with, temporal_errors
from workers.transfers.service import (
    TransferService,
    parked_reason,
    run_of,
)
from workers.transfers.starts import StartedTransfer
from workflows.shared.notifications import cause_key, failure_fingerprint
from workflows.shared.parking import Decision
from workflows.transfers.events import TransferStatus
from workflows.transfers.receipts import Receipt, read_digest, verify
from workflows.transfers.runs import (
    ActionDetail,
    ActionDetails,
    ActionView,
    FileJobInput,
    file_job_id,
    receipt_blob,
    redrive_id,
    resend_id,
    status_label,
    step_destination,
)

SHOWN: Final = 12
"""Characters of an id, for people."""
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
    """Starts failed transfers anew, and shows what one has done.

    Args:
        service: Of transfers.
        blobs: Opens what holds receipts.
    """

    def __init__(self, service: TransferService, blobs: Callable[[], Blobs]) -> None:
        self._service, self._blobs = service, blobs

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
        row = await self._service.row(who, name, OPERATOR)
        if row.status is not TransferStatus.FAILED:
            said = status_label(row.status)
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
        await self._service.quotas.admit(row.organisation_id)
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
        await self._service.store.note(
            row.model_copy(
                update={
                    "at": datetime.now(UTC),
                    "reason": f"redriven from action {first + 1} as {started.transfer_id[:SHOWN]}",
                    "by": who.subject,
                }
            )
        )
        return Redriven(started, first + 1, [f"{index + 1}. {action}" for index, action in done])

    async def _started(self, order: FileJobInput) -> StartedTransfer:
        """Start it under the first number of which no run has failed."""
        failed = order.redriven_from or ""
        queue = self._service.queues.get(order.queue)
        for number in range(1, REDRIVES + 1):
            id = redrive_id(failed, number)
            row = await self._service.store.get(id)
            if row is not None and row.status is TransferStatus.FAILED:
                continue
            if row is not None:
                raise Refused(f"it was redriven as {id[:SHOWN]}, which {status_label(row.status)}")
            numbered = order.model_copy(update={"transfer_id": id})
            with temporal_errors():
                started = await self._service.starts.start_job(numbered, queue and queue.priority)
            if not started.created:
                raise Refused(f"it was redriven as {id[:SHOWN]}, which no worker has begun yet")
            return started
        raise Refused(f"it was redriven {REDRIVES} times: send its event anew")

    async def _order_of(self, row: Transfer) -> FileJobInput:
        client = self._service.runs.client
        with temporal_errors():
            try:
                return await started_with(client, file_job_id(row.transfer_id), FileJobInput)
            except RPCError as error:
                if error.status is not RPCStatusCode.NOT_FOUND:
                    raise
        raise WrongState("Temporal has forgotten its run: send its event again")

    async def _receipt_of(self, row: Transfer) -> Receipt | None:
        """What it has done; None: no action has begun."""
        if row.receipt is None:
            return None
        try:
            content = await self._bytes(receipt_blob(row.transfer_id))
        except BlobNotFound:
            raise WrongState(
                "its receipt is missing, so what it has done is not known: send its event again"
            ) from None
        return Receipt.model_validate_json(content)

    async def _bytes(self, name: str) -> bytes:
        return b"".join([piece async for piece in self._blobs().read(name)])

    async def written(self, who: Identity, name: str) -> bytes:
        """The receipt of a transfer, as it was written.

        Raises:
            NotFound: There is no such transfer, or it has no receipt, or none any more.
            WrongState: What is stored is none.
        """
        row = await self._service.row(who, name)
        id = row.transfer_id[:SHOWN]
        if row.receipt is None:
            raise NotFound(f"transfer {id} has no receipt: it {status_label(row.status)}")
        try:
            content = await self._bytes(row.receipt.name)
            await asyncio.to_thread(json.loads, content)
        except BlobNotFound as error:
            raise NotFound(f"the receipt of {id} is gone: {error}") from error
        except (ValueError, RecursionError) as error:
            raise WrongState(f"what is stored as the receipt of {id} is not JSON") from error
        return content

    async def receipt(self, row: Transfer) -> "ShownReceipt | None":
        """The receipt of a transfer; None: it has none yet."""
        if row.receipt is None:
            return None
        if row.receipt.size > LARGEST:
            return ShownReceipt(
                problem=f"it has {row.receipt.size:,} bytes: `docflow transfer receipt "
                f"{row.transfer_id[:12]}` shows it"
            )
        try:
            content = await self._bytes(row.receipt.name)
        except BlobNotFound as error:
            return ShownReceipt(problem=f"it is gone: {error}")
        except Unavailable as error:
            return ShownReceipt(problem=f"it cannot be read at the moment: {error}")
        return _read(content, row.receipt.sha256)

    async def overview(self, who: Identity, name: str) -> "TransferOverview":
        """A transfer.

        Raises:
            NotFound: There is none that the caller may see.
        """
        transfer = await self._service.get(who, name)
        receipt = await self.receipt(transfer)
        known = receipt and receipt.receipt
        return TransferOverview(
            transfer,
            await self._actions(transfer),
            receipt,
            known and (known.resent_from or known.redriven_from),
            await self._following(transfer),
        )

    async def _actions(self, transfer: Transfer) -> Sequence[tuple[ActionView, ActionDetail]]:
        views = () if transfer.view is None else transfer.view.actions
        found: ActionDetails | None = None
        if views:
            # A worker of an earlier release does not know the query.
            with suppress(TemporalUnavailable):
                found = await self._service.runs.query(run_of(transfer), "actions", ActionDetails)
        known = [] if found is None else [*found.actions]
        return list(zip(views, [*known, *[ActionDetail()] * len(views)], strict=False))

    async def _following(self, row: Transfer) -> Sequence[Transfer]:
        name = {TransferStatus.SUCCEEDED: resend_id, TransferStatus.FAILED: redrive_id}.get(
            row.status
        )
        found: list[Transfer] = []
        while name is not None and len(found) < _FOLLOWING:
            following = await self._service.store.get(name(row.transfer_id, len(found) + 1))
            if following is None:
                break
            found.append(following)
        return found


def _first(receipt: Receipt | None) -> int:
    """The action at which a transfer has failed."""
    steps = () if receipt is None else receipt.steps
    failed = [step.index for step in steps if step.outcome == "failed"]
    return failed[-1] if failed else max((step.index + 1 for step in steps), default=0)


def _reads(order: FileJobInput, receipt: Receipt | None) -> Mapping[int, str]:
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


def _sent_to(order: FileJobInput, receipt: Receipt | None) -> Mapping[int, str]:
    """Place of each action that has sent something, and the partner or queue that it went to."""
    steps = () if receipt is None else receipt.steps
    sent = {
        step.index: where
        for step in steps
        if step.outcome is None and step.action in _EFFECTS and (where := step_destination(step))
    }
    return {**dict(order.done_where), **sent}


def _effects(receipt: Receipt | None) -> Sequence[tuple[int, str]]:
    steps = () if receipt is None else receipt.steps
    return [
        (step.index, step.action)
        for step in steps
        if step.outcome in _DONE and step.action in _EFFECTS
    ]


LARGEST: Final = 2 << 20
"""Bytes of a receipt that is shown: of about 5,000 files."""


@dataclass(frozen=True, slots=True)
class ShownReceipt:
    """What a receipt says, or why it cannot be shown."""

    receipt: Receipt | None = None
    problem: str | None = None
    """Why it is not shown, or is not as it was written."""


def _read(content: bytes, recorded: str | None) -> ShownReceipt:
    try:
        receipt = Receipt.model_validate_json(content)
        finding = verify(json.loads(content))
    except (ValidationError, ValueError, RecursionError):
        return ShownReceipt(problem="what is stored is not a receipt")
    problem = finding.problem and f"it is not as it was written: {finding.problem}"
    if problem is None and recorded not in (None, hashlib.sha256(content).hexdigest()):
        problem = "it holds together and is not the one of this transfer: it was written anew"
    return ShownReceipt(receipt, problem)


MOST: Final = 5_000
"""Transfers that are looked at, and answered by one command."""
EVENT: Final = "event"
"""Kind of an event that has no queue, as its search attribute `DocumentType` has it."""


@dataclass(frozen=True, slots=True)
class ParkedGroup:
    """Transfers of a queue that wait for one cause."""

    key: str
    kind: str
    """Their queue; `event`: no rule has matched them."""
    cause: str
    """Partner and failure, without names of files."""
    rows: Sequence[Transfer]
    """The longest wait first."""

    @property
    def since(self) -> datetime:
        """When the first of them was parked."""
        return self.rows[0].at


@dataclass(frozen=True, slots=True)
class Answered:
    """What became of one transfer of a group."""

    transfer_id: str
    problem: str | None
    """Why it was not answered; None: it was."""


def kind_of(row: Transfer) -> str:
    """What tells the answers of transfers apart: whether they have a queue, and which."""
    return EVENT if row.status is TransferStatus.NO_ASSIGNED else row.queue or EVENT


class ParkedGroups:
    """Finds transfers that wait for one cause, and answers them.

    Args:
        service: Of transfers.
    """

    def __init__(self, service: TransferService) -> None:
        self._service = service

    async def all(self, who: Identity) -> Sequence[ParkedGroup]:
        """Every group, the largest first.

        Raises:
            Forbidden: The caller is not an operator.
        """
        found: dict[tuple[str, str], list[Transfer]] = defaultdict(list)
        for row in await self._service.parked_rows(who, MOST):
            found[kind_of(row), failure_fingerprint(parked_reason(row) or "")].append(row)
        groups = [
            ParkedGroup(cause_key(kind, cause), kind, cause, sorted(rows, key=lambda row: row.at))
            for (kind, cause), rows in found.items()
        ]
        return sorted(groups, key=lambda group: (-len(group.rows), group.since))

    async def get(self, who: Identity, key: str) -> ParkedGroup:
        """One group.

        Raises:
            NotFound: No transfer waits for this cause, or none does any more.
        """
        for group in await self.all(who):
            if group.key == key:
                return group
        raise NotFound("no transfer waits for this cause now")

    async def answer(
        self, who: Identity, key: str, decision: Decision, reason: str | None = None
    ) -> Sequence[Answered]:
        """Give every transfer of a group the same answer, by the update of each run.

        Raises:
            NotFound: No transfer waits for this cause.
        """
        group = await self.get(who, key)

        async def one(row: Transfer) -> Answered:
            try:
                await self._service.answer(who, row, decision, reason=reason)
            except ServiceError as error:
                return Answered(row.transfer_id, str(error))
            return Answered(row.transfer_id, None)

        return await gather_bounded(group.rows, one)


_FOLLOWING: Final = 10
"""Transfers that a page links as those that sent it again."""


@dataclass(frozen=True, slots=True)
class TransferOverview:
    """All that is known of one transfer."""

    transfer: Transfer
    actions: Sequence[tuple[ActionView, ActionDetail]]
    """Of its job, in order; as long as a worker of its queue answers."""
    receipt: ShownReceipt | None
    before: str | None
    """The transfer that it sends again, or carries out anew."""
    following: Sequence[Transfer]
    """Those that have sent it again, or carried it out anew."""
