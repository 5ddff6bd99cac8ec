"""The page of a review, without a browser: a column is split, and both rows are written."""

import re
from html import unescape

import httpx
import pytest

from tests.support.gateway import HEADER, Stack, import_in, page_of, sheet, token, until
from tests.support.waiting import eventually
from workers.shared.gateway.pages.site import COOKIE

pytestmark = pytest.mark.asyncio(loop_scope="session")

ROWS = ("Whoever", "Email"), ("Rosa Parks", "rosa@review.org"), ("Niels Bohr", "niels@review.org")


async def test_a_required_column_is_made_in_the_review(stack: Stack) -> None:
    async with stack.browser(token("ruth")) as api, stack.browser("") as browser:
        browser.cookies.set(COOKIE, token("ruth"))
        uuid = await import_in(api, "COLUMN_MAPPING", sheet(*ROWS), review="true")
        page = f"/imports/{uuid}"
        shown = await page_of(browser, uuid)
        assert "Make them in the review" in shown
        await _send(browser, f"{page}/columns", shown, do="incomplete")
        await eventually(lambda: _shows(browser, page, "Nothing is written yet"))
        shown = (await browser.get(page)).text
        assert "Still without a column: First name, Last name" in shown
        split = {"kind": "SPLIT", "column": "1", "first": "FIRST_NAME", "second": "LAST_NAME"}
        proposed = await _send(browser, f"{page}/review/preview", shown, **split)
        assert "Whoever: split into First name and Last name" in proposed.text
        [operation] = re.findall(r'name="operation" value="([^"]*SPLIT[^"]*)"', proposed.text)
        await _send(browser, f"{page}/review/change", proposed.text, operation=unescape(operation))
        shown = (await browser.get(page)).text
        assert "Still without a column" not in shown
        assert "Take back: Whoever: split into First name and Last name" in shown
        wrong = await _send(browser, f"{page}/review/change", shown, operation="{}")
        assert (wrong.status_code, "The change is incomplete" in wrong.text) == (422, True)
        await _send(browser, f"{page}/review/rows", shown, do="confirm")
        status = await until(api, uuid, "COMPLETED")
        assert (status["successCount"], status["errorCount"]) == (2, 0)


async def test_a_form_that_is_saved_in_part_is_reported(stack: Stack) -> None:
    rows = HEADER, ("Ida", "Rot", "ida(at)review.org", "Senior (18+)")
    async with stack.browser(token("ruth")) as api, stack.browser("") as browser:
        browser.cookies.set(COOKIE, token("ruth"))
        uuid = await import_in(api, "COLUMN_MAPPING", sheet(*rows), review="true")
        for step in ("column-mappings", "cell-mappings"):
            confirmed = await api.post(f"/api/imports/{uuid}/{step}/confirm")
            assert confirmed.status_code == 202, confirmed.text
        page = f"/imports/{uuid}"
        await eventually(lambda: _shows(browser, page, "Nothing is written yet"))
        shown = (await browser.get(page)).text
        form = {
            "seen-2": '{"3": "ida(at)review.org", "out": false}',
            "cell-2-3": "ida@review.org",
            "seen-77": '{"out": false}',
            "out-77": "1",
        }
        refused = await _send(browser, f"{page}/review/rows", shown, do="confirm", **form)
        assert refused.status_code == 422
        text = unescape(refused.text)
        assert "there is no row 77" in text.lower()
        assert "Saved before that: 1 cell corrected." in text
        assert "Not saved yet: 1 row left out; it is still on this page" in text
        [row] = (await api.get(f"/api/v1/uploads/{uuid}/review/rows")).json()["items"]
        assert row["cells"][2]["value"] == "ida@review.org"
        assert (await api.get(f"/api/imports/{uuid}")).json()["status"] == "CELL_MAPPING"


async def _send(
    browser: httpx.AsyncClient, address: str, page: str, **fields: str
) -> httpx.Response:
    """Send a form of a page."""
    own = {
        name: page.split(f'name="{name}" value="')[1].split('"')[0] for name in ("csrf", "version")
    }
    return await browser.post(address, data={**own, **fields})


async def _shows(browser: httpx.AsyncClient, page: str, text: str) -> bool:
    return text in (await browser.get(page)).text
