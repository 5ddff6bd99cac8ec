"""The application: API, pages, health, and what surrounds every answer."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import JSONResponse

from workers.gateway.http.auth import Tokens
from workers.gateway.http.headers import SecurityHeaders, SmallBodies
from workers.gateway.http.problems import PROBLEM_SCHEMA, handle_problems
from workers.gateway.spreadsheets import api, api_mappings, api_results
from workers.services.spreadsheets.service import SpreadsheetService
from workers.settings.gateway import GatewaySettings

UPLOADS: Final = ("/api/imports", "/imports")
"""Paths of the API and of the pages that take files."""
_DESCRIPTION: Final = (
    "Import spreadsheets: upload one, decide what its columns and values mean where docflow does "
    "not know, and follow its rows. Every error is a problem (RFC 9457). Mapping statuses read "
    "AUTO_MATCHED, MANUAL_MATCHED, UNRESOLVED and IGNORED."
)


def create_app(
    service: SpreadsheetService,
    tokens: Tokens,
    settings: GatewaySettings,
    *,
    pages: APIRouter | None = None,
    stopping: Callable[[], bool] = lambda: False,
) -> FastAPI:
    """Put the gateway together; it keeps nothing between requests.

    Args:
        service: What can be asked.
        tokens: Verifies the tokens of callers.
        settings: How it behaves.
        pages: Pages for people.
        stopping: Whether the process is about to end, so that open event streams do too.
    """
    app = FastAPI(
        title="docflow imports",
        version="1",
        description=_DESCRIPTION,
        # Their pages load scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        middleware=_middleware(settings),
    )
    app.state.service = service
    app.state.tokens = tokens
    app.state.stopping = stopping
    for router in (api.router, api_mappings.router, api_results.router, _health(service)):
        app.include_router(router)
    handle_problems(app)
    _describe(app)
    if pages is not None:
        app.include_router(pages, include_in_schema=False)
    return app


def _middleware(settings: GatewaySettings) -> list[Middleware]:
    https = (settings.public_url or "").startswith("https://")
    middleware = [
        Middleware(SecurityHeaders, https=https),
        Middleware(SmallBodies, uploads=UPLOADS),
    ]
    if settings.cors_origins:
        middleware.insert(
            1,
            Middleware(
                CORSMiddleware,
                allow_origins=settings.cors_origins,
                allow_methods=["GET", "POST", "PUT", "DELETE"],
                allow_headers=["Authorization", "If-Match", "Idempotency-Key", "Last-Event-ID"],
                expose_headers=["ETag", "Link", "Location", "Retry-After", "X-Total-Count"],
                max_age=600,
            ),
        )
    return middleware


def _health(service: SpreadsheetService) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.get("/health/live")
    async def live() -> JSONResponse:  # pyright: ignore[reportUnusedFunction]
        return JSONResponse({"status": "live"})

    @router.get("/health/ready")
    async def ready() -> JSONResponse:  # pyright: ignore[reportUnusedFunction]
        if await service.ready():
            return JSONResponse({"status": "ready"})
        return JSONResponse({"status": "not ready"}, HTTPStatus.SERVICE_UNAVAILABLE)

    return router


def _describe(app: FastAPI) -> None:
    """Describe problems in the OpenAPI document."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = get_openapi(
                title=app.title,
                version=app.version,
                description=app.description,
                routes=app.routes,
            )
            schemas = schema["components"]["schemas"]
            schemas["Problem"] = dict(PROBLEM_SCHEMA)
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = document
