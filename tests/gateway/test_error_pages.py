"""Errors at addresses of pages: a page for a person, a problem for a program."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import httpx
import pytest
from fastapi import FastAPI

from adapters.ports.errors import PortError
from tests.support.gateway import Stack, sign_in, token
from workers.shared.gateway.http.requests import COOKIE, prefers_page

pytestmark = pytest.mark.asyncio(loop_scope="session")

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"
NAVIGATION = '<nav aria-label="Main">'


@asynccontextmanager
async def browser(
    app: FastAPI, bearer: str | None = None, **headers: str
) -> AsyncGenerator[httpx.AsyncClient]:
    """A browser that opens addresses, of a person who is signed in where there is a token."""
    async with httpx.AsyncClient(
        # As a server, it answers before it raises what it did not expect.
        transport=httpx.ASGITransport(app, raise_app_exceptions=False),
        base_url="http://gateway",
        headers={"accept": BROWSER, **headers},
    ) as client:
        if bearer:
            await sign_in(client, bearer)
        yield client


def page(answer: httpx.Response, status: int, heading: str) -> str:
    """The text of an answer that must be a page of the site."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["vary"].startswith("Accept, Accept-Language")
    assert f'<h1 id="title">{heading}</h1>' in answer.text
    return answer.text


def problem(answer: httpx.Response, status: int) -> Mapping[str, object]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.json()


@pytest.mark.parametrize("path", ["/nosuchpage", "/uploads/new/3", "/static/none.css", "/apis"])
async def test_a_browser_gets_a_page_where_there_is_none(stack: Stack, path: str) -> None:
    async with browser(stack.app, token()) as anna:
        text = page(await anna.get(path), 404, "Not found")
    assert f"<code><bdi>{path}</bdi></code>" in text
    assert NAVIGATION in text
    assert '<a href="/uploads">Import</a>' in text


async def test_a_person_who_is_not_signed_in_gets_the_same_page_with_links(stack: Stack) -> None:
    async with browser(stack.app) as anyone, browser(stack.app) as expired:
        expired.cookies.set(COOKIE, "x.y.z")
        for client in (anyone, expired):
            text = page(await client.get("/nosuchpage"), 404, "Not found")
            assert NAVIGATION not in text
            assert '<a href="/uploads">Import</a>' in text and '<a href="/">Inbox</a>' in text


@pytest.mark.parametrize("accept", ["application/json", "*/*", "", "image/png", "text/html;q=0"])
async def test_a_program_gets_a_problem_where_there_is_nothing(stack: Stack, accept: str) -> None:
    async with browser(stack.app, accept=accept) as program:
        assert problem(await program.get("/nosuchpage"), 404)["title"] == "Not Found"


@pytest.mark.parametrize("path", ["/api/nothing", "/api/imports/x/y", "/api", "/health/none"])
async def test_addresses_of_the_api_answer_with_problems_alone(stack: Stack, path: str) -> None:
    async with browser(stack.app, token()) as anna:
        problem(await anna.get(path), 404)
        problem(await anna.get("/api/imports"), 401)


async def test_an_address_is_shown_as_it_stands(stack: Stack) -> None:
    async with browser(stack.app) as anyone:
        for address, shown in (
            ("/%3Cscript%3Ealert(1)%3C/script%3E", "/&lt;script&gt;alert(1)&lt;/script&gt;"),
            ("/%22%3E%3Cimg%20src=x%3E", "/&#34;&gt;&lt;img src=x&gt;"),
            ("/{{7*7}}", "/{{7*7}}"),
            ("/a%0D%0ASet-Cookie:%20x%00%E2%80%AEb", "/a??Set-Cookie: x??b"),
            ("//evil.example/x", "//evil.example/x"),
            ("/" + "y" * 5000, "/" + "y" * 199 + "…"),
        ):
            answer = await anyone.request(
                "GET", httpx.URL("http://gateway", raw_path=address.encode())
            )
            text = page(answer, 404, "Not found")
            assert f"<code><bdi>{shown}</bdi></code>" in text
            assert "set-cookie" not in answer.headers


async def test_the_page_is_in_the_language_of_the_browser(stack: Stack) -> None:
    headers = {"accept-language": "de-AT, en;q=0.5"}
    async with browser(stack.app, token(), **headers) as anna:
        answer = await anna.get("/nosuchpage")
    assert "Unter dieser Adresse gibt es keine Seite:" in page(answer, 404, "Nicht gefunden")
    assert answer.headers["content-language"] == "de"


async def test_an_address_of_a_form_that_is_opened_names_its_methods(stack: Stack) -> None:
    async with browser(stack.app, token()) as anna:
        # As a reload does, after a form was refused, or the address bar.
        refused = await anna.get("/sign-out")
        assert "Open the page that has the form" in page(refused, 405, "Not a page")
        assert refused.headers["allow"] == "POST"
        answered = page(await anna.get("/uploads/a%22%3E/columns"), 405, "Not a page")
        assert '<a href="/uploads/a%22%3E"><bdi>/uploads/a&#34;&gt;</bdi></a>' in answered
        refused = await anna.post("/")
        assert "takes no form" in page(refused, 405, "Not allowed")
        assert refused.headers["allow"] == "GET, HEAD"
        refused = await anna.patch("/", headers={"accept": "*/*"})
        assert problem(refused, 405)["type"] == "urn:docflow:problem:method-not-allowed"


async def test_a_form_that_is_too_large_is_refused_with_a_page(stack: Stack) -> None:
    form = {"content-type": "application/x-www-form-urlencoded"}
    async with browser(stack.app) as anyone:
        refused = await anyone.post("/sign-in", content=b"t=" * 600_000, headers=form)
        page(refused, 413, "Too large")


async def test_outages_and_defects_are_pages_without_their_causes(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = stack.gateway()

    async def fails(error: Exception) -> None:
        async def read(*arguments: object, **more: object) -> None:
            raise error

        monkeypatch.setattr(app.state.inbox, "read", read)

    async with browser(app, token()) as anna:
        await fails(PortError("secret.example does not answer"))
        refused = await anna.get("/")
        assert "secret" not in page(refused, 503, "Not available at the moment")
        assert refused.headers["retry-after"] == "5"
        problem(await anna.get("/", headers={"accept": "*/*"}), 503)
        # A page that refreshes itself stays as it is, below a notice.
        part = await anna.get("/", headers={"hx-request": "true", "accept": "text/html"})
        assert (part.status_code, part.headers["hx-retarget"]) == (503, "#problem")
        assert part.text.startswith('<div class="message bad" role="alert">')

        await fails(RuntimeError("secret"))
        refused = await anna.get("/")
        text = page(refused, 500, "Something went wrong")
        assert "secret" not in text and NAVIGATION in text
        unexpected = await anna.get("/", headers={"accept": "application/json"})
        assert problem(unexpected, 500)["type"] == "urn:docflow:problem:internal"
        assert "default-src 'none'" in unexpected.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (BROWSER, True),
        ("text/html", True),
        ("TEXT/HTML;level=1;q=0.9, application/json;q=0.8", True),
        ("text/html, */*", True),
        ("text/*", True),
        ("text/html;q=0.5, */*;q=0.9", False),
        ("text/html, application/json", False),
        ("application/problem+json, text/html;q=0.9", False),
        ("text/html;q=2", False),
        ("text/html;q=nan", False),
        ("application/*, */*", False),
        (",;,q=1;;", False),
        ("x/y," * 100_000 + "text/html", False),
    ],
)
async def test_who_takes_html_rather_than_json_is_a_person(accept: str, expected: bool) -> None:
    assert prefers_page(accept) is expected
