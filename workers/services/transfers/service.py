"""Everything that people and programs do with transfers, whatever way they come."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Final

from adapters.ports import RejectionRecord
from adapters.ports.transfers import PartnerStore, StatusRow, TransferStore
from contracts.answers import Retry
from contracts.transfers import (
    FileJobOrder,
    TransferAssign,
    TransferStatus,
    TransferView,
    resend_id,
    transfer_workflow_id,
)
from domain.transfers.events import head_of
from domain.transfers.paths import printable
from domain.transfers.queues import Queue
from domain.transfers.standing import standing
from workers.services.bodies import RefusedMessage
from workers.services.cursors import Cursor
from workers.services.errors import (
    InvalidRequest,
    NotFound,
    Refused,
    ServiceError,
    TemporalUnavailable,
    WrongState,
)
from workers.services.identity import Identity, require_operator
from workers.services.runs import TemporalRuns, temporal_errors
from workers.services.transfers.accepted import AcceptedEvent, accepted_event
from workers.services.transfers.starts import StartedTransfer, TransferStarts
from workers.services.transfers.verbs import WAITING, parked_reason, run_of

PAGE: Final = 50
LARGEST_PAGE: Final = 500
RESENDS: Final = 1_000
MOST: Final = 1_000
"""Transfers that wait for a person whose reasons the inbox shows."""
_PIPELINE: Final = "transfers"


@dataclass(frozen=True, slots=True)
class TransferDetails:
    """One transfer, as it is now."""

    row: StatusRow
    trail: Sequence[StatusRow]
    view: TransferView | None
    """What its run says; None: it has ended, or no worker answers."""
    link: str | None = None
    """To its run in the Web UI."""

    @property
    def is_parked(self) -> bool:
        """It waits for a person."""
        if self.row.status is TransferStatus.NO_ASSIGNED:
            return True
        return self.view is not None and self.view.since is not None


@dataclass(frozen=True, slots=True)
class Rerouted:
    """What became of one event whose rules were looked at again."""

    transfer_id: str
    problem: str | None
    """Why it was not done; None: the rules are looked at again now."""


class TransferService:
    """Every operation on transfers; a refusal is a `ServiceError`.

    Args:
        store: Rows of transfers.
        partners: Their records.
        runs: Of Temporal.
        starts: Starts runs.
        queues: That there are, by name.
        rejected: Keeps messages that are refused.
    """

    def __init__(
        self,
        store: TransferStore,
        partners: PartnerStore,
        runs: TemporalRuns,
        starts: TransferStarts,
        queues: Mapping[str, Queue],
        rejected: RejectionRecord,
    ) -> None:
        self._store, self._partners = store, partners
        self._runs, self._starts, self._rejected = runs, starts, rejected
        self.queues = queues

    async def list(
        self,
        who: Identity,
        *,
        status: TransferStatus | None = None,
        queue: str | None = None,
        account_id: str | None = None,
        before: Cursor | None = None,
        limit: int = PAGE,
    ) -> Sequence[StatusRow]:
        """Transfers, the newest change first."""
        require_operator(who, "transfers")
        return await self._store.newest(
            limit=min(limit, LARGEST_PAGE),
            status=status,
            queue=queue,
            account_id=account_id,
            before=before and before.at,
            behind=before and before.id,
        )

    async def parked(self, who: Identity) -> Mapping[str, str]:
        """Why transfers wait for a person, by workflow id; those that changed last, of many."""
        require_operator(who, "transfers")
        found = await self.parked_rows(who, MOST)
        return {run_of(row): reason for row in found if (reason := parked_reason(row))}

    async def parked_rows(self, who: Identity, limit: int) -> Sequence[StatusRow]:
        """Transfers that wait for a person; of more than the limit, those that changed last."""
        require_operator(who, "transfers")
        rows: list[StatusRow] = []
        for status, beginning in WAITING.items():
            rows += await self._store.newest(limit=limit, status=status, reason=beginning)
        return rows

    async def row(self, who: Identity, name: str) -> StatusRow:
        """The row of a transfer.

        Args:
            who: Who asks.
            name: Its id, the beginning of it (8 characters or more), or its workflow id.

        Raises:
            NotFound: There is none.
            Refused: There are several.
        """
        require_operator(who, "transfers")
        text = name.removeprefix("transfer/").removesuffix("/job")
        match await self._store.find(text):
            case []:
                raise NotFound(f"there is no transfer {name!r}")
            case [one]:
                return one
            case several:
                named = ", ".join(each.transfer_id[:12] for each in several)
                raise Refused(f"{name!r} may be {named}; give more of the id")

    async def get(self, who: Identity, name: str) -> TransferDetails:
        """A transfer: every state that it was in, and what its run says now."""
        row = await self.row(who, name)
        trail = await self._store.trail(row.transfer_id)
        try:
            view = await self._runs.query(run_of(row), "status", TransferView)
        except TemporalUnavailable:
            view = None
        return TransferDetails(row, trail, view, self._runs.link(run_of(row)))

    async def accepted(self, who: Identity, transfer_id: str) -> AcceptedEvent:
        """An event that has no row yet: no worker has checked it.

        Raises:
            NotFound: Temporal knows of none with this id, in full.
        """
        require_operator(who, "transfers")
        with temporal_errors():
            found = await accepted_event(self._runs.client, transfer_id)
        if found is None:
            raise NotFound(f"there is no transfer {transfer_id!r}")
        return found

    async def submit(self, who: Identity, body: str, way_in: str = "submit") -> StartedTransfer:
        """Have an event carried out; one that is refused is recorded as rejected.

        Raises:
            InvalidRequest: Another event came with its source and id.
            TemporalUnavailable: Temporal does not take it.
        """
        require_operator(who, "transfers")
        with temporal_errors():
            try:
                return await self._starts.start(body, way_in)
            except RefusedMessage as refused:
                await self._rejected.record(
                    way_in,
                    head_of(body).transfer_id,
                    refused.reason,
                    refused.description,
                    body.encode(),
                )
                raise InvalidRequest(str(refused)) from refused

    async def assign(
        self, who: Identity, name: str, queue: str, reason: str | None = None
    ) -> StatusRow:
        """Name the queue of an event that no rule matches, or another one for a job without any.

        Raises:
            InvalidRequest: There is no such queue.
            WrongState: It does not wait for one, or actions of its job have begun.
            TemporalUnavailable: No worker answers.
        """
        row = await self._assignable(who, name)
        if queue not in self.queues:
            raise InvalidRequest(
                f"there is no queue {queue}; there are {', '.join(sorted(self.queues))}"
            )
        answer = TransferAssign(queue=queue, by=who.subject, reason=reason)
        await self._runs.update(run_of(row), "assign", answer, TransferView, _PIPELINE)
        return row

    async def _assignable(self, who: Identity, name: str) -> StatusRow:
        """A transfer that waits for a queue, or whose job is parked."""
        row = await self.row(who, name)
        if row.status in WAITING and parked_reason(row) is not None:
            return row
        raise _no_queue(row)

    async def reroute(self, who: Identity, name: str | None = None) -> Sequence[Rerouted]:
        """Have the rules looked at again.

        Args:
            who: Who asks.
            name: The transfer; None: all that no rule has matched.
        """
        require_operator(who, "transfers")
        if name is not None:
            return [await self._reroute(who, await self._unassigned(who, name))]
        return [await self._reroute(who, row) async for row in self._all_unassigned()]

    async def _all_unassigned(self) -> AsyncGenerator[StatusRow]:
        """By the page: those that are rerouted meanwhile do not come again."""
        last: StatusRow | None = None
        while True:
            rows = await self._store.newest(
                limit=LARGEST_PAGE,
                status=TransferStatus.NO_ASSIGNED,
                before=last and last.at,
                behind=last and last.transfer_id,
            )
            for row in rows:
                yield row
            if len(rows) < LARGEST_PAGE:
                return
            last = rows[-1]

    async def _reroute(self, who: Identity, row: StatusRow) -> Rerouted:
        run = transfer_workflow_id(row.transfer_id)
        try:
            await self._runs.update(run, "retry", Retry(by=who.subject), TransferView, _PIPELINE)
        except ServiceError as error:
            return Rerouted(row.transfer_id, str(error))
        return Rerouted(row.transfer_id, None)

    async def resend(self, who: Identity, name: str, partner: str | None = None) -> StartedTransfer:
        """Send the kept copy of a transfer again, as a transfer of its own.

        Args:
            who: Who asks.
            name: The transfer.
            partner: Where to; None: where its job's settings say.

        Raises:
            InvalidRequest: There is no such partner.
            WrongState: It has not succeeded, or no copy of it is kept (any more).
        """
        row = await self.row(who, name)
        kept = row.kept
        if row.status is not TransferStatus.SUCCEEDED or row.queue is None:
            said = standing(row.status)
            raise WrongState(f"only what has succeeded can be sent again; this {said}")
        if kept is None:
            raise WrongState("no copy was kept of it: set KeepCopyDays in the settings of its job")
        if kept.until < _today():
            raise WrongState(f"its copy was kept until {kept.until:%Y-%m-%d}")
        if partner is not None and await self._partners.get(partner) is None:
            raise InvalidRequest(
                f"there is no partner {printable(partner)}; see `docflow partners list`"
            )
        order = FileJobOrder(
            transfer_id=row.transfer_id,
            queue=row.queue,
            event=kept.event,
            digest=row.digest or "",
            arrived=datetime.now(UTC),
            way_in="resend",
            resent_from=row.transfer_id,
            resend_to=partner,
            files=kept.files,
            notices=True,
        )
        return await self._started_anew(order)

    async def _started_anew(self, order: FileJobOrder) -> StartedTransfer:
        """Start the run of a copy under the first number that no other has taken meanwhile."""
        queue = self.queues.get(order.queue)
        for number in range(1, RESENDS + 1):
            id = resend_id(order.transfer_id, number)
            if await self._store.get(id) is not None:
                continue
            numbered = order.model_copy(update={"transfer_id": id, "resend": number})
            with temporal_errors():
                started = await self._starts.start_job(numbered, queue and queue.priority)
            if started.created:
                return started
        raise Refused(f"it was sent again {RESENDS:,} times: send its event anew")

    async def _unassigned(self, who: Identity, name: str) -> StatusRow:
        row = await self.row(who, name)
        if row.status is not TransferStatus.NO_ASSIGNED:
            raise _no_queue(row)
        return row


def _no_queue(row: StatusRow) -> WrongState:
    return WrongState(
        f"it waits for no queue: it {standing(row.status)}",
        workflow_id=transfer_workflow_id(row.transfer_id),
    )


def _today() -> date:
    return datetime.now(UTC).date()
