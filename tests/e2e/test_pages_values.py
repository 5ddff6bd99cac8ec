"""Thousands of unknown values, settled by a person in a browser."""

import os
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.e2e.test_pages import figure, tab_to
from tests.support.pages import WINDOWS, PagesSetup, faults, people

pytestmark = pytest.mark.asyncio(loop_scope="session")

HEADERS = ("First name", "Last name", "E-Mail", "Category")
VALUES = 3_000


def unknown(place: int) -> str:
    """A category that there is not: of a school, one that is known with a room, or a new one."""
    match place % 3:
        case 0:
            return f"School {place}, juniors"
        case 1:
            return f"Course {place}"
        case _:
            room = "".join(chr(ord("a") + place // 26**power % 26) for power in range(3))
            return f"Masters (40+) {room}"


async def test_thousands_of_values_are_settled_in_less_than_ten_actions(site: PagesSetup) -> None:
    async with site.visit() as page:
        rows = ((*person, unknown(place)) for place, person in people("thousands", VALUES))
        await site.upload(page, site.file("thousands.csv", [HEADERS, *rows]))
        await page.get_by_role("button", name="Confirm the columns").click()
        await expect(page.get_by_text("3,000 values are not recognised.")).to_be_visible()
        await is_for_everybody(page, "values")

        # By keyboard alone: a filter, one meaning for all that match, everything again, the rest.
        await tab_to(page, page.get_by_label("Value contains"))
        await page.keyboard.type("JUNIORS")
        await page.keyboard.press("Enter")
        await expect(page.get_by_text("with “JUNIORS”: 1,000")).to_be_visible()
        search = page.get_by_role("searchbox", name="Search for what all of them mean")
        await tab_to(page, search)
        await page.keyboard.type("junior")
        await expect(page.locator("#found-0").get_by_text("Junior")).to_be_visible()
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("radio", name="Junior (U18)")).to_be_checked()
        await take_picture(page, "values-one-meaning")
        await press(page, "Give all 1,000 this meaning")
        await expect(page.get_by_text("2,000 open values left.").first).to_be_visible()
        await press(page, "Show everything")
        await expect(page.get_by_text("All open values of Category: 2,000")).to_be_visible()
        await press(page, "Accept suggestions")
        await expect(page.get_by_text("1,000 open values left.").first).to_be_visible()
        await press(page, "Add all 1,000")
        await expect(page.get_by_text("Every value has a meaning.")).to_be_visible()
        await press(page, "Confirm and process the rows")
        await expect(page.get_by_role("heading", name="All done: 3,000 rows")).to_be_visible()
        await expect(figure(page, "Created")).to_have_text("3,000")


async def press(page: Page, name: str) -> None:
    """Go to a button with the keyboard and press it."""
    button = page.get_by_role("button", name=name)
    await button.focus()
    await page.keyboard.press("Enter")


async def is_for_everybody(page: Page, name: str) -> None:
    assert await faults(page) == []
    if os.environ.get("PICTURES"):
        for width, scheme in WINDOWS:
            await page.set_viewport_size({"width": width, "height": 800})
            await page.emulate_media(color_scheme=scheme)
            await take_picture(page, f"{name}-{width}-{scheme}")
        await page.set_viewport_size({"width": 1280, "height": 800})


async def take_picture(page: Page, name: str) -> None:
    if folder := os.environ.get("PICTURES"):
        await page.screenshot(path=Path(folder) / f"{name}.png", caret="initial", full_page=False)
