"""Gauges of what is open: every process with a metrics port reads them four times a minute."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import Final

from temporalio.client import Client

from adapters.ports.errors import PortError
from adapters.ports.records import RejectedMessages
from workers import catalogue
from workers.shared import metrics
from workers.shared.register import Pipeline
from workers.shared.services.errors import ServiceError
from workers.shared.services.outages import open_outages
from workers.shared.services.runs import PARKED, TemporalRuns
from workflows.shared import attributes
from workflows.shared.dependencies import WAITING, Dependency, outage_id

logger = logging.getLogger(__name__)

SECONDS: Final = 15.0
"""Between two readings."""
_PAGE: Final = 200


def start_gauges(
    stack: AsyncExitStack,
    client: Client,
    environment: Mapping[str, str],
    rejected: RejectedMessages | None,
) -> None:
    """Show what is open of every pipeline, as long as a process works.

    Args:
        stack: Of the process.
        client: Of the namespace of its runs.
        environment: Settings.
        rejected: The record of rejected messages; None: this process does not use the database.
    """
    runs = TemporalRuns(client, environment)
    showing = asyncio.create_task(show_open(runs, catalogue.PIPELINES, rejected))
    stack.callback(showing.cancel)


async def show_open(
    runs: TemporalRuns, pipelines: Sequence[Pipeline], rejected: RejectedMessages | None = None
) -> None:
    """Show open runs, outages and rejected messages until this is cancelled.

    While Temporal or the database does not answer, the gauges from it keep their values.
    """
    queues = set[str]()
    while True:
        try:
            for pipeline in pipelines:
                await _show(runs, pipeline)
            await _show_outages(runs)
        except ServiceError as error:
            logger.info("open runs are not counted: %s", error)
        if rejected is not None:
            try:
                await _show_rejected(rejected, queues)
            except PortError as error:
                logger.info("rejected messages are not counted: %s", error)
        await asyncio.sleep(SECONDS)


async def _show_outages(runs: TemporalRuns) -> None:
    found = await open_outages(runs)
    for dependency in Dependency:
        own = outage_id(dependency)
        since = [
            each.since
            for each in found
            if each.workflow_id == own or each.workflow_id.startswith(f"{own}/")
        ]
        seconds = _age(min(since, default=None))
        metrics.show(metrics.OUTAGE, seconds, {"dependency": dependency})


async def _show_rejected(rejected: RejectedMessages, queues: set[str]) -> None:
    """A queue that has none left is shown with 0."""
    found = {each.queue: each for each in await rejected.open()}
    queues.update(found)
    for queue in queues:
        left, labels = found.get(queue), {"queue": queue}
        metrics.show(metrics.REJECTED, 0 if left is None else left.number, labels)
        metrics.show(metrics.OLDEST_REJECTED, _age(left and left.oldest), labels)


def _age(since: datetime | None) -> float:
    """Seconds until now; 0 where there is nothing."""
    return 0.0 if since is None else max(0.0, (datetime.now(UTC) - since).total_seconds())


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
    metrics.show(metrics.LONGEST_WAIT, _age(since), {"pipeline": pipeline.name})


async def _longest(runs: TemporalRuns, query: str) -> datetime | None:
    """The earliest `WaitingSince` of the runs that fit; lists cannot be sorted by it.

    Each query asks only for runs that have waited longer than all before, and few are left soon.
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
