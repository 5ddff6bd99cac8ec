"""What the gateway answers before everything that it needs is there."""

from http import HTTPStatus
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from workers.health import Health
from workers.health_server import live, readiness_answer

_EVERY_METHOD: Final = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")
_PROBLEM: Final = {
    "type": "urn:docflow:problem:unavailable",
    "title": "Not available at the moment",
    "status": HTTPStatus.SERVICE_UNAVAILABLE.value,
    "detail": "the gateway is not ready yet; try again in a moment",
}


class Entrance:
    """The application that is served: one that says why not, then the one that was opened.

    Args:
        health: Of the process.
    """

    def __init__(self, health: Health) -> None:
        self._inside: ASGIApp = _closed(health)

    def open(self, app: ASGIApp) -> None:
        """Serve this from now on."""
        self._inside = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        await self._inside(scope, receive, send)


def _closed(health: Health) -> ASGIApp:
    async def ready(request: Request) -> JSONResponse:
        return readiness_answer(health)

    async def unavailable(request: Request) -> JSONResponse:
        return JSONResponse(
            _PROBLEM,
            HTTPStatus.SERVICE_UNAVAILABLE,
            headers={"retry-after": "5"},
            media_type="application/problem+json",
        )

    return Starlette(
        routes=[
            Route("/health/live", live),
            Route("/health/ready", ready),
            Route("/{path:path}", unavailable, methods=_EVERY_METHOD),
        ]
    )
