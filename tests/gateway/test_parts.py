"""A pipeline brings API, pages, refusals and words of its own to the gateway."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi_problem.error import Problem

from tests.sixth.register import PARCELS
from tests.support.gateway import TOKENS, sign_in, token
from workers import catalogue
from workers.shared.gateway.access import Least
from workers.shared.gateway.app import GatewayPart, create_app, open_parts
from workers.shared.gateway.http.auth import Tokens
from workers.shared.gateway.http.problems import problem_of
from workers.shared.gateway.http.requests import Who
from workers.shared.gateway.pages.renderer import MenuEntry
from workers.shared.gateway.pages.site import PageRoute, PipelinePages, Site
from workers.shared.register import Context
from workers.shared.resources import Resources
from workers.shared.services.errors import ServiceError
from workers.shared.services.identity import VIEWER, Identity
from workers.shared.services.inbox import Inbox, InboxEntry
from workers.shared.services.outages import OutageView
from workers.shared.services.readiness import Readiness
from workers.shared.settings.gateway import GatewaySettings

pytestmark = pytest.mark.asyncio(loop_scope="session")

GATEWAY = Path(__file__).parents[2] / "workers" / "shared" / "gateway"
ENTRY = InboxEntry(
    workflow_id="parcel/a1",
    run_id="r1",
    pipeline="parcels",
    document_type="small_parcel",
    state="at_customs",
    waiting_since=datetime(2026, 3, 1, tzinfo=UTC),
    waiting_for=None,
    organisation_id=None,
    project_id=None,
    filename=None,
    identifier=None,
    kind="Parcel",
    title="Parcel a1",
    page="/parcels/a1",
)


class TooHeavy(ServiceError):
    """A refusal that only this pipeline knows."""

    status = 409
    kind = "too-heavy"
    title = "Too heavy"


class OneParcelWaits(Inbox):
    async def read(self, who: Identity, *, mine: bool = False) -> Sequence[InboxEntry]:
        return [ENTRY]

    async def outages(self, who: Identity) -> Sequence[OutageView]:
        return ()


router = APIRouter(prefix="/api")


@router.get("/parcels")
async def list_parcels(request: Request, who: Who) -> Sequence[str]:
    return request.app.state.services["parcels"]


@router.get("/parcels/heavy")
async def heavy_parcel() -> None:
    raise TooHeavy("the parcel is too heavy")


def too_heavy(error: TooHeavy) -> Problem:
    return problem_of(error, {}, grams=9000)


def open_part(context: Context, settings: None) -> GatewayPart:
    def routes(site: Site) -> Sequence[PageRoute]:
        async def show(request: Request) -> Response:
            return site.page(request, await site.visitor(request), "parcels.html")

        return [("GET", "/parcels", show)]

    return GatewayPart(
        service=["a1", "b2"],
        description="Send parcels.",
        routers=(router,),
        roles={"listParcels": Least(VIEWER)},
        uploads=("/api/parcels",),
        problems={TooHeavy: too_heavy},
        pages=PipelinePages(
            routes=routes,
            templates=Path(context.environment["TEMPLATES"]),
            names={"colour": "brown"},
            menu=(MenuEntry("/parcels", "Parcels"), MenuEntry("/parcels/new", "New parcel", True)),
            type_titles=lambda: {"small_parcel": "Box"},
            state_titles={"at_customs": "Customs papers"},
        ),
    )


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, resources: Resources) -> FastAPI:
    """A gateway of two pipelines, one of which brings a part."""
    (tmp_path / "parcels.html").write_text(
        '{% extends "base.html" %}{% block content %}wrapped in {{ colour }}{% endblock %}'
    )
    parcels = replace(PARCELS, gateway=f"{__name__}:open_part")
    others = [each for each in catalogue.PIPELINES if each.gateway is None]
    monkeypatch.setattr(catalogue, "PIPELINES", (*others, parcels))
    settings = GatewaySettings(tokens=TOKENS, allowed_hosts=("*",), requests_per_minute=0)
    client: Any = None
    parts = open_parts(Context({"TEMPLATES": str(tmp_path)}, client), {})
    return create_app(
        parts,
        OneParcelWaits(client, client),
        resources.database,
        Readiness(()),
        Tokens(TOKENS),
        settings,
    )


async def get(app: FastAPI, path: str, *roles: str) -> httpx.Response:
    bearer = token("olga", 1, *(roles or ("operator",)))
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app),
        base_url="http://gateway",
        headers={"authorization": f"Bearer {bearer}"},
    ) as browser:
        await sign_in(browser, bearer)
        return await browser.get(path)


async def test_endpoints_of_a_pipeline_find_its_service(app: FastAPI) -> None:
    assert (await get(app, "/api/parcels")).json() == ["a1", "b2"]


async def test_a_refusal_of_a_pipeline_says_more_than_others(app: FastAPI) -> None:
    answer = await get(app, "/api/parcels/heavy")
    assert answer.status_code == 409
    body: Mapping[str, Any] = answer.json()
    assert body["type"] == "urn:docflow:problem:too-heavy"
    assert body["grams"] == 9000


async def test_pages_of_a_pipeline_stand_in_the_menu_of_every_page(app: FastAPI) -> None:
    page = (await get(app, "/parcels")).text
    assert "wrapped in brown" in page
    assert '<a href="/parcels" aria-current="page">Parcels</a>' in page
    assert '<a href="/parcels/new">New parcel</a>' in page
    reader = (await get(app, "/parcels", "viewer")).text
    assert '<a href="/parcels/new">' not in reader


async def test_the_inbox_uses_the_words_of_a_pipeline(app: FastAPI) -> None:
    page = (await get(app, "/")).text
    assert "Parcel · Box" in page
    assert "Customs papers" in page


async def test_the_openapi_document_describes_what_pipelines_bring(app: FastAPI) -> None:
    document = (await get(app, "/openapi.json")).json()
    assert document["info"]["description"] == "Send parcels."
    own = [path for path in document["paths"] if not path.startswith("/api/v1/")]
    assert sorted(own) == ["/api/inbox", "/api/parcels", "/api/parcels/heavy"]


def imported_by(path: Path) -> Iterator[str]:
    """Every module that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield f"{node.module}"
            yield from (f"{node.module}.{each.name}" for each in node.names)
        elif isinstance(node, ast.Import):
            yield from (each.name for each in node.names)


async def test_what_all_pipelines_share_imports_no_package_of_one() -> None:
    words = {pipeline.name for pipeline in catalogue.PIPELINES}
    shared = [
        path
        for path in sorted(GATEWAY.rglob("*.py"))
        if not words & set(path.relative_to(GATEWAY).parts)
    ]
    assert GATEWAY / "app.py" in shared
    own = [
        f"{path.relative_to(GATEWAY)} imports {module}"
        for path in shared
        for module in imported_by(path)
        if words & set(module.split("."))
    ]
    assert own == []
