"""What the gateway answers before everything that it needs is there."""

from http import HTTPStatus
from typing import Final

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from workers.gateway.http.accept import prefers_page
from workers.gateway.http.headers import SecurityHeaders
from workers.gateway.pages.language import gettext, negotiated, speaking
from workers.gateway.pages.renderer import Templates
from workers.gateway.pages.routes import STATIC_ROUTE, static_file
from workers.gateway.pages.site import Alert
from workers.health import Health
from workers.health_server import live, readiness_answer
from workers.services.errors import ServiceUnavailable

_EVERY_METHOD: Final = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")
_RETRY_SECONDS: Final = "5"
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
    async def static(request: Request) -> Response:
        return await static_file(request, request.path_params["name"])

    async def ready(request: Request) -> JSONResponse:
        return readiness_answer(health)

    templates = Templates(menu=(), folders=(), names={})

    def page(request: Request) -> Response:
        problem = Alert(
            ServiceUnavailable.title, gettext("docflow is starting. Try again in a moment.")
        )
        return templates.answer(
            "error.html",
            HTTPStatus.SERVICE_UNAVAILABLE,
            {"Retry-After": _RETRY_SECONDS, "Vary": "Accept, Accept-Language"},
            problem=problem,
            who=None,
        )

    async def unavailable(request: Request) -> Response:
        if prefers_page(request.headers.get("Accept", "")):
            with speaking(negotiated(request.headers.get("Accept-Language", ""))):
                return page(request)
        return JSONResponse(
            _PROBLEM,
            HTTPStatus.SERVICE_UNAVAILABLE,
            headers={"retry-after": _RETRY_SECONDS},
            media_type="application/problem+json",
        )

    return Starlette(
        routes=[
            Route("/health/live", live),
            Route("/health/ready", ready),
            Route(STATIC_ROUTE, static),
            Route("/{path:path}", unavailable, methods=_EVERY_METHOD),
        ],
        middleware=[Middleware(SecurityHeaders, https=False)],
    )
