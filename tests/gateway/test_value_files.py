"""Values out as a spreadsheet and their meanings back in."""

from pathlib import Path

import httpx
import pytest
import xlsxwriter

from adapters.files.tables.source import open_table
from tests.support.gateway import HEADER, Stack, import_in, sheet, sign_in, token, until
from workflows.shared.cells import Cell

pytestmark = pytest.mark.asyncio(loop_scope="session")

GROUPS = ("Tiny", "Veterans", "Elite", "Giants")


async def test_values_are_filled_in_outside_and_uploaded(stack: Stack, tmp_path: Path) -> None:
    rows = (("File", f"F{place}", "", each) for place, each in enumerate(GROUPS))
    async with stack.browser(token("vera")) as vera:
        uuid = await import_in(vera, "COLUMN_MAPPING", sheet(HEADER, *rows), dryRun="true")
        url = f"/api/v1/uploads/{uuid}/values"
        early = await vera.get(f"{url}/file")
        assert (early.status_code, "not been collected" in early.json()["detail"]) == (409, True)
        assert (await vera.post(f"/api/imports/{uuid}/column-mappings/confirm")).is_success
        await until(vera, uuid, "CELL_MAPPING")
        exported = await vera.get(f"{url}/file", params={"only_open": "true"})
        table = _table(exported.content, tmp_path)
        assert [row[2] for row in table] == ["value", *GROUPS]
        assert table[1][3:] == [1, None, None, "(leave empty), (add)"]

        for line, meaning in enumerate(("junior (U18)", "(ADD)", None, "(leave empty)"), start=1):
            table[line][5] = meaning
        table[3][5] = "Nobody's"
        refused = await _upload(vera, f"{url}/file", table, tmp_path)
        assert (refused.status_code, 'line 4: "Nobody\'s"' in refused.json()["detail"]) == (
            422,
            True,
        )
        assert (await vera.get(url, params={"status": "UNRESOLVED"})).json()["total"] == 4
        table[3][5] = None
        taken = await _upload(vera, f"{url}/file", table, tmp_path)
        assert (taken.status_code, taken.json()["open_values"]) == (200, 1)
        found = {each["value"]: each for each in (await vera.get(url)).json()["items"]}
        assert found["Tiny"]["target_name"] == "Junior (U18)"
        assert found["Veterans"]["create"]
        assert found["Giants"]["status"] == "IGNORED"
        assert found["Elite"]["status"] == "UNRESOLVED"
        table[1][2] = "Another"
        changed = await _upload(vera, f"{url}/file", table, tmp_path)
        assert "is 'Tiny'" in changed.json()["detail"]

        table[1][2], table[3][5] = "Tiny", "Masters (40+)"
        async with stack.browser("") as browser:
            await sign_in(browser, token("vera"))
            page = (await browser.get(f"/uploads/{uuid}")).text
            csrf = page.split('name="csrf" value="')[1].split('"')[0]
            address = f"/uploads/{uuid}/values/upload"
            done = await _upload(browser, address, table, tmp_path, csrf=csrf)
            assert "1 value answered." in done.text
            assert "Every value has a meaning." in done.text
            late = await _upload(browser, address, table[:1], tmp_path, csrf=csrf)
            assert "0 values answered." in late.text
            assert (await browser.get(f"/uploads/{uuid}/values/export")).is_success


def _table(content: bytes, folder: Path) -> list[list[Cell]]:
    path = folder / "values.xlsx"
    path.write_bytes(content)
    with open_table(path) as source:
        return [list(cells) for _, cells in source.rows()]


async def _upload(
    browser: httpx.AsyncClient, address: str, rows: list[list[Cell]], folder: Path, **fields: str
) -> httpx.Response:
    path = folder / "filled.xlsx"
    with xlsxwriter.Workbook(str(path)) as book:
        made = book.add_worksheet()
        for line, cells in enumerate(rows):
            made.write_row(line, 0, cells)
    files = {"file": ("filled.xlsx", path.read_bytes())}
    return await browser.post(address, data=fields, files=files)
