"""Pages of imports: one that has stopped, and the list."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from sqlalchemy import update

from adapters.database.models.spreadsheets import spreadsheet_imports
from tests.support.gateway import (
    GOOD,
    HEADER,
    Stack,
    import_in,
    page_of,
    sheet,
    sign_in,
    token,
    until,
)
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")


@asynccontextmanager
async def visitor(stack: Stack, subject: str, *roles: str) -> AsyncIterator[httpx.AsyncClient]:
    bearer = token(subject, 1, *roles)
    async with stack.browser(bearer) as browser:
        await sign_in(browser, bearer)
        yield browser


async def set_row(stack: Stack, uuid: str, **values: Any) -> None:
    table = spreadsheet_imports
    async with stack.resources.database.transaction() as connection:
        await connection.execute(update(table).where(table.c.uuid == uuid).values(values))


async def test_an_import_that_has_stopped_says_why_and_offers_its_answers(stack: Stack) -> None:
    async with visitor(stack, "sue") as sue, visitor(stack, "vic", "viewer") as vic:
        uuid = await import_in(sue, "COLUMN_MAPPING", sheet(HEADER, *GOOD))
        # Its own steps write no more.
        await page_of(sue, uuid)
        await set_row(stack, uuid, step="process rows", reason="the database refused a row")
        page = (await sue.get(f"/uploads/{uuid}")).text
        assert "Process the rows: this did not work" in page
        assert "the database refused a row" in page
        assert f'action="/uploads/{uuid}/retry"' in page
        assert page.count(f'action="/uploads/{uuid}/cancel"') == 1
        looked = (await vic.get(f"/uploads/{uuid}")).text
        assert "Only a mapper can try the step again" in looked
        assert "/retry" not in looked

        csrf = page.split('name="csrf" value="')[1].split('"')[0]
        form = {"csrf": csrf, "reason": "wrong file"}
        ended = await sue.post(f"/uploads/{uuid}/cancel", data=form)
        assert ended.status_code == 303
        assert (await until(sue, uuid, "CANCELLED"))["reason"] == "wrong file"


async def test_imports_are_found_by_name_uploader_and_event(stack: Stack) -> None:
    async with visitor(stack, "lia") as lia, visitor(stack, "max") as maxi:
        content = sheet(HEADER, *GOOD)
        names = ("Zebra 100%.csv", "apple 100%.csv", "apple 1000.csv")
        mine = [await import_in(lia, "COLUMN_MAPPING", content, filename=each) for each in names]
        theirs = await import_in(maxi, "COLUMN_MAPPING", content, filename="ZEBRA.csv")

        found = await lia.get("/api/imports", params={"createdBy": "lia", "sort": "OLDEST"})
        assert [each["identifier"] for each in found.json()] == mine
        assert {each["contextName"] for each in found.json()} == {"City Marathon"}
        # Wildcards of databases are looked for as they stand.
        some = await lia.get("/api/imports", params={"search": "100%", "sort": "FILENAME"})
        assert {each["originalFilename"] for each in some.json()} == {names[0], names[1]}
        some = await lia.get("/api/imports", params={"search": "zebra", "size": 1, "page": 1})
        assert some.headers["x-total-count"] == "2"
        assert "search=zebra" in some.headers["link"]
        of_event = {"importType": "EVENT_PARTICIPANT", "contextId": 7, "createdBy": "max"}
        [one] = (await lia.get("/api/imports", params=of_event)).json()
        assert one["identifier"] == theirs
        other = await lia.get("/api/imports", params={**of_event, "contextId": 8})
        assert other.json() == []

        page = (await lia.get("/uploads?q=zebra&sort=FILENAME")).text
        assert "2 uploads found." in page
        assert "City Marathon" in page and "by <bdi>max</bdi>" in page
        assert 'href="/uploads?q=zebra&amp;state=FAILED&amp;sort=FILENAME&amp;"' in page
        only = (await lia.get("/uploads?q=zebra&mine=true")).text
        assert "1 upload found." in only and "ZEBRA.csv" not in only

        async def waits_in(address: str) -> set[str]:
            text = (await lia.get(address)).text
            return set(re.findall("/uploads/([0-9a-f-]{36})", text))

        async def is_shown() -> bool:
            return {*mine, theirs} <= await waits_in("/")

        await eventually(is_shown)
        assert await waits_in("/?mine=true") == set(mine)
        assert 'hx-get="/?mine=true"' in (await lia.get("/?mine=true")).text


async def test_a_file_of_one_row_is_uploaded_without_headers(stack: Stack) -> None:
    async with visitor(stack, "one") as one:
        page = (await one.get("/uploads/new")).text
        assert 'name="noHeader"' in page
        context = page.split('<option value="events:7:')[1].split('"')[0]
        form = {
            "csrf": page.split('name="csrf" value="')[1].split('"')[0],
            "importType": "EVENT_PARTICIPANT",
            "contextId": f"events:7:{context}",
        }

        async def uploaded(**more: str) -> str:
            files = {"file": ("one.csv", sheet(("Ada", "Lovelace", "ada@example.org")))}
            answer = await one.post("/uploads", data={**form, **more}, files=files)
            assert answer.status_code == 303, answer.text
            return answer.headers["location"].removeprefix("/uploads/")

        await until(one, await uploaded(noHeader="true"), "COLUMN_MAPPING")


async def test_a_file_without_rows_says_so_in_the_language_of_the_page(stack: Stack) -> None:
    async with visitor(stack, "leo") as leo:
        uuid = await import_in(leo, "FAILED", sheet(("Vorname", "Nachname")))
        reason = (await leo.get(f"/api/imports/{uuid}")).json()["reason"]
        assert "upload it again and say that it has no header row" in reason
        page = await leo.get(f"/uploads/{uuid}", headers={"accept-language": "de-AT"})
        assert "die Datei enthält Überschriften und keine Zeilen darunter" in page.text
        assert "the file holds" not in page.text


async def test_a_form_whose_file_comes_first_is_shown_again_as_it_was_sent(stack: Stack) -> None:
    fields = {"importType": "RESULT", "dryRun": "true", "noHeader": "true"}
    async with visitor(stack, "fay") as fay:
        form = (await fay.get("/uploads/new")).text
        csrf = form.split('name="csrf" value="')[1].split('"')[0]
        parts = [
            ('name="csrf"', csrf.encode()),
            ('name="file"; filename="letter.pdf"', b"%PDF-1.7\n" + bytes(300_000)),
            *((f'name="{name}"', text.encode()) for name, text in fields.items()),
        ]
        body = b"".join(
            f"--cut\r\nContent-Disposition: form-data; {head}\r\n\r\n".encode() + content + b"\r\n"
            for head, content in parts
        )
        sent = await fay.post(
            "/uploads",
            content=body + b"--cut--\r\n",
            headers={"content-type": "multipart/form-data; boundary=cut"},
        )
    assert sent.status_code == 415 and "letter.pdf" in sent.text
    assert re.search(r'value="RESULT"[^>]* selected', sent.text)
    ticked = re.findall(r'<input type="checkbox" id="([a-z-]+)"[^>]* checked', sent.text)
    assert ticked == ["dry", "no-header"]
