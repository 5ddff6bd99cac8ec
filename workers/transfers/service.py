"""Everything that people and programs do with transfers, whatever way they come."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Any, Final

from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from activities.transfers.cloud_events import NoEvent, head_of, read_event, with_organisation
from activities.transfers.operators_files import Queue
from activities.transfers.records import AcceptedEvent, Transfer
from activities.transfers.store import SqlTransferStore
from adapters.ports.records import RejectionRecord
from adapters.ports.transfers import PartnerStore
from workers.shared.register import Run
from workers.shared.services.bodies import RefusedMessage, correction_of
from workers.shared.services.errors import (
    InvalidRequest,
    NotFound,
    Refused,
    ServiceError,
    TemporalUnavailable,
    WrongState,
)
from workers.shared.services.identity import (
    OPERATOR,
    VIEWER,
    Identity,
    require_operator,
    require_role,
)
from workers.shared.services.lists import Cursor
from workers.shared.services.quotas import Quotas
from workers.shared.services.run_actions import AnswerRequest, DefaultServedRuns
from workers.shared.services.runs import TemporalRuns, started_with, temporal_errors
from workers.shared.services.runs import standing as standing_of
from workers.transfers.starts import StartedTransfer, TransferStarts
from workflows.shared.contracts import Answer, Contract, Retry
from workflows.shared.parking import Decision
from workflows.transfers.events import FILE_EVENT, FILE_JOB, FileNotice, TransferStatus
from workflows.transfers.job_settings import LEFT_OUT
from workflows.transfers.paths import printable
from workflows.transfers.runs import (
    FileEventInput,
    FileJobInput,
    TransferAssign,
    TransferRetry,
    TransferView,
    file_job_id,
    resend_id,
    status_label,
    transfer_workflow_id,
)

_SETTINGS: Final = "corrected settings of an action"
_PARKED: Final = "parked: "
"""Begins the reason of a row whose run is parked."""
WAITING: Final[Mapping[TransferStatus, str | None]] = {
    TransferStatus.NO_ASSIGNED: None,
    TransferStatus.READ_MESSAGE: _PARKED,
}
"""States of transfers that may wait for a person, and how the reason of those that do begins."""
_EVENTS: Final = (TransferStatus.INVALID, TransferStatus.GARBAGE, TransferStatus.NO_ASSIGNED)


def run_of(row: Transfer) -> str:
    """The workflow id of the run that a row is about."""
    if row.run is not None:
        return row.run
    is_event = row.status in _EVENTS
    return (transfer_workflow_id if is_event else file_job_id)(row.transfer_id)


def parked_reason(row: Transfer) -> str | None:
    """Why a transfer waits for a person; None: it does not."""
    reason = row.reason or ""
    if row.status is TransferStatus.NO_ASSIGNED:
        return reason
    is_parked = row.status in WAITING and reason.startswith(_PARKED)
    return reason.removeprefix(_PARKED) if is_parked else None


async def accepted_event(client: Client, transfer_id: str) -> AcceptedEvent | None:
    """The event that a run was started with; None: Temporal knows of no such run.

    Raises:
        RPCError: Temporal does not answer.
    """
    handle = client.get_workflow_handle(transfer_workflow_id(transfer_id))
    try:
        found = await handle.describe()
        order = await started_with(client, handle.id, FileEventInput)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None
        raise
    status = found.status or WorkflowExecutionStatus.RUNNING
    ended = None if status is WorkflowExecutionStatus.RUNNING else standing_of(status)
    return AcceptedEvent.of(
        transfer_id,
        _event_of(order),
        at=order.arrived.astimezone(UTC),
        reason=ended and f"its run {ended} before a worker had checked the event",
        ended=ended,
    )


def _event_of(order: FileEventInput) -> FileNotice | None:
    try:
        return read_event(order.body, order.arrived)
    except NoEvent:
        return None


_PIPELINE: Final = "transfers"


class Offer(StrEnum):
    """Something that a person can have done with a transfer."""

    ASSIGN = "assign"
    """Name its queue."""
    REROUTE = "reroute"
    """Look at the rules again."""
    RETRY = "retry"
    CORRECT = "correct"
    """Try again with other settings of the action that failed, or those that the file has now."""
    SKIP = "skip"
    FAIL = "fail"
    CANCEL = "cancel"
    RESEND = "resend"
    REDRIVE = "redrive"


_OF_INSTALLATION: Final = frozenset({Offer.ASSIGN, Offer.CORRECT})
"""They name queues and partners, which belong to no organisation."""


def _may(who: Identity, row: Transfer, offer: Offer) -> bool:
    """Whether a person may have something done with a transfer."""
    if offer in _OF_INSTALLATION and not who.is_operator:
        return False
    return who.may(OPERATOR, row.organisation_id)


def offers(found: Transfer) -> Sequence[Offer]:
    """What a person can have done with a transfer, as its row and its run say."""
    return [*_answers(found), *_others(found)]


def _answers(found: Transfer) -> Sequence[Offer]:
    """Of a run that waits for a person; of another one, none."""
    view = found.view
    if view is None or view.since is None:
        return ()
    if view.status is TransferStatus.NO_ASSIGNED:
        return (Offer.ASSIGN, Offer.REROUTE, Offer.SKIP, Offer.FAIL)
    parked = [each for each in view.actions if each.state == "parked"]
    offered = [Offer.RETRY]
    if parked:
        offered.append(Offer.CORRECT)
    elif not view.actions:
        # Parked at `settings`: no action has begun.
        offered.insert(0, Offer.ASSIGN)
    if any(each.action in LEFT_OUT for each in parked):
        offered.append(Offer.SKIP)
    return (*offered, Offer.FAIL)


def _others(found: Transfer) -> Sequence[Offer]:
    match found.status:
        case TransferStatus.READ_MESSAGE if found.view is not None:
            return (Offer.CANCEL,)
        case TransferStatus.SUCCEEDED if found.kept is not None:
            return (Offer.RESEND,) if found.kept.until >= datetime.now(UTC).date() else ()
        case TransferStatus.FAILED if run_of(found) == file_job_id(found.transfer_id):
            return (Offer.REDRIVE,)
        case _:
            return ()


PAGE: Final = 50
LARGEST_PAGE: Final = 500
RESENDS: Final = 1_000
MOST: Final = 1_000
"""Transfers that wait for a person whose reasons the inbox shows."""


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
        quotas: Of organisations.
    """

    def __init__(
        self,
        store: SqlTransferStore,
        partners: PartnerStore,
        runs: TemporalRuns,
        starts: TransferStarts,
        queues: Mapping[str, Queue],
        rejected: RejectionRecord,
        quotas: Quotas,
    ) -> None:
        self.quotas = quotas
        self.store, self._partners = store, partners
        self.runs, self.starts, self._rejected = runs, starts, rejected
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
    ) -> Sequence[Transfer]:
        """Transfers that a person may see, the newest change first."""
        return await self.store.newest(
            visible=who.sees,
            limit=min(limit, LARGEST_PAGE),
            status=status,
            queue=queue,
            account_id=account_id,
            before=before and before.at,
            behind=before and before.id,
        )

    async def parked_rows(self, who: Identity, limit: int) -> Sequence[Transfer]:
        """Transfers that wait for a person; of more than the limit, those that changed last."""
        rows: list[Transfer] = []
        for status, beginning in WAITING.items():
            rows += await self.store.newest(
                limit=limit, visible=who.sees, status=status, reason=beginning
            )
        return rows

    async def row(self, who: Identity, name: str, role: str = VIEWER) -> Transfer:
        """The row of a transfer.

        Args:
            who: Who asks.
            name: Its id, the beginning of it (8 characters or more), or its workflow id.
            role: What they need in the organisation of the transfer.

        Raises:
            NotFound: There is none that they may see.
            Refused: There are several.
            Forbidden: They lack the role.
        """
        text = name.removeprefix("transfer/").removesuffix("/job")
        match await self.store.find(text, who.sees):
            case []:
                raise NotFound(f"there is no transfer {name!r}")
            case [one]:
                require_role(who, role, one.organisation_id)
                return one
            case several:
                named = ", ".join(each.transfer_id[:12] for each in several)
                raise Refused(f"{name!r} may be {named}; give more of the id")

    async def get(self, who: Identity, name: str) -> Transfer:
        """A transfer: every state that it was in, and what its run says now."""
        row = await self.row(who, name)
        trail = await self.store.trail(row.transfer_id)
        try:
            view = await self.runs.query(run_of(row), "status", TransferView)
        except TemporalUnavailable:
            view = None
        link = self.runs.link(run_of(row))
        found = row.model_copy(update={"trail": trail, "view": view, "link": link})
        offered = [each for each in offers(found) if _may(who, found, each)]
        return found.model_copy(update={"offers": offered})

    async def accepted(self, who: Identity, transfer_id: str) -> AcceptedEvent:
        """An event that has no row yet: no worker has checked it.

        Raises:
            NotFound: Temporal knows of none with this id, in full, that they may see.
        """
        with temporal_errors():
            found = await accepted_event(self.runs.client, transfer_id)
        if found is None or not who.sees.shows(found.organisation_id):
            raise NotFound(f"there is no transfer {transfer_id!r}")
        return found

    async def submit(
        self,
        who: Identity,
        body: str,
        way_in: str = "submit",
        organisation_id: int | None = None,
    ) -> StartedTransfer:
        """Have an event carried out; one that is refused is recorded as rejected.

        Args:
            who: Who sends it.
            body: JSON in structured mode.
            way_in: Where it came.
            organisation_id: Organisation that it belongs to; None: that which it names itself.

        Raises:
            Forbidden: The caller is no operator of the organisation.
            InvalidRequest: Another event came with its source and id, or it names another
                organisation itself.
            TemporalUnavailable: Temporal does not take it.
        """
        # It is routed by rules, to partners, that belong to no organisation.
        require_operator(who, "transfers")
        named = head_of(body).organisation_id
        if organisation_id not in (None, named) and named is not None:
            raise InvalidRequest(
                f"the event names organisation {named}, and the request {organisation_id}"
            )
        require_role(who, OPERATOR, owner := organisation_id or named)
        if owner is not None:
            body = with_organisation(body, owner)
            if await self.store.get(head_of(body).transfer_id) is None:
                await self.quotas.admit(owner)
        with temporal_errors():
            try:
                return await self.starts.start(body, way_in)
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
    ) -> Transfer:
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
        await self.runs.update(run_of(row), "assign", answer, TransferView, _PIPELINE)
        return row

    async def _assignable(self, who: Identity, name: str) -> Transfer:
        """A transfer that waits for a queue, or whose job is parked."""
        row = await self.row(who, name, OPERATOR)
        require_operator(who, "queues")
        if row.status in WAITING and parked_reason(row) is not None:
            return row
        raise _no_queue(row)

    async def answer(
        self,
        who: Identity,
        row: Transfer,
        decision: Decision,
        *,
        reason: str | None = None,
        correction: str = "",
        settings: bool = False,
    ) -> None:
        """Answer a run that waits for a person.

        Args:
            who: Who decides.
            row: The transfer.
            decision: What is to be done.
            reason: Why.
            correction: Of a retry: settings of the failed action that change, a JSON object.
            settings: Of a retry: read the settings of the job again.

        Raises:
            InvalidRequest: The correction is not a JSON object.
            Refused: The run does not take this answer; nothing has changed.
            TemporalUnavailable: No worker answered.
        """
        require_role(who, OPERATOR, row.organisation_id)
        if correction:
            require_operator(who, _SETTINGS)
        answer: Contract = Answer(by=who.subject, reason=reason)
        if decision is Decision.RETRY and run_of(row) == file_job_id(row.transfer_id):
            action = correction_of(correction.encode() or None, "settings of the action")
            answer = TransferRetry(by=who.subject, reason=reason, action=action, settings=settings)
        elif decision is Decision.RETRY:
            answer = Retry(by=who.subject, reason=reason)
        await self.runs.update(run_of(row), decision.value, answer, TransferView, _PIPELINE)

    async def cancel(self, who: Identity, row: Transfer, reason: str | None = None) -> None:
        """Begin no further action of a job.

        Raises:
            NotFound: No run of it is open.
            Refused: It is too late.
        """
        require_role(who, OPERATOR, row.organisation_id)
        answer = Answer(by=who.subject, reason=reason)
        await self.runs.update(run_of(row), "cancel", answer, TransferView, _PIPELINE)

    async def reroute(self, who: Identity, name: str | None = None) -> Sequence[Rerouted]:
        """Have the rules looked at again.

        Args:
            who: Who asks.
            name: The transfer; None: all that no rule has matched and that they may see.
        """
        if name is not None:
            return [await self._reroute(who, await self._unassigned(who, name))]
        require_operator(who, "routes")
        return [await self._reroute(who, row) async for row in self._all_unassigned(who)]

    async def _all_unassigned(self, who: Identity) -> AsyncGenerator[Transfer]:
        """By the page: those that are rerouted meanwhile do not come again."""
        last: Transfer | None = None
        while True:
            rows = await self.store.newest(
                limit=LARGEST_PAGE,
                visible=who.sees,
                status=TransferStatus.NO_ASSIGNED,
                before=last and last.at,
                behind=last and last.transfer_id,
            )
            for row in rows:
                yield row
            if len(rows) < LARGEST_PAGE:
                return
            last = rows[-1]

    async def _reroute(self, who: Identity, row: Transfer) -> Rerouted:
        run = transfer_workflow_id(row.transfer_id)
        try:
            await self.runs.update(run, "retry", Retry(by=who.subject), TransferView, _PIPELINE)
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
        row = await self.row(who, name, OPERATOR)
        if partner is not None:
            require_operator(who, "partners")
        kept = row.kept
        if row.status is not TransferStatus.SUCCEEDED or row.queue is None:
            said = status_label(row.status)
            raise WrongState(f"only what has succeeded can be sent again; this {said}")
        if kept is None:
            raise WrongState("no copy was kept of it: set KeepCopyDays in the settings of its job")
        if kept.until < _today():
            raise WrongState(f"its copy was kept until {kept.until:%Y-%m-%d}")
        if partner is not None and await self._partners.get(partner) is None:
            raise InvalidRequest(
                f"there is no partner {printable(partner)}; see `docflow partner list`"
            )
        await self.quotas.admit(row.organisation_id)
        order = FileJobInput(
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

    async def _started_anew(self, order: FileJobInput) -> StartedTransfer:
        """Start the run of a copy under the first number that no other has taken meanwhile."""
        queue = self.queues.get(order.queue)
        for number in range(1, RESENDS + 1):
            id = resend_id(order.transfer_id, number)
            if await self.store.get(id) is not None:
                continue
            numbered = order.model_copy(update={"transfer_id": id, "resend": number})
            with temporal_errors():
                started = await self.starts.start_job(numbered, queue and queue.priority)
            if started.created:
                return started
        raise Refused(f"it was sent again {RESENDS:,} times: send its event anew")

    async def _unassigned(self, who: Identity, name: str) -> Transfer:
        row = await self.row(who, name, OPERATOR)
        if row.status is not TransferStatus.NO_ASSIGNED:
            raise _no_queue(row)
        return row


def _no_queue(row: Transfer) -> WrongState:
    return WrongState(
        f"it waits for no queue: it {status_label(row.status)}",
        workflow_id=transfer_workflow_id(row.transfer_id),
    )


def _today() -> date:
    return datetime.now(UTC).date()


class ServedTransfers(DefaultServedRuns):
    """What a gateway does to events and to their jobs.

    Args:
        service: Of transfers.
    """

    def __init__(self, service: TransferService) -> None:
        super().__init__(service.runs, correction="action")
        self._service = service

    async def answer(self, who: Identity, run: Run, request: AnswerRequest) -> None:
        """Corrected settings may name another partner, which belongs to no organisation."""
        if request.correction is not None:
            require_operator(who, _SETTINGS)
        await super().answer(who, run, request)

    async def details(self, who: Identity, run: Run) -> Mapping[str, Any] | None:
        """A transfer with every state that it was in; any other run has its status."""
        if run.kind.workflow not in (FILE_EVENT, FILE_JOB):
            return None
        return (await self._service.get(who, run.key)).model_dump(mode="json")
