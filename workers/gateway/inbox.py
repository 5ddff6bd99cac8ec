"""Runs of every pipeline that wait for a person, as Temporal's visibility knows them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from temporalio.client import Client, WorkflowExecution
from temporalio.service import RPCError

from contracts.spreadsheets import workflow_id
from workers.gateway.errors import TemporalAway
from workers.gateway.identity import Identity
from workflows import attributes

MOST: Final = 1000
"""Runs that an inbox names."""
_SPREADSHEETS: Final = "spreadsheets"
_PREFIX: Final = workflow_id("")


@dataclass(frozen=True, slots=True)
class InboxEntry:
    """A run that waits for a person."""

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


async def read_inbox(client: Client, who: Identity) -> Sequence[InboxEntry]:
    """What waits, as far as it is this person's business; the longest wait first.

    Raises:
        TemporalAway: Temporal does not answer.
    """
    scope = _scope(who)
    if scope is None:
        return ()
    query = f"NeedsAttention = true AND ExecutionStatus = 'Running' AND {scope}"
    try:
        found = [
            await _entry(execution) async for execution in client.list_workflows(query, limit=MOST)
        ]
    # A client that was never connected says so with a RuntimeError.
    except (RPCError, RuntimeError) as error:
        raise TemporalAway("the inbox cannot be read at the moment; try again") from error
    return sorted(found, key=lambda entry: (entry.waiting_since, entry.workflow_id))


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
    )
