"""Rows are reviewed in a browser before anything is written."""

import re

import pytest
from playwright.async_api import Locator, Page, expect

from tests.e2e.test_pages import figure, participants
from tests.e2e.test_pages_values import is_for_everybody, press, take_picture
from tests.support.pages import PagesSetup, people

pytestmark = pytest.mark.asyncio(loop_scope="session")

HEADERS = ("First name", "Last name", "E-Mail", "Date of birth")
HEADING = "Check the rows before they are written"
FIRST, LAST, MAIL, BORN = 1, 2, 3, 4


async def to_review(
    site: PagesSetup, page: Page, name: str, *, dry_run: bool = False, rows: int = 30
) -> str:
    """Upload people, some of them wrong, and go on to the review; path of the page."""
    lines = [[*person, "1990-05-31"] for _, person in people(name, rows)]
    for place in (7, 21, 28):
        lines[place][2] = lines[place][2].replace("@", "(at)")
    lines[12][3] = "1990-02-31"
    path = site.file(f"{name}.csv", [HEADERS, *lines])
    address = await site.upload(page, path, dry_run=dry_run, review=True)
    await page.get_by_role("button", name="Confirm the columns").click()
    # A hundred thousand rows take a while to be read and checked.
    await expect(page.get_by_role("heading", name=HEADING)).to_be_visible(timeout=240_000)
    return address


async def open_grid(page: Page) -> None:
    """Wait for the first rows; what is copied may be read."""
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await expect(page.locator("#review-grid[data-ready]")).to_be_visible()


def cell(page: Page, row: int, column: int) -> Locator:
    """A cell of the grid by the number of its row in the file."""
    number = page.locator('[tabulator-field="line"]', has_text=re.compile(rf"^!?{row:,}$"))
    line = page.locator("#review-grid .tabulator-row", has=number)
    return line.locator(f'[tabulator-field="c{column}"]')


async def copy(page: Page, text: str) -> None:
    """Put a text into the clipboard, as a spreadsheet program does."""
    await page.evaluate("text => navigator.clipboard.writeText(text)", text)


async def has_problems(page: Page, rows: int, of: int = 30) -> None:
    """The page says how many rows have a problem."""
    words = f"{rows} rows of {of} have a problem." if rows > 1 else f"1 row of {of} has a problem."
    await expect(page.get_by_text(words)).to_be_visible()


async def shown_rows(page: Page, *numbers: int) -> None:
    """The grid holds these rows and no others."""
    found = page.locator('#review-grid .tabulator-row [tabulator-field="line"]')
    await expect(found).to_have_text([re.compile(rf"^!?{number}$") for number in numbers])


