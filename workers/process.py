"""The processes: workers and bridges, from start to clean shutdown."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from functools import partial

from temporalio.client import Client
from temporalio.runtime import PrometheusConfig, Runtime, TelemetryConfig
from temporalio.worker import Worker

from adapters.aws.queues import AwsQueues
from adapters.aws.session import AwsClients, open_aws
from workers.batch_resources import open_batches
from workers.batch_settings import BatchSettings
from workers.bridges.batch_loader import run_batch_loader
from workers.bridges.case_events import run_case_event_bridge
from workers.bridges.service_bus import ServiceBusBridge
from workers.bridges.totals import BridgeTotals
from workers.catalogue import CATALOGUE, Pipeline
from workers.collector import tune_collector
from workers.connect import connect
from workers.health import Health, serve_health
from workers.resources import Resources, open_resources
from workers.schedules import Change, reconcile
from workers.services.imports.intake import ImportIntake
from workers.settings import QueueSettings, SettingsError
from workers.signals import stop_on_signals

logger = logging.getLogger(__name__)

Bridge = Callable[[asyncio.Event], Awaitable[BridgeTotals]]
"""Takes messages in until the event is set."""


def build_worker(client: Client, pipeline: Pipeline, resources: Resources) -> Worker:
    """A worker for one row of the catalogue."""
    return Worker(
        client,
        task_queue=pipeline.task_queue,
        workflows=pipeline.workflows,
        activities=pipeline.activities(resources),
        max_concurrent_activities=pipeline.activity_slots,
        max_concurrent_local_activities=pipeline.local_slots,
        max_cached_workflows=pipeline.cached_runs,
        # A wish to cancel reaches an activity with the answer to a heartbeat.
        max_heartbeat_throttle_interval=timedelta(seconds=1),
        # A chunk under way may finish; the next attempt goes on from its mark.
        graceful_shutdown_timeout=timedelta(seconds=5),
    )


async def run_worker(
    pipelines: Sequence[str],
    environment: Mapping[str, str],
    *,
    with_bridge: bool = False,
    health_port: int | None = None,
    metrics_port: int | None = None,
) -> None:
    """Work until SIGTERM or SIGINT.

    Args:
        pipelines: Rows of the catalogue.
        environment: Where settings are read.
        with_bridge: Receive messages in this process too, so that runs start eagerly.
        health_port: Serve `/health/live` and `/health/ready`, on `DOCFLOW_HTTP_HOST`.
        metrics_port: Serve Prometheus metrics, on `DOCFLOW_HTTP_HOST` (loopback by default).

    Raises:
        SettingsError: A setting is missing or makes no sense, or a port is taken.
        SchemaBehind: The database waits for `docflow db upgrade`.
        TemporalUnreachable: Temporal does not answer, or refuses us its schedules.
    """
    unknown = sorted(set(pipelines) - set(CATALOGUE))
    if unknown:
        raise SettingsError(f"unknown pipeline {unknown}; known are {sorted(CATALOGUE)}")
    queue = QueueSettings.read(environment) if with_bridge and "imports" in pipelines else None
    batches = BatchSettings.read(environment) if "batches" in pipelines else None
    case_events_queue = batches.case_events_queue() if with_bridge and batches is not None else None
    host = environment.get("DOCFLOW_HTTP_HOST") or "127.0.0.1"
    runtime = _runtime(host, metrics_port)
    async with AsyncExitStack() as stack:
        stop = stack.enter_context(stop_on_signals())
        resources = await stack.enter_async_context(open_resources(environment))
        client = await connect(runtime=runtime)
        bridges: list[Bridge] = []
        if batches is not None:
            opened, clients = await stack.enter_async_context(
                open_batches(batches, resources.database, client)
            )
            resources = replace(resources, batches=opened)
            if case_events_queue is not None:
                bridges.append(
                    partial(_case_events, batches, case_events_queue, client, clients, resources)
                )
        if queue is not None:
            bridges.append(_bridge(queue, client, resources).run)
        health = Health()
        if health_port is not None:
            await stack.enter_async_context(serve_health(health, health_port, host))
        for name in pipelines:
            await stack.enter_async_context(build_worker(client, CATALOGUE[name], resources))
        await _reconcile_schedules(client, pipelines)
        tune_collector()
        health.ready = True
        logger.info("working on %s", ", ".join(pipelines))
        if len(pipelines) > 1 and "batches" not in pipelines:
            logger.info("not working on batches: DOCFLOW_BATCH_TOPIC_ARN is not set")
        await _until_stopped(stop, bridges)
        health.ready = False
        logger.info("stopping")


async def _until_stopped(stop: asyncio.Event, bridges: Sequence[Bridge]) -> None:
    """Have bridges work; one that cannot go on ends the process, and the others end cleanly."""
    working = [asyncio.ensure_future(bridge(stop)) for bridge in bridges]
    try:
        await asyncio.gather(stop.wait(), *working)
    finally:
        stop.set()
        await asyncio.gather(*working, return_exceptions=True)


async def run_bridge(environment: Mapping[str, str], *, drain: bool = False) -> BridgeTotals:
    """Receive messages and start runs until SIGTERM or SIGINT, or until the queue is empty.

    Raises:
        SettingsError: A setting is missing or makes no sense.
        SchemaBehind: The database waits for `docflow db upgrade`.
        TemporalUnreachable: Temporal does not answer at the start.
    """
    queue = QueueSettings.read(environment)
    async with AsyncExitStack() as stack:
        stop = stack.enter_context(stop_on_signals())
        resources = await stack.enter_async_context(open_resources(environment))
        client = await connect()
        return await _bridge(queue, client, resources).run(stop, drain=drain)


async def run_case_events(environment: Mapping[str, str], *, drain: bool = False) -> BridgeTotals:
    """Have case events taken by their cases until SIGTERM or SIGINT, or until the queue is empty.

    Raises:
        SettingsError: A setting is missing or makes no sense.
        SchemaBehind: The database waits for `docflow db upgrade`.
        TemporalUnreachable: Temporal does not answer at the start.
    """
    settings = BatchSettings.read(environment)
    url = settings.case_events_queue()
    async with AsyncExitStack() as stack:
        stop = stack.enter_context(stop_on_signals())
        resources = await stack.enter_async_context(open_resources(environment))
        clients = await stack.enter_async_context(open_aws(settings.aws))
        client = await connect()
        return await _case_events(settings, url, client, clients, resources, stop, drain=drain)


async def run_loader(environment: Mapping[str, str], *, drain: bool = False) -> BridgeTotals:
    """Start the loads of documents from the queues of batches, where no function does.

    Raises:
        SettingsError: A setting is missing or makes no sense.
        TemporalUnreachable: Temporal does not answer at the start.
    """
    settings = BatchSettings.read(environment)
    async with AsyncExitStack() as stack:
        stop = stack.enter_context(stop_on_signals())
        clients = await stack.enter_async_context(open_aws(settings.aws))
        return await run_batch_loader(
            await connect(),
            clients.sqs,
            AwsQueues(clients.sqs),
            prefix=settings.plan.prefix,
            stop=stop,
            drain=drain,
        )


async def _case_events(
    settings: BatchSettings,
    url: str,
    client: Client,
    clients: AwsClients,
    resources: Resources,
    stop: asyncio.Event,
    *,
    drain: bool = False,
) -> BridgeTotals:
    return await run_case_event_bridge(
        client,
        clients.sqs,
        resources.rejected,
        queue_url=url,
        stop=stop,
        drain=drain,
        timings=settings.timings,
    )


async def _reconcile_schedules(client: Client, pipelines: Sequence[str]) -> None:
    for id, change in (await reconcile(client, pipelines)).items():
        if change is not Change.NONE:
            logger.info("schedule %s: %s", id, change)


def _bridge(queue: QueueSettings, client: Client, resources: Resources) -> ServiceBusBridge:
    intake = ImportIntake(
        client,
        resources.rejected,
        queue=queue.queue_name,
        park_for_days=resources.runs.park_for_days,
    )
    return ServiceBusBridge(queue, intake.accept, ready=intake.ready)


def _runtime(host: str, metrics_port: int | None) -> Runtime | None:
    if metrics_port is None:
        return None
    metrics = PrometheusConfig(bind_address=f"{host}:{metrics_port}")
    try:
        return Runtime(telemetry=TelemetryConfig(metrics=metrics))
    except ValueError as error:
        raise SettingsError(
            f"metrics port {metrics_port} cannot be used: {error}; choose another"
        ) from error
