"""The application: API, pages, health, and what surrounds every answer."""

import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from string import ascii_lowercase
from typing import Any

from fastapi import APIRouter, Depends, FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import JSONResponse
from starlette.routing import Route

from adapters.database.access import SqlApiTokens, SqlAudit
from adapters.database.engine import Database
from adapters.database.saved_views import SqlSavedViews
from adapters.database.sessions import SqlSessions
from workers import catalogue
from workers.shared.gateway import codec
from workers.shared.gateway import inbox as inbox_api
from workers.shared.gateway.access import (
    CHANGES_NOTHING,
    LEAST,
    Least,
    Noted,
    enter,
    operation_id,
    refusal_of,
)
from workers.shared.gateway.http.answers import (
    COMPRESSED,
    BodilessHead,
    BoundedBodies,
    CountedResponses,
    SecurityHeaders,
    Streams,
)
from workers.shared.gateway.http.auth import Tokens
from workers.shared.gateway.http.embedding import EmbeddingSites
from workers.shared.gateway.http.hosts import KnownHosts
from workers.shared.gateway.http.oidc import OidcProvider
from workers.shared.gateway.http.problems import (
    PROBLEM_SCHEMA,
    MakeProblem,
    handle_problems,
    problem_responses,
)
from workers.shared.gateway.http.requests import RequestRates, SignInRates
from workers.shared.gateway.http.sessions import Sessions
from workers.shared.gateway.pages.embed import embed_router
from workers.shared.gateway.pages.errors import ErrorPages
from workers.shared.gateway.pages.inbox import open_site, pages_router
from workers.shared.gateway.pages.site import PipelinePages
from workers.shared.gateway.v1 import audit as audit_api
from workers.shared.gateway.v1 import kept, runs
from workers.shared.gateway.v1 import tokens as api_tokens
from workers.shared.gateway.v1 import webhooks as webhooks_api
from workers.shared.health_server import live, readiness_answer
from workers.shared.register import Context, load
from workers.shared.services.access import ApiTokenService
from workers.shared.services.errors import ServiceError
from workers.shared.services.inbox import Inbox
from workers.shared.services.readiness import Readiness
from workers.shared.services.run_actions import ServedRuns
from workers.shared.services.run_service import RunService
from workers.shared.services.status_service import StatusService
from workers.shared.settings.base import Settings
from workers.shared.settings.gateway import GatewaySettings


@dataclass(frozen=True)
class GatewayPart:
    """What the gateway serves of one pipeline."""

    service: Any
    """What its endpoints ask; they find it by the pipeline's name in `app.state.services`."""
    further: Mapping[type, Any] = field(default_factory=dict[type, Any])
    """What else they ask, by its class, as they find it with `the`."""
    description: str = ""
    """Of its API, for the OpenAPI document."""
    routers: Sequence[APIRouter] = ()
    """Of its API."""
    roles: Mapping[str, Least] = field(default_factory=dict[str, Least])
    """Least roles of operations that are not in the gateway's own table, by operation id."""
    uploads: Sequence[str] = ()
    """Paths of API and pages that take files."""
    by_upload_token: Collection[str] = ()
    """What who has an upload token may ask for: operations, and pages as `GET /path`."""
    problems: Mapping[type[ServiceError], MakeProblem] = field(
        default_factory=dict[type[ServiceError], MakeProblem]
    )
    """Refusals of its own that say more than every problem does."""
    pages: PipelinePages | None = None
    runs: ServedRuns | None = None
    """What is done to its runs; None: operators answer them as the register says."""
    describe: Callable[[dict[str, Any]], Awaitable[None]] | None = None
    """Adds to the OpenAPI document what an installation has declared."""


def part_settings() -> Mapping[str, type[Settings]]:
    """The settings that parts have of their own, by name of the pipeline."""
    return {
        pipeline.name: load(pipeline.gateway_settings)
        for pipeline in catalogue.PIPELINES
        if pipeline.gateway_settings is not None
    }


