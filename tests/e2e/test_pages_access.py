"""Pages for everybody: screen readers, small windows, dark rooms; and not for intruders."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from playwright.async_api import Page, expect
from sqlalchemy import update

from adapters.database.engine import open_database
from adapters.database.models.spreadsheets import spreadsheet_imports
from tests.support.gateway import sign_in
from tests.support.pages import PagesSetup, faults, faults_of_looks, overflow, people, violations

pytestmark = pytest.mark.asyncio(loop_scope="session")

HEADERS = ("First name", "Last name", "E-Mail", "Squat")
GOOD = [person for _, person in people("access", 4)]


# The policy of the pages refuses styles that stand in one.
_WITH_RULE = """rule => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(rule);
  document.adoptedStyleSheets = [sheet];
}"""


async def columns(site: PagesSetup, page: Page) -> None:
    path = site.file("access.csv", [HEADERS, *((*person, "Ladies") for person in GOOD)])
    await site.upload(page, path)
    await expect(page.get_by_role("heading", name="What do the columns mean?")).to_be_visible()


async def layout_of_columns(site: PagesSetup, page: Page) -> None:
    await columns(site, page)
    await page.get_by_text("Not read as it should be?").click()
    await page.get_by_text("Reassign", exact=True).first.click()
    await page.get_by_text("Cancel the import").click()


async def conflict(site: PagesSetup, page: Page) -> None:
    await columns(site, page)
    async with site.visit("grace@example.org", start=page.url) as grace:
        await grace.get_by_label("Field for Squat").select_option("TEAM")
        await grace.get_by_role("button", name="Save", exact=True).click()
        await expect(grace.get_by_text("Saved 1 choice.").first).to_be_visible()
    await page.get_by_label("Field for Squat").select_option("CLUB")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_role("alert")).to_contain_text("was faster")


async def values(site: PagesSetup, page: Page) -> None:
    await columns(site, page)
    await page.get_by_label("Field for Squat").select_option("EVENT_CATEGORY_NAME")
    await page.get_by_role("button", name="Confirm the columns").click()
    await expect(page.get_by_role("heading", name="What do the values mean?")).to_be_visible()
    await page.get_by_role("searchbox", name="Search for").fill("s")
    await expect(page.get_by_role("radio", name="Senior (18+)")).to_be_visible()
    # The list that values can mean is in sight, and searched by itself.
    there = page.get_by_role("complementary", name="What there is")
    await expect(there).to_contain_text("3 in all.")
    await there.get_by_role("searchbox", name="Search in Category").fill("mast")
    await expect(there.get_by_role("listitem")).to_have_text(["Masters (40+)"])


async def done(site: PagesSetup, page: Page) -> None:
    path = site.file("done.csv", [HEADERS[:3], *GOOD, ("Ada", "Lovelace", "no mail")])
    await site.upload(page, path)
    await page.get_by_role("button", name="Confirm the columns").click()
    await expect(page.get_by_role("heading", name="All done")).to_be_visible()
    await page.get_by_text("Undo this import").click()


async def ask_for_undo(page: Page) -> None:
    await page.goto(page.url)
    await page.get_by_text("Undo this import").click()


async def undone(site: PagesSetup, page: Page) -> None:
    await ask_for_undo(page)
    await page.get_by_role("button", name="Yes, undo it").click()
    await expect(page.get_by_text("Undone", exact=True)).to_be_visible()


async def failed(site: PagesSetup, page: Page) -> None:
    await show_as(site, page, state="FAILED", reason="the file is damaged", waiting_since=None)


async def reading(site: PagesSetup, page: Page) -> None:
    await show_as(site, page, reason=None, waiting_since=None)


async def processing(site: PagesSetup, page: Page) -> None:
    begun = datetime.now(UTC) - timedelta(seconds=25)
    await show_as(
        site, page, state="PROCESSING", reason=None, total=1000, created=250, state_since=begun
    )
    await expect(page.get_by_text("rows a second")).to_contain_text("done in about 2 minutes")


async def stuck(site: PagesSetup, page: Page) -> None:
    await show_as(site, page, step="process rows", reason="the blob store does not answer")
    await expect(page.get_by_text("Process the rows: this did not work")).to_be_visible()
    await page.get_by_text("Cancel the import").click()


async def purged(site: PagesSetup, page: Page) -> None:
    await done(site, page)
    await show_as(site, page, filename="", by="", purged_at=datetime.now(UTC))


async def preview(site: PagesSetup, page: Page) -> None:
    address = page.url
    await ask_for_undo(page)
    # What it would do is said before it is done, where it is asked for and on a page of its own.
    await expect(page.get_by_text("8 records would be deleted")).to_be_visible()
    await page.goto(f"{address}/undo-preview")
    await expect(page.get_by_text("8 records would be deleted")).to_be_visible()
    await page.goto(address)
    await page.get_by_text("Undo this import").click()


async def bibs(site: PagesSetup, page: Page) -> None:
    """Two people with one bib: asked about, and answered with the keyboard."""
    rows = [(*person, str(7 + place // 2)) for place, person in people("bibs", 4)]
    await site.upload(page, site.file("bibs.csv", [(*HEADERS[:3], "Startnummer"), *rows]))
    await page.get_by_role("button", name="Confirm the columns").click()
    group = page.get_by_role("group", name="Questions about bibs")
    await expect(group).to_contain_text("2 people: another person has the same bib")


async def answered(site: PagesSetup, page: Page) -> None:
    await page.get_by_role("button", name="Both have this bib").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("group", name="Questions about bibs")).to_have_count(0)
    await page.get_by_role("button", name="Confirm and process the rows").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="All done: 4 rows")).to_be_visible()
    await page.locator("#rows-title ~ *, table.dense").locator("summary").first.click()
    await expect(page.get_by_text("Bib", exact=True).first).to_be_visible()


async def trail(site: PagesSetup, page: Page) -> None:
    await page.goto(f"{page.url}/decisions")


async def show_as(site: PagesSetup, page: Page, **row: object) -> None:
    """Look at an import in a state that does not last, or takes days to come about."""
    table = spreadsheet_imports
    query = update(table).where(table.c.uuid == page.url.rsplit("/", 1)[1]).values(row)
    async with (
        open_database(site.settings["DATABASE_URL"]) as database,
        database.transaction() as connection,
    ):
        await connection.execute(query)
    await page.goto(page.url)


async def open_at(site: PagesSetup, page: Page, address: str) -> None:
    await page.goto(address)


def at(address: str) -> Callable[[PagesSetup, Page], Awaitable[None]]:
    return lambda site, page: open_at(site, page, address)


async def history(site: PagesSetup, page: Page) -> None:
    await page.goto("/runs?mine=true")
    await page.get_by_role("link", name="History").first.click()
    await expect(page.get_by_role("heading", name="History")).to_be_visible()


async def parked(site: PagesSetup, page: Page, name: str = "odd") -> None:
    """A document whose columns are asked for, by way of the form for a new one."""
    path = site.file(f"{name}.csv", [("Sachnummer", "Description"), (name, "Crane")])
    await page.goto("/runs/new/document")
    await page.get_by_label("What is in the file?").select_option("equipment")
    await page.get_by_label("Project", exact=True).fill("access")
    await page.get_by_label("File", exact=True).set_input_files(path)
    await page.get_by_role("button", name="Import the document").click()
    # The page follows the run until it asks something.
    await expect(page.get_by_role("heading", name="What do the columns mean?")).to_be_visible()
    await expect(page.get_by_role("heading", name=f"{name}.csv")).to_be_visible()


async def mapped(site: PagesSetup, page: Page) -> None:
    await page.get_by_label("Field for Sachnummer").select_option("code")
    await page.get_by_role("button", name="Try again with these columns").click()
    await expect(page.get_by_role("heading", name="History")).to_be_visible()


async def refused(site: PagesSetup, page: Page) -> None:
    await page.goto("/runs/new/event")
    for name in ("Source", "Type", "Subject", "Account"):
        await page.get_by_label(name, exact=True).fill("x")
    await page.get_by_label("Further data").fill("5")
    await page.get_by_role("button", name="Send the event").click()
    await expect(page.get_by_text("Write a JSON object")).to_be_visible()


async def view(site: PagesSetup, page: Page) -> None:
    await page.goto("/runs?pipeline=imports")
    await page.get_by_text("Save this view").click()
    await page.get_by_label("Name", exact=True).fill("Documents")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_role("link", name="Documents")).to_be_visible()


Show = Callable[[PagesSetup, Page], Awaitable[None]]
"""Makes the page what is looked at, from where the one before it left off."""

VISITS: Mapping[str, Mapping[str, Show]] = {
    "lists": {
        "inbox": at("/"),
        "imports": at("/uploads"),
        "own inbox": at("/?mine=true"),
        "imports found": at("/uploads?q=access&sort=FILENAME&mine=true"),
        "no imports": at("/uploads?state=FAILED"),
        "overview": at("/overview"),
        "runs": at("/runs"),
        "no runs": at("/runs?text=nothing&state=needs_attention"),
        "new import": at("/uploads/new"),
        "settings": at("/settings"),
        "new document": at("/runs/new/document"),
        "new event": at("/runs/new/event"),
        "sign in": at("/sign-in"),
        "not found": at("/uploads/00000000-0000-4000-8000-000000000000"),
        "no such page": at("/nosuchpage/" + "x" * 300),
        "not a page": at("/sign-out"),
    },
    "what pipelines keep": {
        "catalogue": at("/catalogue"),
        "a search that means nothing": at("/catalogue?since=2026-01-02&until=2026-01-01&west=1"),
        "batches": at("/batches"),
        "routes": at("/routes"),
        "partners": at("/partners"),
        "watches": at("/watches"),
    },
    "an import": {
        "columns": layout_of_columns,
        "stuck": stuck,
        "reading": reading,
        "failed": failed,
        "processing": processing,
    },
    "values": {"values": values, "runs that wait": at("/runs?state=needs_attention")},
    "two tabs": {"conflict": conflict, "trail": trail},
    "two bibs": {"bibs": bibs, "answered": answered},
    "the end": {"done": done, "preview": preview, "undone": undone, "history": history},
    "purged": {"purged": purged},
    "a document": {"parked": parked, "mapped": mapped, "refused": refused, "view": view},
}
"""Visits to the site, and the pages that each of them sees."""


@pytest.mark.parametrize("visit", VISITS)
async def test_every_page_is_for_everybody(site: PagesSetup, visit: str) -> None:
    async with site.visit() as page:
        for name, show in VISITS[visit].items():
            await show(site, page)
            assert await faults(page) == [], name


@pytest.mark.chaos(alone=True)
@pytest.mark.parametrize("visit", VISITS)
async def test_every_page_is_for_everybody_in_every_look(site: PagesSetup, visit: str) -> None:
    async with site.visit() as page:
        for name, show in VISITS[visit].items():
            await show(site, page)
            assert await faults_of_looks(page) == [], name


async def test_a_page_that_is_not_for_everybody_is_noticed(site: PagesSetup) -> None:
    async with site.visit(start="/uploads/new") as page:
        await page.evaluate("document.querySelector('label[for=type]').remove()")
        assert [line.partition(":")[0] for line in await violations(page)] == ["select-name"]
        await page.evaluate("document.body.append(new Image(5000, 1))")
        assert await overflow(page) > 0
        assert [line.partition(":")[0] for line in await faults(page)].count("1280 px, dark") == 1


async def test_colours_of_one_scheme_are_noticed(site: PagesSetup) -> None:
    async with site.visit(start="/uploads/new") as page:
        rule = "@media (prefers-color-scheme: dark) { h1 { color: #333 !important } }"
        await page.evaluate(_WITH_RULE, rule)
        found = await faults(page)
        assert {line.partition(" <")[0] for line in found} == {
            "1280 px, dark: color-contrast:",
            "640 px, dark: color-contrast:",
        }


async def test_markup_in_a_file_is_shown_as_it_stands(site: PagesSetup) -> None:
    script = "<script>window.broken = true</script>"
    image = "<img src=x onerror='window.broken = true'>"
    async with site.visit() as page:
        path = site.file(f"{image}.csv", [("First name", script), ("Ada", "<b>bold</b>")])
        await site.upload(page, path)
        await expect(page.get_by_role("heading", level=1)).to_have_text(f"{image}.csv")
        await expect(page.get_by_role("rowheader", name=script)).to_be_visible()
        await expect(page.get_by_text("<b>bold</b>").first).to_be_visible()
        await page.goto("/")
        await expect(page.get_by_role("link", name=image)).to_be_visible()
        assert await page.evaluate("window.broken") is None


async def test_the_api_is_read_and_tried_from_our_own_files(site: PagesSetup) -> None:
    async with site.visit("ada@example.org", start="/docs") as page:
        await page.get_by_role("link", name="runs", exact=True).click()
        await page.get_by_role("button", name="GET /api/v1/runs", exact=False).first.click()
        await page.get_by_role("button", name="Try it out").click()
        await page.get_by_role("button", name="Execute").click()
        await expect(page.get_by_text("A token is needed").first).to_be_visible()


async def test_single_keys_lead_through_pages_and_can_be_switched_off(site: PagesSetup) -> None:
    async with site.visit() as page:
        await columns(site, page)
        await page.keyboard.press("g")
        await page.keyboard.press("r")
        await page.wait_for_url("**/runs")
        await page.keyboard.press("/")
        await expect(page.get_by_role("searchbox").first).to_be_focused()
        await page.keyboard.type("g/s?")
        await expect(page.get_by_role("searchbox").first).to_have_value("g/s?")
        await page.keyboard.press("Tab")
        for key in ("j", "j", "k"):
            await page.keyboard.press(key)
        await expect(page.locator("main tbody th a").first).to_be_focused()
        await page.keyboard.press("?")
        await page.wait_for_url("**/settings")
        await page.get_by_role("button", name="Off").click()
        await expect(page.get_by_role("button", name="Off")).to_have_attribute(
            "aria-pressed", "true"
        )
        for key in ("g", "r", "/"):
            await page.keyboard.press(key)
        await page.get_by_role("button", name="On", exact=True).click()
        await expect(page.get_by_role("searchbox").first).to_have_value("")
        assert page.url.endswith("/settings")


async def test_access_without_a_token_is_refused(site: PagesSetup) -> None:
    async with httpx.AsyncClient(base_url=site.address) as anonymous:
        answer = await anonymous.get("/uploads?state=FAILED")
        assert answer.status_code == 303
        assert answer.headers["Location"] == "/sign-in?next=/uploads%3Fstate%3DFAILED"
        refused = await anonymous.post("/sign-in", data={"token": "x.y.z"})
        assert refused.status_code == 401
        assert "docflow_session" not in refused.cookies
        foreign = await anonymous.post(
            "/sign-in",
            data={"token": site.token("ada", ["mapper"])},
            headers={"Sec-Fetch-Site": "cross-site"},
        )
        assert foreign.status_code == 403


@pytest.mark.parametrize(
    "elsewhere", ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:1"]
)
async def test_signing_in_leads_to_no_other_site(site: PagesSetup, elsewhere: str) -> None:
    token = site.token("ada", ["mapper"])
    async with httpx.AsyncClient(base_url=site.address) as client:
        answer = await client.post("/sign-in", data={"token": token, "next": elsewhere})
        cookie = answer.headers["Set-Cookie"].lower()
    assert answer.headers["Location"] == "/"
    assert "httponly" in cookie
    assert "samesite=strict" in cookie


async def test_forms_of_other_sites_do_nothing(site: PagesSetup) -> None:
    async with site.visit() as page:
        await columns(site, page)
        async with httpx.AsyncClient(base_url=site.address) as intruder:
            await sign_in(intruder, site.token("ada", ["mapper", "operator"]))
            for action in ("columns", "values", "layout", "cancel", "undo", "reassign", "retry"):
                form = {"csrf": "0.0", "version": "1", "to": "me"}
                answer = await intruder.post(f"{page.url}/{action}", data=form)
                assert (action, answer.status_code) == (action, 403)
            file = {"file": ("a.csv", b"First name,Last name\nAda,Lovelace\n")}
            upload = {"csrf": "0.0", "importType": "EVENT_PARTICIPANT"}
            answer = await intruder.post(f"{site.address}/uploads", data=upload, files=file)
            assert answer.status_code == 403
        await page.reload()
        await expect(page.get_by_role("heading", name="What do the columns mean?")).to_be_visible()


async def test_another_clubs_import_is_not_there(site: PagesSetup) -> None:
    async with site.visit() as page:
        await columns(site, page)
        stranger = await site.with_new_club()
        async with stranger.visit(start="/") as other:
            answer = await other.goto(page.url)
            assert answer is not None
            assert answer.status == 404
            await expect(other.get_by_role("heading", name="Not found")).to_be_visible()


async def test_a_session_that_ends_leaves_the_page_as_it_is(site: PagesSetup) -> None:
    async with site.visit() as page:
        await columns(site, page)
        squat = page.get_by_label("Field for Squat")
        await squat.select_option("TEAM")
        await page.context.clear_cookies()
        await squat.focus()
        # The page asks by itself whether anything has changed.
        await expect(page.get_by_role("alert")).to_contain_text("You are signed out")
        await expect(squat).to_be_focused()
        await page.get_by_role("button", name="Save", exact=True).click()
        await expect(page.get_by_role("alert")).to_be_focused()
        await expect(squat).to_have_value("TEAM")
