"""All runs that are parked, of every pipeline, to be answered together."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from temporalio.api.sdk.v1 import WorkflowMetadata

from workers import catalogue
from workers.pipelines.base import Pipeline, Run
from workers.services.registered_verbs import quoted
from workers.services.runs import PARKED, TemporalRuns

AT_ONCE: Final = 10
"""Runs that are asked, or answered, at a time."""
_DETAILS: Final = "__temporal_workflow_metadata"
"""Query that every workflow answers, with the details that people see of it."""

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class ParkedRuns:
    """Runs that were found."""

    runs: Sequence[Run]
    """The longest wait last."""
    left_out: Sequence[str]
    """Workflow ids of parked runs that do not offer the answer."""


async def find_parked(
    runs: TemporalRuns,
    verb: str,
    *,
    pipelines: Sequence[Pipeline] | None = None,
    document_type: str | None = None,
    reason: str | None = None,
) -> ParkedRuns:
    """Find the open runs that are parked.

    Args:
        runs: Of the namespace.
        verb: The answer that they have to offer.
        pipelines: Only theirs; None: all.
        document_type: Only runs of this type.
        reason: Only runs whose reason holds this text, in upper or lower case; their workers are
            asked for it.

    Raises:
        TemporalUnavailable: Temporal does not answer, or no worker does.
    """
    found: list[Run] = []
    left_out: list[str] = []
    for pipeline in catalogue.PIPELINES if pipelines is None else pipelines:
        async for id in _ids(runs, pipeline, document_type):
            run = pipeline.recognise(id)
            if run is not None and verb in run.kind.answers:
                found.append(run)
            else:
                left_out.append(id)
    if reason is not None:
        reasons = await gathered(found, lambda run: reason_of(runs, run))
        wanted = reason.casefold()
        found = [run for run, why in zip(found, reasons, strict=True) if wanted in why.casefold()]
    return ParkedRuns(found, left_out)


async def _ids(
    runs: TemporalRuns, pipeline: Pipeline, document_type: str | None
) -> AsyncIterator[str]:
    query = f"Pipeline = '{pipeline.name}' AND ExecutionStatus = 'Running' AND State = '{PARKED}'"
    if document_type is not None:
        query += f" AND DocumentType = {quoted(document_type)}"
    for execution in await runs.list(query, None):
        yield execution.id


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


async def gathered(
    items: Iterable[Item], work: Callable[[Item], Awaitable[Result]]
) -> Sequence[Result]:
    """Do the same for many runs, some at a time; the results in the order of the items."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(item: Item) -> Result:
        async with turns:
            return await work(item)

    return await asyncio.gather(*map(one, items))
