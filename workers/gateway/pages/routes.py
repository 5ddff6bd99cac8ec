"""Addresses of the pages."""

from collections.abc import Callable
from typing import Any, Final

from fastapi import APIRouter, Request, Response
from starlette.staticfiles import StaticFiles

from workers.gateway.http.auth import Tokens
from workers.gateway.pages.overview import OverviewPages
from workers.gateway.pages.renderer import STATIC
from workers.gateway.pages.session import SessionPages
from workers.gateway.pages.site import Site, page_route
from workers.gateway.pages.spreadsheets.actions import HandlingPages
from workers.gateway.pages.spreadsheets.decisions import DecisionPages
from workers.gateway.pages.spreadsheets.import_page import ImportPage
from workers.gateway.pages.spreadsheets.upload import UploadPages
from workers.services.spreadsheets.service import SpreadsheetService

_FOR_EVER: Final = "public, max-age=31536000, immutable"


def pages_router(
    service: SpreadsheetService, tokens: Tokens, *, namespace: str = "default"
) -> APIRouter:
    """The pages for people, to be included in the gateway's application.

    Args:
        service: What the pages show and do.
        tokens: Who may see them.
        namespace: Of Temporal, for links into its user interface.
    """
    site = Site(service, tokens, namespace)
    session, overview, upload = SessionPages(site), OverviewPages(site), UploadPages(site)
    page = ImportPage(site)
    decide, handle = DecisionPages(site, page), HandlingPages(site, page)
    one = "/imports/{uuid}"
    routes: tuple[tuple[str, str, Callable[..., Any]], ...] = (
        ("GET", "/sign-in", session.show),
        ("POST", "/sign-in", session.sign_in),
        ("POST", "/sign-out", session.sign_out),
        ("GET", "/", overview.inbox),
        ("GET", "/imports", overview.imports),
        ("GET", "/imports/new", upload.show),
        ("POST", "/imports", upload.submit),
        ("GET", one, page.show),
        ("GET", f"{one}/live", page.live),
        ("POST", f"{one}/columns", decide.columns),
        ("POST", f"{one}/layout", decide.layout),
        ("POST", f"{one}/values", decide.values),
        ("GET", f"{one}/candidates", decide.candidates),
        ("POST", f"{one}/retry", handle.retry),
        ("POST", f"{one}/reassign", handle.reassign),
        ("POST", f"{one}/cancel", handle.cancel),
        ("POST", f"{one}/undo", handle.undo),
        ("GET", f"{one}/report", handle.report),
        ("GET", f"{one}/decisions", handle.decisions),
    )
    router = APIRouter(route_class=page_route(site), include_in_schema=False)
    for method, path, endpoint in routes:
        router.add_api_route(path, endpoint, methods=[method], response_model=None)
    router.add_api_route("/static/{name:path}", _static, methods=["GET"], response_model=None)
    return router


_FILES: Final = StaticFiles(directory=STATIC)


async def _static(request: Request, name: str) -> Response:
    answer = await _FILES.get_response(name, request.scope)
    answer.headers["Cache-Control"] = _FOR_EVER if "v" in request.query_params else "no-cache"
    return answer
