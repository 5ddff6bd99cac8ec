"""Health endpoints of a process."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Generator
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
        SettingsError: The host is no address of this machine, or the port is taken.
    """

    async def ready(request: Request) -> JSONResponse:
        return readiness_answer(health)

    app = Starlette(routes=[Route("/health/live", live), Route("/health/ready", ready)])
    with listener(host, port, "health port") as listening:
        logger.info("health at http://%s/health/ready", authority(listening))
        server = _Server(uvicorn.Config(app, log_config=None, log_level="warning", lifespan="off"))
        serving = asyncio.create_task(server.serve([listening]))
        try:
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            await serving
