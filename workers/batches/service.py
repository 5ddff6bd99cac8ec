"""What people see of cases, batches and documents, and how they answer those that wait."""

import asyncio
import re
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError
from temporalio.client import WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError
from temporalio.exceptions import ApplicationError

from activities.batches.records import QUEUED, BatchView, DocumentView, FailedMessage
from adapters.ports.batches import LeaseWait, QueuedDeadLetter
from workers.batches.case_events import CaseRuns
from workers.batches.labels import shown_outcome, standing
from workers.batches.messages import read_document_event
from workers.shared.connect import connect
from workers.shared.errors import TemporalUnreachable
from workers.shared.services.bodies import RefusedMessage, printable
from workers.shared.services.errors import (
    InvalidRequest,
    NotFound,
    Refused,
    ServiceUnavailable,
    TemporalUnavailable,
    WrongState,
)
from workers.shared.services.identity import Identity, require_operator
from workers.shared.services.lists import Cursor
from workers.shared.services.runs import RunView, TemporalRuns, temporal_errors
from workflows.batches.events import (
    STARTABLE,
    CancelMode,
    CaseEvent,
    ImportCancelled,
    JobFinished,
    JobStarted,
    RedriveRequested,
)
from workflows.batches.loads import DocumentState
from workflows.batches.names import LARGEST_ID, BatchKey, LoaderStatus, Names, Timings
from workflows.batches.runs import BatchAnswer, BatchStatus, CaseStatus, WaitingBatch
from workflows.batches.validation import waited_for_by, waits_for
from workflows.shared.contracts import problem_text
from workflows.shared.errors import KEY_REUSED
from workflows.shared.parking import Decision
from workflows.shared.records import TERMINATED

if TYPE_CHECKING:
    from activities.batches.store import SqlBatchStore
    from adapters.aws.queues import AwsQueues
    from adapters.database.records import SqlLeases

SHOWN: Final = 80
"""Characters of a body that cannot be read."""
_UNSETTLED: Final = "it was received too often without being settled; see the log of the function"


async def unloaded(
    queues: "AwsQueues", store: "SqlBatchStore", key: BatchKey, names: Names, most: int
) -> list[FailedMessage]:
    """Messages of a batch that are not loaded, those in the queue first.

    Args:
        queues: Of the cloud.
        store: Tables.
        key: The batch.
        names: Of its resources.
        most: Messages of each kind.

    Raises:
        PortError: The cloud or the database does not answer.
    """
    queued = await queues.dead_letters(names, most)
    recorded = await store.failed_messages(key, ("", ""), most)
    return [*map(_queued, queued), *recorded]


async def failed_without_message(store: "SqlBatchStore", key: BatchKey, failed: int) -> int:
    """How many failed documents have no message: a release that kept none recorded them.

    Args:
        store: Tables.
        key: The batch.
        failed: Its documents that are `failed`.
    """
    after, documents = ("", ""), set[str | None]()
    while page := await store.failed_messages(key, after, 1_000):
        documents.update(message.document_id for message in page)
        after = page[-1].place
    return max(failed - len(documents), 0)


def _queued(letter: QueuedDeadLetter) -> FailedMessage:
    document_id = event_type = None
    try:
        event = read_document_event(letter.body.encode("utf-8", "surrogatepass"))
    except RefusedMessage as refused:
        reason = letter.reason or f"{refused.reason}: {refused.description}"
    else:
        reason = letter.reason or _UNSETTLED
        if event is not None:
            document_id, event_type = event.document_id, event.event_type
    return FailedMessage(
        where=QUEUED,
        document_id=document_id,
        event_type=event_type,
        reason=reason,
        at=letter.sent_at,
        body=letter.body,
    )


def beginning_of(body: str) -> str:
    """What a person sees of a body that cannot be read."""
    return printable(body if len(body) <= SHOWN else f"{body[:SHOWN]}...")


PIPELINE: Final = "batches"
DELIVERY_SECONDS: Final = 10.0
"""A case answers in a fraction of a second, when there is a worker to run it."""


