"""Uploads of declared types through the gateway: a type is there at once, without a restart."""

import html
import re

import httpx
import pytest
from sqlalchemy import text

from adapters.types.files import read_type
from adapters.types.store import SqlDeclaredTypes
from tests.support.gateway import Stack, eventually, import_in, sign_in, token, until, upload
from workers.shared.gateway.http.requests import csrf_token

pytestmark = pytest.mark.asyncio(loop_scope="session")

TOOLS = """
name: tools
title: Hand tools
scope: [organisation_id, site]
key: [tool]
fields:
  tool: {kind: code, required: true, aliases: {de: [Werkzeug]}}
  price: {kind: money, currency: EUR}
"""
ROWS = "Werkzeug;Price\nT-1;12,50 €\nT-2;9,00 €\n".encode()
TYPED = {"importType": "tools", "contextId": "", "scope.site": "north"}


CONTEXTS = "/api/v1/uploads/contexts"


async def stored(stack: Stack, columns: str) -> list[tuple[object, ...]]:
    query = text(f"SELECT {columns} FROM docflow_types.tools ORDER BY site, tool")
    async with stack.resources.database.reading() as connection:
        return [tuple(row) for row in await connection.execute(query)]


async def made(browser: httpx.AsyncClient, **fields: str) -> httpx.Response:
    return await upload(browser, ROWS, filename="tools.csv", **{**TYPED, **fields})


async def test_an_applied_type_can_be_uploaded_at_once(stack: Stack) -> None:
    types = SqlDeclaredTypes(stack.resources.database)
    await types.apply(read_type(TOOLS, "tools.yaml"))
    async with stack.browser(token("tom")) as tom:
        listed = (await tom.get("/api/v1/uploads/types")).json()["items"]
        mine = next(each for each in listed if each["name"] == "tools")
        assert (mine["scope"], [each["name"] for each in mine["fields"]]) == (
            ["organisation_id", "site"],
            ["tool", "price"],
        )
        assert (await tom.get("/api/v1/uploads/types/tools/template")).status_code == 200
        paths = (await tom.get("/openapi.json")).json()["paths"]
        for path, name in (("/api/imports", "importType"), ("/api/v1/uploads", "import_type")):
            creating = paths[path]["post"]["requestBody"]["content"]["multipart/form-data"]
            assert "tools" in creating["schema"]["properties"][name]["enum"]
        refused = await made(tom, **{"scope.site": ""})
        assert refused.status_code == 422
        assert "scope.site: Hand tools needs it" in refused.json()["detail"]
        await types.apply(read_type(TOOLS + "may_import: [operator]\n", "tools.yaml"))
        refused = await made(tom)
        assert refused.status_code == 403 and "role operator" in refused.json()["detail"]
        await types.apply(read_type(TOOLS, "tools.yaml"))
        refused = await made(tom, **{"scope.floor": "1"})
        assert "scope.floor: Hand tools takes none" in refused.json()["detail"]
        uuid = await import_in(
            tom, "COMPLETED", ROWS, filename="tools.csv", autoStart="true", **TYPED
        )
        assert await stored(stack, "organisation_id, site, tool, price::text") == [
            ("1", "north", "T-1", "12.500000"),
            ("1", "north", "T-2", "9.000000"),
        ]
        await sign_in(tom, token("tom"))
        page = (await tom.get("/uploads/new")).text
        assert 'data-scope="site"' in page and "Hand tools" in page
        assert "Hand tools" in (await tom.get(f"/uploads/{uuid}")).text
        await tom.post(f"/api/v1/uploads/{uuid}/undo")

        async def gone() -> bool:
            return not await stored(stack, "tool")

        await eventually(gone)


@pytest.mark.parametrize(
    ("header", "state", "reason"),
    [
        ("Werkzeug;Price;Lager", "COMPLETED", "Columns not used: 'Lager' (1 value)"),
        # Which of the two counts?
        ("Werkzeug;Price;Price", "COLUMN_MAPPING", None),
    ],
)
async def test_no_column_is_dropped_in_silence(
    stack: Stack, header: str, state: str, reason: str | None
) -> None:
    await SqlDeclaredTypes(stack.resources.database).apply(read_type(TOOLS, "tools.yaml"))
    rows = f"{header}\nT-7;1;2\nT-8;3;\n".encode()
    fields = {**TYPED, "scope.site": "silent", "autoStart": "true"}
    async with stack.browser(token("tom")) as tom:
        uuid = await import_in(tom, state, rows, filename="tools.csv", **fields)
        found = (await tom.get(f"/api/v1/uploads/{uuid}")).json()
        assert found["reason"] == reason
        await sign_in(tom, token("tom"))
        page = await tom.get(f"/uploads/{uuid}")
        assert reason is None or reason in html.unescape(page.text)


