"""People import spreadsheets in a browser: by mouse, by keyboard, and two at a time."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, expect
from sqlalchemy import func, select

from adapters.database.engine import open_database
from adapters.database.models.spreadsheets import event_participants, persons
from tests.support.pages import PagesSetup, people
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

HEADERS = ("First name", "Last name", "E-Mail", "Startgruppe")


def registrations(site: PagesSetup, name: str, rows: int = 30) -> Path:
    """People with an unknown column and two unknown values."""
    groups = ("Senior (18+)", "Ladies", "Oldies")
    return site.file(
        f"{name}.csv",
        [HEADERS, *((*person, groups[place % 3]) for place, person in people(name, rows))],
    )


async def participants(site: PagesSetup, name: str) -> int:
    """People of a file that take part now."""
    query = (
        select(func.count())
        .select_from(event_participants.join(persons))
        .where(persons.c.email.like(f"%@{name}.example.org"))
    )
    async with (
        open_database(site.settings["DATABASE_URL"]) as database,
        database.reading() as connection,
    ):
        return (await connection.execute(query)).scalar_one()


async def to_columns(site: PagesSetup, page: Page, name: str) -> str:
    """Upload registrations and wait for the question what their columns mean."""
    address = await site.upload(page, registrations(site, name))
    await expect(page.get_by_role("heading", name="What do the columns mean?")).to_be_visible()
    return address


async def test_the_whole_way_from_the_upload_to_the_undo(site: PagesSetup) -> None:
    async with site.visit() as page:
        address = await to_columns(site, page, "whole")
        group = page.get_by_label("Field for Startgruppe")
        # The open question is the first, and the button says what becomes of it.
        await expect(page.locator("#columns select").first).to_have_id(
            await group.get_attribute("id") or ""
        )
        confirm = page.get_by_role("button", name="Confirm the columns")
        await expect(confirm).to_have_text("Confirm the columns, leave out 1")
        await group.select_option("EVENT_CATEGORY_NAME")
        await expect(confirm).to_have_text("Confirm the columns")
        await page.get_by_role("button", name="Save", exact=True).click()
        await expect(page.get_by_role("status")).to_have_text("Saved 1 choice.")
        await expect(page.get_by_role("button", name="Save", exact=True)).to_be_focused()
        await expect(group).to_have_value("EVENT_CATEGORY_NAME")
        await page.get_by_role("button", name="Confirm the columns").click()

        await expect(page.get_by_role("heading", name="What do the values mean?")).to_be_focused()
        await expect(page.get_by_text("2 values are not recognised.")).to_be_visible()
        ladies = page.get_by_role("group", name="Meaning of Ladies")
        await ladies.get_by_role("searchbox").fill("sen")
        await ladies.get_by_text("Senior (18+)").last.click()
        await page.get_by_text("Add “Oldies”").click()
        await page.get_by_role("button", name="Confirm and process the rows").click()

        await expect(page.get_by_role("heading", name="All done: 30 rows")).to_be_visible()
        await expect(figure(page, "Created")).to_have_text("30")
        assert await participants(site, "whole") == 30
        # A line for each row: a page of fifty is about two screens.
        rows = page.get_by_role("table", name="Outcome of the rows")
        box = await rows.bounding_box()
        assert box is not None and box["height"] < 32 * 31
        await rows.get_by_text("First0 Last0").click()
        await expect(rows.get_by_text("person0@whole.example.org")).to_be_visible()

        await page.get_by_role("link", name="Decisions").click()
        await expect(page.get_by_role("row").filter(has_text="Startgruppe")).to_contain_text(
            "Category"
        )
        await page.goto(address)
        await page.get_by_text("Undo this upload").click()
        await page.get_by_role("button", name="Yes, undo it").click()
        await expect(page.get_by_text("Undone", exact=True)).to_be_visible()
        undone = page.get_by_role("status").filter(has_text="Undone")
        await expect(undone).to_contain_text("Requested by")
        assert await participants(site, "whole") == 0


async def test_the_whole_way_with_the_keyboard_alone(site: PagesSetup) -> None:
    async with site.visit() as page:
        await to_columns(site, page, "keys")
        await page.keyboard.press("Tab")
        await expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
        await tab_to(page, page.get_by_label("Field for Startgruppe"))
        await page.keyboard.type("Category")
        await press(page, page.get_by_role("button", name="Confirm the columns"))
        await expect(page.get_by_role("heading", name="What do the values mean?")).to_be_focused()

        ladies = page.get_by_role("group", name="Meaning of Ladies")
        await tab_to(page, ladies.get_by_role("searchbox"))
        await page.keyboard.type("masters")
        await expect(ladies.get_by_text("Masters")).to_be_visible()
        await page.keyboard.press("Enter")
        await expect(ladies.get_by_role("radio", checked=True)).to_have_value(
            re.compile(r"\d+:Masters")
        )
        oldies = page.get_by_role("group", name="Meaning of Oldies")
        await tab_to(page, oldies.get_by_role("searchbox"))
        await page.keyboard.type("junior")
        await expect(oldies.get_by_text("Junior")).to_be_visible()
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Space")
        await press(page, page.get_by_role("button", name="Confirm and process the rows"))
        await expect(page.get_by_role("heading", name="All done: 30 rows")).to_be_visible()
        assert await participants(site, "keys") == 30


async def test_the_whole_way_without_scripts(site: PagesSetup) -> None:
    async with site.visit(scripts=False) as page:
        await site.upload(page, registrations(site, "plain"))

        async def shows(wanted: Locator) -> None:
            # Nothing changes by itself when the next step is ready a moment later.
            async def is_shown() -> bool:
                if not await wanted.is_visible():
                    await page.reload()
                return await wanted.is_visible()

            await eventually(is_shown)

        await shows(page.get_by_role("heading", name="What do the columns mean?"))
        await page.get_by_label("Field for Startgruppe").select_option("EVENT_CATEGORY_NAME")
        await page.get_by_role("button", name="Confirm the columns").click()
        await shows(page.get_by_role("group", name="Meaning of Ladies"))
        await choose(page, "Ladies", "Leave empty")
        await choose(page, "Oldies", "Add “Oldies”")
        await page.get_by_role("button", name="Confirm and process the rows").click()
        await shows(page.get_by_role("heading", name="All done: 30 rows"))
        assert await participants(site, "plain") == 30


async def test_a_suggestion_is_chosen_with_one_click(site: PagesSetup) -> None:
    async with site.visit() as page:
        path = site.file(
            "suggest.csv", [("First name", "Last nam"), *(p[:2] for _, p in people("suggest", 3))]
        )
        await site.upload(page, path)
        await page.get_by_role("button", name="Use Last name").click()
        select = page.get_by_label("Field for Last nam")
        await expect(select).to_have_value("LAST_NAME")
        await expect(select).to_be_focused()


async def test_missing_fields_are_named_and_choices_stay(site: PagesSetup) -> None:
    async with site.visit() as page:
        path = site.file("missing.csv", [("Whoever", "Shirt"), ("Ada", "M")])
        await site.upload(page, path)
        await expect(page.get_by_text("Still needed: First name, Last name")).to_be_visible()
        await page.get_by_label("Field for Shirt").select_option("TEAM")
        await page.get_by_role("button", name="Confirm the columns").click()
        await expect(page.get_by_role("alert")).to_contain_text("Your choices are saved")
        await expect(page.get_by_role("alert")).to_be_focused()
        await expect(page.get_by_label("Field for Shirt")).to_have_value("TEAM")


async def test_the_slower_of_two_tabs_is_notified_and_loses_nothing(site: PagesSetup) -> None:
    async with site.visit("ada@example.org") as ada, site.visit("grace@example.org") as grace:
        address = await to_columns(site, ada, "columns-at-once")
        await grace.goto(address)
        mine = ada.get_by_label("Field for Startgruppe")
        await mine.select_option("EVENT_CATEGORY_NAME")
        await grace.get_by_label("Field for Startgruppe").select_option("TEAM")
        await grace.get_by_role("button", name="Save", exact=True).click()
        await expect(grace.get_by_text("Saved 1 choice.").first).to_be_visible()

        reported = ada.get_by_text("grace@example.org has changed the mappings meanwhile")
        await expect(reported.first).to_be_visible()
        await expect(mine).to_have_value("EVENT_CATEGORY_NAME")
        await ada.get_by_role("button", name="Save", exact=True).click()
        await expect(ada.get_by_role("alert")).to_contain_text("grace@example.org was faster")
        await expect(ada.get_by_text(re.compile("now “Team”"))).to_be_visible()
        await expect(mine).to_have_value("EVENT_CATEGORY_NAME")
        await ada.get_by_role("button", name="Save", exact=True).click()
        await expect(ada.get_by_text("Saved 1 choice.").first).to_be_visible()
        await grace.reload()
        await expect(grace.get_by_label("Field for Startgruppe")).to_have_value(
            "EVENT_CATEGORY_NAME"
        )


async def test_two_people_who_decide_about_values_at_once(site: PagesSetup) -> None:
    async with site.visit("ada@example.org") as ada, site.visit("grace@example.org") as grace:
        address = await to_columns(site, ada, "values-at-once")
        await ada.get_by_label("Field for Startgruppe").select_option("EVENT_CATEGORY_NAME")
        await ada.get_by_role("button", name="Confirm the columns").click()
        await expect(ada.get_by_role("heading", name="What do the values mean?")).to_be_visible()
        await grace.goto(address)
        await choose(grace, "Ladies", "Leave empty")
        await grace.get_by_role("button", name="Save", exact=True).click()
        await expect(grace.get_by_text("Saved 1 choice.").first).to_be_visible()

        await choose(ada, "Ladies", "Add “Ladies”")
        await choose(ada, "Oldies", "Leave empty")
        await ada.get_by_role("button", name="Save", exact=True).click()
        await expect(ada.get_by_role("alert")).to_contain_text("grace@example.org was faster")
        await expect(ada.get_by_text(re.compile("now left empty"))).to_be_visible()
        for value, chosen in (("Ladies", "Add “Ladies”"), ("Oldies", "Leave empty")):
            choice = ada.get_by_role("group", name=f"Meaning of {value}").get_by_label(chosen)
            await expect(choice).to_be_checked()
        await ada.get_by_role("button", name="Save", exact=True).click()
        await expect(ada.get_by_text("Saved 2 choices.").first).to_be_visible()


async def test_choices_for_a_step_that_is_over_are_named(site: PagesSetup) -> None:
    async with site.visit("ada@example.org") as ada, site.visit("grace@example.org") as grace:
        address = await to_columns(site, ada, "gone-on")
        await grace.goto(address)
        await ada.get_by_label("Field for Startgruppe").select_option("EVENT_CATEGORY_NAME")
        await grace.get_by_role("button", name="Confirm the columns").click()
        await expect(
            grace.get_by_role("heading", name=re.compile("What do the values mean|All done"))
        ).to_be_visible()
        await ada.get_by_role("button", name="Save", exact=True).click()
        alert = ada.get_by_role("alert")
        await expect(alert).to_contain_text("grace@example.org has continued this upload")
        await expect(alert).to_contain_text("Startgruppe: event category name")


async def test_a_dry_run_shows_what_would_change_and_changes_nothing(site: PagesSetup) -> None:
    async with site.visit() as page:
        known = [person for _, person in people("dry", 5)]
        await site.upload(page, site.file("known.csv", [HEADERS[:3], *known]))
        await page.get_by_role("button", name="Confirm the columns").click()
        await expect(figure(page, "Created")).to_have_text("5")
        respelled = (*known[0][:2], known[0][2].upper())
        further = [person for _, person in people("dry", 8)][5:]
        path = site.file("dry.csv", [HEADERS[:3], respelled, *further])
        await site.upload(page, path, dry_run=True)
        await page.get_by_role("button", name="Confirm the columns").click()
        await expect(page.get_by_role("heading", name="What would change")).to_be_visible()
        await expect(
            page.get_by_role("table", name="Differences")
            .get_by_role("row")
            .filter(has_text=known[0][2])
            .filter(has_text=respelled[2])
        ).to_be_visible()
        await expect(figure(page, "Created")).to_have_text("3")
        assert await participants(site, "dry") == 5


async def test_rows_that_are_wrong_are_listed_and_can_be_downloaded(site: PagesSetup) -> None:
    async with site.visit() as page:
        rows = [HEADERS[:3], *(person for _, person in people("wrong", 3)), ("Ada", "L", "no mail")]
        await site.upload(page, site.file("wrong.csv", rows))
        await page.get_by_role("button", name="Confirm the columns").click()
        await expect(figure(page, "Error")).to_have_text("1")
        await page.get_by_role("link", name="Error 1", exact=True).click()
        await expect(
            page.get_by_role("row").filter(has_text="is not a mail address")
        ).to_have_count(1)
        wrong = page.get_by_role("row").filter(has_text="is not a mail address")
        await expect(wrong).to_contain_text("Ada L")
        await expect(wrong).to_contain_text("“no mail”")
        async with page.expect_download() as download:
            await page.get_by_role("link", name="Download the error report").click()
        assert (await download.value).suggested_filename == "wrong-errors.xlsx"


async def test_an_import_is_reassigned_and_cancelled(site: PagesSetup) -> None:
    async with site.visit() as page:
        await to_columns(site, page, "cancelled")
        await page.get_by_text("Reassign", exact=True).first.click()
        await page.get_by_label("To whom").fill("grace@example.org")
        await page.get_by_role("button", name="Reassign").click()
        await expect(page.locator("#facts")).to_contain_text("grace@example.org, for")
        await page.get_by_text("Cancel the upload").click()
        await page.get_by_label("Reason").fill("the wrong file")
        await page.get_by_role("button", name="Yes, cancel it").click()
        await expect(page.get_by_role("heading", name="The upload was cancelled")).to_be_visible()
        await expect(page.get_by_text("the wrong file")).to_be_visible()
        await expect(page.get_by_text("No row was written. Upload the file again")).to_be_visible()


async def test_a_file_is_read_from_another_line_on(site: PagesSetup) -> None:
    async with site.visit() as page:
        rows: Sequence[Sequence[object]] = [
            ("First name", "Last name"),
            ("Ada", "Lovelace"),
            ("Vorname", "Nachname"),
            ("Bea", "Lin"),
        ]
        await site.upload(page, site.file("layout.csv", rows))
        await expect(page.get_by_label("Field for First name")).to_be_visible()
        await page.get_by_text("Not read as it should be?").click()
        await page.get_by_label("Line of the headers").fill("3")
        await page.get_by_role("button", name="Read the file again").click()
        await expect(page.get_by_label("Field for Vorname")).to_have_value("FIRST_NAME")


async def test_a_file_that_is_no_spreadsheet_is_refused_in_place(site: PagesSetup) -> None:
    async with site.visit(start="/uploads/new") as page:
        path = site.folder / "picture.xlsx"
        path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(4000))
        await page.get_by_label("belong to").select_option("City Marathon")
        await page.get_by_label("Spreadsheet").set_input_files(path)
        await page.get_by_role("button", name="Upload").click()
        await expect(page.get_by_role("alert")).to_contain_text("Not a spreadsheet")
        await expect(page.get_by_label("belong to")).to_have_value(
            f"events:{site.club.event_id}:{site.club.organisation_id}"
        )


async def test_a_file_that_is_too_large_is_refused_before_it_is_sent(site: PagesSetup) -> None:
    async with site.visit(start="/uploads/new") as page:
        path = site.folder / "large.csv"
        with path.open("wb") as file:
            file.truncate(50_000_001)
        await page.get_by_label("belong to").select_option("City Marathon")
        await page.get_by_label("Spreadsheet").set_input_files(path)
        await page.get_by_role("button", name="Upload").click()
        await expect(page.get_by_role("alert")).to_contain_text("at most 50 MB")


async def test_a_file_is_dropped_onto_the_page(site: PagesSetup) -> None:
    async with site.visit(start="/uploads/new") as page:
        await page.get_by_label("belong to").select_option("City Marathon")
        dropped = await page.evaluate_handle(
            """() => {
                const data = new DataTransfer();
                data.items.add(new File(["First name,Last name\\nAda,Lovelace\\n"], "dropped.csv"));
                return data;
            }"""
        )
        await page.locator(".drop").dispatch_event("drop", {"dataTransfer": dropped})
        await expect(page.get_by_text("dropped.csv (0.1 kB)")).to_be_visible()
        await page.get_by_role("button", name="Upload").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("dropped.csv")


async def choose(page: Page, value: str, chosen: str) -> None:
    """Choose what a value means."""
    await page.get_by_role("group", name=f"Meaning of {value}").get_by_text(chosen).click()


def figure(page: Page, name: str) -> Locator:
    """One of the figures of an import that has ended."""
    return page.locator(".figures div").filter(has=page.get_by_text(name, exact=True)).locator("dd")


async def tab_to(page: Page, target: Locator) -> None:
    """Press Tab until something has the focus."""
    for _ in range(120):
        if await target.evaluate("element => element === document.activeElement"):
            return
        await page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not reach {target}")


async def press(page: Page, button: Locator) -> None:
    """Go to a button and press it."""
    await tab_to(page, button)
    await page.keyboard.press("Enter")