async def test_cells_are_edited_by_keyboard_and_undone(site: PagesSetup) -> None:
    async with site.visit() as page:
        await to_review(site, page, "review")
        await open_grid(page)
        await has_problems(page, 4)
        mail = cell(page, 9, MAIL)
        await expect(mail).to_have_attribute("aria-invalid", "true")
        await expect(mail).to_have_attribute("title", re.compile("is not a mail address"))
        await is_for_everybody(page, "review")

        # Enter and F2 edit, Escape leaves the cell as it was, typing replaces what stands in it.
        await mail.click()
        await expect(page.get_by_label("Row 9, Email")).to_have_value(
            "person7(at)review.example.org"
        )
        await page.keyboard.press("F2")
        await page.keyboard.type("nothing")
        await page.keyboard.press("Escape")
        await expect(mail).to_contain_text("(at)")
        await page.keyboard.press("ArrowLeft")
        await page.keyboard.press("ArrowRight")
        await page.keyboard.press("Enter")
        await page.keyboard.type("ok@review.example.org")
        await page.keyboard.press("Enter")
        await has_problems(page, 3)
        await expect(mail).not_to_have_attribute("aria-invalid", "true")
        await page.keyboard.press("Control+z")
        await has_problems(page, 4)
        await expect(mail).to_contain_text("(at)")
        await page.keyboard.press("Control+y")
        await has_problems(page, 3)
        await expect(mail).to_have_text("ok@review.example.org")

        # The bar above does the same, for fingers and screen readers; only problems are shown.
        await page.get_by_role("button", name="With problems 3").click()
        await shown_rows(page, 14, 23, 30)
        await cell(page, 14, BORN).click()
        await page.get_by_label("Row 14, Date of birth").fill("1990-02-28")
        # A click elsewhere saves what was typed, in the cell that it was typed for.
        await cell(page, 23, LAST).click()
        await has_problems(page, 2)
        await expect(cell(page, 14, BORN)).to_have_text("1990-02-28")
        await expect(cell(page, 23, LAST)).to_have_text("Last21")
        await page.get_by_role("button", name="E-Mail: problems 2").click()
        await shown_rows(page, 23, 30)
        await page.get_by_role("button", name="Changed").click()
        await shown_rows(page, 9, 14)

        # The change of a whole column is looked at before it is made.
        await page.get_by_role("button", name="Change the column E-Mail").click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_role("button", name="Find and replace").click()
        await dialog.get_by_label("Find").fill("(at)")
        await dialog.get_by_label("Replace with").fill("@")
        await dialog.get_by_role("button", name="Preview").click()
        await expect(figure(page, "Problems before")).to_have_text("2")
        await expect(figure(page, "Problems after")).to_have_text("0")
        await take_picture(page, "review-preview")
        await dialog.get_by_role("button", name="Make this change").click()
        await expect(page.get_by_text("All 30 rows can be written.")).to_be_visible()
        await press(page, "Take back: E-Mail: text replaced")
        await has_problems(page, 2)
        assert await participants(site, "review") == 0
        await press(page, "Write the rows")
        await expect(page.get_by_role("heading", name="All done")).to_be_visible()
        await expect(figure(page, "Created")).to_have_text("28")
        assert await participants(site, "review") == 28


async def test_ranges_are_pasted_filled_and_left_out(site: PagesSetup) -> None:
    async with site.visit() as page:
        await to_review(site, page, "review-ranges")
        await open_grid(page)
        await cell(page, 2, FIRST).click()
        await page.keyboard.press("Shift+ArrowDown")
        await page.keyboard.press("Shift+ArrowRight")
        await page.keyboard.press("Control+c")
        await expect(page.get_by_text("Copied.")).to_be_attached()
        assert await page.evaluate("navigator.clipboard.readText()") == (
            "First0\tLast0\nFirst1\tLast1"
        )

        # A range is one change: one undo takes all of it back.
        await copy(page, '"Ana ""Bo"""\tOne\r\nEva\tTwo\r\n')
        await cell(page, 5, FIRST).click()
        await page.keyboard.press("Control+v")
        await expect(page.get_by_text("4 cells: corrected")).to_be_visible()
        await expect(cell(page, 5, FIRST)).to_have_text('Ana "Bo"')
        await expect(cell(page, 6, LAST)).to_have_text("Two")
        await page.keyboard.press("Control+z")
        await expect(cell(page, 6, LAST)).to_have_text("Last4")
        await expect(cell(page, 5, FIRST)).to_have_text("First3")

        # One text for a selection, the first cell downwards, and nothing at all.
        await copy(page, "Ulm")
        await page.keyboard.press("Shift+ArrowDown")
        await page.keyboard.press("Control+v")
        await expect(cell(page, 6, FIRST)).to_have_text("Ulm")
        await cell(page, 9, LAST).click()
        await page.keyboard.press("Shift+ArrowDown")
        await page.keyboard.press("Control+d")
        await expect(cell(page, 10, LAST)).to_have_text("Last7")
        await cell(page, 9, MAIL).click()
        await page.keyboard.press("Shift+ArrowDown")
        await page.keyboard.press("Delete")
        await expect(cell(page, 10, MAIL)).to_have_text("")
        await has_problems(page, 3)
        await page.keyboard.press("Control+z")
        await has_problems(page, 4)

        # Rows are left out and taken in again, one or many.
        await press(page, "Leave rows out")
        await page.get_by_role("button", name="Left out 2").click()
        await shown_rows(page, 9, 10)
        await cell(page, 10, FIRST).click()
        await expect(page.locator("#cell-said")).to_contain_text("left out: ada@example.org")
        await press(page, "Take rows in again")
        await shown_rows(page, 9)
        await press(page, "Take all of them in again")
        await expect(page.get_by_role("button", name="Left out 0")).to_be_visible()


