"""Runs of every pipeline that wait for a person, and those that are answered together."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import quote

from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import Client, WorkflowExecution, WorkflowExecutionStatus
from temporalio.service import RPCError

from adapters.ports.errors import PortError
from workers import catalogue
from workers.shared.register import Run, recognise
from workers.shared.services.errors import TemporalUnavailable, no_role
from workers.shared.services.identity import Identity
from workers.shared.services.outages import OutageView, open_outages
from workers.shared.services.runs import TemporalRuns, needing_attention
from workflows.shared import attributes
from workflows.shared.runs import RunRecord, Visible

if TYPE_CHECKING:
    from adapters.database.runs import SqlRuns

AT_ONCE: Final = 10
"""Runs that are asked, or answered, at a time."""
_DETAILS: Final = "__temporal_workflow_metadata"
"""Query that every workflow answers, with the details that people see of it."""

Item = TypeVar("Item")
Result = TypeVar("Result")


def reports_reason(run: Run) -> bool:
    """Whether the status of a run says why it waits, in a field of its own."""
    status = run.kind.status
    return status is not None and "reason" in status.model_fields


async def reason_of(runs: TemporalRuns, run: Run) -> str:
    """Why a run is parked; empty when it is not any more.

    Raises:
        TemporalUnavailable: Temporal does not answer, or no worker does.
    """
    status = run.kind.status
    if status is not None and reports_reason(run):
        found = await runs.query(run.workflow_id, "status", status)
        return str(getattr(found, "reason", None) or "")
    details = await runs.query(run.workflow_id, _DETAILS, WorkflowMetadata)
    return "" if details is None else details.current_details


async def gather_bounded(
    items: Iterable[Item], work: Callable[[Item], Awaitable[Result]]
) -> Sequence[Result]:
    """Do the same for many runs, some at a time; the results in the order of the items."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(item: Item) -> Result:
        async with turns:
            return await work(item)

    return await asyncio.gather(*map(one, items))


MOST: Final = 1000
"""Runs that an inbox names."""


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
    reason: str | None = None
    """Why it waits, as its row says; None: it has no row, or the row does not say."""
    owner: str | None = None
    """Subject of the person who started it; None: not known."""


class Inbox:
    """What of all pipelines waits for people.

    Args:
        client: Of Temporal.
        rows: The table of runs.
    """

    def __init__(self, client: Client, rows: "SqlRuns") -> None:
        self.client = client
        self.rows = rows

    async def read(self, who: Identity, *, mine: bool = False) -> Sequence[InboxEntry]:
        """The runs that need attention and that this person may see; the longest wait first.

        Each sees those of their organisations, and operators those that belong to none as well.

        Args:
            who: The person.
            mine: Only runs that the person has started.

        Raises:
            Forbidden: The person has no role.
            TemporalUnavailable: Temporal does not answer.
        """
        if not who.may_read:
            raise no_role()
        scope = inbox_scope(who)
        if scope is None:
            return ()
        try:
            runs = await needing_attention(self.client, scope, MOST)
            found = [await _entry(execution) for execution in runs]
        # A client that was never connected raises a RuntimeError.
        except (RPCError, RuntimeError) as error:
            raise TemporalUnavailable(
                "the inbox cannot be read at the moment; try again"
            ) from error
        found = await self._with_rows(found, who.sees)
        if mine:
            found = [entry for entry in found if entry.owner == who.subject]
        return sorted(found, key=lambda entry: (entry.waiting_since, entry.workflow_id))

    async def _with_rows(
        self, entries: Sequence[InboxEntry], visible: Visible
    ) -> Sequence[InboxEntry]:
        """What rows add; what waits is shown also while the database cannot say why.

        A run that was started without docflow says its organisation in its row alone.
        """
        rows: Mapping[str, RunRecord] = {}
        if not entries:
            return ()
        with suppress(PortError):
            rows = await self.rows.of([each.workflow_id for each in entries])
        return [
            replace(each, reason=row.reason, owner=row.owner, page=each.page or page_of(row.id))
            if row
            else each
            for each in entries
            for row in [rows.get(each.workflow_id)]
            if row is None or visible.shows(row.organisation_id)
        ]

    async def outages(self, who: Identity) -> Sequence[OutageView]:
        """What cannot be used at the moment, for operators; runs that need it wait by themselves.

        Raises:
            TemporalUnavailable: Temporal does not answer.
        """
        return await open_outages(TemporalRuns(self.client, {})) if who.is_operator else ()


def page_of(run: str) -> str:
    """Path of the page of a run that has a row."""
    return f"/runs/{quote(run, safe='/')}"


def inbox_scope(who: Identity) -> str | None:
    """A condition on visibility; None where nothing is theirs. Numbers only: no quoting needed."""
    sees = who.sees
    mine = ", ".join(f"'{organisation:d}'" for organisation in sees.organisations)
    alternatives = [f"OrganisationId IN ({mine})"] if mine else []
    if sees.others:
        alternatives.append("OrganisationId IS NULL")
    theirs = " OR ".join(alternatives)
    return f"(Pipeline IS NOT NULL AND ({theirs}))" if theirs else None


def _recognise(workflow_id: str) -> Run | None:
    return recognise(catalogue.run_groups(), workflow_id)


async def _entry(execution: WorkflowExecution) -> InboxEntry:
    found = execution.typed_search_attributes
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
        organisation_id=attributes.organisation_of(found),
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