class BatchRuns(TemporalRuns):
    """Runs of batches of one namespace."""

    async def status(self, key: BatchKey) -> BatchStatus | None:
        """Where the newest run of a batch stands; None: there is none.

        Raises:
            TemporalUnavailable: No worker answers.
        """
        return await self.query(key.workflow_id, "status", BatchStatus)

    async def is_unrecorded(self, key: BatchKey) -> bool:
        """Whether an event of a batch is accepted, and stands in no row yet.

        Raises:
            TemporalUnavailable: The case runs, and no worker answers for it.
        """
        view = await self.look(key.case_workflow_id)
        if view is None or view.closed:
            return False
        case = await self.query(key.case_workflow_id, "status", CaseStatus)
        return case is not None and key.batch_id in case.unrecorded

    async def send(self, event: CaseEvent, timings: Timings) -> str:
        """Deliver an event to its case; the workflow id of the run that accepted it.

        Raises:
            Refused: The batch was started with other timings before.
            TemporalUnavailable: It was not accepted, or no worker answered.
        """
        workflow_id = event.key.case_workflow_id
        name = f"{event.event_type} of {event.key}"
        with temporal_errors():
            try:
                async with asyncio.timeout(DELIVERY_SECONDS):
                    # Sent again by a person, an event is meant again.
                    await CaseRuns(self.client, timings).deliver(event, uuid.uuid4().hex)
            except (TimeoutError, WorkflowUpdateRPCTimeoutOrCancelledError) as error:
                raise TemporalUnavailable(
                    f"{name}: {workflow_id} does not answer; is a worker of {PIPELINE} running?"
                ) from error
            except WorkflowUpdateFailedError as error:
                cause = error.cause
                if isinstance(cause, ApplicationError) and cause.type == KEY_REUSED:
                    raise Refused(f"{name} was refused: {cause.message}") from error
                raise TemporalUnavailable(f"{name} was not accepted: {error.cause}") from error
        return workflow_id

    async def answer(self, key: BatchKey, name: str, answer: BatchAnswer) -> None:
        """Send an update (`retry`, `skip`, `fail`) and wait until it is applied.

        Raises:
            NotFound: There is no such open run.
            Refused: The run refused; nothing has changed.
            TemporalUnavailable: No worker answered.
        """
        await self.update(key.workflow_id, name, answer, type(None), PIPELINE)


async def refuse_in_vain(runs: BatchRuns, store: "SqlBatchStore", event: CaseEvent) -> None:
    """Refuse an event of a person that would change nothing.

    Args:
        runs: Of batches in Temporal.
        store: Tables.
        event: What is to be sent.

    Raises:
        NotFound: There is no such batch.
        WrongState: It would change nothing; the message says what to do.
    """
    key = event.key
    # Asked first: what the case has recorded meanwhile stands in the table.
    is_coming = await runs.is_unrecorded(key)
    view = await store.get(key)
    if isinstance(event, ImportCancelled | RedriveRequested) and view is None and not is_coming:
        raise NotFound(f"there is no {key}; `docflow batch list` shows what there is")
    if view is None or not view.status.terminal or is_coming:
        return
    ended = f"{key} {standing(view.status)}"
    match event:
        case ImportCancelled():
            raise WrongState(f"{ended}: there is nothing to cancel")
        case JobStarted() | JobFinished() if view.status not in STARTABLE:
            raise WrongState(f"{ended}, and not loaded again: send its documents in another batch")
        case JobFinished():
            raise WrongState(f"{ended}: start it again first")
        case RedriveRequested() if not view.dead_letters:
            if not event.with_failed:
                raise WrongState(f"{ended} and kept no dead letters: nothing to redrive")
            if not await store.failed_messages(key, limit=1):
                raise WrongState(f"{ended}, and no message of it waits to be tried again")
        case _:
            pass


async def open_runs(environment: Mapping[str, str]) -> BatchRuns:
    """Connect.

    Raises:
        TemporalUnreachable: Temporal does not answer.
    """
    return BatchRuns(await connect(), environment)


PAGE: Final = 50


@dataclass(frozen=True, slots=True)
class BatchPage:
    """Some batches, the newest change first."""

    batches: Sequence[BatchView]
    next: Cursor | None
    """Further ones are behind it; None: these are the last."""


@dataclass(frozen=True, slots=True)
class InLine:
    """A batch of a case that is not done, and whom it waits for."""

    batch: WaitingBatch
    waits_for: Sequence[WaitingBatch]


@dataclass(frozen=True, slots=True)
class DocumentPage:
    """Some documents of a batch, by id."""

    documents: Sequence[DocumentView]
    after: str | None
    """Further ones are behind this id; None: these are the last."""


@dataclass(frozen=True, slots=True)
class BatchDetails:
    """One batch: its row, its run, and its place among the batches of its case."""

    view: BatchView
    run: RunView | None
    """None: there is none, or Temporal does not answer."""
    status: BatchStatus | None
    """What its run reports; None: there is none, or no worker answers."""
    problem: str | None
    """Why nothing is known of its run."""
    waits_for: Sequence[WaitingBatch]
    waited_for_by: Sequence[int]
    lease: LeaseWait | None
    """What of the account it waits for."""
    is_left_open: bool = False
    """Its run was terminated, and its row is open until the next sweep."""

    @property
    def outcome(self) -> str | None:
        """How it ended, as LOADER_FINISHED says; None: it has not."""
        return shown_outcome(self.view, self.status)

    @property
    def can_answer(self) -> bool:
        """It is parked."""
        return self.status is not None and self.status.next_steps is not None

    @property
    def can_cancel(self) -> bool:
        """It has not ended, or what its run left has not been removed."""
        return self.is_left_open or not self.view.status.terminal


