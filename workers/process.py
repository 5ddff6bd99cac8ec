"""The processes: workers and bridges, from start to clean shutdown."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

from temporalio.client import Client
from temporalio.runtime import PrometheusConfig, Runtime, TelemetryConfig
from temporalio.worker import Worker

from activities.dependencies import Dependencies
from workers import catalogue
from workers.bridges.totals import BridgeTotals
from workers.collector import tune_collector
from workers.connect import connect
from workers.dependencies import COMMON_WORKFLOWS, open_dependencies
from workers.health import Health, serve_health
from workers.listeners import authority, listener
from workers.notices import OpenNotices, open_notices, read_addresses
from workers.pipelines.base import Bridge, Context, Pipeline, ReadSettings, activities_of
from workers.resources.common import CommonSettings, Resources, open_resources
from workers.schedules import Change, reconcile
from workers.settings.check import unread_names
from workers.settings.common import AddressSettings, HttpSettings
from workers.settings.errors import SettingsError
from workers.signals import stop_on_signals

logger = logging.getLogger(__name__)

Receive = Callable[[asyncio.Event], Awaitable[BridgeTotals]]
"""Receives messages until the event is set."""


def build_worker(
    client: Client,
    pipeline: Pipeline,
    common: Resources,
    own: Any,
    dependencies: Dependencies | None = None,
    notices: OpenNotices | None = None,
) -> Worker:
    """A worker for one pipeline.

    Args:
        client: Of the namespace whose runs are worked on.
        pipeline: Its register.
        common: What all pipelines share.
        own: What the pipeline opened for itself.
        dependencies: Shared by the workers of a process; None: this worker is the only one.
        notices: Shared as well; None: this worker is the only one, and links to no page.
    """
    dependencies = dependencies or open_dependencies(client, common, [(pipeline, own)])
    notices = notices or open_notices(common, AddressSettings.read({}), client.namespace)
    return Worker(
        client,
        task_queue=pipeline.task_queue,
        workflows=[*pipeline.workflows(), *COMMON_WORKFLOWS],
        activities=activities_of(
            *pipeline.activities(common, own), dependencies, notices.activities
        ),
        interceptors=[notices.interceptor],
        max_concurrent_activities=pipeline.activity_slots,
        max_concurrent_local_activities=pipeline.local_slots,
        max_cached_workflows=pipeline.cached_runs,
        # A request to cancel reaches an activity with the answer to a heartbeat.
        max_heartbeat_throttle_interval=timedelta(seconds=1),
        # A chunk in progress may finish; the next attempt resumes from its mark.
        graceful_shutdown_timeout=timedelta(seconds=5),
    )


def read_settings(
    environment: Mapping[str, str], readers: Iterable[ReadSettings]
) -> Mapping[ReadSettings, Any]:
    """Read everything that a process needs before it opens anything, and warn of unread names.

    Raises:
        SettingsError: Settings are missing or invalid; it names those of every group.
    """
    for warning in unread_names(environment):
        logger.warning("%s", warning)
    read: dict[ReadSettings, Any] = {}
    problems: dict[str, None] = {}
    for reader in dict.fromkeys(readers):
        try:
            read[reader] = reader(environment)
        except SettingsError as error:
            problems |= dict.fromkeys(error.problems)
    if problems:
        raise SettingsError(*problems)
    return read


async def run_worker(
    names: Sequence[str] | None,
    environment: Mapping[str, str],
    *,
    with_bridge: bool = False,
    health_port: int | None = None,
    metrics_port: int | None = None,
) -> None:
    """Work until SIGTERM or SIGINT.

    Args:
        names: Pipelines of the catalogue; None: every one whose settings are present.
        environment: Where settings are read.
        with_bridge: Receive messages in this process too, so that runs start eagerly.
        health_port: Serve `/health/live` and `/health/ready`, on `DOCFLOW_HTTP_HOST`.
        metrics_port: Serve Prometheus metrics, on `DOCFLOW_HTTP_HOST` (loopback by default).

    Raises:
        SettingsError: A setting is missing or invalid, or a port cannot be listened on.
        SchemaBehind: The database waits for `docflow db upgrade`.
        TemporalUnreachable: Temporal does not answer, or refuses us its schedules.
    """
    pipelines = choose(names, environment)
    bridges = [
        bridge
        for pipeline in pipelines
        for bridge in pipeline.bridges
        if with_bridge and bridge.with_worker
    ]
    readers = [each.settings for each in (*pipelines, *bridges)]
    settings = read_settings(
        environment, [*readers, HttpSettings.read, CommonSettings.read, read_addresses]
    )
    host = settings[HttpSettings.read].host
    runtime = _runtime(host, metrics_port)
    async with AsyncExitStack() as stack:
        stop = stack.enter_context(stop_on_signals())
        common = await stack.enter_async_context(open_resources(environment))
        context = Context(environment, await connect(runtime=runtime), common)
        opened = [
            (each, await stack.enter_async_context(each.open(context, settings[each.settings])))
            for each in pipelines
        ]
        health = Health()
        if health_port is not None:
            await stack.enter_async_context(serve_health(health, health_port, host))
        dependencies = open_dependencies(context.client, common, opened)
        notices = open_notices(common, settings[read_addresses], context.client.namespace)
        for pipeline, own in opened:
            worker = build_worker(context.client, pipeline, common, own, dependencies, notices)
            await stack.enter_async_context(worker)
        working = [pipeline.name for pipeline in pipelines]
        await _reconcile_schedules(context.client, working)
        tune_collector()
        health.ready = True
        logger.info("working on %s", ", ".join(working))
        if names is None:
            _log_left_out(environment)
        await _until_stopped(stop, [_receive(each, context, settings) for each in bridges])
        health.ready = False
        logger.info("stopping")


def choose(names: Sequence[str] | None, environment: Mapping[str, str]) -> Sequence[Pipeline]:
    """The pipelines to work on: those named, or all whose settings are present.

    Raises:
        SettingsError: A name is of no pipeline.
    """
    known = {pipeline.name: pipeline for pipeline in catalogue.PIPELINES}
    if names is not None:
        if unknown := sorted(set(names) - set(known)):
            raise SettingsError(f"unknown pipeline {unknown}; known are {sorted(known)}")
        return [known[name] for name in names]
    return [pipeline for pipeline in known.values() if pipeline.available(environment)]


def _log_left_out(environment: Mapping[str, str]) -> None:
    for pipeline in catalogue.PIPELINES:
        if reason := pipeline.left_out(environment):
            logger.info("not working on %s: %s", pipeline.name, reason)


def _receive(bridge: Bridge, context: Context, settings: Mapping[ReadSettings, Any]) -> Receive:
    async def receive(stop: asyncio.Event) -> BridgeTotals:
        return await bridge.run(context, settings[bridge.settings], stop, False)

    return receive


async def _until_stopped(stop: asyncio.Event, bridges: Sequence[Receive]) -> None:
    """Run bridges; one that fails ends the process, and the others end cleanly."""
    working = [asyncio.ensure_future(bridge(stop)) for bridge in bridges]
    try:
        await asyncio.gather(stop.wait(), *working)
    finally:
        stop.set()
        await asyncio.gather(*working, return_exceptions=True)


async def run_bridge(
    bridge: Bridge, environment: Mapping[str, str], *, drain: bool = False
) -> BridgeTotals:
    """Receive messages and start runs until SIGTERM or SIGINT, or until the queue is empty.

    Raises:
        SettingsError: A setting is missing or invalid.
        SchemaBehind: The database waits for `docflow db upgrade`.
        TemporalUnreachable: Temporal does not answer at the start.
    """
    common = [CommonSettings.read] if bridge.needs_resources else []
    settings = read_settings(environment, [bridge.settings, *common])
    async with AsyncExitStack() as stack:
        stop = stack.enter_context(stop_on_signals())
        resources = (
            await stack.enter_async_context(open_resources(environment))
            if bridge.needs_resources
            else None
        )
        context = Context(environment, await connect(), resources)
        return await bridge.run(context, settings[bridge.settings], stop, drain)


async def _reconcile_schedules(client: Client, pipelines: Sequence[str]) -> None:
    for id, change in (await reconcile(client, pipelines)).items():
        if change is not Change.NONE:
            logger.info("schedule %s: %s", id, change)


def _runtime(host: str, metrics_port: int | None) -> Runtime | None:
    if metrics_port is None:
        return None
    # The SDK takes no names, and does not say whether address or port is at fault.
    with listener(host, metrics_port, "metrics port") as probe:
        address = authority(probe)
    try:
        metrics = PrometheusConfig(bind_address=address)
        return Runtime(telemetry=TelemetryConfig(metrics=metrics))
    except ValueError as error:
        raise SettingsError(
            f"metrics port {metrics_port} cannot be used: {error}; choose another"
        ) from error
