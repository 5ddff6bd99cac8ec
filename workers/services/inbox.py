"""Runs of every pipeline that wait for a person, as Temporal's visibility knows them."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Final

from temporalio.client import Client, WorkflowExecution, WorkflowExecutionStatus
from temporalio.service import RPCError

from workers import catalogue
from workers.pipelines.base import Audience, Run, recognise
from workers.services.errors import TemporalUnavailable, no_role
from workers.services.identity import Identity
from workers.services.outages import OutageView, open_outages
from workers.services.runs import TemporalRuns
from workflows import attributes

MOST: Final = 1000
"""Runs that an inbox names."""
_IDS_PER_QUERY: Final = 100


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
    identifier: str | None
    """What the HTTP API names it by."""
    kind: str
    """What its pipeline calls a run."""
    title: str
    """What a person knows it by."""
    page: str | None
    """Path of its page in the gateway."""
    ended: bool = False
    """The run has ended and left something that needs attention."""


class Inbox:
    """What of all pipelines waits for people.

    Args:
        client: Of Temporal.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    async def read(self, who: Identity) -> Sequence[InboxEntry]:
        """The runs that need attention and that this person may see; the longest wait first.

        Operators see those of every pipeline, others those of their organisations.

        Raises:
            Forbidden: The person has no role.
            TemporalUnavailable: Temporal does not answer.
        """
        if not who.may_read:
            raise no_role()
        scope = _scope(who)
        if scope is None:
            return ()
        query = f"NeedsAttention = true AND {_open()} AND {scope}"
        try:
            runs = self._client.list_workflows(query, limit=MOST)
            found = [await _entry(execution) async for execution in runs]
            ended = [entry.workflow_id for entry in found if entry.ended]
            last = await _last_runs(self._client, ended)
        # A client that was never connected raises a RuntimeError.
        except (RPCError, RuntimeError) as error:
            raise TemporalUnavailable(
                "the inbox cannot be read at the moment; try again"
            ) from error
        waiting = [entry for entry in found if not entry.ended or entry.run_id in last]
        return sorted(waiting, key=lambda entry: (entry.waiting_since, entry.workflow_id))

    async def outages(self, who: Identity) -> Sequence[OutageView]:
        """What cannot be used at the moment, for operators; runs that need it wait by themselves.

        Raises:
            TemporalUnavailable: Temporal does not answer.
        """
        return await open_outages(TemporalRuns(self._client, {})) if who.is_operator else ()


def _open() -> str:
    """A condition: open, or of a pipeline whose closed runs may need attention as well.

    One that was terminated keeps its attributes, and awaits nothing.
    """
    closed = [
        f" OR (Pipeline = '{pipeline.name}' AND ExecutionStatus != 'Terminated')"
        for pipeline in catalogue.PIPELINES
        if any(kind.closed_may_need_attention for kind in pipeline.runs)
    ]
    return f"(ExecutionStatus = 'Running'{''.join(closed)})"


async def _last_runs(client: Client, ids: Sequence[str]) -> set[str]:
    """Run ids of the last run of each of some workflow ids: what an earlier one left is settled."""
    last: dict[str, WorkflowExecution] = {}
    kept = (id for id in ids if (run := _recognise(id)) and run.kind.closed_may_need_attention)
    async for run in _runs_of(client, sorted(set(kept))):
        if run.id not in last or run.start_time > last[run.id].start_time:
            last[run.id] = run
    return {run.run_id for run in last.values()}


async def _runs_of(client: Client, ids: Sequence[str]) -> AsyncIterator[WorkflowExecution]:
    """Every run of these ids, which need no quoting."""
    left = iter(ids)
    while chunk := list(islice(left, _IDS_PER_QUERY)):
        names = ", ".join(f"'{each}'" for each in chunk)
        async for run in client.list_workflows(f"WorkflowId IN ({names})"):
            yield run


def _scope(who: Identity) -> str | None:
    """A condition on visibility; None where nothing is theirs. Numbers only: no quoting needed."""
    shared = [
        pipeline.name
        for pipeline in catalogue.PIPELINES
        if pipeline.audience is Audience.ORGANISATION
    ]
    mine = ", ".join(f"'{organisation:d}'" for organisation in who.organisations)
    alternatives = [
        f"(Pipeline = '{name}' AND OrganisationId IN ({mine}))" for name in shared if mine
    ]
    if who.is_operator:
        others = " AND ".join(f"Pipeline != '{name}'" for name in shared)
        if not others:
            return "Pipeline IS NOT NULL"
        alternatives.append(f"({others})")
    return f"({' OR '.join(alternatives)})" if alternatives else None


def _recognise(workflow_id: str) -> Run | None:
    return recognise(catalogue.run_groups(), workflow_id)


async def _entry(execution: WorkflowExecution) -> InboxEntry:
    found = execution.typed_search_attributes
    organisation = found.get(attributes.ORGANISATION_ID)
    name = found.get(attributes.PIPELINE) or ""
    waiting_for = found.get(attributes.WAITING_FOR)
    filename = (await execution.memo()).get("filename")
    filename = filename if isinstance(filename, str) else None
    run = _recognise(execution.id)
    kind = run.kind if run is not None and run.pipeline.name == name else None
    key = run.key if run is not None else None
    title = kind.title(key) if kind is not None else None
    return InboxEntry(
        workflow_id=execution.id,
        run_id=execution.run_id,
        pipeline=name,
        document_type=found.get(attributes.DOCUMENT_TYPE) or execution.workflow_type,
        state=found.get(attributes.STATE) or "",
        waiting_since=(found.get(attributes.WAITING_SINCE) or execution.start_time).astimezone(UTC),
        waiting_for=None if waiting_for == attributes.OPERATORS else waiting_for,
        organisation_id=int(organisation) if organisation and organisation.isdecimal() else None,
        project_id=found.get(attributes.PROJECT_ID),
        filename=filename,
        identifier=kind.identifier(key) if kind is not None and kind.identifier else None,
        kind=_kind(name),
        title=title or filename or execution.id,
        page=kind.page(key) if kind is not None and kind.page else None,
        ended=execution.status is not WorkflowExecutionStatus.RUNNING,
    )


def _kind(name: str) -> str:
    titles = {group.name: group.title for group in catalogue.run_groups()}
    return titles.get(name, name or "Workflow")
