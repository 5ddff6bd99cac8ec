"""Outages of what docflow itself needs, as operators see them."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from workers import catalogue
from workflows.shared.dependencies import OUTAGE, PROBLEM, SETTINGS, WAITING, OutageState
from workflows.shared.runs import RunRecord

if TYPE_CHECKING:
    from temporalio.client import WorkflowExecution

    from workers.shared.services.runs import TemporalRuns


@dataclass(frozen=True)
class OutageView:
    """An outage, as Temporal knows it without asking a worker."""

    workflow_id: str
    title: str
    """As a sentence: what cannot be used."""
    since: datetime
    problem: str | None
    """What the dependency answered, or why it did not; None: an older release has begun it."""
    settings: Sequence[str]
    """Settings that are wrong: the dependency is there, and refuses docflow."""
    waiting: int
    """Open runs that wait for its end."""

    @property
    def note(self) -> str:
        """What to know about it, in one sentence."""
        runs = f"{self.waiting:,} run{'' if self.waiting == 1 else 's'} waiting for it"
        check = f"check {' and '.join(self.settings)}" if self.settings else None
        return "; ".join(filter(None, (self.problem, check, runs)))

    @property
    def sentence(self) -> str:
        """What cannot be used, since when, and what to know about it."""
        return f"{self.title} since {self.since.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC: {self.note}"


async def open_outages(runs: "TemporalRuns") -> Sequence[OutageView]:
    """Outages that have not ended, the longest first.

    Raises:
        TemporalUnavailable: Temporal does not answer.
    """
    found = await runs.list(f"WorkflowType = '{OUTAGE}' AND ExecutionStatus = 'Running'", None)
    views = await asyncio.gather(*(view_of(runs, each) for each in found))
    return sorted(views, key=lambda view: view.since)


async def waiting_for(runs: "TemporalRuns", workflow_id: str) -> int:
    """How many open runs wait for the end of an outage."""
    return await runs.count_runs(
        f"ExecutionStatus = 'Running' AND State = '{WAITING}' AND WaitingFor = '{workflow_id}'"
    )


async def view_of(runs: "TemporalRuns", execution: "WorkflowExecution") -> OutageView:
    """What is known of the run of an outage."""
    memo = await execution.memo()
    problem, settings = memo.get(PROBLEM), memo.get(SETTINGS, ())
    run = catalogue.OUTAGE_RUNS.recognise(execution.id)
    title = None if run is None else run.kind.title(run.key)
    return OutageView(
        workflow_id=execution.id,
        title=title or execution.id,
        since=execution.start_time.astimezone(UTC),
        problem=problem if isinstance(problem, str) else None,
        settings=tuple(map(str, settings)),
        waiting=await waiting_for(runs, execution.id),
    )


async def noted(runs: "TemporalRuns", records: Sequence[RunRecord]) -> Sequence[RunRecord]:
    """Outages in lists, each with its reason and how many runs wait for its end.

    Raises:
        TemporalUnavailable: Temporal does not answer.
    """
    views = {view.workflow_id: view for view in await open_outages(runs)}
    return [
        each.model_copy(update={"reason": view.note, "counts": {"runs_waiting": view.waiting}})
        if view is not None and each.own_state == OutageState.OPEN
        else each
        for each in records
        for view in [views.get(each.id)]
    ]
