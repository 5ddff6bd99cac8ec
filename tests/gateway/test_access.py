"""Who may do what, over every endpoint that the OpenAPI document names."""

import time
from typing import Any, cast

import httpx
import pytest
import pytest_asyncio
from joserfc import jwt
from joserfc.jwk import OctKey
from temporalio.client import Client

from adapters.database.runs import SqlRuns
from tests.support.gateway import KEY, TOKENS, Stack, import_in, token
from workers.shared.gateway.app import create_app
from workers.shared.gateway.http.auth import Tokens
from workers.shared.services.inbox import Inbox
from workers.shared.services.readiness import Readiness
from workers.shared.settings.gateway import GatewaySettings
from workers.spreadsheets.part import part_of
from workers.spreadsheets.register import SPREADSHEETS
from workers.spreadsheets.service import SpreadsheetService

pytestmark = pytest.mark.asyncio(loop_scope="session")

QUERY = {"targetField": "EVENT_CATEGORY_NAME"}
BODIES: dict[tuple[str, str], Any] = {
    ("put", "/api/imports/{uuid}/column-mappings"): [{"id": 1, "ignore": True}],
    ("put", "/api/imports/{uuid}/cell-mappings"): [{"id": 1, "ignore": True}],
    ("put", "/api/imports/{uuid}/layout"): {},
    ("put", "/api/imports/{uuid}/skipped-rows"): {"rows": [4], "keep": True},
    ("post", "/api/imports/{uuid}/assignee"): {"to": "ben"},
    ("post", "/api/imports/{uuid}/cell-mappings/rules"): [{"ignore": True}],
    ("post", "/api/imports/{uuid}/review/operations"): {"kind": "EXCLUDE", "rows": [4]},
    ("post", "/api/imports/{uuid}/review/operations/preview"): {"kind": "EXCLUDE", "rows": [4]},
}


def endpoints() -> list[tuple[str, str]]:
    """Every method and path, read from the document itself so that none can be forgotten."""
    parts = {SPREADSHEETS.name: part_of(SpreadsheetService.__new__(SpreadsheetService))}
    app = create_app(
        parts,
        Inbox(cast(Client, None), cast(SqlRuns, None)),
        Readiness.__new__(Readiness),
        Tokens(TOKENS),
        GatewaySettings(tokens=TOKENS, allowed_hosts=("*",)),
    )
    return sorted(
        (method, path) for path, methods in app.openapi()["paths"].items() for method in methods
    )


ALL = endpoints()
OF_ONE_IMPORT = [(method, path) for method, path in ALL if "{uuid}" in path]
WRITING = [(method, path) for method, path in OF_ONE_IMPORT if method != "get"]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def waiting(stack: Stack) -> str:
    """An import of our organisation that waits for a person."""
    async with stack.browser() as anna:
        return await import_in(anna, "COLUMN_MAPPING")


async def ask(browser: httpx.AsyncClient, method: str, path: str, uuid: str) -> httpx.Response:
    return await browser.request(
        method,
        path.replace("{uuid}", uuid),
        params=QUERY if path.endswith("candidates") else None,
        json=BODIES.get((method, path)),
    )


async def test_the_document_names_the_endpoints_there_are() -> None:
    assert len(ALL) >= 24
    assert set(BODIES) <= set(ALL)


@pytest.mark.parametrize(("method", "path"), ALL)
async def test_a_token_is_needed(stack: Stack, method: str, path: str) -> None:
    for bearer, challenge in (("", "Bearer"), ("x.y.z", 'Bearer error="invalid_token"')):
        async with stack.browser(bearer) as anonymous:
            refused = await ask(anonymous, method, path, "0" * 8)
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"] == challenge
        assert refused.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(("method", "path"), OF_ONE_IMPORT)
async def test_an_import_of_another_organisation_does_not_exist(
    stack: Stack, waiting: str, method: str, path: str
) -> None:
    for bearer in (token("theo", 2), token("otto", 2, "operator"), token("vera", 2, "viewer")):
        async with stack.browser(bearer) as stranger:
            theirs = await ask(stranger, method, path, waiting)
            unknown = await ask(stranger, method, path, "5b0d0f3e-7b1c-4c0f-9f1e-3a2f4c1d6e8b")
        assert theirs.status_code == 404
        assert theirs.json() == unknown.json()
    async with stack.browser() as anna:
        assert (await anna.get(f"/api/imports/{waiting}")).json()["status"] == "COLUMN_MAPPING"


@pytest.mark.parametrize(("method", "path"), WRITING)
async def test_viewers_only_look(stack: Stack, waiting: str, method: str, path: str) -> None:
    async with stack.browser(token("vera", 1, "viewer")) as vera:
        refused = await ask(vera, method, path, waiting)
    assert refused.status_code == 403
    assert "importer" in refused.json()["detail"]


@pytest.mark.parametrize(
    "uuid", ["x", "0" * 36, "%2e%2e", "5B0D0F3E-7B1C-4C0F-9F1E-3A2F4C1D6E8B", "a'--", "\u0660" * 8]
)
async def test_what_names_no_import_is_not_found(stack: Stack, uuid: str) -> None:
    async with stack.browser() as anna:
        assert (await anna.get(f"/api/imports/{uuid}")).status_code == 404


async def test_a_token_without_a_known_role_opens_nothing(stack: Stack, waiting: str) -> None:
    now = int(time.time())
    claims = {
        "iss": TOKENS.issuer,
        "aud": TOKENS.audience,
        "sub": "nora",
        "exp": now + 60,
        "organisations": [1],
        "roles": ["admin"],
    }
    bearer = jwt.encode({"alg": "HS256"}, claims, OctKey.import_key(KEY))
    async with stack.browser(bearer) as nora:
        for path in ("/api/imports", "/api/inbox", f"/api/imports/{waiting}"):
            assert (await nora.get(path)).status_code == 403


@pytest.mark.parametrize(("method", "path"), sorted(BODIES))
async def test_access_comes_before_the_content_of_a_body(
    stack: Stack, waiting: str, method: str, path: str
) -> None:
    async def send(bearer: str, content: str) -> httpx.Response:
        async with stack.browser(bearer) as browser:
            return await browser.request(
                method,
                path.replace("{uuid}", waiting),
                content=content,
                headers={"content-type": "application/json"},
            )

    for content in ("{", '{"no": "field"}'):
        assert (await send("", content)).status_code == 401
        assert (await send("x.y.z", content)).headers["www-authenticate"].startswith("Bearer error")
        assert (await send(token("vera", 1, "viewer"), content)).status_code == 403
        assert (await send(token(), content)).status_code == 422
