"""The processes: workers and bridges, from start to clean shutdown."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import Any, Final

from temporalio.client import Client

from activities.scratch import sweep
from workers import catalogue
from workers.allocator import tune_allocator
from workers.bridges.retry import Retry
from workers.bridges.stop import Stop
from workers.bridges.totals import BridgeTotals, QueueUnusable
from workers.building import Shared, build_lanes, build_worker
from workers.collector import tune_collector
from workers.connect import connect, read_config
from workers.dependencies import open_dependencies
from workers.gauges import start_gauges
from workers.health import Health
from workers.health_server import serve_health
from workers.metrics import measuring
from workers.notices import open_notices
from workers.pipelines.base import Bridge, Context, Pipeline, ReadSettings, load
from workers.resources.common import CommonSettings, make_folders, open_resources
from workers.schedules import Change, declared_schedules, delete_undeclared, reconcile
from workers.services.readiness import Readiness
from workers.services.run_notices import read_addresses
from workers.services.setup.opening import open_requirements
from workers.services.setup.temporal import Connection
from workers.settings.check import unread_names
from workers.settings.common import HttpSettings, WorkflowSettings
from workers.settings.errors import SettingsError
from workers.signals import stop_on_signals
from workers.telemetry import process_runtime

logger = logging.getLogger(__name__)

Run = Callable[[asyncio.Event], Awaitable[Any]]
"""Works until the event is set."""

Receive = Callable[[Context, Any, asyncio.Event, bool], Awaitable[BridgeTotals]]
"""Receives until the event is set, with the settings of its bridge; drains the queue when the
flag is set. The entry point `Bridge.run` names one."""

_QUEUE_PAUSES: Final = Retry(first_pause=1.0, longest_pause=15.0)
"""Before a queue that was missing is opened again."""


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
    lane: str | None = None,
    health_port: int | None = None,
    metrics_port: int | None = None,
) -> None:
    """Work until SIGTERM or SIGINT.

    Args:
        names: Pipelines of the catalogue; None: every one whose settings are present.
        lane: Serve this task queue of the pipelines alone; None: all of theirs.
        environment: Where settings are read.
        with_bridge: Receive messages in this process too, so that runs start eagerly.
        health_port: Serve `/health/live` and `/health/ready`, on `DOCFLOW_HTTP_HOST`.
        metrics_port: Serve Prometheus metrics, on `DOCFLOW_HTTP_HOST` (loopback by default).

    Nothing is polled and nothing received before everything that docflow needs is there: until then
    the process is not ready, and says why.

    Raises:
        SettingsError: A setting is missing or invalid, or a port cannot be listened on.
        TemporalUnreachable: Temporal refuses us its schedules.
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
        environment,
        [
            *(*readers, HttpSettings.read, CommonSettings.read, WorkflowSettings.read),
            *(read_addresses, read_config),
        ],
    )
    host = settings[HttpSettings.read].host
    sandboxed = settings[WorkflowSettings.read].sandboxed
    tune_allocator()
    runtime = process_runtime(host, metrics_port)
    async with AsyncExitStack() as stack:
        stack.enter_context(measuring(runtime.metric_meter))
        stop = stack.enter_context(stop_on_signals())
        health = Health()
        if health_port is not None:
            await stack.enter_async_context(serve_health(health, health_port, host))
        make_folders(settings[CommonSettings.read])
        temporal = Connection(partial(connect, runtime=runtime, sandboxed=sandboxed))
        readiness = Readiness(
            await stack.enter_async_context(open_requirements(environment, temporal, pipelines)),
            health,
        )
        if not await readiness.until_met(stop):
            return
        common = await stack.enter_async_context(open_resources(environment))
        if folders := await asyncio.to_thread(sweep, common.scratch):
            logger.info("removed %d scratch folders of workers that were killed", folders)
        context = Context(environment, await temporal.client(), common, health)
        opened = [
            (each, await stack.enter_async_context(each.open(context, settings[each.settings])))
            for each in pipelines
        ]
        shared = Shared(
            open_dependencies(context.client, common, opened),
            open_notices(common, settings[read_addresses], context.client.namespace),
        )
        for pipeline, own in opened:
            if lane is None:
                worker = build_worker(context.client, pipeline, common, own, shared)
                await stack.enter_async_context(worker)
            for worker in build_lanes(
                context.client,
                pipeline,
                common,
                own,
                lane,
                environment=environment,
                shared=shared,
            ):
                await stack.enter_async_context(worker)
        working = [pipeline.name for pipeline in pipelines]
        if lane is None:
            await _reconcile_schedules(context.client, working, environment)
        if metrics_port is not None:
            start_gauges(stack, context.client, environment, common.rejected)
        tune_collector()
        health.ready = True
        suffix = "" if lane is None else f", lane {lane}"
        logger.info("working on %s%s", ", ".join(working), suffix)
        if sandboxed:
            logger.info("workflows run in the sandbox: DOCFLOW_WORKFLOW_SANDBOX is set")
        if names is None:
            _log_left_out(environment)
        receiving = [_receive(each, context, settings[each.settings]) for each in bridges]
        await _until_stopped(stop, [readiness.watch, *receiving])
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


