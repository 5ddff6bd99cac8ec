"""Rows are reviewed in a browser before anything is written."""

import re

import pytest
from playwright.async_api import Page, expect

from tests.e2e.test_pages import figure, participants
from tests.e2e.test_pages_values import is_for_everybody, press, take_picture
from tests.support.pages import PagesSetup, people

pytestmark = pytest.mark.asyncio(loop_scope="session")

HEADERS = ("First name", "Last name", "E-Mail", "Date of birth")
HEADING = "Check the rows before they are written"


async def to_review(site: PagesSetup, page: Page, name: str, *, dry_run: bool = False) -> str:
    """Upload thirty people, some of them wrong, and go on to the review; path of the page."""
    rows = [[*person, "1990-05-31"] for _, person in people(name, 30)]
    for place in (7, 21, 28):
        rows[place][2] = rows[place][2].replace("@", "(at)")
    rows[12][3] = "1990-02-31"
    path = site.file(f"{name}.csv", [HEADERS, *rows])
    address = await site.upload(page, path, dry_run=dry_run, review=True)
    await page.get_by_role("button", name="Confirm the columns").click()
    await expect(page.get_by_role("heading", name=HEADING)).to_be_visible()
    return address


async def test_rows_are_corrected_before_they_are_written(site: PagesSetup) -> None:
    async with site.visit() as page:
        await to_review(site, page, "review")
        await expect(page.get_by_text("4 rows of 30 have a problem.")).to_be_visible()
        # Rows with problems come first, each wrong cell says why.
        first = page.get_by_label("Email, row 9")
        await expect(first).to_have_attribute("aria-invalid", "true")
        await expect(first).to_have_accessible_description(re.compile("is not a mail address"))
        await is_for_everybody(page, "review")

        # In place, by keyboard alone.
        await page.get_by_label("Date of birth, row 14").fill("1990-02-28")
        await page.keyboard.press("Enter")
        await expect(page.get_by_text("3 rows of 30 have a problem.")).to_be_visible()
        assert await participants(site, "review") == 0

        # A whole column: what it would do, then done, taken back, and done again.
        for do_again in (False, True):
            await page.get_by_text("Find and replace").focus()
            await page.keyboard.press("Enter")
            await page.locator("#replace-column").select_option(label="E-Mail (Email)")
            await page.get_by_label("Find").fill("(at)")
            await page.get_by_label("Replace with").fill("@")
            await press(page, "Preview")
            await expect(
                page.get_by_role("heading", name="What the change would do")
            ).to_be_focused()
            await expect(figure(page, "Problems before")).to_have_text("3")
            await expect(figure(page, "Problems after")).to_have_text("0")
            await take_picture(page, "review-preview")
            await press(page, "Make this change")
            await expect(page.get_by_text("All 30 rows can be written.")).to_be_visible()
            if not do_again:
                await press(page, "Take back: E-Mail: text replaced")
                await expect(page.get_by_text("3 rows of 30 have a problem.")).to_be_visible()
        await page.get_by_label("Leave out").last.check()
        await press(page, "Save")
        await expect(page.get_by_text("1 row is left out.")).to_be_visible()
        await press(page, "Write the rows")
        await expect(page.get_by_role("heading", name="All done")).to_be_visible()
        await expect(figure(page, "Created")).to_have_text("29")
        assert await participants(site, "review") == 29


async def test_another_persons_change_is_named_and_nothing_is_lost(site: PagesSetup) -> None:
    async with site.visit("ada@example.org") as ada, site.visit("grace@example.org") as grace:
        address = await to_review(site, ada, "review-at-once", dry_run=True)
        await grace.goto(address)
        await grace.get_by_label("Email, row 9").fill("grace@example.org")
        await press(grace, "Save")
        await expect(grace.get_by_text("3 rows of 30 have a problem.")).to_be_visible()

        await ada.get_by_label("Date of birth, row 14").fill("1990-02-28")
        await press(ada, "Save")
        alert = ada.get_by_role("alert")
        await expect(alert).to_contain_text("Another person was faster")
        await expect(alert).to_contain_text("grace@example.org")
        await expect(ada.get_by_label("Date of birth, row 14")).to_have_value("1990-02-28")
        await take_picture(ada, "review-conflict")
        await press(ada, "Save")
        await expect(ada.get_by_text("2 rows of 30 have a problem.")).to_be_visible()

        # Out as a spreadsheet and back in, then a dry run is imported after all.
        async with ada.expect_download() as download:
            await ada.get_by_role("link", name="Download rows with problems").click()
        saved = site.folder / "files" / "corrected.xlsx"
        await (await download.value).save_as(saved)
        await ada.get_by_label("Corrected file").set_input_files(saved)
        await ada.get_by_role("button", name="Upload the corrections").click()
        await expect(ada.get_by_role("heading", name=HEADING)).to_be_visible()
        await press(ada, "Import it now")
        await expect(ada.get_by_role("heading", name=re.compile("All done"))).to_be_visible()
        await expect(figure(ada, "Created")).to_have_text("28")
