"""What people come for takes no more clicks than the documentation says."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

import httpx
import pytest
from playwright.async_api import Locator, Page, expect

from tests.e2e.page_visits import parked
from tests.e2e.test_pages_review import open_grid, to_review
from tests.support.pages import ROOT, PagesSetup, people

pytestmark = pytest.mark.asyncio(loop_scope="session")

_ROW = re.compile(r"^\| (?P<task>[^|]+) \| [^|]+ \| (?P<clicks>\d+) \|$", re.MULTILINE)
HEADERS = ("First name", "Last name", "E-Mail")


@dataclass
class Hand:
    """Counts what a person clicks; typing and choosing a file are no clicks."""

    site: PagesSetup
    page: Page
    clicks: int = 0

    async def click(self, what: Locator) -> None:
        await what.click()
        self.clicks += 1

    async def link(self, name: str) -> None:
        await self.click(self.page.get_by_role("link", name=name, exact=True).first)

    async def button(self, name: str) -> None:
        await self.click(self.page.get_by_role("button", name=name).first)

    async def choose(self, label: str, value: str) -> None:
        await self.page.get_by_label(label).first.select_option(value)
        self.clicks += 1

    async def see(self, text: str | re.Pattern[str]) -> None:
        await expect(self.page.get_by_text(text).first).to_be_visible(timeout=60_000)


async def overview(hand: Hand) -> None:
    await hand.link("Overview")
    await expect(hand.page.get_by_role("heading", level=1)).to_be_visible()
    await hand.see("Workers and task queues")


async def messy_list(hand: Hand) -> None:
    rows = [(*person, "Ladies") for _, person in people("tasks-messy", 4)]
    path = hand.site.file("tasks-messy.csv", [(*HEADERS, "Squat"), *rows])
    await hand.link("New upload")
    await hand.page.get_by_label("Review before").set_checked(False)
    await hand.choose("belong to", "City Marathon")
    await hand.page.get_by_label("Spreadsheet").set_input_files(path)
    await hand.button("Upload")
    await hand.button("Confirm the columns, leave out 1")
    await hand.see("All done: 4 rows")


async def meaning(hand: Hand) -> None:
    rows = [(*person, "Women of honour") for _, person in people("tasks-values", 3)]
    await hand.site.upload(
        hand.page, hand.site.file("tasks-values.csv", [(*HEADERS, "Category"), *rows])
    )
    await hand.page.get_by_label("Field for Category").select_option("EVENT_CATEGORY_NAME")
    await hand.page.get_by_role("button", name="Confirm the columns").click()
    group = hand.page.get_by_role("group", name="Meaning of Women of honour")
    await group.get_by_role("searchbox").fill("sen")
    await hand.click(group.get_by_text("Senior (18+)").last)
    await hand.button("Confirm")
    await hand.see("All done: 3 rows")


async def three_rows(hand: Hand) -> None:
    rows = [person for _, person in people("tasks-undo", 6)]
    await hand.site.upload(hand.page, hand.site.file("tasks-undo.csv", [HEADERS, *rows]))
    await hand.page.get_by_role("button", name="Confirm the columns").click()
    await hand.see("All done: 6 rows")
    for line in (3, 4, 6):
        await hand.click(hand.page.get_by_role("checkbox", name=str(line), exact=True))
    await hand.button("Undo the ticked rows")
    await hand.see("What can be taken back of 3 rows")
    await hand.button("Undo these rows")
    await hand.see("Undone partly")


async def wrong_column(hand: Hand) -> None:
    await to_review(hand.site, hand.page, "tasks-column")
    await open_grid(hand.page)
    await hand.button("Change the column E-Mail")
    await hand.button("Find and replace")
    dialog = hand.page.get_by_role("dialog")
    await dialog.get_by_label("Find").fill("(at)")
    await dialog.get_by_label("Replace with").fill("@")
    await hand.click(dialog.get_by_role("button", name="Preview"))
    await hand.click(dialog.get_by_role("button", name="Make this change"))
    await hand.see("1 row of 30 has a problem.")


async def why_parked(hand: Hand) -> None:
    await parked(hand.site, hand.page, "tasks-why")
    await hand.page.goto("/")
    search = hand.page.get_by_role("searchbox", name="Id or file name")
    await search.fill("tasks-why.csv")
    await search.press("Enter")
    await hand.link("tasks-why.csv")
    await hand.see("What do the columns mean?")


async def unknown_header(hand: Hand) -> None:
    await parked(hand.site, hand.page, "tasks-header")
    await hand.choose("Field for Sachnummer", "code")
    await hand.button("Try again with these columns")
    await hand.see("History")


async def one_cause(hand: Hand) -> None:
    await parked(hand.site, hand.page, "tasks-cause")
    await hand.link("Overview")
    causes = hand.page.get_by_role("region", name="Why runs need attention")
    await hand.click(causes.get_by_role("link", name="column").first)
    await hand.button("See which runs")
    await hand.click(hand.page.locator("main form button").first)
    await hand.see("answered")


async def from_a_stage(hand: Hand) -> None:
    token = hand.site.token("olga", ["operator"])
    headers = {"authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=hand.site.address, headers=headers, timeout=60) as api:
        asked = {"job_type": "hello_world", "parameters": {"n": 2}, "project": "tasks"}
        job = (await api.post("/api/jobs", json=asked)).json()["job_id"]
    await hand.page.goto(f"/jobs/{job}")
    await hand.see("Completed")
    await hand.click(hand.page.locator("summary", has_text="Restart"))
    await hand.click(hand.page.get_by_role("radio").last)
    await hand.click(hand.page.get_by_role("button", name="Restart"))
    await hand.see("Completed")


async def own_look(hand: Hand) -> None:
    await hand.link("Settings")
    await hand.button("Dark")
    await hand.click(hand.page.get_by_role("button", name="Deutsch").first)
    await hand.see("Einstellungen")
    await hand.page.context.clear_cookies(name="docflow_preferences")


TASKS: Mapping[str, Callable[[Hand], Awaitable[None]]] = {
    "see whether everything is well": overview,
    "import a list with a column that nothing fits": messy_list,
    "say what an unknown value means": meaning,
    "undo three rows of an upload": three_rows,
    "correct a whole column before it is written": wrong_column,
    "find a document by its name and see why it is parked": why_parked,
    "say what an unknown column of a parked document means": unknown_header,
    "try all runs again that are parked for one cause": one_cause,
    "restart a job from a stage": from_a_stage,
    "have the pages dark and in German": own_look,
}


def listed() -> Mapping[str, int]:
    """The tasks of the documentation, and the clicks that each needs."""
    text = (ROOT / "docs" / "pages.md").read_text()
    return {row["task"]: int(row["clicks"]) for row in _ROW.finditer(text)}


async def test_the_documentation_lists_these_tasks() -> None:
    assert [*listed()] == [*TASKS]


@pytest.mark.parametrize("task", TASKS)
async def test_a_task_takes_the_clicks_that_are_listed(site: PagesSetup, task: str) -> None:
    async with site.visit("tom@example.org") as page:
        hand = Hand(site, page)
        await TASKS[task](hand)
    assert hand.clicks == listed()[task]
