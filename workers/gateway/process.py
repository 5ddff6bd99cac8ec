"""The gateway as a process, from start to clean shutdown."""

import asyncio
import logging
from collections.abc import Generator, Mapping
from contextlib import AsyncExitStack, contextmanager
from typing import Final

import uvicorn
from fastapi import FastAPI

from workers.connect import connect
from workers.gateway.app import create_app
from workers.gateway.http.auth import Tokens
from workers.gateway.parts import open_parts, part_settings
from workers.listeners import HOST_SETTING, authority, listener
from workers.metrics import measuring
from workers.pipelines.base import Context
from workers.resources.common import RESOURCE_SETTINGS, open_resources
from workers.services.inbox import Inbox
from workers.services.readiness import Readiness
from workers.settings.check import check_at_start
from workers.settings.common import HttpSettings
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


async def serve(app: FastAPI, stop: asyncio.Event, *, host: str, port: int) -> None:
    """Answer requests until `stop` is set, then let those under way come to their end.

    Raises:
        SettingsError: The host is no address of this machine, or the port is taken.
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

    Args:
        environment: Where settings are read.
        host: Name or address to listen on.
        port: Port; a free one when 0.
        metrics_port: Serve Prometheus metrics, on `DOCFLOW_HTTP_HOST` (loopback by default).

    Raises:
        SettingsError: A setting is missing or invalid, the host is no address of this machine, or
            the port is taken.
        SchemaBehind: The database waits for `docflow db upgrade`.
        TemporalUnreachable: Temporal does not answer at the start.
    """
    own = part_settings()
    check_at_start(environment, GatewaySettings, HttpSettings, *own.values(), *RESOURCE_SETTINGS)
    settings = GatewaySettings.read(environment)
    runtime = process_runtime(HttpSettings.read(environment).host, metrics_port)
    of_parts = {name: group.read(environment) for name, group in own.items()}
    async with AsyncExitStack() as stack:
        stack.enter_context(measuring(runtime.metric_meter))
        stop = stack.enter_context(stop_on_signals())
        resources = await stack.enter_async_context(open_resources(environment))
        client = await connect(runtime=runtime)
        app = create_app(
            open_parts(Context(environment, client, resources), of_parts),
            Inbox(client),
            Readiness(client, resources.database),
            Tokens(settings.tokens),
            settings,
            namespace=client.namespace,
            stopping=stop.is_set,
        )
        await serve(app, stop, host=host, port=port)
        logger.info("stopping")
