"""Pages that are open while something else happens: kills, outages, other people's work."""

import re
from pathlib import Path

import pytest
from playwright.async_api import Page, expect
from sqlalchemy import select

from adapters.database.engine import open_database
from adapters.database.models.spreadsheets import spreadsheet_imports
from tests.support.imports.scripted import import_message
from tests.support.pages import PagesSetup, people
from tests.support.waiting import eventually
from workflows.imports.runs import TASK_QUEUE, ImportInput
from workflows.shared import attributes

pytestmark = pytest.mark.asyncio(loop_scope="session")

HEADERS = ("First name", "Last name", "E-Mail")
MANY = 40_000


def many(site: PagesSetup, name: str) -> Path:
    return site.file(f"{name}.csv", [HEADERS, *(person for _, person in people(name, MANY))])


async def rows_done(site: PagesSetup, page: Page) -> int:
    """Rows of an import that are in the database, where they are done in chunks."""
    table = spreadsheet_imports
    uuid = page.url.rsplit("/", 1)[1]
    async with (
        open_database(site.settings["DATABASE_URL"]) as database,
        database.reading() as connection,
    ):
        found = await connection.execute(select(table.c.created).where(table.c.uuid == uuid))
        return found.scalar_one()


async def test_a_page_continues_by_itself_after_its_worker_was_killed(site: PagesSetup) -> None:
    async with site.visit() as page:
        await site.upload(page, many(site, "killed"))
        await page.get_by_role("button", name="Confirm the columns").click()

        async def is_under_way() -> bool:
            return await rows_done(site, page) > 0

        await eventually(is_under_way, seconds=60)
        await site.worker.kill()
        try:
            assert 0 < await rows_done(site, page) < MANY
            await expect(page.get_by_role("heading", name="Processing the rows")).to_be_visible()
            bar = page.get_by_role("progressbar", name="Rows processed")
            await expect(bar).to_have_attribute("max", str(MANY))
        finally:
            await site.worker.start()
        done = page.get_by_role("heading", name=f"All done: {MANY:,} rows")
        await expect(done).to_be_visible(timeout=90_000)
        await expect(page.locator(".figures dd").first).to_have_text(f"{MANY:,}")


async def test_an_upload_without_a_worker_waits_and_continues(site: PagesSetup) -> None:
    async with site.visit() as page:
        path = site.file("patient.csv", [HEADERS, *(p for _, p in people("patient", 3))])
        await site.worker.kill()
        try:
            await site.upload(page, path)
            await expect(page.get_by_role("heading", name="docflow is reading")).to_be_visible()
        finally:
            await site.worker.start()
        mapping = page.get_by_role("heading", name="What do the columns mean?")
        await expect(mapping).to_be_visible(timeout=30_000)


async def test_an_unavailable_gateway_is_reported_and_choices_stay(site: PagesSetup) -> None:
    async with site.visit() as page:
        path = site.file("away.csv", [(*HEADERS, "Squat"), *(("A", "B", "", "C"),)])
        await site.upload(page, path)
        await page.get_by_label("Field for Squat").select_option("TEAM")
        await site.gateway.kill()
        notice = page.get_by_role("alert").filter(has_text="No connection")
        try:
            await expect(notice).to_be_visible(timeout=30_000)
            await page.get_by_role("button", name="Save", exact=True).click()
            await expect(notice).to_contain_text("nothing was saved")
        finally:
            await site.gateway.start()
        await expect(notice).to_be_hidden(timeout=30_000)
        await page.get_by_role("button", name="Save", exact=True).click()
        await expect(page.get_by_text("Saved 1 choice.").first).to_be_visible()


async def test_the_inbox_shows_whatever_waits_in_any_pipeline(site: PagesSetup) -> None:
    async with site.visit() as page:
        await expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
        message = import_message(blob_name="uploads/missing.csv")
        await site.client.start_workflow(
            "DocumentImport",
            ImportInput(message=message, park_for_seconds=3600),
            id=message.workflow_id,
            task_queue=TASK_QUEUE,
            search_attributes=attributes.at_start("imports", "equipment", "p1"),
        )
        parked = page.get_by_role("row").filter(has_text=message.workflow_id)
        await expect(parked).to_contain_text("Parked", timeout=30_000)
        await expect(parked.get_by_role("link")).to_have_attribute(
            "href", re.compile(r"^/runs/import/")
        )
        async with site.visit("grace@example.org") as grace:
            path = site.file("inbox.csv", [("First name", "Shirt"), ("Ada", "M")])
            address = await site.upload(grace, path)
        row = page.get_by_role("row").filter(has_text="inbox.csv")
        await expect(row).to_contain_text("Columns to map", timeout=15_000)
        await expect(row).to_contain_text("grace@example.org")
        await row.get_by_role("link").click()
        await page.wait_for_url(f"**{address}")


async def test_a_person_who_is_no_operator_sees_only_their_own_imports(site: PagesSetup) -> None:
    async with site.visit(roles=["viewer"]) as page:
        await expect(page.get_by_text("Nothing waits for you")).to_be_visible()
        await expect(page.get_by_role("link", name="New upload")).to_have_count(0)
