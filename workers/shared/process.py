"""The processes: workers and bridges, from start to clean shutdown, alone or one of several."""

import asyncio
import json
import logging
import os
import select
import signal
import socket
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, Final, NoReturn

from temporalio.client import Client
from temporalio.worker import Worker

from activities.shared.scratch import sweep
from workers import catalogue
from workers.shared.bridges.consumer import BridgeTotals, QueueUnusable, Retry, Stop
from workers.shared.connect import connect, read_config
from workers.shared.errors import SettingsError
from workers.shared.gauges import start_gauges
from workers.shared.health import Health, stop_on_signals
from workers.shared.health_server import LOOPBACK, serve_health
from workers.shared.machine import Share, Slots, share_of, slots_of, tune_allocator, tune_collector
from workers.shared.metrics import measuring, process_runtime
from workers.shared.register import Bridge, Context, Pipeline, ReadSettings, load
from workers.shared.resources import CommonSettings, make_folders, open_resources
from workers.shared.schedules import Change, declared_schedules, delete_undeclared, reconcile
from workers.shared.services.readiness import Readiness
from workers.shared.services.run_notices import read_addresses
from workers.shared.services.setup import open_requirements
from workers.shared.services.temporal_requirements import Connection
from workers.shared.settings.check import unread_names
from workers.shared.settings.common import (
    HttpSettings,
    LogSettings,
    WorkerSettings,
    WorkflowSettings,
)
from workers.shared.worker_factory import (
    Shared,
    build_lanes,
    build_worker,
    open_dependencies,
    open_notices,
)

logger = logging.getLogger(__name__)

SECONDS: Final = 0.25
"""Between two reports."""
_GRACE: Final = 30.0
"""Seconds that a process has to end in when the one that started it is gone."""


@dataclass(frozen=True)
class Report:
    """What a process says of itself."""

    ready: bool = False
    problems: Sequence[str] = ()
    metrics: str | None = None
    """Address of its metrics, as `127.0.0.1:9091`; None: it has none."""
    failure: str | None = None
    """Why it ends, in one sentence."""

    def packed(self) -> bytes:
        """As one message."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def unpacked(cls, message: bytes) -> "Report":
        """The report that a message holds."""
        held: dict[str, Any] = json.loads(message)
        return cls(**held)


@dataclass(frozen=True)
class Member:
    """One of several processes of a worker.

    What a worker does once, for all of them, the first one does.
    """

    number: int
    """From 1."""
    share: Share
    """What it has."""
    channel: socket.socket
    """Reports go here, a message each; it ends when the process that started this one is gone."""

    @property
    def is_first(self) -> bool:
        """Whether it does what is done once."""
        return self.number == 1

    def fail(self, reason: str) -> None:
        """Report why this process ends."""
        self._send(Report(failure=reason))

    async def report(self, health: Health, metrics: str | None) -> NoReturn:
        """Report until this is cancelled.

        Args:
            health: Of this process.
            metrics: Address of its metrics.
        """
        while True:
            self._send(Report(health.ready, health.problems, metrics))
            await asyncio.sleep(SECONDS)

    def _send(self, report: Report) -> None:
        try:
            self.channel.send(report.packed(), socket.MSG_DONTWAIT)
        except (BlockingIOError, BrokenPipeError, ConnectionResetError):
            # It no longer reads, or will later: what counts is the newest report.
            return


def channel() -> tuple[socket.socket, socket.socket]:
    """Both ends of a channel for reports: that of the reader, and that of the process."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def end_with(channel: socket.socket, grace: float = _GRACE) -> None:
    """Let this process end when the one that started it is gone: as by SIGTERM, or at last at once.

    Args:
        channel: Nothing is ever sent to this process.
        grace: Seconds between the two.
    """
    threading.Thread(target=_wait_for_end, args=(channel, grace), daemon=True).start()


def _wait_for_end(channel: socket.socket, grace: float) -> None:
    select.select([channel], [], [])
    logger.error("the parent of this process is gone, so it ends too")
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait(grace)
    logger.error("it has not ended within %g s, and ends at once", grace)
    os._exit(1)


Run = Callable[[asyncio.Event], Awaitable[Any]]
"""Works until the event is set."""

