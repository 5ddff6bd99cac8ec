"""What a browser chooses: language, colours, one organisation, single keys."""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx
import pytest

from tests.gateway.test_import_pages import visitor
from tests.support.gateway import OURS, THEIRS, TOKENS, Stack, import_in, sign_in
from workers.shared.gateway.http.auth import mint_token
from workers.shared.gateway.pages.preferences import PREFERENCES

pytestmark = pytest.mark.asyncio(loop_scope="session")


@asynccontextmanager
async def of_two(stack: Stack, subject: str, *roles: str) -> AsyncGenerator[httpx.AsyncClient]:
    """A person of two organisations."""
    bearer = mint_token(TOKENS, subject=subject, organisations=[OURS, THEIRS], roles=roles)
    async with stack.browser(bearer) as browser:
        await sign_in(browser, bearer)
        yield browser


async def choose(browser: httpx.AsyncClient, **chosen: str) -> httpx.Response:
    answer = await browser.post("/preferences", data=chosen)
    assert answer.status_code == 303, answer.text
    return answer


async def test_a_chosen_language_counts_more_than_the_browser_s(stack: Stack) -> None:
    async with visitor(stack, "lena") as lena:
        assert '<html lang="en">' in (await lena.get("/settings")).text
        back = await choose(lena, language="de", next="/runs?state=failed")
        assert back.headers["location"] == "/runs?state=failed"
        page = await lena.get("/settings", headers={"accept-language": "en"})
        assert '<html lang="de">' in page.text and "Einstellungen" in page.text
        assert "Cookie" in page.headers["vary"]
        # Errors and the sign-in page too.
        assert (
            "gibt es keine Seite" in (await lena.get("/none", headers={"accept": "text/html"})).text
        )
        await choose(lena, language="")
        assert '<html lang="en">' in (await lena.get("/settings")).text


async def test_a_choice_below_a_refused_form_leads_to_a_page(stack: Stack) -> None:
    async with stack.browser("") as nobody:
        refused = await nobody.post(
            "/sign-in", data={"token": "x.y.z", "next": "/runs?state=failed"}
        )
        assert refused.status_code == 401
        assert 'action="/preferences"' in refused.text
        [back] = re.findall(r'name="next" value="(/sign-in[^"]*)"', refused.text)
        assert (await choose(nobody, language="de", next=back)).headers["location"] == back
        again = await nobody.get(back)
    assert again.status_code == 200 and 'value="/runs?state=failed"' in again.text


async def test_a_choice_leaves_the_others(stack: Stack) -> None:
    async with of_two(stack, "cleo", "viewer") as cleo:
        await choose(cleo, colours="dark")
        await choose(cleo, organisation=str(THEIRS))
        await choose(cleo, shortcuts="off")
        page = (await cleo.get("/settings")).text
    assert 'data-colours="dark"' in page
    assert f"<summary>Organisation {THEIRS}</summary>" in page
    assert "aria-keyshortcuts" not in page


async def test_lists_show_the_chosen_organisation_alone(stack: Stack) -> None:
    async with visitor(stack, "ours") as ours, of_two(stack, "zoe", "mapper") as zoe:
        uuid = await import_in(ours, "COLUMN_MAPPING", filename="walrus.csv")
        lists = ("/runs?text=walrus", "/uploads?q=walrus", "/")
        for path in lists:
            assert f"/uploads/{uuid}" in (await zoe.get(path)).text
        await choose(zoe, organisation=str(THEIRS))
        for path in lists:
            assert f"/uploads/{uuid}" not in (await zoe.get(path)).text
        # A link still leads there.
        assert "walrus.csv" in (await zoe.get(f"/uploads/{uuid}")).text
        await choose(zoe, organisation=str(OURS))
        for path in lists:
            assert f"/uploads/{uuid}" in (await zoe.get(path)).text
        # Somebody else's organisation is no choice.
        await choose(zoe, organisation="4711")
        assert f"/uploads/{uuid}" in (await zoe.get(lists[0])).text


@pytest.mark.parametrize(
    "hostile",
    [
        "language=xx&colours=%22%3E&organisation=-1",
        "%ff%fe",
        "&".join(["a=1"] * 99),
        "organisation=%C2%B2",
    ],
)
async def test_a_choice_that_is_none_counts_as_not_made(stack: Stack, hostile: str) -> None:
    async with visitor(stack, "mallory") as mallory:
        mallory.cookies.set(PREFERENCES, hostile)
        page = await mallory.get("/settings")
    assert page.status_code == 200
    assert '<html lang="en">' in page.text and "4711" not in page.text


async def test_another_site_chooses_nothing(stack: Stack) -> None:
    async with visitor(stack, "nora") as nora:
        form = {"colours": "dark", "next": "https://evil.example/"}
        refused = await nora.post(
            "/preferences", data=form, headers={"origin": "https://evil.example"}
        )
        assert refused.status_code == 403 and "set-cookie" not in refused.headers
        taken = await choose(nora, **form)
    assert taken.headers["location"] == "/settings"
    assert "HttpOnly" in taken.headers["set-cookie"]


@pytest.mark.parametrize("path", ["/runs/x", "/runs/answers", "/runs/new/document", "/runs/files"])
async def test_a_form_of_nobody_asks_to_sign_in(stack: Stack, path: str) -> None:
    async with stack.browser("") as nobody:
        answer = await nobody.post(path, data={"csrf": "x"})
    assert answer.status_code in (401, 422), answer.text


async def test_addresses_that_are_none_lead_nowhere(stack: Stack) -> None:
    async with stack.browser("") as nobody:
        page = await nobody.get("/sign-in", params={"next": "//["})
        assert page.status_code == 200 and 'value="/"' in page.text
        refused = await nobody.post("/preferences", data={}, headers={"origin": "http://["})
        assert refused.status_code == 403
    async with visitor(stack, "otto") as otto:
        assert (await otto.get("/runs?until=9999-12-31")).status_code == 422


async def test_settings_say_what_a_person_may(stack: Stack) -> None:
    async with of_two(stack, "rita", "operator") as rita:
        page = (await rita.get("/settings")).text
    assert page.count("<code>operator</code>") == 3
    assert "Whole installation" in page and "looks after batches" in page
