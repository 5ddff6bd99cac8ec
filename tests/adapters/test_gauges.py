"""Gauges of what is open, from a real server's visibility and the record of rejected messages."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta

import httpx
import pytest
import pytest_asyncio
from temporalio.client import Client
from temporalio.common import SearchAttributePair, TypedSearchAttributes
from temporalio.runtime import MetricBuffer, Runtime, TelemetryConfig
from temporalio.testing import WorkflowEnvironment

from adapters.temporal import TemporalOutages
from stack.children import free_port
from stack.temporal import temporal_binary
from tests.support.memory.rejected import MemoryRejectedMessages
from tests.support.waiting import eventually
from workers.imports.register import IMPORTS
from workers.shared import gauges, metrics
from workers.shared.metrics import process_runtime
from workers.shared.plugin import docflow_plugin
from workers.shared.services.runs import TemporalRuns
from workflows.shared import attributes
from workflows.shared.dependencies import Dependency, OutageInput


@pytest_asyncio.fixture
async def client() -> AsyncIterator[Client]:
    environment = await WorkflowEnvironment.start_local(
        dev_server_existing_path=temporal_binary(),
        search_attributes=attributes.ALL,
        plugins=[docflow_plugin()],
    )
    async with environment:
        yield environment.client


async def start(client: Client, task: str, state: str, since: datetime | None = None) -> None:
    """A run without a worker, as visibility shows it."""
    pairs = [
        SearchAttributePair(attributes.PIPELINE, IMPORTS.name),
        SearchAttributePair(attributes.STATE, state),
        SearchAttributePair(attributes.NEEDS_ATTENTION, since is not None),
    ]
    if since is not None:
        pairs.append(SearchAttributePair(attributes.WAITING_SINCE, since))
    await client.start_workflow(
        "DocumentImport",
        id=f"import/p1/{task}",
        task_queue="none",
        search_attributes=TypedSearchAttributes(pairs),
    )


async def test_open_runs_are_counted_by_state_with_the_longest_wait(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The longest wait is not that of the oldest run, and stands on none of the first pages.
    monkeypatch.setattr(gauges, "_PAGE", 2)
    hour = datetime.now(UTC) - timedelta(hours=1)
    for task, minutes in (("a", 5), ("b", 59), ("c", 30), ("d", 1), ("e", 2)):
        await start(client, task, "parked", hour + timedelta(minutes=60 - minutes))
    await start(client, "f", "waiting")
    await start(client, "g", "running")
    buffer = MetricBuffer(10_000)
    runtime = Runtime(telemetry=TelemetryConfig(metrics=buffer))
    seen: dict[tuple[str, str | None], float] = {}

    def shown() -> Mapping[tuple[str, str | None], float]:
        for update in buffer.retrieve_updates():
            if update.metric.name in (metrics.RUNS, metrics.LONGEST_WAIT):
                assert update.attributes["pipeline"] == IMPORTS.name
                state = update.attributes.get("state")
                seen[update.metric.name, None if state is None else str(state)] = update.value
        return seen

    async def everything() -> bool:
        return shown().get((metrics.RUNS, "open")) == 7 and (metrics.LONGEST_WAIT, None) in seen

    monkeypatch.setattr(gauges, "SECONDS", 0.05)
    with metrics.measuring(runtime.metric_meter):
        showing = asyncio.create_task(gauges.show_open(TemporalRuns(client, {}), [IMPORTS]))
    try:
        await eventually(everything)
    finally:
        showing.cancel()
    assert seen[metrics.RUNS, "parked"] == seen[metrics.RUNS, "needs_attention"] == 5
    assert seen[metrics.RUNS, "waiting"] == 1
    assert 59 * 60 <= seen[metrics.LONGEST_WAIT, None] < 70 * 60


async def scraped(port: int) -> str:
    async with httpx.AsyncClient() as scraper:
        return (await scraper.get(f"http://127.0.0.1:{port}/metrics")).text


async def test_outages_and_rejected_messages_have_their_age_and_return_to_zero(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gauges, "SECONDS", 0.05)
    rejected, port = MemoryRejectedMessages(), free_port()
    await rejected.record("q", "m1", "Malformed", "not JSON", b"{")
    await start(client, "f", "waiting")
    order = OutageInput(dependency=Dependency.CLOUD, since=datetime.now(UTC), problem="refused")
    await TemporalOutages(client).begin(order, "none")
    runtime = process_runtime("127.0.0.1", port)
    with metrics.measuring(runtime.metric_meter):
        showing = asyncio.create_task(
            gauges.show_open(TemporalRuns(client, {}), [IMPORTS], rejected)
        )

    async def shows(*lines: str) -> bool:
        shown = await scraped(port)
        return all(re.search(line, shown, re.MULTILINE) for line in lines)

    down = r'^docflow_outage_seconds{dependency="cloud",.*} 0*[1-9.]'
    try:
        await eventually(
            lambda: shows(
                "^# TYPE docflow_runs gauge$",
                r'^docflow_runs{pipeline="imports",.*state="waiting"} 1$',
                down,
                r'^docflow_outage_seconds{dependency="database",.*} 0$',
                r'^docflow_rejected_messages{queue="q",.*} 1$',
                r'^docflow_oldest_rejected_seconds{queue="q",.*} 0*[1-9.]',
            )
        )
        await rejected.mark_resubmitted(1)
        await client.get_workflow_handle("outage/cloud").terminate()
        await eventually(
            lambda: shows(
                r'^docflow_rejected_messages{queue="q",.*} 0$',
                r'^docflow_oldest_rejected_seconds{queue="q",.*} 0$',
                r'^docflow_outage_seconds{dependency="cloud",.*} 0$',
            )
        )
    finally:
        showing.cancel()
