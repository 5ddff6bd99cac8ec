"""The gateway as a process, from start to clean shutdown."""

import asyncio
import logging
from collections.abc import Coroutine, Generator, Mapping
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp

from workers.connect import connect, read_config
from workers.gateway.app import create_app
from workers.gateway.http.auth import Tokens
from workers.gateway.parts import open_parts, part_settings
from workers.gateway.startup import Entrance
from workers.gauges import start_gauges
from workers.listeners import HOST_SETTING, authority, listener
from workers.metrics import measuring
from workers.pipelines.base import Context
from workers.resources.common import (
    RESOURCE_SETTINGS,
    CommonSettings,
    make_folders,
    open_resources,
)
from workers.services.inbox import Inbox
from workers.services.readiness import Readiness
from workers.services.setup.factory import open_requirements
from workers.services.setup.temporal import Connection
from workers.settings.check import check_at_start
from workers.settings.common import HttpSettings, LogSettings
from workers.settings.gateway import GatewaySettings
from workers.signals import stop_on_signals
from workers.telemetry import process_runtime

logger = logging.getLogger(__name__)

_GRACE_SECONDS: Final = 20
"""What uploads under way have to come to their end."""


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave signals to the process."""
        yield


async def serve(app: ASGIApp, stop: asyncio.Event, *, host: str, port: int) -> None:
    """Answer requests until `stop` is set, then let those under way come to their end.

    Raises:
        SettingsError: The host is not an address of this machine, or the port is taken.
    """
    host_setting = f"--host or {HOST_SETTING}"
    with listener(host, port, "port", host_setting=host_setting) as listening:
        server = _Server(
            uvicorn.Config(
                app,
                # Its lines are part of the process's own log.
                log_config=None,
                log_level="warning",
                lifespan="off",
                server_header=False,
                timeout_graceful_shutdown=_GRACE_SECONDS,
            )
        )
        logger.info("listening on http://%s", authority(listening))
        serving = asyncio.create_task(server.serve([listening]))
        # A server that ends by itself ends the process.
        serving.add_done_callback(lambda _: stop.set())
        try:
            await stop.wait()
        finally:
            # Also when we are cancelled: the loop must forget the socket before it is closed.
            server.should_exit = True
            await serving


async def run_gateway(
    environment: Mapping[str, str], *, host: str, port: int, metrics_port: int | None = None
) -> None:
    """Serve API and pages until SIGTERM or SIGINT.

    Before everything that they need is there, every request is answered with 503.

    Args:
        environment: Where settings are read.
        host: Name or address to listen on.
        port: Port; a free one when 0.
        metrics_port: Serve Prometheus metrics, on `DOCFLOW_HTTP_HOST` (loopback by default).

    Raises:
        SettingsError: A setting is missing or invalid, the host is not an address of this machine,
            or the port is taken.
    """
    own = part_settings()
    groups = (GatewaySettings, HttpSettings, LogSettings, *own.values(), *RESOURCE_SETTINGS)
    check_at_start(environment, *groups, others=[read_config])
    settings = GatewaySettings.read(environment)
    settings = settings.model_copy(update={"allowed_hosts": (*settings.allowed_hosts, host)})
    runtime = process_runtime(HttpSettings.read(environment).host, metrics_port)
    of_parts = {name: group.read(environment) for name, group in own.items()}
    make_folders(CommonSettings.read(environment))
    async with AsyncExitStack() as stack:
        stack.enter_context(measuring(runtime.metric_meter))
        stop = stack.enter_context(stop_on_signals())
        temporal = Connection(partial(connect, runtime=runtime))
        requirements = open_requirements(environment, temporal, ())
        readiness = Readiness(await stack.enter_async_context(requirements))
        entrance = Entrance(readiness.health)

        async def open_parts_when_ready() -> None:
            if not await readiness.until_met(stop):
                return
            resources = await stack.enter_async_context(open_resources(environment))
            client = await temporal.client()
            app = create_app(
                open_parts(Context(environment, client, resources), of_parts),
                Inbox(client),
                readiness,
                Tokens(settings.tokens),
                settings,
                namespace=client.namespace,
                stopping=stop.is_set,
            )
            if metrics_port is not None:
                start_gauges(stack, client, environment, resources.rejected)
            readiness.health.ready = True
            entrance.open(app)

        await _both(serve(entrance, stop, host=host, port=port), open_parts_when_ready(), stop)
        logger.info("stopping")


async def _both(
    serving: Coroutine[Any, Any, None], opening: Coroutine[Any, Any, None], stop: asyncio.Event
) -> None:
    """Serve while the parts are opened; the failure of one ends both."""
    tasks = [asyncio.ensure_future(serving), asyncio.ensure_future(opening)]
    try:
        await asyncio.gather(*tasks)
    finally:
        stop.set()
        await asyncio.gather(*tasks, return_exceptions=True)
