"""Make the pictures of the documentation: `python -m tests.e2e.screenshots`.

They show the pages as they are, on the same site that the page tests use.
"""

import asyncio
import tempfile
from pathlib import Path

import httpx
from playwright.async_api import Page, expect

from tests.e2e.page_visits import parked
from tests.e2e.test_pages_review import open_grid, to_review
from tests.support.pages import ROOT, PagesSetup, running_pages

IMAGES = ROOT / "docs" / "images"
HEADERS = ("Vorname", "Nachname", "Startgruppe", "E-Mail", "Geburtsdatum", "Land")
PEOPLE = (
    ("Ada", "Lovelace", "1988-12-10", "GBR", "Senior (18+)"),
    ("Grace", "Hopper", "1979-12-09", "United States", "Masters (40+)"),
    ("Konrad", "Zuse", "2008-06-22", "Deutschland", "Jugend"),
    ("Emmy", "Noether", "1992-03-23", "GER", "Damen"),
    ("Leonhard", "Euler", "1985-04-15", "SUI", "Herren"),
    ("Sofja", "Kowalewskaja", "1990-01-15", "Sweeden", "Damen"),
)


def registrations(site: PagesSetup) -> Path:
    rows: list[tuple[str, ...]] = [HEADERS]
    for place in range(240):
        first, last, born, country, group = PEOPLE[place % len(PEOPLE)]
        mail = f"{first}.{last}{place}@example.org".lower() if place % 60 else "no address"
        rows.append((first, f"{last}-{place}", group, mail, born, country))
    return site.file("City Marathon 2026.csv", rows)


async def take(page: Page, name: str) -> None:
    # Hiding the caret would take a style of its own, which the pages' policy forbids.
    await page.screenshot(path=IMAGES / f"{name}.png", caret="initial")


async def job(site: PagesSetup) -> None:
    """A job in progress."""
    token = site.token("olga", ["operator"])
    headers = {"authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=site.address, headers=headers, timeout=60) as browser:
        request = {"job_type": "hello_world", "parameters": {"n": 5_000}, "project": "survey"}
        started = await browser.post("/api/jobs", json=request)
    async with site.visit("olga@example.org", start=f"/jobs/{started.json()['job_id']}") as page:
        bar = page.get_by_role("progressbar", name="Tasks of stage greeting")
        await expect(bar).to_be_visible(timeout=60_000)
        await expect(page.get_by_text("a second")).to_be_visible(timeout=60_000)
        await take(page, "job")


async def main() -> None:
    """Go the whole way once, with a picture of each step."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        async with running_pages(Path(folder)) as site, site.visit("ada@example.org") as page:
            await site.upload(page, registrations(site))
            await expect(page.get_by_role("heading", name="What do the columns")).to_be_visible()
            await expect(page.locator("#facts")).to_contain_text("240")
            await take(page, "columns")
            await page.get_by_label("Field for Startgruppe").select_option("EVENT_CATEGORY_NAME")
            await page.get_by_role("button", name="Confirm the columns").click()
            await expect(page.get_by_role("heading", name="What do the values")).to_be_visible()
            women = page.get_by_role("group", name="Meaning of Damen")
            await women.get_by_role("searchbox").fill("sen")
            await women.get_by_text("Senior (18+)").last.click()
            # Tall enough for the values below what answers all of them.
            await page.set_viewport_size({"width": 1280, "height": 1200})
            await page.evaluate("scrollTo(0, 0)")
            await take(page, "values")
            await page.set_viewport_size({"width": 1280, "height": 800})
            await page.emulate_media(color_scheme="dark")
            await page.goto("/")
            await expect(page.get_by_role("row").nth(1)).to_be_visible()
            await take(page, "inbox-dark")
            await job(site)
            await page.emulate_media(color_scheme="light")
            await page.get_by_role("link", name="City Marathon 2026.csv").click()
            for value, meaning in (("Damen", "Add “Damen”"), ("Herren", "Add “Herren”")):
                group = page.get_by_role("group", name=f"Meaning of {value}")
                await group.get_by_text(meaning).click()
            await page.get_by_role("button", name="Confirm and process").click()
            await expect(page.get_by_role("heading", name="All done")).to_be_visible()
            await take(page, "results")
            await page.goto("/uploads/new")
            await take(page, "upload")
            await parked(site, page, "Geraete")
            await page.set_viewport_size({"width": 1280, "height": 1000})
            await take(page, "run")
            await to_review(site, page, "review")
            await open_grid(page)
            await take(page, "review")
            await page.goto("/overview")
            await take(page, "overview")
        async with running_pages(Path(folder) / "phone") as site, site.visit(width=400) as page:
            await site.upload(page, registrations(site))
            await page.get_by_label("Field for Startgruppe").scroll_into_view_if_needed()
            await take(page, "columns-phone")


if __name__ == "__main__":
    asyncio.run(main())