def _receive(bridge: Bridge, context: Context, settings: Any) -> Run:
    """Receive until the stop; a queue that cannot be opened is opened again later."""
    health = context.health.part(bridge.name)
    own = replace(context, health=health)
    run: Receive = load(bridge.run)

    async def receive(stop: asyncio.Event) -> BridgeTotals:
        for pause in _QUEUE_PAUSES.pauses():
            try:
                return await run(own, settings, stop, False)
            except QueueUnusable as error:
                if str(error) != health.problem:
                    logger.warning("not ready: %s", error)
                health.refuse(str(error))
            if await Stop(stop).pause(pause):
                break
        return BridgeTotals()

    return receive


async def _until_stopped(stop: asyncio.Event, parts: Sequence[Run]) -> Sequence[Any]:
    """Run parts of a process; one that fails ends the process, and the others end cleanly.

    Returns:
        What each of them returned.
    """
    working = [asyncio.ensure_future(part(stop)) for part in parts]
    try:
        _, *results = await asyncio.gather(stop.wait(), *working)
        return results
    finally:
        stop.set()
        await asyncio.gather(*working, return_exceptions=True)


async def run_bridge(
    bridge: Bridge,
    environment: Mapping[str, str],
    *,
    drain: bool = False,
    health_port: int | None = None,
    metrics_port: int | None = None,
) -> BridgeTotals:
    """Receive messages and start runs until SIGTERM or SIGINT, or until the queue is empty.

    Args:
        bridge: Of some pipeline.
        environment: Where settings are read.
        drain: Stop when the queue stays empty, and wait for nothing that is missing.
        health_port: Serve `/health/live` and `/health/ready`, on `DOCFLOW_HTTP_HOST`.
        metrics_port: Serve Prometheus metrics, on `DOCFLOW_HTTP_HOST` (loopback by default).

    Raises:
        SettingsError: A setting is missing or invalid, or the port cannot be listened on.
        NotReady: With `drain`, something is missing.
    """
    common = [CommonSettings.read] if bridge.needs_resources else []
    readers = [bridge.settings, HttpSettings.read, *common, read_config]
    settings = read_settings(environment, readers)
    runtime = process_runtime(settings[HttpSettings.read].host, metrics_port)
    async with AsyncExitStack() as stack:
        stack.enter_context(measuring(runtime.metric_meter))
        stop = stack.enter_context(stop_on_signals())
        health = Health()
        if health_port is not None:
            host = settings[HttpSettings.read].host
            await stack.enter_async_context(serve_health(health, health_port, host))
        if bridge.needs_resources:
            make_folders(settings[CommonSettings.read])
        temporal = Connection(partial(connect, runtime=runtime))
        requirements = open_requirements(
            environment, temporal, (), with_resources=bridge.needs_resources
        )
        readiness = Readiness(await stack.enter_async_context(requirements), health)
        if drain:
            await readiness.require()
        elif not await readiness.until_met(stop):
            return BridgeTotals()
        resources = (
            await stack.enter_async_context(open_resources(environment))
            if bridge.needs_resources
            else None
        )
        context = Context(environment, await temporal.client(), resources, health)
        if metrics_port is not None:
            rejected = None if resources is None else resources.rejected
            start_gauges(stack, context.client, environment, rejected)
        health.ready = True
        if drain:
            run: Receive = load(bridge.run)
            return await run(context, settings[bridge.settings], stop, True)
        receive = _receive(bridge, context, settings[bridge.settings])
        _, totals = await _until_stopped(stop, [readiness.watch, receive])
        return totals


async def _reconcile_schedules(
    client: Client, pipelines: Sequence[str], environment: Mapping[str, str]
) -> None:
    declared = declared_schedules(pipelines, environment)
    done = {
        **await reconcile(client, pipelines, declared),
        **await delete_undeclared(client, pipelines, environment),
    }
    for id, change in done.items():
        if change is not Change.NONE:
            logger.info("schedule %s: %s", id, change)
