"""The page of a review, without a browser: a column is split, and both rows are written."""

import json
import re
from html import unescape
from typing import Any

import httpx
import pytest

from tests.support.gateway import HEADER, Stack, import_in, page_of, sheet, sign_in, token, until
from tests.support.spreadsheets.reviews import reviewed
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

ROWS = ("Whoever", "Email"), ("Rosa Parks", "rosa@review.org"), ("Niels Bohr", "niels@review.org")


async def test_a_required_column_is_made_in_the_review(stack: Stack) -> None:
    async with stack.browser(token("ruth")) as api, stack.browser("") as browser:
        await sign_in(browser, token("ruth"))
        uuid = await import_in(api, "COLUMN_MAPPING", sheet(*ROWS), review="true")
        page = f"/uploads/{uuid}"
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
        await sign_in(browser, token("ruth"))
        uuid = await import_in(api, "COLUMN_MAPPING", sheet(*rows), review="true")
        for step in ("column-mappings", "cell-mappings"):
            confirmed = await api.post(f"/api/imports/{uuid}/{step}/confirm")
            assert confirmed.status_code == 202, confirmed.text
        page = f"/uploads/{uuid}"
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


async def test_the_grid_gets_windows_and_the_outcome_of_changes(stack: Stack) -> None:
    people = [(f"Kim{i}", "Roe", f"kim{i}@review.org", "Senior (18+)") for i in range(450)]
    people[300] = ("Kim300", "Roe", "kim300(at)review.org", "Senior (18+)")
    async with stack.browser(token("ruth")) as api, stack.browser("") as browser:
        await sign_in(browser, token("ruth"))
        uuid = await reviewed(api, *people)
        grid, shown = f"/uploads/{uuid}/review", (await browser.get(f"/uploads/{uuid}")).text

        async def asked(path: str) -> dict[str, Any]:
            answer = await browser.get(grid + path, headers={"HX-Request": "true"})
            assert answer.status_code == 200, answer.text
            return answer.json()

        async def sent(**operation: Any) -> httpx.Response:
            version = str((await asked("/state"))["version"])
            given = {"operation": json.dumps(operation), "version": version}
            return await _send(browser, f"{grid}/grid", shown, **given)

        # A window in the middle, over the border of what is stored together, and the last one.
        window = (await asked("/grid?at=350&size=100"))["rows"]
        assert [each["line"] for each in window] == list(range(352, 452))
        assert window[0]["cells"]["1"] == "Kim350"
        assert len((await asked("/grid?at=400&size=100"))["rows"]) == 50
        assert (await asked("/lines?rows=PROBLEMS&column=3"))["lines"] == [302]
        [wrong] = (await asked("/grid?lines=302"))["rows"]
        assert "is not a mail address" in wrong["marks"]["3"]["problem"]

        # One change of several cells: their rows come back, with figures and parts of the page.
        cells = [{"row": 302, "column": 3, "value": "kim300@review.org"}]
        cells += [{"row": 303, "column": 2, "value": "Doe"}]
        made = (await sent(kind="SET", cells=cells)).json()
        assert (made["cells"], made["counts"]["PROBLEMS"]) == (2, 0)
        assert [each["line"] for each in made["rows"]] == [302, 303]
        assert "Was “kim300(at)review.org”" in made["rows"][0]["marks"]["3"]["hint"]
        assert "2 cells: corrected" in made["parts"]["review-changes"]
        assert made["own"] == [made["made"]]
        assert (await asked("/lines?rows=CHANGED"))["lines"] == [302, 303]
        undone = (await sent(kind="UNDO", version=made["made"])).json()
        assert (undone["rows"], undone["own"]) == (None, [])
        assert (await asked("/lines?rows=CHANGED"))["lines"] == []

        # A column fills another field, and a change of a whole column is found in all rows.
        moved = (await sent(kind="MOVE", column=2, field="FIRST_NAME")).json()
        assert [each["title"] for each in moved["columns"]][:2] == ["", "First name"]
        await sent(kind="UNDO", version=moved["made"])
        await sent(kind="REPLACE", column=1, find="Kim44", put="Tim44")
        assert len((await asked("/lines?rows=CHANGED"))["lines"]) == 11
        await sent(kind="EXCLUDE", rows=[2, 3])
        assert (await asked("/lines?rows=EXCLUDED"))["lines"] == [2, 3]
        assert (await asked("/grid?lines=2"))["rows"][0]["out"] == "ruth"

        # Another version is refused with a notice; so is what is no operation.
        late = await _send(browser, f"{grid}/grid", shown, operation='{"kind":"UNDO","version":1}')
        assert (late.status_code, "The rows were changed since" in late.text) == (412, True)
        assert (await sent(kind="NONE")).status_code == 422
        preview = {"kind": "CLEAR", "column": "2"}
        proposed = await _send(browser, f"{grid}/grid/preview", shown, **preview)
        assert "Last name: set empty</bdi>. Nothing is changed yet" in proposed.text
        move = {"kind": "MOVE", "column": "2", "field": "FIRST_NAME"}
        proposed = await _send(browser, f"{grid}/grid/preview", shown, **move)
        assert "Last name: moved to First name" in proposed.text
        assert "Make this change" in proposed.text
        assert (await asked("/lines?rows=EXCLUDED"))["lines"] == [2, 3]


async def _send(
    browser: httpx.AsyncClient, address: str, page: str, **fields: str
) -> httpx.Response:
    """Send a form of a page."""
    own = {
        name: page.split(f'name="{name}" value="')[1].split('"')[0] for name in ("csrf", "version")
    }
    return await browser.post(
        address,
        data={**own, **fields},
        headers={"HX-Request": "true"} if "/grid" in address else {},
    )


async def _shows(browser: httpx.AsyncClient, page: str, text: str) -> bool:
    return text in (await browser.get(page)).text
