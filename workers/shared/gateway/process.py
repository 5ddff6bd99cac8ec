"""The gateway as a process, from start to clean shutdown, and what it answers before."""

import asyncio
import logging
from collections.abc import Coroutine, Generator, Mapping
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from http import HTTPStatus
from typing import Any, Final

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from adapters.database.access import SqlApiTokens
from adapters.database.runs import SqlRuns
from workers.shared.connect import connect, read_config
from workers.shared.gateway.app import create_app, open_parts, part_settings
from workers.shared.gateway.http.answers import SecurityHeaders
from workers.shared.gateway.http.auth import Tokens
from workers.shared.gateway.http.connections import ServerConfig
from workers.shared.gateway.http.oidc import OidcProvider
from workers.shared.gateway.http.requests import prefers_page
from workers.shared.gateway.pages.inbox import STATIC_ROUTE, static_file
from workers.shared.gateway.pages.preferences import language_of, preferences_of
from workers.shared.gateway.pages.renderer import Templates, gettext, use_locale
from workers.shared.gateway.pages.site import Alert
from workers.shared.gauges import start_gauges
from workers.shared.health import Health, stop_on_signals
from workers.shared.health_server import HOST_SETTING, authority, listener, live, readiness_answer
from workers.shared.metrics import measuring, process_runtime
from workers.shared.register import Context
from workers.shared.resources import RESOURCE_SETTINGS, CommonSettings, make_folders, open_resources
from workers.shared.services.accepted import noting_starts
from workers.shared.services.errors import ServiceUnavailable
from workers.shared.services.inbox import Inbox
from workers.shared.services.kept import kept_services
from workers.shared.services.readiness import Readiness
from workers.shared.services.setup import open_requirements
from workers.shared.services.temporal_requirements import Connection
from workers.shared.settings.check import check_at_start
from workers.shared.settings.common import HttpSettings, LogSettings
from workers.shared.settings.connections import ConnectionSettings
from workers.shared.settings.gateway import GatewaySettings
from workers.shared.settings.payloads import PayloadSettings
from workers.shared.settings.sign_in import read_providers

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
            {"Retry-After": _RETRY_SECONDS, "Vary": "Accept, Accept-Language, Cookie"},
            problem=problem,
            who=None,
            back="/",
            preferences=preferences_of(request),
        )

    async def unavailable(request: Request) -> Response:
        if prefers_page(request.headers.get("Accept", "")):
            with use_locale(language_of(request)):
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


logger = logging.getLogger(__name__)


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave signals to the process."""
        yield


async def serve(
    app: ASGIApp,
    stop: asyncio.Event,
    *,
    host: str,
    port: int,
    settings: ConnectionSettings | None = None,
) -> None:
    """Answer requests until `stop` is set, then let those under way come to their end.

    Args:
        app: What answers.
        stop: Is set when the server has to end.
        host: Name or address to listen on.
        port: Port; a free one when 0.
        settings: Limits of connections; None: the defaults.

    Raises:
        SettingsError: The host is not an address of this machine, or the port is taken.
    """
    host_setting = f"--host or {HOST_SETTING}"
    with listener(host, port, "port", host_setting=host_setting) as listening:
        server = _Server(ServerConfig(app, settings or ConnectionSettings.read({})))
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
    groups = (GatewaySettings, HttpSettings, LogSettings, PayloadSettings)
    check_at_start(
        environment,
        *(*groups, *own.values(), *RESOURCE_SETTINGS),
        others=[read_config, read_providers],
    )
    providers = [OidcProvider(each) for each in read_providers(environment).values()]
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
            client = noting_starts(await temporal.client(), resources.database)
            context = Context(environment, client, resources)
            app = create_app(
                open_parts(context, of_parts),
                Inbox(client, SqlRuns(resources.database)),
                resources.database,
                readiness,
                Tokens(settings.tokens, SqlApiTokens(resources.database)),
                settings,
                environment=environment,
                shared=kept_services(context),
                providers=providers,
                namespace=client.namespace,
                stopping=stop.is_set,
            )
            if metrics_port is not None:
                start_gauges(stack, client, environment, resources.rejected)
            readiness.health.ready = True
            entrance.open(app)

        serving = serve(entrance, stop, host=host, port=port, settings=settings.connections)
        await _both(serving, open_parts_when_ready(), stop)
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