async def details_of(
    store: "SqlBatchStore",
    leases: "SqlLeases",
    opened: Callable[[], Awaitable[BatchRuns]],
    key: BatchKey,
) -> BatchDetails:
    """One batch.

    Args:
        store: Tables.
        leases: Of the account.
        opened: Connects to Temporal.
        key: The batch.

    Raises:
        NotFound: There is no such batch.
    """
    view = await store.get(key)
    if view is None:
        raise NotFound(f"there is no {key}")
    run, status, problem = None, None, None
    try:
        runs = await opened()
        run = await runs.look(key.workflow_id)
        if run is not None:
            status = await runs.status(key)
    except (ServiceUnavailable, TemporalUnreachable) as error:
        problem = str(error)
    is_terminated = run is not None and run.status == TERMINATED
    is_left_open = is_terminated and view.status is LoaderStatus.PROCESSING
    if is_left_open:
        view = view.model_copy(update={"status": LoaderStatus.TERMINATED})
    line = (await store.note(key.case_id, ())).batches
    before, after = waits_for(line, key.batch_id), waited_for_by(line, key.batch_id)
    lease = await leases.waits(key.workflow_id)
    return BatchDetails(view, run, status, problem, before, after, lease, is_left_open)


class BatchOverview:
    """Cases and batches, for operators.

    Args:
        store: Tables.
        runs: Of batches in Temporal.
        leases: Of the account.
        timings: Of a case whose run a cancel starts.
    """

    def __init__(
        self, store: "SqlBatchStore", runs: BatchRuns, leases: "SqlLeases", timings: Timings
    ) -> None:
        self._store = store
        self._runs = runs
        self._leases = leases
        self._timings = timings

    async def batches(
        self,
        who: Identity,
        *,
        case_id: int | None = None,
        status: LoaderStatus | None = None,
        before: Cursor | None = None,
        limit: int = PAGE,
    ) -> BatchPage:
        """Batches of a case, or of all.

        Raises:
            Forbidden: The caller is not an operator.
            InvalidRequest: The cursor is not one of batches.
        """
        require_operator(who, "batches")
        moment, behind = (None, None) if before is None else (before.at, _behind(before))
        found = await self._store.list(case_id, limit + 1, status, moment, behind)
        shown = found[:limit]
        return BatchPage(shown, _cursor(shown[-1]) if len(found) > limit else None)

    async def line(self, who: Identity, case_id: int) -> Sequence[InLine]:
        """The batches of a case that are not done, in the order of their numbers.

        Raises:
            Forbidden: The caller is not an operator.
        """
        require_operator(who, "batches")
        line = (await self._store.note(case_id, ())).batches
        return [InLine(batch, waits_for(line, batch.batch_id)) for batch in line]

    async def get(self, who: Identity, key: BatchKey) -> BatchDetails:
        """One batch.

        Raises:
            Forbidden: The caller is not an operator.
            NotFound: There is no such batch.
        """
        require_operator(who, "batches")

        async def opened() -> BatchRuns:
            return self._runs

        return await details_of(self._store, self._leases, opened, key)

    async def documents(
        self,
        who: Identity,
        key: BatchKey,
        state: DocumentState | None,
        after: str,
        limit: int = PAGE,
    ) -> DocumentPage:
        """Documents of a batch in a state, or in any.

        Raises:
            Forbidden: The caller is not an operator.
            NotFound: There is no such batch.
        """
        require_operator(who, "batches")
        if await self._store.get(key) is None:
            raise NotFound(f"there is no {key}")
        found = await self._store.documents(key, state, after, limit + 1)
        shown = found[:limit]
        return DocumentPage(shown, shown[-1].document_id if len(found) > limit else None)

    async def answer(
        self, who: Identity, key: BatchKey, decision: Decision, reason: str | None
    ) -> None:
        """Answer a parked batch.

        Raises:
            Forbidden: The caller is not an operator.
            NotFound: No run of the batch is open.
            Refused: It is not parked; nothing has changed.
            TemporalUnavailable: No worker answered.
        """
        require_operator(who, "batches")
        await self._runs.answer(key, decision.value, BatchAnswer(reason=reason, by=who.subject))

    async def cancel(
        self, who: Identity, key: BatchKey, mode: CancelMode, reason: str | None
    ) -> None:
        """Cancel a batch, as IMPORT_CANCELLED does.

        Raises:
            Forbidden: The caller is not an operator.
            NotFound: There is no such batch.
            WrongState: It has ended.
            TemporalUnavailable: Its case does not accept the event, or no worker answers.
        """
        await self.send(
            who, ImportCancelled(**key.model_dump(), mode=mode, reason=reason, by=who.subject)
        )

    async def start(self, who: Identity, key: BatchKey, timings: Mapping[str, int]) -> None:
        """Start a batch, as JOB_STARTED does.

        Args:
            who: The caller.
            key: The batch.
            timings: Those that take the place of the installation's, by name, in seconds.

        Raises:
            ServiceError: See `send`.
            Refused: There is no such time, or it is out of bounds.
        """
        if unknown := sorted(timings.keys() - Timings.model_fields.keys()):
            there = ", ".join(Timings.model_fields)
            raise Refused(f"timings: there is no {unknown[0]}; there are {there}")
        try:
            whole = {**self._timings.model_dump(), **timings}
            own = Timings.model_validate(whole) if timings else None
        except ValidationError as error:
            wrong = "; ".join(f"{each['loc'][0]}: {problem_text(each)}" for each in error.errors())
            raise Refused(f"timings: {wrong}") from error
        await self.send(who, JobStarted(**key.model_dump(), timings=own))

    async def send(self, who: Identity, event: CaseEvent) -> None:
        """Deliver an event to its case, unless it would change nothing.

        Raises:
            Forbidden: The caller is not an operator.
            NotFound: There is no such batch.
            WrongState: It would change nothing.
            Refused: The batch was started with other timings before.
            TemporalUnavailable: Its case does not accept the event, or no worker answers.
        """
        require_operator(who, "batches")
        await refuse_in_vain(self._runs, self._store, event)
        await self._runs.send(event, self._timings)

    async def retry_failed(self, who: Identity, key: BatchKey) -> int:
        """Try everything of a batch again that could not be loaded, also after its end.

        Returns:
            Failed documents without a message: they have to be sent once more.

        Raises:
            ServiceError: See `send`.
        """
        event = RedriveRequested(**key.model_dump(), with_failed=True)
        require_operator(who, "batches")
        lost = await self.without_message(key)
        await self.send(who, event)
        return lost

    async def without_message(self, key: BatchKey) -> int:
        """How many failed documents of a batch have no message to try again."""
        view = await self._store.get(key)
        if view is None:
            return 0
        # Of those that are dead letters, the queue has the messages.
        failed = view.documents.failed - view.dead_letters
        return await failed_without_message(self._store, key, failed)

    async def concurrency(self, who: Identity, case_id: int) -> int | None:
        """How many documents of a case are loaded at once; None: as many as the installation says.

        Raises:
            Forbidden: The caller is not an operator.
        """
        require_operator(who, "batches")
        return await self._store.concurrency(case_id)

    async def set_concurrency(self, who: Identity, case_id: int, most: int | None) -> None:
        """Set how many documents of a case are loaded at once, for batches that start from now on.

        Args:
            who: The caller.
            case_id: The case.
            most: Documents; None: as many as the installation says.

        Raises:
            Forbidden: The caller is not an operator.
        """
        require_operator(who, "batches")
        await self._store.set_concurrency(case_id, most)

    async def expect(self, who: Identity, case_id: int, batches: Sequence[int]) -> Sequence[int]:
        """Declare which batches of a case will come: none overtakes one with a lower number.

        Returns:
            Their numbers, in order.

        Raises:
            Forbidden: The caller is not an operator.
        """
        require_operator(who, "batches")
        numbers = sorted(set(batches))
        await self._store.expect([key_of(case_id, each) for each in numbers])
        return numbers


def key_of(case_id: int, batch_id: int) -> BatchKey:
    """The batch that a path names.

    Raises:
        NotFound: No batch can have these numbers.
    """
    if not (1 <= case_id <= LARGEST_ID and 1 <= batch_id <= LARGEST_ID):
        raise NotFound(f"there is no batch {batch_id} of case {case_id}")
    return BatchKey(case_id=case_id, batch_id=batch_id)


def _cursor(last: BatchView) -> Cursor:
    return Cursor(last.updated_at, f"{last.key.case_id}-{last.key.batch_id}")


def _behind(cursor: Cursor) -> BatchKey | None:
    if cursor.id is None:
        return None
    found = re.fullmatch(r"([0-9]{1,19})-([0-9]{1,19})", cursor.id)
    if found is None:
        raise InvalidRequest("cursor: no batch is named so; go back to the first page")
    return key_of(int(found[1]), int(found[2]))
