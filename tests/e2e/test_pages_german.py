"""The pages as a person sees them whose browser asks for German."""

import re
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from playwright.async_api import Page, expect

from tests.support.pages import PagesSetup, overflow, people, violations

pytestmark = pytest.mark.asyncio(loop_scope="session")

ROWS = [("Vorname", "Nachname", "E-Mail"), *(person for _, person in people("deutsch", 3))]
MOMENT = re.compile(r"\d{2}\.\d{2}\.\d{4}, \d{2}:\d{2}")


async def assert_for_everybody(page: Page) -> None:
    await page.set_viewport_size({"width": 400, "height": 800})
    assert await page.evaluate("document.documentElement.lang") == "de"
    assert await violations(page) == []
    assert await overflow(page) == 0


async def test_an_import_from_upload_to_undo_is_german(site: PagesSetup) -> None:
    async with site.visit() as page:
        await page.set_extra_http_headers({"Accept-Language": "de-AT, en;q=0.5"})
        try:
            await page.goto("/uploads/new")
            await assert_for_everybody(page)
            await page.get_by_label("Vor dem Schreiben prüfen").set_checked(False)
            await page.get_by_label("Wozu gehören die Zeilen?").select_option("City Marathon")
            await page.get_by_label("Tabelle").set_input_files(site.file("deutsch.csv", ROWS))
            await page.get_by_role("button", name="Hochladen").click()
            heading = page.get_by_role("heading", name="Was bedeuten die Spalten?")
            await expect(heading).to_be_visible()
            await assert_for_everybody(page)
            await page.get_by_role("button", name="Spalten bestätigen").click()
            # The script brings it, in answers that are parts of a page.
            await expect(page.get_by_role("heading", name="Fertig: 3 Zeilen")).to_be_visible()
            await assert_for_everybody(page)
            await page.get_by_text("Diesen Upload rückgängig machen").click()
            await page.get_by_role("button", name="Ja, rückgängig machen").click()
            await expect(page.get_by_text("Rückgängig gemacht", exact=True)).to_be_visible()
            await page.goto(f"{page.url}/decisions")
            await expect(page.locator("time").first).to_have_text(MOMENT)
            await assert_for_everybody(page)
            for address in ("/", "/uploads", "/uploads/00000000-0000-4000-8000-000000000000"):
                await page.goto(address)
                await assert_for_everybody(page)
        finally:
            await page.set_extra_http_headers({})


async def test_times_are_those_of_the_viewer(site: PagesSetup) -> None:
    async with site.visit() as page:
        await site.upload(page, site.file("zones.csv", ROWS))
        address = page.url
        browser = await page.context.new_cdp_session(page)
        shown: list[str] = []
        for zone in ("Asia/Kathmandu", "UTC"):
            await browser.send("Emulation.setTimezoneOverride", {"timezoneId": zone})
            await page.goto(address)
            moment = page.locator("time[data-moment]").first
            await expect(moment).not_to_contain_text("UTC")
            then = datetime.fromisoformat(await moment.get_attribute("datetime") or "")
            shown.append(await moment.inner_text())
            # Hours are written as the region of the browser writes them.
            assert f"{then.astimezone(ZoneInfo(zone)):%M}" in re.findall(r"[:.](\d\d)", shown[-1])
        assert shown[0] != shown[1]