def open_parts(context: Context, settings: Mapping[str, Settings]) -> Mapping[str, GatewayPart]:
    """The parts of all pipelines that have one, by name of the pipeline.

    Args:
        context: What the process has opened.
        settings: Of the parts that have some, by name of the pipeline.
    """
    return {
        pipeline.name: load(pipeline.gateway)(context, settings.get(pipeline.name))
        for pipeline in catalogue.PIPELINES
        if pipeline.gateway is not None
    }


def create_app(
    parts: Mapping[str, GatewayPart],
    inbox: Inbox,
    database: Database,
    readiness: Readiness,
    tokens: Tokens,
    settings: GatewaySettings,
    *,
    environment: Mapping[str, str] | None = None,
    shared: Mapping[type, Any] | None = None,
    providers: Sequence[OidcProvider] = (),
    namespace: str = "default",
    stopping: Callable[[], bool] = lambda: False,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> FastAPI:
    """Put the gateway together; it keeps nothing between requests.

    Args:
        parts: What is served of each pipeline, by name.
        inbox: What waits for people.
        database: Where changes are noted, and tokens of programs are.
        readiness: Whether requests can be answered.
        tokens: Verifies the tokens of callers.
        settings: How it behaves.
        environment: For the address of Temporal's user interface.
        shared: Services of all pipelines, by class; None: only the document is wanted.
        providers: That people sign in with.
        namespace: Of Temporal, for links into its user interface.
        stopping: Whether the process is about to end, so that open event streams do too.
        now: The clock of sessions.
    """
    audit = SqlAudit(database)
    api_token_service = ApiTokenService(SqlApiTokens(database))
    uploads = [*codec.PATHS, *(path for part in parts.values() for path in part.uploads)]
    app = FastAPI(
        title="docflow",
        version="1",
        description=" ".join(part.description for part in parts.values() if part.description),
        generate_unique_id_function=operation_id,
        # Their pages load scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        middleware=_middleware(settings, uploads, audit, api_token_service),
        dependencies=[Depends(enter)],
    )
    app.state.services = {name: part.service for name, part in parts.items()}
    app.state.by_class = {
        **(shared or {}),
        **{type(part.service): part.service for part in parts.values()},
        **{kind: each for part in parts.values() for kind, each in part.further.items()},
    }
    app.state.inbox = inbox
    served = {name: part.runs for name, part in parts.items() if part.runs is not None}
    app.state.runs = RunService(inbox.rows, inbox.client, served, environment or {})
    app.state.tokens = tokens
    app.state.rates = RequestRates(settings.requests_per_minute, settings.quotas.requests)
    app.state.sign_ins = SignInRates(settings.connections.sign_in_attempts)
    app.state.streams = Streams(settings.connections.streams)
    app.state.audit = audit
    app.state.api_tokens = api_token_service
    app.state.by_upload_token = {each for part in parts.values() for each in part.by_upload_token}
    app.state.public_url = settings.public_url
    app.state.least = {**LEAST, **{n: each for p in parts.values() for n, each in p.roles.items()}}
    app.state.stopping = stopping
    forms = [path for part in parts.values() if part.pages for path in part.pages.reading]
    app.state.reading = {*CHANGES_NOTHING, *(f"POST {path}" for path in forms)}
    for part in parts.values():
        for router in part.routers:
            app.include_router(router)
    for router in (inbox_api.router, codec.router):
        app.include_router(router)
    own_routers = (runs, audit_api, api_tokens, webhooks_api)
    for router in (*(each.router for each in own_routers), *kept.ROUTERS):
        app.include_router(router)
    app.include_router(_health(readiness))
    problems = {kind: answer for part in parts.values() for kind, answer in part.problems.items()}
    own = {name: part.pages for name, part in parts.items() if part.pages is not None}
    titles = {each.name: each.title for each in providers}
    sessions = Sessions(SqlSessions(database), tokens, settings, titles, now)
    app.state.sessions = sessions
    site = open_site(own, sessions, settings)
    errors = ErrorPages(site, _first_parts(parts))
    handle_problems(app, problems, refusal_of, errors.instead_of)
    _describe(app, parts)
    status = app.state.by_class.get(StatusService)
    by_name = {each.name: each for each in providers}
    pages = pages_router(
        site,
        own,
        inbox,
        app.state.runs,
        status,
        SqlSavedViews(database),
        by_name,
        namespace=namespace,
    )
    app.include_router(pages, include_in_schema=False)
    app.include_router(embed_router(site, own, api_token_service), include_in_schema=False)
    return app


def _first_parts(parts: Mapping[str, GatewayPart]) -> set[str]:
    """What the addresses for programs begin with: those of the API, its description, health."""
    of_parts = (router for part in parts.values() for router in part.routers)
    routers = [inbox_api.router, codec.router, *of_parts]
    paths = [route.path for each in routers for route in each.routes if isinstance(route, Route)]
    return {"health", "openapi.json", *(path.split("/")[1] for path in paths)}


def _middleware(
    settings: GatewaySettings,
    uploads: Sequence[str],
    audit: SqlAudit,
    api_token_service: ApiTokenService,
) -> list[Middleware]:
    https = (settings.public_url or "").startswith("https://")
    middleware = [
        Middleware(CountedResponses),
        Middleware(BodilessHead),
        Middleware(GZipMiddleware, exclude_content_types=COMPRESSED),
        Middleware(SecurityHeaders, https=https),
        Middleware(KnownHosts, hosts=settings.hosts),
        Middleware(EmbeddingSites, tokens=api_token_service),
        Middleware(
            BoundedBodies,
            uploads=uploads,
            largest=settings.connections.body_bytes,
            seconds=settings.connections.body_seconds,
        ),
        Middleware(Noted, audit=audit),
    ]
    if settings.cors_origins:
        middleware.insert(
            6,
            Middleware(
                CORSMiddleware,
                allow_origins=settings.cors_origins,
                allow_methods=["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
                allow_headers=[
                    *("Authorization", "If-Match", "Idempotency-Key", "Last-Event-ID"),
                    "X-Namespace",
                ],
                expose_headers=["ETag", "Link", "Location", "Retry-After", "X-Total-Count"],
                max_age=600,
            ),
        )
    return middleware


def _health(readiness: Readiness) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    router.add_api_route("/health/live", live)

    @router.get("/health/ready")
    async def ready() -> JSONResponse:  # pyright: ignore[reportUnusedFunction]
        await readiness.probed()
        return readiness_answer(readiness.health)

    return router


def _share_problems(responses: dict[str, Any], shared: dict[str, Any]) -> None:
    """Keep each problem once: most operations answer with the same ones."""
    for status, response in responses.items():
        if "application/problem+json" in response.get("content", {}):
            kinds = (f"Problem{status}{suffix}" for suffix in ("", *ascii_lowercase))
            name = next(each for each in kinds if shared.setdefault(each, response) == response)
            responses[status] = {"$ref": f"#/components/responses/{name}"}


def _describe(app: FastAPI, parts: Mapping[str, GatewayPart]) -> None:
    """Serve the OpenAPI document, with problems and with what an installation has declared."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = get_openapi(
                title=app.title,
                version=app.version,
                description=app.description,
                routes=app.routes,
            )
            schemas = schema["components"]["schemas"]
            assert PROBLEM_SCHEMA["title"] not in schemas, "a record has the name of the problems"
            schemas[PROBLEM_SCHEMA["title"]] = dict(PROBLEM_SCHEMA)
            shared = schema["components"]["responses"] = dict[str, Any]()
            for each in (one for path in schema["paths"].values() for one in path.values()):
                # Any body may be no text, or too large.
                statuses = (400, 413, 429) if "requestBody" in each else (429,)
                for status, problem in problem_responses(*statuses).items():
                    each["responses"].setdefault(str(status), problem)
                _share_problems(each["responses"], shared)
            # FastAPI adds the schemas of fields that are not served as well.
            text = json.dumps(schema)
            for name in [each for each in schemas if f'/schemas/{each}"' not in text]:
                del schemas[name]
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = document

    @app.get("/openapi.json", include_in_schema=False)
    async def described() -> dict[str, Any]:
        found = deepcopy(document())
        for part in parts.values():
            if part.describe is not None:
                await part.describe(found)
        return found
