"""Pages of imports: one that has stopped, and the list."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from sqlalchemy import update

from adapters.database.models.spreadsheets import spreadsheet_imports
from tests.support.gateway import GOOD, HEADER, Stack, import_in, sheet, token, until
from workers.gateway.pages.site import COOKIE

pytestmark = pytest.mark.asyncio(loop_scope="session")


@asynccontextmanager
async def visitor(stack: Stack, subject: str, *roles: str) -> AsyncIterator[httpx.AsyncClient]:
    bearer = token(subject, 1, *roles)
    async with stack.browser(bearer) as browser:
        browser.cookies.set(COOKIE, bearer)
        yield browser


async def set_row(stack: Stack, uuid: str, **values: Any) -> None:
    table = spreadsheet_imports
    async with stack.resources.database.transaction() as connection:
        await connection.execute(update(table).where(table.c.uuid == uuid).values(values))


async def test_an_import_that_has_stopped_says_why_and_offers_its_answers(stack: Stack) -> None:
    async with visitor(stack, "sue") as sue, visitor(stack, "vic", "viewer") as vic:
        uuid = await import_in(sue, "COLUMN_MAPPING", sheet(HEADER, *GOOD))
        await set_row(stack, uuid, step="process rows", reason="the database refused a row")
        page = (await sue.get(f"/imports/{uuid}")).text
        assert "Process the rows: this did not work" in page
        assert "the database refused a row" in page
        assert f'action="/imports/{uuid}/retry"' in page
        assert page.count(f'action="/imports/{uuid}/cancel"') == 1
        looked = (await vic.get(f"/imports/{uuid}")).text
        assert "Only an importer can try the step again" in looked
        assert "/retry" not in looked

        csrf = page.split('name="csrf" value="')[1].split('"')[0]
        form = {"csrf": csrf, "reason": "wrong file"}
        ended = await sue.post(f"/imports/{uuid}/cancel", data=form)
        assert ended.status_code == 303
        assert (await until(sue, uuid, "CANCELLED"))["reason"] == "wrong file"
