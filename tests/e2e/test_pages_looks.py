"""Every page of the gateway in its states: axe, no scrolling sideways, no shift of the layout."""

import re
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

import pytest
import pytest_asyncio

from tests.e2e.page_visits import NOWHERE, VISITS, show
from tests.support.gateway import page_routes
from tests.support.pages import PagesSetup, faults, faults_of_looks

pytestmark = pytest.mark.asyncio(loop_scope="session")

Routes = Sequence[tuple[str, str]]
_FILE, _PART, _REDIRECT = "a file", "a part of a page", "leads to another page"
_PROGRAMS = "for programs"
NO_PAGES: Mapping[str, str] = {
    "GET /health/live": _PROGRAMS,
    "GET /health/ready": _PROGRAMS,
    "GET /openapi.json": _PROGRAMS,
    "GET /api/stac/": _PROGRAMS,
    "GET /api/stac/openapi.json": _PROGRAMS,
    "GET /sign-in/{provider}": _REDIRECT,
    "GET /sign-in/{provider}/callback": _REDIRECT,
    "GET /uploads/templates/{name}": _FILE,
    "GET /uploads/{uuid}/live": _PART,
    "GET /uploads/{uuid}/values/export": _FILE,
    "GET /uploads/{uuid}/candidates": _PART,
    "GET /uploads/{uuid}/review/grid": _PART,
    "GET /uploads/{uuid}/review/lines": _PART,
    "GET /uploads/{uuid}/review/state": _PART,
    "GET /uploads/{uuid}/review/export": _FILE,
    "GET /uploads/{uuid}/report": _FILE,
    "GET /jobs/{job}/live": _PART,
    "GET /jobs/{job}/events": "a stream",
    "GET /jobs/{job}/preview": _FILE,
    "GET /jobs/{job}/files": _FILE,
    "GET /catalogue/{collection}/{item}/assets/{asset}": _FILE,
    "GET /transfers/{transfer}/receipt": _FILE,
    "GET /runs/report": _FILE,
    "GET /static/{name:path}": _FILE,
    "GET /embed.js": _FILE,
    "GET /embed/{session}/theme.css": _FILE,
}
"""What shows no page of its own, with the reason."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def routes() -> Routes:
    return await page_routes()


async def test_every_page_of_the_gateway_is_visited_or_is_no_page(routes: Routes) -> None:
    there = {f"{method} {path}" for method, path in routes}
    seen = {each.route for visit in VISITS.values() for each in visit.pages.values()} - {NOWHERE}
    assert seen <= there
    assert {each for each in there if each.startswith("GET ")} == (
        {each for each in seen if each.startswith("GET ")} | NO_PAGES.keys()
    )
    assert not seen & NO_PAGES.keys()


def answering(routes: Routes, method: str, address: str) -> str:
    """The route that answers at an address of the gateway."""
    path = urlsplit(address).path
    found = (
        f"{method} {pattern}"
        for verb, pattern in routes
        if verb == method and re.fullmatch(_expression(pattern), path)
    )
    return next(found, NOWHERE)


def _expression(pattern: str) -> str:
    return re.sub(r"\{\w+(:path)?\}", lambda it: ".+" if it[1] else "[^/]+", pattern)


@pytest.mark.parametrize("visit", VISITS)
async def test_every_page_is_for_everybody(site: PagesSetup, routes: Routes, visit: str) -> None:
    async with VISITS[visit].begun(site) as (page, known):
        for name, seen in VISITS[visit].pages.items():
            await show(site, page, name, seen, known)
            assert answering(routes, seen.route.partition(" ")[0], page.url) == seen.route, name
            assert await faults(page) == [], name


@pytest.mark.chaos(alone=True)
@pytest.mark.parametrize("visit", VISITS)
async def test_every_page_is_for_everybody_in_every_look(site: PagesSetup, visit: str) -> None:
    async with VISITS[visit].begun(site) as (page, known):
        for name, seen in VISITS[visit].pages.items():
            await show(site, page, name, seen, known)
            assert await faults_of_looks(page) == [], name
