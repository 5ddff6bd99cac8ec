"""The importer on the page of another site, in a real browser: samples/embed."""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from playwright.async_api import ConsoleMessage, FrameLocator, Page, expect

from stack.children import child, free_port
from tests.support.pages import ROOT, PagesSetup, overflow, people, violations
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

HEADERS = ("First name", "Last name", "E-Mail", "Squat")
SECONDS = 4
"""So long a token lasts: shorter than a person needs."""


@asynccontextmanager
async def shop(site: PagesSetup, folder: Path, lasts: int = SECONDS) -> AsyncGenerator[int]:
    """The sample's server, which docflow knows as http://localhost; its port."""
    port = free_port()
    command = [
        *(sys.executable, str(ROOT / "samples" / "embed" / "shop.py")),
        *("--port", str(port), "--docflow", site.address, "--lasts", str(lasts)),
        *("--token", site.token("shop", ["mapper"]), "--context", str(site.club.event_id)),
        *("--organisation", str(site.club.organisation_id)),
    ]
    async with child(command, folder / "shop.log", {}):

        async def answers() -> bool:
            try:
                async with httpx.AsyncClient() as client:
                    return (await client.get(f"http://127.0.0.1:{port}/")).is_success
            except httpx.TransportError:
                return False

        await eventually(answers, seconds=30)
        yield port


@asynccontextmanager
async def customer(site: PagesSetup, address: str) -> AsyncGenerator[tuple[Page, list[str]]]:
    """A page of a browser that has never been at docflow; what it said in its console."""
    context = await site.browser.new_context()
    context.set_default_timeout(60_000)
    page, said = await context.new_page(), list[str]()

    def says(line: ConsoleMessage) -> None:
        if line.type == "error":
            said.append(line.text)

    page.on("console", says)
    page.on("pageerror", lambda error: said.append(str(error)))
    try:
        await page.goto(address)
        yield page, said
        # No cookie of docflow was set or needed.
        assert [each.get("name") for each in await context.cookies()] == ["customer"]
    finally:
        await context.close()


def importer(page: Page) -> FrameLocator:
    return page.frame_locator("docflow-importer iframe")


async def for_everybody(page: Page) -> None:
    """See that the frame and the page around it are readable, in wide and in small windows."""
    for width in (400, 1280):
        await page.set_viewport_size({"width": width, "height": 800})
        for each in page.frames:
            assert await violations(each) == []
            assert await overflow(each) <= 0


async def test_another_site_embeds_the_importer(site: PagesSetup, tmp_path: Path) -> None:
    rows = [(*person, "Ladies") for _, person in people("embed", 4)]
    path = site.file("embed.csv", [HEADERS, *rows])
    async with shop(site, tmp_path) as port, customer(site, f"http://localhost:{port}/") as seen:
        page, said = seen
        frame, news = importer(page), page.locator("#news")
        await expect(news).to_have_text("The importer is there.")
        asked: list[str] = []
        page.on("request", lambda each: asked.append(each.url))
        await for_everybody(page)
        await frame.get_by_label("Spreadsheet").set_input_files(path)
        await frame.get_by_role("button", name="Upload").click()
        await expect(frame.get_by_role("heading", name="What do the columns mean?")).to_be_visible()
        # Longer than the token lasts: the page is not asked to sign in, and nothing is lost.
        renewals = sum(each.endswith("/upload-token") for each in asked)
        await frame.get_by_label("Field for Squat").select_option("TEAM")
        await eventually(
            lambda: _is(sum(each.endswith("/upload-token") for each in asked) > renewals + 1),
            seconds=60,
        )
        await expect(frame.get_by_label("Field for Squat")).to_have_value("TEAM")
        await frame.get_by_role("button", name="Confirm the columns").click()
        await expect(news).to_have_text("We know what your columns mean.")
        await frame.get_by_role("button", name="Write the rows").click()
        await expect(frame.get_by_role("heading", name="All done: 4 rows")).to_be_visible()
        await expect(news).to_have_text("Taken over: 4 new, 0 changed.")
        assert not [each for each in asked if "docflow_" in each]
        heights = "[...document.querySelectorAll('iframe')].map(each => each.clientHeight)"
        assert (await page.evaluate(heights))[0] > 400
        await for_everybody(page)
        await frame.get_by_role("link", name="Decisions").click()
        await expect(frame.get_by_text("who decided what")).to_be_visible()
        await frame.get_by_role("button", name="Close").click()
        await expect(news).to_have_text("Closed.")
        assert await page.locator("iframe").count() == 0
        # What the browser notes: an expired token, and a focus that the frame gives by itself.
        expected = ("401", "Blocked autofocusing")
        assert not [each for each in said if not any(note in each for note in expected)]


async def test_a_third_site_shows_no_importer(site: PagesSetup, tmp_path: Path) -> None:
    async with shop(site, tmp_path) as port, customer(site, f"http://127.0.0.1:{port}/") as seen:
        page, said = seen
        await eventually(lambda: _is(any("frame-ancestors" in each for each in said)), seconds=30)
        await expect(page.locator("#news")).to_have_text("Nothing yet.")
        assert page.frames[-1].url.startswith("chrome-error://")


async def _is(value: bool) -> bool:
    return value
