"""Runs that wait for a person: the one question that inbox, `docflow status` and lists ask."""

from collections.abc import AsyncIterator, Sequence
from itertools import islice
from typing import Final

from temporalio.client import Client, WorkflowExecution, WorkflowExecutionStatus

from workers import catalogue
from workers.pipelines.base import recognise

_WAITS: Final = "NeedsAttention = true"
_OPEN: Final = "ExecutionStatus = 'Running'"
_ENDED: Final = "ExecutionStatus NOT IN ('Running', 'Terminated')"
"""One that was terminated keeps its attributes, and awaits nothing."""
_IDS_PER_QUERY: Final = 100


async def needing_attention(
    client: Client, scope: str, limit: int | None = None
) -> Sequence[WorkflowExecution]:
    """Runs that wait for a person, or ended and left something to one; the newest first.

    Args:
        client: Of their namespace.
        scope: A further condition on visibility.
        limit: At most so many; None: all of them.

    Raises:
        RPCError: Temporal does not answer.
    """
    query = f"{_WAITS} AND {_open_or_kept()} AND {scope}"
    found = [run async for run in client.list_workflows(query, limit=limit)]
    last = await _last_runs(client, [run for run in found if _has_ended(run)])
    return [run for run in found if not _has_ended(run) or run.run_id in last]


async def number_needing_attention(client: Client, scope: str) -> int:
    """How many runs `needing_attention` finds without a limit.

    Raises:
        RPCError: Temporal does not answer.
    """
    open = (await client.count_workflows(f"{_WAITS} AND {_OPEN} AND {scope}")).count
    kept = _kept()
    if kept is None:
        return open
    # Those that ended are few; a later run of the same id may have settled what one left.
    query = f"{_WAITS} AND {_ENDED} AND {kept} AND {scope}"
    ended = [run async for run in client.list_workflows(query)]
    return open + len({run.run_id for run in ended} & await _last_runs(client, ended))


def _kept() -> str | None:
    """A condition: of a pipeline whose closed runs may need attention as well; None: of none."""
    names = [
        f"'{pipeline.name}'"
        for pipeline in catalogue.PIPELINES
        if any(kind.closed_may_need_attention for kind in pipeline.runs)
    ]
    return f"Pipeline IN ({', '.join(names)})" if names else None


def _open_or_kept() -> str:
    kept = _kept()
    return _OPEN if kept is None else f"({_OPEN} OR ({_ENDED} AND {kept}))"


def _has_ended(run: WorkflowExecution) -> bool:
    return run.status is not WorkflowExecutionStatus.RUNNING


async def _last_runs(client: Client, ended: Sequence[WorkflowExecution]) -> set[str]:
    """Run ids of the last run of each of their ids: what an earlier one left is settled."""
    last: dict[str, WorkflowExecution] = {}
    kept = sorted({run.id for run in ended if _is_kept(run.id)})
    async for run in _runs_of(client, kept):
        if run.id not in last or run.start_time > last[run.id].start_time:
            last[run.id] = run
    return {run.run_id for run in last.values()}


def _is_kept(workflow_id: str) -> bool:
    run = recognise(catalogue.PIPELINES, workflow_id)
    return run is not None and run.kind.closed_may_need_attention


async def _runs_of(client: Client, ids: Sequence[str]) -> AsyncIterator[WorkflowExecution]:
    """Every run of these ids, which need no quoting."""
    left = iter(ids)
    while chunk := list(islice(left, _IDS_PER_QUERY)):
        names = ", ".join(f"'{each}'" for each in chunk)
        async for run in client.list_workflows(f"WorkflowId IN ({names})"):
            yield run
