"""Imports whose rows are being reviewed, for tests of the gateway."""

from typing import Any

import httpx

from tests.support.gateway import HEADER, import_in, sheet
from tests.support.waiting import eventually

# People of these tests alone: others import theirs into the same event.
ROWS = (
    ("Rosa", "Maier", "rosa(at)example.org", "Junior (U18)"),
    ("Rune", "Nowak", "rune@example.org", "Senior (18+)"),
    ("Rhea", "R" * 300, "rhea@example.org", "Senior (18+)"),
    ("Remy", "Roth", "remy(at)example.org", "Senior (18+)"),
)
MAIL = 3


async def reviewed(browser: httpx.AsyncClient, *rows: tuple[str, ...], **fields: str) -> str:
    """An import whose rows are being reviewed."""
    content = sheet(HEADER, *(rows or ROWS))
    given = {"review": "true", **fields}
    uuid = await import_in(browser, "COLUMN_MAPPING", content, **given)
    confirmed = await browser.post(f"/api/imports/{uuid}/column-mappings/confirm")
    assert confirmed.status_code == 202, confirmed.text
    cells = await browser.post(f"/api/imports/{uuid}/cell-mappings/confirm")
    assert cells.status_code == 202, cells.text
    view = await settled(browser, uuid)
    assert view["is_open"]
    return uuid


async def settled(browser: httpx.AsyncClient, uuid: str) -> dict[str, Any]:
    """The review once all rows are checked."""
    found: dict[str, Any] = {}

    async def is_checked() -> bool:
        answer = await browser.get(f"/api/v1/uploads/{uuid}/review")
        assert answer.status_code == 200, answer.text
        found.update(answer.json())
        return found["is_checked"]

    await eventually(is_checked)
    return found


async def change(browser: httpx.AsyncClient, uuid: str, **operation: Any) -> dict[str, Any]:
    answer = await browser.post(f"/api/v1/uploads/{uuid}/review/changes", json=operation)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def rows(browser: httpx.AsyncClient, uuid: str, **query: Any) -> list[dict[str, Any]]:
    answer = await browser.get(f"/api/v1/uploads/{uuid}/review/rows", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()["items"]


async def finished(browser: httpx.AsyncClient, uuid: str) -> None:
    async def is_completed() -> bool:
        status = (await browser.get(f"/api/imports/{uuid}")).json()["status"]
        assert status != "FAILED"
        return status == "COMPLETED"

    await eventually(is_completed)


async def opened(browser: httpx.AsyncClient, uuid: str) -> dict[str, Any]:
    async def is_open() -> bool:
        return (await browser.get(f"/api/imports/{uuid}")).json()["step"] == "REVIEW"

    await eventually(is_open)
    return await settled(browser, uuid)
