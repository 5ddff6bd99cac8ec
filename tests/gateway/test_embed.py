"""Importers in pages of other sites: their tokens, what these may, and the frame."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute
from sqlalchemy import update

from adapters.database.access import old_upload_tokens
from adapters.database.models.access import api_tokens
from tests.support.gateway import EVENT, GOOD, HEADER, THEIR_EVENT, Stack, page_of, sheet, token
from tests.support.waiting import eventually
from workers.shared.gateway.http.requests import COOKIE

pytestmark = pytest.mark.asyncio(loop_scope="session")

SHOP, OTHER = "https://shop.example", "https://other.example"
NEW: dict[str, Any] = {
    "name": "Ada of Acme",
    "import_type": "EVENT_PARTICIPANT",
    "context_id": EVENT,
    "organisation_id": 1,
    "origins": [SHOP],
}
FIELDS = {"import_type": "EVENT_PARTICIPANT", "context_id": str(EVENT)}
FILE = sheet(HEADER, *GOOD)
MAPPER = token("shop", 1, "mapper")


async def made(stack: Stack, **changes: Any) -> dict[str, Any]:
    async with stack.browser(MAPPER) as shop:
        answer = await shop.post("/api/v1/upload-tokens", json={**NEW, **changes})
    assert answer.status_code == 201, answer.text
    return answer.json()


async def renewed(stack: Stack, session: str, bearer: str = MAPPER) -> httpx.Response:
    async with stack.browser(bearer) as shop:
        return await shop.post("/api/v1/upload-tokens", json={"session": session})


async def uploaded(browser: httpx.AsyncClient, **fields: str) -> httpx.Response:
    data = {**FIELDS, **fields}
    return await browser.post("/api/v1/uploads", data=data, files={"file": ("a.csv", FILE)})


async def frame(stack: Stack, address: str, **headers: str) -> httpx.Response:
    async with stack.browser("") as anybody:
        return await anybody.get(address, headers=headers)


async def test_an_upload_token_makes_and_maps_its_own_upload(stack: Stack) -> None:
    new = await made(stack)
    async with stack.browser(new["token"]) as embedded, stack.browser(MAPPER) as shop:
        answer = await uploaded(embedded)
        assert answer.status_code == 201, answer.text
        row = answer.json()
        assert row["by"] == f"Ada of Acme (upload {new['session']})"
        at = f"/api/v1/uploads/{row['uuid']}"

        async def confirmed() -> bool:
            said = await embedded.post(f"{at}/confirm", json={"what": "all"})
            return said.status_code == 202

        await eventually(confirmed)
        foreign = (await uploaded(shop)).json()["uuid"]
        assert (await embedded.get(f"/api/v1/uploads/{foreign}")).status_code == 404
        assert (await embedded.get(f"/uploads/{foreign}")).status_code == 404
        other = await made(stack)
        async with stack.browser(other["token"]) as stranger:
            assert (await stranger.get(at)).status_code == 404
            assert (await stranger.post(f"{at}/confirm", json={"what": "all"})).status_code == 404


async def test_a_renewed_token_continues_its_session(stack: Stack) -> None:
    new = await made(stack, theme={"accent": "#0a6b5c"})
    async with stack.browser(new["token"]) as embedded:
        at = f"/api/v1/uploads/{(await uploaded(embedded)).json()['uuid']}"
        passed = update(api_tokens).where(api_tokens.c.id == new["id"])
        async with stack.resources.database.transaction() as connection:
            await connection.execute(passed.values(expires_at=datetime.now(UTC)))
        old = old_upload_tokens(stack.resources.database)
        assert await old.count(datetime.now(UTC), 2) == 1
    async with stack.browser(new["token"], app=stack.gateway()) as embedded:
        assert (await embedded.get(at)).status_code == 401
        assert (await embedded.get("/uploads/new")).status_code == 401
        assert (await embedded.get(f"/embed/{new['session']}")).status_code == 404
    for bearer in (token("otto", 2, "mapper"), token("vic", 1, "viewer"), new["token"]):
        assert (await renewed(stack, new["session"], bearer)).status_code in (401, 403, 422)
    again = (await renewed(stack, new["session"])).json()
    assert again["session"] == new["session"] and again["token"] != new["token"]
    async with stack.browser(again["token"]) as embedded:
        assert (await embedded.get(at)).status_code == 200
    assert "#0a6b5c" in (await frame(stack, f"/embed/{new['session']}/theme.css")).text
    async with stack.browser(token("alma", 1, "admin")) as admin:
        listed = (await admin.get("/api/v1/tokens")).json()["items"]
        assert not {new["id"], again["id"]} & {each["id"] for each in listed}
        assert (await admin.delete(f"/api/v1/tokens/{again['id']}")).status_code == 204
    assert (await renewed(stack, new["session"])).status_code == 422
    assert (await frame(stack, f"/embed/{new['session']}")).status_code == 404


ALLOWED = {
    *("createUpload", "getUpload", "watchUpload", "previewUpload", "changeUpload"),
    *("listUploadColumns", "decideUploadColumns", "listUploadCandidates", "listUploadValues"),
    *("decideUploadValues", "exportUploadValues", "importUploadValues", "getReview"),
    *("listReviewRows", "listReviewChanges", "listReviewSuggestions", "previewReviewChange"),
    *("changeReview", "exportReview", "importReview", "confirmUpload", "listUploadResults"),
    *("getUploadSummary", "listUploadDecisions"),
}


async def test_an_upload_token_opens_nothing_but_its_uploads(stack: Stack) -> None:
    new = await made(stack)
    paths = (await frame(stack, "/openapi.json")).json()["paths"]
    routers = [getattr(each, "original_router", each) for each in stack.app.routes]
    pages = {
        (method, route.path)
        for router in routers
        for route in getattr(router, "routes", ())
        if isinstance(route, APIRoute) and not route.path.startswith("/api/")
        for method in route.methods or ()
    }
    uuid = "00000000-0000-4000-8000-000000000000"
    tried: set[str] = set()
    async with stack.browser(new["token"]) as embedded:
        for path, operations in paths.items():
            for method, operation in operations.items():
                address = re.sub(r"\{\w+\}", uuid, path)
                answer = await embedded.request(method, address)
                if answer.status_code == 403 and "upload token" in answer.json()["detail"]:
                    continue
                tried.add(operation["operationId"])
                assert answer.status_code >= 400, operation
        assert tried == ALLOWED
        opened = {
            f"{method} {path}"
            for method, path in pages
            if (await embedded.request(method, re.sub(r"\{\w+\}", uuid, path))).status_code != 403
        }
    # What needs no session, and the importer's own pages, where this upload is not found.
    public = ("/health", "/openapi", "/docs", "/static", "/embed", "/sign-in", "/sign-out")
    opened = {each for each in opened if not each.split()[1].startswith(public)}
    assert opened and all(each.split()[1].startswith("/uploads") for each in opened)
    assert not [each for each in opened if re.search("undo|memory|contexts|reassign", each)]


async def test_an_upload_token_is_for_one_kind_of_upload(stack: Stack) -> None:
    new = await made(stack)
    async with stack.browser(new["token"]) as embedded:
        for wrong in (
            *({"import_type": "RESULT"}, {"context_id": ""}, {"context_id": "10"}),
            *({"organisation_id": "2", "context_id": str(THEIR_EVENT)}, {"scope.project": "P1"}),
        ):
            assert (await uploaded(embedded, **wrong)).status_code in (403, 422), wrong
        row = (await uploaded(embedded)).json()
        at = f"/api/v1/uploads/{row['uuid']}"
        mail = {"assignee": {"to": "eve", "notify": "eve@example.org"}}
        assert (await embedded.patch(at, json=mail)).status_code == 403
        assert (await embedded.post(f"/uploads/{row['uuid']}/undo")).status_code == 403
        page = (await embedded.get("/uploads/new")).text
        assert "<nav" not in page and "City Marathon" not in page and 'name="file"' in page
        assert page.count("<option") == 2
        assert (await embedded.get("/uploads/templates/RESULT")).status_code == 404
        assert (await embedded.get("/uploads/templates/EVENT_PARTICIPANT")).status_code == 200


async def test_an_upload_token_begins_no_session_of_our_own_pages(stack: Stack) -> None:
    new = await made(stack)
    async with stack.browser("") as browser:
        browser.cookies.set(COOKIE, new["token"])
        assert (await browser.get("/uploads")).headers["location"].startswith("/sign-in")
    async with stack.browser(MAPPER) as program:
        # Another token in the header opens no page.
        assert (await program.get("/uploads/new")).headers["location"].startswith("/sign-in")


async def test_the_pages_of_a_frame_need_no_cookie(stack: Stack) -> None:
    new = await made(stack)
    async with stack.browser(new["token"]) as embedded:
        fields = {"importType": "RESULT", "review": "true"}
        answer = await embedded.post("/uploads", data=fields, files={"file": ("a.csv", FILE)})
        assert answer.status_code == 303, answer.text
        page = await page_of(embedded, answer.headers["location"].removeprefix("/uploads/"))
        assert "What do the columns mean?" in page and 'data-panel="columns"' in page
        assert "/reassign" not in page and "<nav" not in page
        cancelled = await embedded.post(
            f"{answer.headers['location']}/cancel", data={"reason": "x"}
        )
        assert cancelled.status_code in (303, 409)
        assert not embedded.cookies


async def test_the_frame_is_for_the_sites_of_its_token_alone(stack: Stack) -> None:
    new = await made(stack, origins=[SHOP, "http://localhost:8001"], language="de")
    shown = await frame(stack, f"/embed/{new['session']}")
    policy = shown.headers["content-security-policy"]
    assert f"frame-ancestors {SHOP} http://localhost:8001" in policy
    assert "default-src 'none'" in policy and "x-frame-options" not in shown.headers
    assert "set-cookie" not in shown.headers and new["token"] not in shown.text
    assert '<html lang="de"' in shown.text
    assert '<html lang="en"' in (await frame(stack, f"/embed/{new['session']}?language=en")).text
    for unknown in ("A" * 16, "../x", "%00" * 16, "1"):
        refused = await frame(stack, f"/embed/{unknown}")
        assert refused.status_code == 404
        assert "frame-ancestors 'none'" in refused.headers["content-security-policy"]
        assert refused.headers["x-frame-options"] == "DENY"
    element = await frame(stack, "/embed.js")
    assert element.headers["cross-origin-resource-policy"] == "cross-origin"
    assert "javascript" in element.headers["content-type"] and len(element.content) < 6_000


HOSTILE: Sequence[dict[str, Any]] = (
    {"origins": []},
    {"origins": ["*"]},
    {"origins": ["https://*.example"]},
    {"origins": [f"{SHOP}/"]},
    {"origins": [f"{SHOP}:443"]},
    {"origins": ["https://shop.example; script-src *"]},
    {"origins": ["https://shop.example 'self'"]},
    {"origins": ["https://shop.example\n"]},
    {"origins": ["https://ann@shop.example"]},
    {"origins": ["https://SHOP.example"]},
    {"origins": ["javascript://shop.example"]},
    {"origins": ["null"]},
    {"origins": [f"https://s{number}.example" for number in range(11)]},
    {"theme": {"accent": "red; } body { display: none"}},
    {"theme": {"accent": "url(https://evil.example)"}},
    {"theme": {"font": "x; } @import 'https://evil.example'"}},
    {"theme": {"radius": "4px}"}},
    {"theme": {"radius": "400px"}},
    {"theme": {"content": "x"}},
    {"language": "fr"},
    {"lasts_seconds": 3601},
    {"lasts_seconds": 0},
    {"name": "a\nb"},
    {"name": None},
    {"context_id": THEIR_EVENT},
    {"context_id": None},
    {"import_type": "NO_TYPE"},
    {"organisation_id": 2},
    {"scope": {"project": "P1"}},
    {"session": "mZ3fR9sQ0aXyT1Lk"},
    {"secret": "mine"},
)


@pytest.mark.parametrize("changes", HOSTILE, ids=repr)
async def test_a_hostile_upload_token_is_refused(stack: Stack, changes: dict[str, Any]) -> None:
    async with stack.browser(MAPPER) as shop:
        answer = await shop.post("/api/v1/upload-tokens", json={**NEW, **changes})
    assert answer.status_code in (403, 422), answer.text


async def test_viewers_make_no_upload_tokens(stack: Stack) -> None:
    async with stack.browser(token("vic", 1, "viewer")) as viewer:
        assert (await viewer.post("/api/v1/upload-tokens", json=NEW)).status_code == 403


async def test_only_pages_of_its_sites_read_answers(stack: Stack) -> None:
    new = await made(stack)
    asks = {"Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "x"}
    allowed = "access-control-allow-origin"
    # What is known of valid tokens is a few seconds old.
    async with stack.browser(new["token"], app=stack.gateway()) as page:
        uuid = (await uploaded(page)).json()["uuid"]
        at = f"/api/v1/uploads/{uuid}"
        for origin, status, readable in ((SHOP, 200, SHOP), (OTHER, 403, None)):
            preflight = await page.options(at, headers={"Origin": origin, **asks})
            assert preflight.headers.get(allowed) == readable
            answer = await page.get(at, headers={"Origin": origin})
            assert (answer.status_code, answer.headers.get(allowed)) == (status, readable)
        wrong = {"Authorization": "Bearer docflow_1_x", "Origin": SHOP}
        assert (await page.get(at, headers=wrong)).headers[allowed] == SHOP
    async with stack.browser(MAPPER) as program:
        answer = await program.get(at, headers={"Origin": SHOP})
        assert (answer.status_code, allowed in answer.headers) == (200, False)