Receive = Callable[[Context, Any, asyncio.Event, bool], Awaitable[BridgeTotals]]
"""Receives until the event is set, with the settings of its bridge; drains the queue when the
flag is set. The entry point `Bridge.run` names one."""

_QUEUE_PAUSES: Final = Retry(first_pause=1.0, longest_pause=15.0)
"""Before a queue that was missing is opened again."""


def read_settings(
    environment: Mapping[str, str], readers: Iterable[ReadSettings], *, warn: bool = True
) -> Mapping[ReadSettings, Any]:
    """Read everything that a process needs before it opens anything.

    Args:
        environment: Where settings are read.
        readers: Of the groups.
        warn: Log names that nothing reads.

    Raises:
        SettingsError: Settings are missing or invalid; it names those of every group.
    """
    for warning in unread_names(environment) if warn else ():
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


@dataclass(frozen=True)
class Work:
    """What a worker works on, and the settings of all of it."""

    pipelines: Sequence[Pipeline]
    bridges: Sequence[Bridge]
    settings: Mapping[ReadSettings, Any]


def work_of(
    names: Sequence[str] | None,
    environment: Mapping[str, str],
    *,
    with_bridge: bool,
    warn: bool = True,
) -> Work:
    """What a worker works on; its options are those of `run_worker`.

    Raises:
        SettingsError: A setting is missing or invalid; all of them are named.
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
        *(read_addresses, read_config),
    ]
    return Work(pipelines, bridges, read_settings(environment, readers, warn=warn))


async def run_worker(
    names: Sequence[str] | None,
    environment: Mapping[str, str],
    *,
    with_bridge: bool = False,
    lane: str | None = None,
    health_port: int | None = None,
    metrics_port: int | None = None,
    member: Member | None = None,
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
        member: Which of several processes of the worker this is, whose metrics are on loopback;
            None: it is the only one.

    Raises:
        SettingsError: A setting is missing or invalid, or a port cannot be listened on.
        TemporalUnreachable: Temporal refuses us its schedules.
    """
    does_once = member is None or member.is_first
    work = work_of(names, environment, with_bridge=with_bridge, warn=member is None)
    pipelines, settings = work.pipelines, work.settings
    share = share_of(pipelines, environment, 1) if member is None else member.share
    slots = slots_of(pipelines, share, settings[WorkerSettings.read])
    host = LOOPBACK if member is not None else settings[HttpSettings.read].host
    sandboxed = settings[WorkflowSettings.read].sandboxed
    tune_allocator()
    runtime = process_runtime(host, metrics_port)
    async with AsyncExitStack() as stack:
        stack.enter_context(measuring(runtime.metric_meter))
        stop = stack.enter_context(stop_on_signals())
        health = Health()
        if health_port is not None:
            await stack.enter_async_context(serve_health(health, health_port, host))
        if member is not None:
            address = None if metrics_port is None else f"{host}:{metrics_port}"
            reporting = asyncio.create_task(member.report(health, address))
            stack.callback(reporting.cancel)
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
        building = partial(_workers, context, lane, shared, slots, share.processes)
        for worker in chain.from_iterable(building(*each) for each in opened):
            await stack.enter_async_context(worker)
        working = [pipeline.name for pipeline in pipelines]
        if lane is None and does_once:
            await _reconcile_schedules(context.client, working, environment)
        if metrics_port is not None and does_once:
            start_gauges(stack, context.client, environment, common.rejected)
        tune_collector()
        health.ready = True
        suffix = "" if lane is None else f", lane {lane}"
        logger.info("working on %s%s", ", ".join(working), suffix)
        if lane is None and does_once:
            _log_slots(slots)
        if sandboxed and does_once:
            logger.info("workflows run in the sandbox: DOCFLOW_WORKFLOW_SANDBOX is set")
        if names is None and does_once:
            _log_left_out(environment)
        receiving = [_receive(each, context, settings[each.settings]) for each in work.bridges]
        await _until_stopped(stop, [readiness.watch, *receiving])
        health.ready = False
        logger.info("stopping")


def _workers(
    context: Context,
    lane: str | None,
    shared: Shared,
    slots: Mapping[str, Slots],
    processes: int,
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
        processes=processes,
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
    logger.info("each process does at once: %s", ", ".join(found))


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
    readers = [bridge.settings, HttpSettings.read, LogSettings.read, *common, read_config]
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