async def test_an_upload_whose_rows_become_a_file_says_where_it_is(stack: Stack) -> None:
    handed = TOOLS.replace("name: tools", "name: tools_out") + "target: {file: csv}\n"
    await SqlDeclaredTypes(stack.resources.database).apply(read_type(handed, "tools_out.yaml"))
    async with stack.browser(token("tom")) as tom:
        fields = {**TYPED, "importType": "tools_out", "autoStart": "true"}
        uuid = await import_in(tom, "COMPLETED", ROWS, filename="tools.csv", **fields)
        await sign_in(tom, token("tom"))
        page = (await tom.get(f"/uploads/{uuid}")).text
    name = f"accepted/spreadsheets/{uuid}.csv"
    assert "What you should know" in page
    assert f"the accepted rows are in {name}" in page
    assert (await stack.resources.blobs.stat(name)).size > 0


async def test_an_import_keeps_the_version_that_it_began_with(stack: Stack) -> None:
    types = SqlDeclaredTypes(stack.resources.database)
    await types.apply(read_type(TOOLS, "tools.yaml"))
    async with stack.browser(token("ute")) as ute:
        fields = {**TYPED, "scope.site": "south"}
        before = await import_in(ute, "COLUMN_MAPPING", ROWS, filename="tools.csv", **fields)
        stricter = TOOLS.replace("currency: EUR", "currency: EUR, maximum: 10") + "  maker: {}\n"
        await types.apply(read_type(stricter, "tools.yaml"))
        after = await import_in(ute, "COLUMN_MAPPING", ROWS, filename="tools.csv", **fields)
        status = {uuid: (await ute.get(f"/api/imports/{uuid}")).json() for uuid in (before, after)}
        assert status[before]["typeDigest"] != status[after]["typeDigest"]
        for uuid, is_old in ((before, True), (after, False)):
            assert (await ute.get(f"/api/v1/uploads/{uuid}")).json()["type_changed"] is is_old
        chosen = {"decisions": [{"id": 1, "target": "maker"}]}
        refused = await ute.patch(f"/api/v1/uploads/{before}/columns", json=chosen)
        assert refused.status_code == 422
        assert "which has no field maker. To use the newest version" in refused.json()["detail"]
        chosen = {"decisions": [{"id": 1, "target": "makr"}]}
        refused = await ute.patch(f"/api/v1/uploads/{after}/columns", json=chosen)
        assert "there is no field makr; did you mean 'maker'?" in refused.json()["detail"]
        await sign_in(ute, token("ute"))
        for uuid, errors in ((before, 0), (after, 1)):
            assert (await ute.post(f"/api/imports/{uuid}/start")).is_success
            done = await until(ute, uuid, "COMPLETED")
            assert done["counts"]["error"] == errors, done
            page = (await ute.get(f"/uploads/{uuid}")).text
            assert ("has changed since this upload began" in page) is (uuid == before)
            assert ("To use the newest version, upload" in page) is (uuid == before)


async def test_what_rows_belong_to_is_made_where_it_is_missing(stack: Stack) -> None:
    wanted = {"table": "membership_periods", "name": "Season 2027", "starts_on": "2027-01-01"}
    async with stack.browser(token("liz")) as liz:
        made = await liz.post(CONTEXTS, json=wanted)
        assert made.status_code == 201, made.text
        again = await liz.post(CONTEXTS, json=wanted)
        assert again.json() == made.json()
        assert made.json() in (await liz.get(CONTEXTS)).json()["items"]
        refused = await liz.post(CONTEXTS, json={**wanted, "table": "persons"})
        assert refused.status_code == 422
        day = {"table": "events", "name": "Hill Run", "starts_on": "2027-05-01"}
        event = (await liz.post(CONTEXTS, json=day)).json()["id"]
        race = {"table": "races", "name": "10 km", "event_id": event}
        sizes = {"table": "custom_lists", "name": "Shirts", "key": "SHIRT_SIZE", "open": True}
        for body in (race, sizes):
            made = await liz.post(CONTEXTS, json=body)
            assert made.status_code == 201, made.text
            assert (await liz.post(CONTEXTS, json=body)).json() == made.json()
            listed = [each["id"] for each in (await liz.get(CONTEXTS)).json()["items"]]
            assert made.json()["id"] in listed
        for body in (
            {**race, "event_id": 999_999},
            {**race, "event_id": None},
            {**race, "key": "A"},
            {**sizes, "key": "small"},
            {"table": "events", "name": "No day"},
        ):
            assert (await liz.post(CONTEXTS, json=body)).status_code == 422, body
        session = await sign_in(liz, token("liz"))
        page = (await liz.get("/uploads/new")).text
        assert 'value="races"' in page and 'value="custom_lists"' in page
        form = {"csrf": csrf_token(session), "table": "events", "name": "Lake Run"}
        made = await liz.post("/uploads/contexts", data={**form, "startsOn": "2027-06-01"})
        assert made.status_code == 303, made.text
        page = (await liz.get(made.headers["location"])).text
        assert re.search(r"<option[^>]* selected[^>]*>[^<]*Lake Run", page), page
        assert re.search(r'id="review"[^>]* checked', page)
        wrong = await liz.post("/uploads/contexts", data={**form, "startsOn": "soon"})
        assert wrong.status_code == 422 and 'role="alert"' in wrong.text
        # What was typed is still there, and in sight.
        assert '<details class="card" open>' in wrong.text and 'value="Lake Run"' in wrong.text
