"""Runs of every pipeline that wait for a person, as Temporal's visibility knows them."""

import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Final

from temporalio.client import Client, WorkflowExecution, WorkflowExecutionStatus
from temporalio.service import RPCError

from contracts.batches import LARGEST_ID, BatchKey
from contracts.spreadsheets import workflow_id
from workers.services.errors import TemporalUnavailable
from workers.services.identity import Identity
from workflows import attributes

MOST: Final = 1000
"""Runs that an inbox names."""
_SPREADSHEETS: Final = "spreadsheets"
_BATCHES: Final = "batches"
_PREFIX: Final = workflow_id("")
_ID: Final = rf"([1-9][0-9]{{0,8}}|{LARGEST_ID})"
_BATCH: Final = re.compile(f"batch/{_ID}/{_ID}")
_ASKED_AT_ONCE: Final = 100
"""Workflow ids in one query."""


@dataclass(frozen=True, slots=True)
class InboxEntry:
    """A run that waits for a person, or ended and left something to one."""

    workflow_id: str
    run_id: str
    pipeline: str
    document_type: str
    """Import type, or kind of document."""
    state: str
    waiting_since: datetime
    waiting_for: str | None
    """Subject of a person; None: any operator."""
    organisation_id: int | None
    project_id: str | None
    filename: str | None
    uuid: str | None
    """Of a spreadsheet import, which has a page of its own."""
    batch: BatchKey | None = None
    ended: bool = False
    """A batch that kept dead letters, or of which something could not be removed."""

    @property
    def title(self) -> str:
        """What a person knows it by."""
        if self.batch is not None:
            return str(self.batch).capitalize()
        return self.filename or self.workflow_id


async def read_inbox(client: Client, who: Identity) -> Sequence[InboxEntry]:
    """What waits, as far as it is this person's business; the longest wait first.

    Raises:
        TemporalUnavailable: Temporal does not answer.
    """
    scope = _scope(who)
    if scope is None:
        return ()
    open_or_batch = f"(ExecutionStatus = 'Running' OR Pipeline = '{_BATCHES}')"
    query = f"NeedsAttention = true AND {open_or_batch} AND {scope}"
    try:
        found = [
            await _entry(execution) async for execution in client.list_workflows(query, limit=MOST)
        ]
        last = await _last_runs(client, [entry.batch for entry in found if entry.ended])
    # A client that was never connected says so with a RuntimeError.
    except (RPCError, RuntimeError) as error:
        raise TemporalUnavailable("the inbox cannot be read at the moment; try again") from error
    waiting = [entry for entry in found if not entry.ended or entry.run_id in last]
    return sorted(waiting, key=lambda entry: (entry.waiting_since, entry.workflow_id))


async def _last_runs(client: Client, keys: Sequence[BatchKey | None]) -> set[str]:
    """Run ids of the last run of each batch: what an earlier one left is nobody's business now."""
    last: dict[str, WorkflowExecution] = {}
    async for run in _runs_of(client, sorted({key.workflow_id for key in keys if key})):
        if run.id not in last or run.start_time > last[run.id].start_time:
            last[run.id] = run
    return {run.run_id for run in last.values()}


async def _runs_of(client: Client, ids: Sequence[str]) -> AsyncIterator[WorkflowExecution]:
    """Every run of some batches, whose ids are numbers and need no quoting."""
    left = iter(ids)
    while asked := list(islice(left, _ASKED_AT_ONCE)):
        names = ", ".join(f"'{each}'" for each in asked)
        async for run in client.list_workflows(f"WorkflowId IN ({names})"):
            yield run


def _scope(who: Identity) -> str | None:
    """A condition on visibility; None where nothing is theirs. Numbers only: no quoting needed."""
    mine = ", ".join(f"'{organisation:d}'" for organisation in who.organisations)
    own = f"(Pipeline = '{_SPREADSHEETS}' AND OrganisationId IN ({mine}))" if mine else None
    if not who.is_operator:
        return own
    others = f"Pipeline != '{_SPREADSHEETS}'"
    return f"({others} OR {own})" if own else others


async def _entry(execution: WorkflowExecution) -> InboxEntry:
    found = execution.typed_search_attributes
    organisation = found.get(attributes.ORGANISATION_ID)
    pipeline = found.get(attributes.PIPELINE) or ""
    waiting_for = found.get(attributes.WAITING_FOR)
    filename = (await execution.memo()).get("filename")
    batch = _batch_of(execution.id) if pipeline == _BATCHES else None
    return InboxEntry(
        workflow_id=execution.id,
        run_id=execution.run_id,
        pipeline=pipeline,
        document_type=found.get(attributes.DOCUMENT_TYPE) or execution.workflow_type,
        state=found.get(attributes.STATE) or "",
        waiting_since=(found.get(attributes.WAITING_SINCE) or execution.start_time).astimezone(UTC),
        waiting_for=None if waiting_for == attributes.OPERATORS else waiting_for,
        organisation_id=int(organisation) if organisation and organisation.isdecimal() else None,
        project_id=found.get(attributes.PROJECT_ID),
        filename=filename if isinstance(filename, str) else None,
        uuid=execution.id.removeprefix(_PREFIX) if pipeline == _SPREADSHEETS else None,
        batch=batch,
        ended=execution.status is not WorkflowExecutionStatus.RUNNING,
    )


def _batch_of(id: str) -> BatchKey | None:
    found = _BATCH.fullmatch(id)
    return None if found is None else BatchKey(case_id=int(found[1]), batch_id=int(found[2]))
