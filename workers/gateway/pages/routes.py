"""Addresses of the pages."""

from collections.abc import Mapping, Sequence
from typing import Final

from fastapi import APIRouter, Request, Response
from starlette.staticfiles import StaticFiles

from workers.gateway.http.auth import Tokens
from workers.gateway.pages.contribution import PageRoute, PipelinePages
from workers.gateway.pages.inbox import InboxPage
from workers.gateway.pages.renderer import STATIC, Templates
from workers.gateway.pages.session import SessionPages
from workers.gateway.pages.site import Site, page_route
from workers.services.inbox import Inbox, StartedBy
from workers.settings.gateway import GatewaySettings

STATIC_ROUTE: Final = "/static/{name:path}"
_FOR_EVER: Final = "public, max-age=31536000, immutable"


def open_site(
    pages: Mapping[str, PipelinePages], tokens: Tokens, settings: GatewaySettings
) -> Site:
    """What all pages share.

    Args:
        pages: Those of each pipeline that has some, by name.
        tokens: Who may see them.
        settings: Of the gateway.
    """
    menu = [entry for each in pages.values() for entry in each.menu]
    start = menu[0].address if menu else "/"
    folders = [each.templates for each in pages.values()]
    names = {name: value for each in pages.values() for name, value in each.names.items()}
    return Site(tokens, settings, Templates(menu, folders, names), start)


def pages_router(
    site: Site,
    pages: Mapping[str, PipelinePages],
    inbox: Inbox,
    started_by: Sequence[StartedBy],
    *,
    namespace: str,
) -> APIRouter:
    """The pages for people, to be included in the gateway's application.

    Args:
        site: What they share.
        pages: Those of each pipeline that has some, by name.
        inbox: What waits for people.
        started_by: Of each pipeline, what finds the runs that a person has started.
        namespace: Of Temporal, for links into its user interface.
    """
    session = SessionPages(site)
    routes: list[PageRoute] = [
        ("GET", "/sign-in", session.show),
        ("POST", "/sign-in", session.sign_in),
        ("POST", "/sign-out", session.sign_out),
        ("GET", "/", InboxPage(site, inbox, started_by, namespace, pages).show),
    ]
    for each in pages.values():
        routes += each.routes(site)
    router = APIRouter(route_class=page_route(site), include_in_schema=False)
    for method, path, endpoint in routes:
        router.add_api_route(path, endpoint, methods=[method], response_model=None)
    router.add_api_route(STATIC_ROUTE, static_file, methods=["GET"], response_model=None)
    return router


_FILES: Final = StaticFiles(directory=STATIC)


async def static_file(request: Request, name: str) -> Response:
    """A style, script or picture of the pages."""
    answer = await _FILES.get_response(name, request.scope)
    answer.headers["Cache-Control"] = _FOR_EVER if "v" in request.query_params else "no-cache"
    return answer
