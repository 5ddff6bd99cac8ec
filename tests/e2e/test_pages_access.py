"""Pages for everybody: screen readers, small windows, dark rooms; and not for intruders."""

import httpx
import pytest
from playwright.async_api import expect

from tests.e2e.page_visits import columns
from tests.support.gateway import sign_in
from tests.support.pages import PagesSetup, faults, overflow, violations

pytestmark = pytest.mark.asyncio(loop_scope="session")

# The policy of the pages refuses styles that stand in one.
_WITH_RULE = """rule => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(rule);
  document.adoptedStyleSheets = [sheet];
}"""


async def test_a_page_that_is_not_for_everybody_is_noticed(site: PagesSetup) -> None:
    async with site.visit(start="/uploads/new") as page:
        await page.evaluate("document.querySelector('label[for=type]').remove()")
        assert [line.partition(":")[0] for line in await violations(page)] == ["select-name"]
        table = "document.querySelector('.card').innerHTML = '<table><td><img width=1190></table>'"
        await page.evaluate(table)
        # It fits into the window, and not into what it stands in.
        assert 0 < await overflow(page) < 100
        await page.evaluate("document.body.append(new Image(5000, 1))")
        assert await overflow(page) > 1000
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
