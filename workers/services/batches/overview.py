"""What people see of cases and batches, and how they answer a batch that waits."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from adapters.ports import BatchStore, BatchView, DocumentView
from adapters.ports.leases import Leases, LeaseWait
from contracts.batches import (
    LARGEST_ID,
    BatchAnswer,
    BatchKey,
    BatchStatus,
    CancelMode,
    DocumentState,
    ImportCancelled,
    LoaderStatus,
    Timings,
    WaitingBatch,
)
from contracts.sweep import TERMINATED
from domain.batches.line import waited_for_by, waits_for
from workers.services.batches.outcomes import shown_outcome
from workers.services.batches.runs import BatchRuns, refuse_cancel_in_vain
from workers.services.cursors import Cursor
from workers.services.errors import InvalidRequest, NotFound, ServiceUnavailable
from workers.services.identity import Identity, require_operator
from workers.services.runs import RunView
from workflows.parking import Decision

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


class BatchOverview:
    """Cases and batches, for operators.

    Args:
        store: Tables.
        runs: Of batches in Temporal.
        leases: Of the account.
        timings: Of a case whose run a cancel starts.
    """

    def __init__(
        self, store: BatchStore, runs: BatchRuns, leases: Leases, timings: Timings
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
    ) -> BatchPage:
        """Batches of a case, or of all.

        Raises:
            Forbidden: The caller is not an operator.
            NotFound: A case of that number has no batch.
            InvalidRequest: The cursor is not one of batches.
        """
        require_operator(who, "batches")
        moment, behind = (None, None) if before is None else (before.at, _behind(before))
        found = await self._store.list(case_id, PAGE + 1, status, moment, behind)
        if not found and case_id is not None and status is None and before is None:
            raise NotFound(f"case {case_id} has no batches")
        shown = found[:PAGE]
        return BatchPage(shown, _cursor(shown[-1]) if len(found) > PAGE else None)

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
        view = await self._store.get(key)
        if view is None:
            raise NotFound(f"there is no {key}")
        run, status, problem = None, None, None
        try:
            run = await self._runs.look(key.workflow_id)
            if run is not None:
                status = await self._runs.status(key)
        except ServiceUnavailable as error:
            problem = str(error)
        is_terminated = run is not None and run.status == TERMINATED
        is_left_open = is_terminated and view.status is LoaderStatus.PROCESSING
        if is_left_open:
            view = replace(view, status=LoaderStatus.TERMINATED)
        line = (await self._store.note(key.case_id, ())).batches
        before, after = waits_for(line, key.batch_id), waited_for_by(line, key.batch_id)
        lease = await self._leases.waits(key.workflow_id)
        return BatchDetails(view, run, status, problem, before, after, lease, is_left_open)

    async def documents(
        self, who: Identity, key: BatchKey, state: DocumentState | None, after: str
    ) -> DocumentPage:
        """Documents of a batch in a state, or in any.

        Raises:
            Forbidden: The caller is not an operator.
        """
        require_operator(who, "batches")
        found = await self._store.documents(key, state, after, PAGE + 1)
        shown = found[:PAGE]
        return DocumentPage(shown, shown[-1].document_id if len(found) > PAGE else None)

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
        require_operator(who, "batches")
        await refuse_cancel_in_vain(self._runs, self._store, key)
        event = ImportCancelled(**key.model_dump(), mode=mode, reason=reason, by=who.subject)
        await self._runs.send(event, self._timings)


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
        raise InvalidRequest("before: no batch is named so; go back to the first page")
    return key_of(int(found[1]), int(found[2]))
