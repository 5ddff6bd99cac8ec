"""The pages of batches in a real browser, on a phone."""

import pytest
from playwright.async_api import expect

from adapters.database.engine import open_database
from tests.support.batches.shown import shown_batch
from tests.support.pages import PagesSetup

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_parked_batch_is_answered_on_a_phone(site: PagesSetup) -> None:
    async with (
        open_database(site.settings["DATABASE_URL"]) as database,
        shown_batch(site.client, database, 901) as shown,
    ):
        async with site.visit(start="/", width=400, scripts=False) as page:
            # From the inbox to the batch, and answered without scripts.
            await page.get_by_role("link", name="Batch 1 of case 901").click()
            await expect(page.get_by_role("img", name="Depths over the last")).to_be_visible()
            await page.get_by_role("button", name="Try again").click()
            await expect(page.get_by_text("It waits for your decision")).to_be_hidden()
        assert shown.script.made("redrive") == 2
