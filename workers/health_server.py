"""Health endpoints of a process."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from workers.health import Health
from workers.listeners import authority, listener

logger = logging.getLogger(__name__)


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave signals to the process."""
        yield


async def live(request: Request) -> JSONResponse:
    """The answer of a process whose event loop runs."""
    return JSONResponse({"status": "live"})


def liveness_answer(health: Health) -> JSONResponse:
    """200, or 503 where something has to be started again."""
    if health.stuck:
        return JSONResponse({"status": "not live", "problems": list(health.stuck)}, 503)
    return JSONResponse({"status": "live"})


def readiness_answer(health: Health) -> JSONResponse:
    """Whether work is taken: 200, or 503 with everything that is wrong."""
    if problems := health.problems:
        return JSONResponse({"status": "not ready", "problems": list(problems)}, 503)
    if not health.ready:
        return JSONResponse({"status": "starting or stopping"}, 503)
    return JSONResponse({"status": "ready"})


@asynccontextmanager
async def serve_health(health: Health, port: int, host: str = "127.0.0.1") -> AsyncGenerator[int]:
    """Serve `/health/live` (the loop turns) and `/health/ready` (work is being taken; or why not).

    Yields:
        The port; a free one when `port` is 0.

    Raises:
        SettingsError: The host is not an address of this machine, or the port is taken.
    """

    async def alive(request: Request) -> JSONResponse:
        return liveness_answer(health)

    async def ready(request: Request) -> JSONResponse:
        return readiness_answer(health)

    routes = [Route("/health/live", alive), Route("/health/ready", ready)]
    async with serving(routes, port, "health port", host) as address:
        logger.info("health at http://%s/health/ready", address)
        yield int(address.rpartition(":")[2])


@asynccontextmanager
async def serving(
    routes: Sequence[Route], port: int, name: str, host: str = "127.0.0.1"
) -> AsyncGenerator[str]:
    """Serve routes beside what the process does.

    Args:
        routes: What is served.
        port: A port; a free one when 0.
        name: What the port is called in messages.
        host: Where it listens.

    Yields:
        Address and port, as URLs have them.

    Raises:
        SettingsError: The host is not an address of this machine, or the port is taken.
    """
    app = Starlette(routes=routes)
    with listener(host, port, name) as listening:
        # No WebSockets: their library would be loaded for nothing.
        config = uvicorn.Config(
            app, log_config=None, log_level="warning", lifespan="off", ws="none"
        )
        server = _Server(config)
        serving = asyncio.create_task(server.serve([listening]))
        try:
            yield authority(listening)
        finally:
            server.should_exit = True
            await serving
