"""What of a file is not imported is named before anything is confirmed."""

from pathlib import Path
from typing import Any

import httpx
import pytest
import xlsxwriter

from tests.support.gateway import GOOD, HEADER, Stack, import_in, page_of, sign_in, token
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def read_as(browser: httpx.AsyncClient, uuid: str, **layout: object) -> httpx.Response:
    """Have a file read in another way."""
    return await browser.patch(f"/api/v1/uploads/{uuid}", json={"layout": layout})


async def test_another_sheet_is_asked_about_and_columns_without_a_field_are_listed(
    stack: Stack, tmp_path: Path
) -> None:
    path = tmp_path / "two.xlsx"
    with xlsxwriter.Workbook(str(path)) as book:
        for name in ("Runners", "Walkers"):
            lines = book.add_worksheet(name)
            for line, row in enumerate(((*HEADER, "Shoe size"), *((*each, "38") for each in GOOD))):
                lines.write_row(line, 0, row)
    async with stack.browser(token("anna")) as anna:
        uuid = await import_in(
            anna, "COLUMN_MAPPING", path.read_bytes(), filename="two.xlsx", autoStart="true"
        )
        columns = (await anna.get(f"/api/imports/{uuid}/column-mappings")).json()
        first = {"id": columns[0]["id"], "ignore": True}
        refused = await anna.put(f"/api/imports/{uuid}/column-mappings", json=[first])
        assert refused.json()["leftOutColumns"] == ["First name", "Shoe size"]
        back = {"id": columns[0]["id"], "reset": True}
        answer = (await anna.put(f"/api/imports/{uuid}/column-mappings", json=[back])).json()
        assert answer["leftOutColumns"] == ["Shoe size"]
        assert answer["leftOutSheets"] == ["Walkers"]
        async with stack.browser("") as browser:
            await sign_in(browser, token("anna"))
            page = await page_of(browser, uuid)
        listed = page.split('id="left-out"')[1].split("</div>")[0]
        assert "Shoe size" in listed and "Walkers" in listed
        layout = await read_as(anna, uuid, no_header=True)
        assert layout.status_code == 200, layout.text
        assert layout.json()["left_out_columns"][0] == "Column A"
        await anna.delete(f"/api/imports/{uuid}")


async def test_a_table_above_the_header_is_asked_about(stack: Stack) -> None:
    few = [",".join(map(str, each[:3])) for each in (HEADER, *GOOD)]
    rows = "\n".join((*few, "", ",".join(HEADER), ",".join(map(str, GOOD[0])), ""))
    above = list(range(2, 1 + len(few)))
    async with stack.browser(token("anna")) as anna, stack.browser("") as browser:
        uuid = await import_in(
            anna, "COLUMN_MAPPING", rows.encode(), filename="two.csv", autoStart="true"
        )
        await sign_in(browser, token("anna"))
        page = await page_of(browser, uuid)
        layout = await read_as(anna, uuid, header_line=1)
        assert layout.status_code == 200, layout.text
        assert layout.json()["left_out_lines"] == []
        back = await read_as(anna, uuid)
        assert back.json()["left_out_lines"] == above
        await anna.delete(f"/api/imports/{uuid}")
    listed = page.split('id="left-out"')[1].split("</div>")[0]
    assert f"lines {', '.join(map(str, above))}" in " ".join(listed.split())


@pytest.mark.parametrize(
    ("lines", "shown"), [((3, 2_000), "2 rows, lines 3, 2000."), ((2_000,), "1 row, line 2000.")]
)
async def test_hidden_rows_are_asked_about(
    stack: Stack, tmp_path: Path, lines: tuple[int, ...], shown: str
) -> None:
    """Whether the first look at the file shows them, or only the reading of all of it."""
    path = tmp_path / "filtered.xlsx"
    with xlsxwriter.Workbook(str(path)) as book:
        sheet = book.add_worksheet("Runners")
        sheet.write_row(0, 0, ["Vorname", "Nachname"])
        for line in range(1, 2_001):
            sheet.write_row(line, 0, [f"Hide {line}", f"Seek {line}"])
        for line in lines:
            sheet.set_row(line - 1, None, None, {"hidden": True})
    async with stack.browser(token("anna")) as anna, stack.browser("") as browser:
        uuid = await import_in(
            anna, "COLUMN_MAPPING", path.read_bytes(), filename="filtered.xlsx", autoStart="true"
        )
        await sign_in(browser, token("anna"))
        page = ""

        async def is_shown() -> bool:
            nonlocal page
            page = (await browser.get(f"/uploads/{uuid}")).text
            return shown in " ".join(page.split())

        await eventually(is_shown)
        german = {"Accept-Language": "de"}
        translated = (await browser.get(f"/uploads/{uuid}", headers=german)).text
        await anna.delete(f"/api/imports/{uuid}")
    assert 'id="hidden"' in page
    assert "ausgeblendet und trotzdem gelesen" in translated


