"""The page of a transfer in a real browser: for everybody, in both languages, on a phone."""

import pytest
from playwright.async_api import expect

from adapters.database.engine import open_database
from tests.support.pages import PagesSetup, faults
from tests.support.transfers.shown import is_parked, shown_transfer

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_the_page_is_accessible_in_every_window_and_language_and_is_answered(
    site: PagesSetup,
) -> None:
    async with (
        open_database(site.settings["DATABASE_URL"]) as database,
        shown_transfer(site.client, database, "one", "two") as shown,
    ):
        async with site.visit(start=shown.page) as page:
            await expect(page.get_by_role("heading", name="Transfer").first).to_be_visible()
            await page.get_by_text("With other settings").click()
            await page.get_by_text("Leave out or give up").click()
            await page.get_by_text("Cancel the transfer").click()
            assert await faults(page) == []
            assert await page.evaluate("window.broken") is None
            await page.set_extra_http_headers({"Accept-Language": "de-AT, en;q=0.5"})
            try:
                await page.goto(shown.page)
                assert await page.evaluate("document.documentElement.lang") == "de"
                await page.get_by_text("Mit anderen Einstellungen").click()
                assert await faults(page) == []
                await page.get_by_label("Einstellungen der Aktion").fill('{"Path": "/second"}')
                await page.get_by_role("button", name="Noch einmal versuchen").click()
                await is_parked(shown)
            finally:
                await page.set_extra_http_headers({})
        async with site.visit(start="/", width=400, scripts=False) as page:
            # From the inbox to the transfer, and answered without scripts.
            id = shown.order.transfer_id
            await page.get_by_role("link", name=f"Transfer {id[:8]}", exact=True).click()
            await expect(page.get_by_role("heading", name="Actions")).to_be_visible()
            await page.get_by_role("button", name="Try again").click()
            await expect(page.get_by_text("It waits for your decision")).to_be_hidden()
        await shown.handle.result()
    calls = shown.script.received["call_http"]
    assert [each.names["path"] for each in calls][1:] == ["/second", "/second"]
