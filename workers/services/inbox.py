"""Runs of every pipeline that wait for a person, as Temporal's visibility knows them."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from temporalio.client import Client, WorkflowExecution, WorkflowExecutionStatus
from temporalio.service import RPCError

from workers import catalogue
from workers.pipelines.base import Audience, Run, recognise
from workers.services.attention import needing_attention
from workers.services.errors import TemporalUnavailable, no_role
from workers.services.identity import Identity
from workers.services.outages import OutageView, open_outages
from workers.services.runs import TemporalRuns
from workflows import attributes

StartedBy = Callable[[Identity], Awaitable[Collection[str]]]
"""Finds the workflow ids of the waiting runs of a pipeline that a person has started."""

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


class Inbox:
    """What of all pipelines waits for people.

    Args:
        client: Of Temporal.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    async def read(
        self, who: Identity, started_by: Sequence[StartedBy] | None = None
    ) -> Sequence[InboxEntry]:
        """The runs that need attention and that this person may see; the longest wait first.

        Operators see those of every pipeline, others those of their organisations.

        Args:
            who: The person.
            started_by: Only runs that one of these finds; None: all.

        Raises:
            Forbidden: The person has no role.
            TemporalUnavailable: Temporal does not answer.
        """
        if not who.may_read:
            raise no_role()
        scope = _scope(who)
        if scope is None:
            return ()
        try:
            runs = await needing_attention(self._client, scope, MOST)
            found = [await _entry(execution) for execution in runs]
        # A client that was never connected raises a RuntimeError.
        except (RPCError, RuntimeError) as error:
            raise TemporalUnavailable(
                "the inbox cannot be read at the moment; try again"
            ) from error
        if started_by is not None:
            own = {id for find in started_by for id in await find(who)}
            found = [entry for entry in found if entry.workflow_id in own]
        return sorted(found, key=lambda entry: (entry.waiting_since, entry.workflow_id))

    async def outages(self, who: Identity) -> Sequence[OutageView]:
        """What cannot be used at the moment, for operators; runs that need it wait by themselves.

        Raises:
            TemporalUnavailable: Temporal does not answer.
        """
        return await open_outages(TemporalRuns(self._client, {})) if who.is_operator else ()


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