async def test_another_persons_change_is_named_and_nothing_is_lost(site: PagesSetup) -> None:
    async with site.visit("ada@example.org") as ada, site.visit("grace@example.org") as grace:
        address = await to_review(site, ada, "review-at-once", dry_run=True)
        await grace.goto(address)
        await open_grid(grace)
        await open_grid(ada)
        # What others have changed is not asked for until something is saved.
        await ada.route("**/live?*", lambda route: route.fulfill(status=204))
        await cell(grace, 9, MAIL).click()
        await grace.keyboard.type("grace@example.org")
        await grace.keyboard.press("Enter")
        await has_problems(grace, 3)

        await cell(ada, 14, BORN).click()
        await ada.keyboard.type("1990-02-28")
        await ada.keyboard.press("Enter")
        alert = ada.get_by_role("alert")
        await expect(alert).to_contain_text("grace@example.org")
        await expect(cell(ada, 14, BORN)).to_contain_text("1990-02-31")
        await expect(cell(ada, 9, MAIL)).to_have_text("grace@example.org")
        await take_picture(ada, "review-conflict")
        await ada.unroute("**/live?*")
        await press(ada, "Change it all the same")
        await has_problems(ada, 2)
        await expect(cell(ada, 14, BORN)).to_have_text("1990-02-28")

        # Out as a spreadsheet and back in, then a dry run is imported after all.
        async with ada.expect_download() as download:
            await ada.get_by_role("link", name="Download rows with problems").click()
        saved = site.folder / "files" / "corrected.xlsx"
        await (await download.value).save_as(saved)
        await ada.get_by_label("Corrected file").set_input_files(saved)
        await ada.get_by_role("button", name="Upload the corrections").click()
        await expect(ada.get_by_role("heading", name=HEADING)).to_be_visible()
        await open_grid(ada)
        await press(ada, "Import it now")
        await expect(ada.get_by_role("heading", name=re.compile("All done"))).to_be_visible()
        await expect(figure(ada, "Created")).to_have_text("28")


async def test_rows_are_reviewed_as_a_table_without_scripts(site: PagesSetup) -> None:
    async with site.visit() as page:
        address = await to_review(site, page, "review-plain")
    async with site.visit(scripts=False, start=address) as page:
        first = page.get_by_label("Email, row 9")
        await expect(first).to_have_attribute("aria-invalid", "true")
        await page.get_by_label("Date of birth, row 14").fill("1990-02-28")
        await page.keyboard.press("Enter")
        await has_problems(page, 3)
        await page.get_by_label("Leave out").last.check()
        await press(page, "Save")
        await expect(page.get_by_text("1 row is left out.")).to_be_visible()


async def test_a_hundred_thousand_rows_are_fetched_in_windows(site: PagesSetup) -> None:
    async with site.visit() as page:
        await to_review(site, page, "review-long", rows=100_000)
        await open_grid(page)
        await expect(page.get_by_role("button", name="All 100,000")).to_be_visible()
        await page.evaluate(
            "() => { const it = document.querySelector('.tabulator-tableholder');"
            " it.scrollTop = it.scrollHeight / 2; }"
        )
        await expect(cell(page, 50_010, FIRST)).to_have_text("First50008")
        assert await page.locator("#review-grid .tabulator-row").count() < 200
        # Row numbers of the file are those of the change, and of the filter.
        await cell(page, 50_010, LAST).click()
        await page.keyboard.type("Middle")
        await page.keyboard.press("Enter")
        await expect(page.get_by_text("row 50010, Last name: corrected")).to_be_visible()
        await page.get_by_role("button", name="Changed").click()
        await expect(cell(page, 50_010, LAST)).to_have_text("Middle")
