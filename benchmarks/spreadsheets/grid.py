"""The grid of a review in a browser: first rows, a jump to the middle, and a large paste."""

import time
from pathlib import Path
from typing import Final

from playwright.async_api import Browser, Page

from benchmarks.report import Table, at_most, middle, spread
from benchmarks.spreadsheets import workload
from benchmarks.spreadsheets.review import write
from benchmarks.spreadsheets.rows import new_database
from benchmarks.spreadsheets.stack import SheetStack, is_reviewed, open_sheet_stack, until
from stack.postgres import postgres_server
from tests.support.chromium import browser
from workers.shared.gateway.http.requests import COOKIE

ROWS: Final = 100_000
PASTED: Final = (100, 10)
"""Rows and columns of a paste."""
FIRST_SECONDS: Final = 3.0
JUMP_SECONDS: Final = 1.0
PASTE_SECONDS: Final = 3.0
_JUMP: Final = """share => {
  const holder = document.querySelector(".tabulator-tableholder");
  holder.scrollTop = holder.scrollHeight * share;
}"""
_KNOWN: Final = """() => {
  const holder = document.querySelector(".tabulator-tableholder").getBoundingClientRect();
  const rows = [...document.querySelectorAll(".tabulator-row")].filter(row => {
    const box = row.getBoundingClientRect();
    return box.top >= holder.top && box.bottom <= holder.bottom;
  });
  return rows.length > 0 && rows.every(row => !row.textContent.includes("…"));
}"""


async def measure(folder: Path, rounds: int) -> Table:
    """One import of many rows, opened in Chromium."""
    table = Table(
        f"{ROWS:,} rows x {len(workload.HEADER)} columns in the grid of a review, in Chromium",
        ("what", "s"),
    )
    file = folder / "registrations.csv"
    write(file, ROWS)
    with postgres_server(durable=True) as server:
        database = await new_database(server)
        async with open_sheet_stack(folder / "grid", database) as stack, browser() as chromium:
            uuid = await stack.upload(file, auto_start=True, review=True)
            await until(lambda: is_reviewed(stack, uuid))
            page = await _page(stack, chromium)
            first = [await _open(page, uuid) for _ in range(rounds)]
            jumps = [await _jump(page, 0.5 + 0.01 * i) for i in range(rounds)]
            pastes = [await _paste(page, f"round {i}") for i in range(rounds)]
    table.add("address to the first rows", spread(first, 2))
    table.add("jump to the middle, until its rows are there", spread(jumps, 2))
    table.add(f"paste of {PASTED[0] * PASTED[1]:,} cells, until it is saved", spread(pastes, 2))
    table.notes += [
        f"first rows: {at_most(middle(first), FIRST_SECONDS, ' s')}",
        f"jump: {at_most(middle(jumps), JUMP_SECONDS, ' s')}",
        f"paste: {at_most(middle(pastes), PASTE_SECONDS, ' s')}",
    ]
    return table


async def _page(stack: SheetStack, chromium: Browser) -> Page:
    address = str(stack.api.base_url)
    token = stack.api.headers["Authorization"].removeprefix("Bearer ")
    context = await chromium.new_context(base_url=address)
    await context.add_cookies([{"name": COOKIE, "value": token, "url": address}])
    await context.grant_permissions(["clipboard-read", "clipboard-write"])
    return await context.new_page()


async def _open(page: Page, uuid: str) -> float:
    began = time.perf_counter()
    await page.goto(f"/uploads/{uuid}")
    await page.wait_for_selector("#review-grid[data-ready]")
    return time.perf_counter() - began


async def _jump(page: Page, share: float) -> float:
    await page.evaluate(_JUMP, 0)
    await page.wait_for_function(_KNOWN)
    began = time.perf_counter()
    await page.evaluate(_JUMP, share)
    await page.wait_for_function(_KNOWN)
    return time.perf_counter() - began


async def _paste(page: Page, text: str) -> float:
    rows, columns = PASTED
    lines = "\n".join("\t".join([text] * columns) for _ in range(rows))
    await page.evaluate("text => navigator.clipboard.writeText(text)", lines)
    await page.evaluate(_JUMP, 0)
    await page.wait_for_function(_KNOWN)
    await page.locator('.tabulator-row [tabulator-field="c1"]').first.click()
    began = time.perf_counter()
    async with page.expect_response("**/review/grid"):
        await page.keyboard.press("Control+v")
    await page.wait_for_selector("#review-grid:not([aria-busy])")
    return time.perf_counter() - began
