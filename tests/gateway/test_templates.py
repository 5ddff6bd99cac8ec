"""Templates over HTTP and on the page, and pages in German."""

from dataclasses import replace
from pathlib import Path

import pytest

from activities.spreadsheets.sheet_types import discover
from adapters.files.tables.workbooks import write_workbook
from tests.support.gateway import Stack, import_in, sign_in, token, until
from workers.spreadsheets.http import template_sheets

pytestmark = pytest.mark.asyncio(loop_scope="session")

GERMAN = {"Accept-Language": "de-AT, en;q=0.5"}


async def test_a_filled_in_template_maps_every_column_by_itself(
    stack: Stack, tmp_path: Path
) -> None:
    kind = discover()["EVENT_PARTICIPANT"]
    sheet, guidance = template_sheets(kind)
    row = [field.examples[0] if field.examples else "" for field in kind.fields]
    filled = tmp_path / "filled.xlsx"
    write_workbook([replace(sheet, rows=[row]), guidance], filled)
    async with stack.browser(token("anna")) as anna:
        assert (await anna.get("/api/v1/uploads/types/NO_TYPE/template")).status_code == 404
        answer = await anna.get("/api/v1/uploads/types/EVENT_PARTICIPANT/template")
        assert answer.status_code == 200
        assert "event-participant-template.xlsx" in answer.headers["content-disposition"]
        context = (
            await anna.get("/api/v1/uploads/contexts", params={"import_type": "EVENT_PARTICIPANT"})
        ).json()["items"][0]
        created = await anna.post(
            "/api/imports",
            data={"importType": "EVENT_PARTICIPANT", "contextId": str(context["id"])},
            files={"file": ("filled.xlsx", filled.read_bytes())},
        )
        assert created.status_code == 201, created.text
        uuid = created.json()["identifier"]
        await until(anna, uuid, "COLUMN_MAPPING")
        columns = (await anna.get(f"/api/imports/{uuid}/column-mappings")).json()
        assert len(columns) == len(kind.fields)
        assert {each["status"] for each in columns} == {"AUTO_MATCHED"}

    async with stack.browser("") as browser:
        await sign_in(browser, token("anna"))
        page = await browser.get(f"/uploads/{uuid}", headers=GERMAN)
        assert '<html lang="de">' in page.text
        assert page.headers["content-language"] == "de"
        assert "Accept-Language" in page.headers["vary"]
        assert "Was bedeuten die Spalten?" in page.text
        assert "Spalten bestätigen" in page.text
        english = await browser.get(f"/uploads/{uuid}")
        assert '<html lang="en">' in english.text
        assert "What do the columns mean?" in english.text
        new = await browser.get("/uploads/new", headers=GERMAN)
        assert "/uploads/templates/RESULT" in new.text
        template = await browser.get("/uploads/templates/RESULT", headers=GERMAN)
        assert (template.status_code, template.content[:2]) == (200, b"PK")


async def test_what_an_organisation_calls_its_things_is_escaped_in_every_language(
    stack: Stack,
) -> None:
    async with stack.browser("") as browser:
        await sign_in(browser, token("anna"))
        page = await browser.get("/uploads?q=<script>alert(1)</script>", headers=GERMAN)
        assert "Kein Upload gefunden" in page.text
        assert "<script>alert" not in page.text


async def test_a_template_that_is_not_filled_in_is_not_confirmed(stack: Stack) -> None:
    async with stack.browser(token("anna")) as anna:
        template = await anna.get("/api/v1/uploads/types/EVENT_PARTICIPANT/template")
        uuid = await import_in(anna, "COLUMN_MAPPING", template.content, filename="empty.xlsx")
        columns = (await anna.get(f"/api/imports/{uuid}/column-mappings")).json()
        assert not any(each["samples"] for each in columns)
        refused = await anna.post(f"/api/imports/{uuid}/column-mappings/confirm")
        await anna.delete(f"/api/imports/{uuid}")
    assert refused.status_code == 422
    assert "no rows below them" in refused.json()["detail"]
