"""The gateway as a process, from start to clean shutdown."""

import asyncio
import logging
import socket
from collections.abc import Generator, Mapping
from contextlib import AsyncExitStack, contextmanager
from typing import Final

import uvicorn
from fastapi import FastAPI

from workers.connect import connect
from workers.gateway.app import create_app
from workers.gateway.http.auth import Tokens
from workers.gateway.parts import open_parts
from workers.pipelines.base import Context
from workers.resources.common import RESOURCE_SETTINGS, open_resources
from workers.services.inbox import Inbox
from workers.services.readiness import Readiness
from workers.settings.check import check_at_start
from workers.settings.errors import SettingsError
from workers.settings.gateway import GatewaySettings
from workers.signals import stop_on_signals

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
        SettingsError: The port is taken.
    """
    with _listen(host, port) as listener:
        server = _Server(
            uvicorn.Config(
                app,
                log_level="warning",
                lifespan="off",
                server_header=False,
                timeout_graceful_shutdown=_GRACE_SECONDS,
            )
        )
        logger.info("listening on http://%s:%d", *listener.getsockname()[:2])
        serving = asyncio.create_task(server.serve([listener]))
        # A server that ends by itself ends the process.
        serving.add_done_callback(lambda _: stop.set())
        try:
            await stop.wait()
        finally:
            # Also when we are cancelled: the loop must forget the socket before it is closed.
            server.should_exit = True
            await serving


@contextmanager
def _listen(host: str, port: int) -> Generator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named, the protocol lets the event loop turn Nagle's algorithm off: 40 ms for each answer.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    with listener:
        try:
            listener.bind((host, port))
            listener.listen(1024)
        except OSError as error:
            raise SettingsError(
                f"{host}:{port} cannot be listened on: {error.strerror}; choose another port"
            ) from error
        yield listener


async def run_gateway(environment: Mapping[str, str], *, host: str, port: int) -> None:
    """Serve API and pages until SIGTERM or SIGINT.

    Args:
        environment: Where settings are read.
        host: Address to listen on.
        port: Port; a free one when 0.

    Raises:
        SettingsError: A setting is missing or invalid, or the port is taken.
        SchemaBehind: The database waits for `docflow db upgrade`.
        TemporalUnreachable: Temporal does not answer at the start.
    """
    check_at_start(environment, GatewaySettings, *RESOURCE_SETTINGS)
    settings = GatewaySettings.read(environment)
    async with AsyncExitStack() as stack:
        stop = stack.enter_context(stop_on_signals())
        resources = await stack.enter_async_context(open_resources(environment))
        client = await connect()
        app = create_app(
            open_parts(Context(environment, client, resources), settings),
            Inbox(client),
            Readiness(client, resources.database),
            Tokens(settings.tokens),
            settings,
            namespace=client.namespace,
            stopping=stop.is_set,
        )
        await serve(app, stop, host=host, port=port)
        logger.info("stopping")