async def test_a_row_that_is_taken_for_headers_is_asked_about(stack: Stack) -> None:
    rows = "Ada,Lovelace,ada@headless.example.org\nAlan,Turing,alan@headless.example.org\n"
    async with stack.browser(token("anna")) as anna, stack.browser("") as browser:
        uuid = await import_in(anna, "COLUMN_MAPPING", rows.encode(), filename="headless.csv")
        await sign_in(browser, token("anna"))
        before = await page_of(browser, uuid)
        layout = await read_as(anna, uuid, no_header=True)
        assert layout.status_code == 200, layout.text
        after = (await browser.get(f"/uploads/{uuid}")).text
        await anna.delete(f"/api/imports/{uuid}")
    assert 'id="no-headers"' in before and "If the file has no header row" in before
    assert 'id="no-headers"' not in after


async def test_a_sheet_without_rows_is_not_confirmed_beside_one_with_some(
    stack: Stack, tmp_path: Path
) -> None:
    path = tmp_path / "untouched.xlsx"
    with xlsxwriter.Workbook(str(path)) as book:
        book.add_worksheet("Runners").write_row(0, 0, HEADER)
        walkers = book.add_worksheet("Walkers")
        for line, row in enumerate((HEADER, *GOOD)):
            walkers.write_row(line, 0, row)
    async with stack.browser(token("anna")) as anna, stack.browser("") as browser:
        await sign_in(browser, token("anna"))
        content = path.read_bytes()
        uuid = await import_in(anna, "COLUMN_MAPPING", content, filename="untouched.xlsx")
        address = f"/api/imports/{uuid}"
        for step in ("column-mappings/confirm", "start"):
            refused = await anna.post(f"{address}/{step}")
            assert refused.status_code == 422, refused.text
            assert "no rows below them; read another sheet" in refused.json()["detail"]
        before = (await browser.get(f"/uploads/{uuid}")).text
        layout = await read_as(anna, uuid, sheet="Walkers")
        assert layout.status_code == 200, layout.text
        after = (await browser.get(f"/uploads/{uuid}")).text
        confirmed = await anna.post(f"{address}/column-mappings/confirm")
        assert confirmed.status_code == 202, confirmed.text
        await anna.delete(address)
    assert 'id="no-rows"' in before and 'id="no-rows"' not in after


async def test_skipped_rows_are_shown_and_can_be_kept(stack: Stack) -> None:
    lines = (HEADER, GOOD[0], HEADER, GOOD[1])
    content = "\n".join(",".join(map(str, line)) for line in lines).encode()
    async with stack.browser(token("anna")) as anna, stack.browser("") as browser:
        uuid = await import_in(anna, "COLUMN_MAPPING", content, filename="printed.csv")
        address = f"/api/v1/uploads/{uuid}"

        async def skipped() -> list[dict[str, Any]]:
            return (await anna.get(f"{address}/preview")).json()["skipped_rows"]

        async def is_found() -> bool:
            return bool(await skipped())

        await eventually(is_found)
        [found] = await skipped()
        assert (found["line"], found["is_skipped"]) == (3, True)
        assert found["reason"] == "repeats the header"
        await sign_in(browser, token("anna"))
        german = {"Accept-Language": "de"}
        page = (await browser.get(f"/uploads/{uuid}", headers=german)).text
        kept = await anna.patch(address, json={"rows": {"lines": [3], "keep": True}})
        assert kept.status_code == 200, kept.text
        assert [each["is_skipped"] for each in await skipped()] == [False]
        await anna.delete(f"/api/imports/{uuid}")
    assert 'id="skipped"' in page and "wiederholt die Überschrift" in page
