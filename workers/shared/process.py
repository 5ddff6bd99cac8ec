"""The processes: workers and bridges, from start to clean shutdown."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, Final

from temporalio.client import Client
from temporalio.worker import Worker

from activities.shared.scratch import sweep
from workers import catalogue
from workers.shared.bridges.consumer import BridgeTotals, QueueUnusable, Retry, Stop
from workers.shared.connect import connect, read_config
from workers.shared.errors import SettingsError
from workers.shared.gauges import start_gauges
from workers.shared.health import Health, stop_on_signals
from workers.shared.health_server import serve_health
from workers.shared.machine import Slots, slots_of, tune_allocator, tune_collector
from workers.shared.metrics import measuring, process_runtime
from workers.shared.register import Bridge, Context, Pipeline, ReadSettings, load
from workers.shared.resources import CommonSettings, make_folders, open_resources
from workers.shared.schedules import Change, declared_schedules, delete_undeclared, reconcile
from workers.shared.services.accepted import noting_starts
from workers.shared.services.readiness import Readiness
from workers.shared.services.run_notifications import read_addresses
from workers.shared.services.setup import open_requirements
from workers.shared.services.temporal_requirements import Connection
from workers.shared.settings.check import unread_names
from workers.shared.settings.common import (
    HttpSettings,
    LogSettings,
    WorkerSettings,
    WorkflowSettings,
)
from workers.shared.settings.payloads import PayloadSettings
from workers.shared.worker_factory import (
    Shared,
    build_lanes,
    build_worker,
    open_dependencies,
    open_notices,
)

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
    """Read everything that a process needs before it opens anything.

    Args:
        environment: Where settings are read.
        readers: Of the groups.

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

    Nothing is polled and nothing received before everything that docflow needs is there: until then
    the process is not ready, and says why.

    Args:
        names: Pipelines of the catalogue; None: every one whose settings are present.
        environment: Where settings are read.
        with_bridge: Receive messages in this process too, so that runs start eagerly.
        lane: Serve this task queue of the pipelines alone; None: all of theirs.
        health_port: Serve `/health/live` and `/health/ready`, on `DOCFLOW_HTTP_HOST`.
        metrics_port: Serve Prometheus metrics, on `DOCFLOW_HTTP_HOST` (loopback by default).

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
    readers = [
        *(each.settings for each in (*pipelines, *bridges)),
        *(HttpSettings.read, CommonSettings.read, WorkerSettings.read, WorkflowSettings.read),
        LogSettings.read,
        *(PayloadSettings.read, read_addresses, read_config),
    ]
    settings = read_settings(environment, readers)
    connections = settings[CommonSettings.read].database.options.connections
    slots = slots_of(pipelines, connections, settings[WorkerSettings.read])
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
            environment,
        )
        building = partial(_workers, context, lane, shared, slots)
        for worker in chain.from_iterable(building(*each) for each in opened):
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
        if lane is None:
            _log_slots(slots)
        if sandboxed:
            logger.info("workflows run in the sandbox: DOCFLOW_WORKFLOW_SANDBOX is set")
        if names is None:
            _log_left_out(environment)
        receiving = [_receive(each, context, settings[each.settings]) for each in bridges]
        await _until_stopped(stop, [readiness.watch, *receiving])
        health.ready = False
        logger.info("stopping")


def _workers(
    context: Context,
    lane: str | None,
    shared: Shared,
    slots: Mapping[str, Slots],
    pipeline: Pipeline,
    own: Any,
) -> Iterator[Worker]:
    """The workers of one pipeline in this process; with a lane, that of the lane alone."""
    client, common = context.client, context.resources
    if lane is None:
        yield build_worker(client, pipeline, common, own, shared, slots[pipeline.name])
    yield from build_lanes(
        client,
        pipeline,
        common,
        own,
        lane,
        environment=context.environment,
        shared=shared,
        slots=slots[pipeline.name],
    )


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


def _log_slots(slots: Mapping[str, Slots]) -> None:
    found = (
        f"{name} {each.activities} activities and {each.local} short steps"
        for name, each in slots.items()
    )
    logger.info("at once: %s", ", ".join(found))


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
    readers = [
        *(bridge.settings, HttpSettings.read, LogSettings.read, *common),
        *(PayloadSettings.read, read_config),
    ]
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
        client = await temporal.client()
        if resources is not None:
            client = noting_starts(client, resources.database)
        context = Context(environment, client, resources, health)
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
