"""Gauges of open runs, which workers read from Temporal's visibility four times a minute."""

import asyncio
import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from contracts.dependencies import WAITING
from workers import metrics
from workers.pipelines.base import Pipeline
from workers.services.errors import TemporalUnavailable
from workers.services.runs import PARKED, TemporalRuns
from workflows import attributes

logger = logging.getLogger(__name__)

SECONDS: Final = 15.0
"""Between two looks."""
_PAGE: Final = 200


async def show_runs(runs: TemporalRuns, pipelines: Sequence[Pipeline]) -> None:
    """Show the open runs of some pipelines until this is cancelled.

    While Temporal does not answer, the gauges keep their values.
    """
    while True:
        try:
            for pipeline in pipelines:
                await _show(runs, pipeline)
        except TemporalUnavailable as error:
            logger.info("open runs are not counted: %s", error)
        await asyncio.sleep(SECONDS)


async def _show(runs: TemporalRuns, pipeline: Pipeline) -> None:
    running = f"Pipeline = '{pipeline.name}' AND ExecutionStatus = 'Running'"
    attention = f"{running} AND NeedsAttention = true"
    queries = {
        "open": running,
        WAITING: f"{running} AND State = '{WAITING}'",
        PARKED: f"{running} AND State = '{PARKED}'",
        "needs_attention": attention,
    }
    for state, query in queries.items():
        number = await runs.count_runs(query)
        metrics.show(metrics.RUNS, number, {"pipeline": pipeline.name, "state": state})
    since = await _longest(runs, attention)
    seconds = 0.0 if since is None else (datetime.now(UTC) - since).total_seconds()
    metrics.show(metrics.LONGEST_WAIT, max(0.0, seconds), {"pipeline": pipeline.name})


async def _longest(runs: TemporalRuns, query: str) -> datetime | None:
    """The earliest `WaitingSince` of the runs that fit; lists cannot be sorted by it.

    Each look asks only for runs that have waited longer than all before, and few are left soon.
    """
    since: datetime | None = None
    while True:
        longer = "" if since is None else f" AND WaitingSince < '{since.isoformat()}'"
        found = await runs.list(query + longer, _PAGE)
        known = (run.typed_search_attributes.get(attributes.WAITING_SINCE) for run in found)
        earliest = min((moment for moment in known if moment is not None), default=None)
        if earliest is None:
            return since
        since = earliest
        if len(found) < _PAGE:
            return since
