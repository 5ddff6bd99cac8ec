"""Document imports that wait for a person, answered over HTTP and on their page."""

import json
import re
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from html import unescape
from typing import Any

import httpx
import pytest
import pytest_asyncio

from tests.support.gateway import Stack, sign_in, token
from tests.support.waiting import eventually
from workers.imports.register import IMPORTS
from workers.imports.resources import import_resources
from workers.imports.runs import ImportRuns
from workers.imports.settings import RunSettings
from workers.shared.worker_factory import build_worker
from workflows.imports.document_import import DocumentImport
from workflows.imports.messages import IMPORT_MESSAGE
from workflows.imports.runs import ImportInput, ImportState
from workflows.shared import attributes

pytestmark = pytest.mark.asyncio(loop_scope="session")

OPERATOR = token("olga", 1, "operator")
ROWS = b"Code,Description,Tagessatz\nE-1,Crane,450\nE-2,Welder,12\n"


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def worker(stack: Stack) -> AsyncIterator[None]:
    """Works on imports over the resources of the gateway."""
    database = stack.resources.database
    own = import_resources(database, stack.client, RunSettings.read({}))
    async with build_worker(stack.client, IMPORTS, stack.resources, own):
        yield


async def parked(stack: Stack, **fields: Any) -> str:
    """Id of an import whose document is not there."""
    task = uuid.uuid4().hex
    message = IMPORT_MESSAGE.validate_python(
        {
            "document_type": "equipment",
            "task_id": task,
            "project_id": "P1",
            "blob_name": f"uploads/{task}/missing.csv",
            **fields,
        }
    )
    await stack.client.start_workflow(
        DocumentImport.run,
        ImportInput(message=message),
        id=message.workflow_id,
        task_queue=IMPORTS.task_queue,
        search_attributes=attributes.at_start("imports", message.document_type, "P1"),
    )
    runs = ImportRuns(stack.client, {})

    async def is_parked() -> bool:
        status = await runs.status(message.workflow_id)
        return status is not None and status.next_steps is not None

    await eventually(is_parked)
    return message.workflow_id


async def ended(browser: httpx.AsyncClient, id: str) -> dict[str, Any]:
    found: dict[str, Any] = {}

    async def has_ended() -> bool:
        answer = await browser.get(f"/api/v1/documents/{id}")
        if answer.status_code == 404:  # Its first step has not written its row yet.
            return False
        found.update(answer.json())
        return found["state"] not in ("running", "parked")

    await eventually(has_ended)
    return found


@pytest.mark.usefixtures("worker")
async def test_a_corrected_file_keeps_the_id_and_the_trail_says_who_gave_it(stack: Stack) -> None:
    id = await parked(stack)
    async with stack.browser(OPERATOR) as olga:
        waiting = (await olga.get(f"/api/v1/documents/{id}")).json()
        assert waiting["state"] == "parked"
        assert waiting["answers"] == ["retry", "skip", "fail", "cancel"]
        answered = await olga.post(
            "/api/v1/documents/corrections",
            data={"id": id, "map": '{"Tagessatz": "rate"}'},
            files={"file": ("Geräte (neu).csv", ROWS)},
        )
        assert answered.status_code == 200, answered.text
        done = await ended(olga, id)
    assert (done["state"], done["counts"]["created"]) == ("completed", 2)
    (correction,) = done["corrections"]
    assert correction["by"] == "olga"
    assert correction["changes"].startswith(
        'filename: Geräte (neu).csv; map: {"Tagessatz": "rate"}; blob_name: uploads/P1/'
    )


@pytest.mark.usefixtures("worker")
async def test_answers_without_a_file(stack: Stack) -> None:
    id = await parked(stack)
    async with stack.browser(OPERATOR) as olga:
        for changes, says in (
            ({"task_id": "other"}, "keeps its task_id"),
            ({"schedule_id": "U100"}, "has no field schedule_id"),
            ({"blob_name": "../x"}, "segments"),
        ):
            body = {"changes": changes}
            refused = await olga.post(f"/api/v1/runs/{id}/retry", json=body)
            assert refused.status_code == 422, refused.text
            assert says in refused.json()["detail"]
        skip = {"reason": "sent again"}
        assert (await olga.post(f"/api/v1/runs/{id}/skip", json=skip)).status_code == 200
        assert (await ended(olga, id))["state"] == ImportState.SKIPPED
    async with stack.browser(token("alma", 1, "admin")) as admin:
        noted = (await admin.get("/api/v1/audit", params={"object": id})).json()["items"][0]
    assert (noted["reason"], noted["after"]["answer"]) == ("sent again", "skip")


@pytest.mark.usefixtures("worker")
async def test_what_cannot_be_meant_is_refused(stack: Stack) -> None:
    id = await parked(stack, document_type="mto", service_id="S1")
    async with stack.browser(OPERATOR) as olga, stack.browser(token("vera")) as vera:
        assert (await vera.get(f"/api/v1/documents/{id}")).status_code == 403
        assert (await olga.get("/api/v1/documents/import/P1/none")).status_code == 404
        assert (await olga.get("/api/v1/documents/batch/1/1")).status_code == 404
        for fields, says in (({"map": "[]"}, "object"), ({"map": "{"}, "JSON")):
            refused = await olga.post(
                "/api/v1/documents/corrections",
                data={"id": id, **fields},
                files={"file": ("a.csv", ROWS)},
            )
            assert (refused.status_code, says in refused.text) == (422, True), refused.text
        file = ("file", ("a.csv", ROWS))
        for parts, says in (
            (
                [("id", (None, id)), ("scheduleId", (None, "U")), file],
                "scheduleId: is not a field",
            ),
            ([("id", (None, id)), file, ("sheet", (None, "B"))], "sheet: comes after the file"),
        ):
            refused = await olga.post("/api/v1/documents/corrections", files=parts)
            assert (refused.status_code, says in refused.text) == (422, True), refused.text
        empty = await olga.post(
            "/api/v1/documents/corrections", data={"id": id}, files={"file": ("a.csv", b"")}
        )
        assert empty.status_code == 422
        await olga.post(f"/api/v1/runs/{id}/skip")
        await ended(olga, id)
        late = await olga.post(
            "/api/v1/documents/corrections", data={"id": id}, files={"file": ("a.csv", ROWS)}
        )
        assert late.status_code == 409


@pytest.mark.usefixtures("worker")
async def test_a_document_is_sent_along_or_referred_to(stack: Stack) -> None:
    address, key = "/api/v1/documents", {"idempotency-key": uuid.uuid4().hex}
    message = {"document_type": "equipment", "project_id": "P2"}
    async with stack.browser(OPERATOR) as olga:

        async def send(content: bytes = ROWS, **given: Any) -> httpx.Response:
            form = {"message": json.dumps({**message, **given})}
            file = {"file": ("Kräne.csv", content)}
            return await olga.post(address, data=form, files=file, headers=key)

        made = await send()
        assert made.status_code == 201, made.text
        id = made.json()["id"]
        assert made.headers["location"] == f"/api/v1/runs/{id}"
        assert (await olga.get(made.headers["location"])).json()["id"] == id
        done = await ended(olga, id)
        assert (done["state"], done["filename"]) == ("completed", "Kräne.csv")
        again = await send()
        assert (again.status_code, again.json()) == (200, {"id": id, "is_new": False})
        other = await send(strategy="replace")
        assert other.status_code == 409, other.text
        changed = await send(ROWS + b"E-7,Another crane\n")
        assert (changed.status_code, "another file" in changed.text) == (409, True), changed.text
        row = await stack.resources.blobs.put("inbox/list.csv", ROWS)
        referred = {**message, "task_id": uuid.uuid4().hex, "blob_name": row.name}
        assert (await olga.post(address, json=referred)).status_code == 201
        wrong: list[tuple[Any, str]] = [
            ({**message, "task_id": "x"}, "blob_name: Field required"),
            ({"document_type": "unheard", "project_id": "P2"}, "unheard"),
            ([], "not a JSON object"),
        ]
        for body, says in wrong:
            refused = await olga.post(address, json=body)
            assert (refused.status_code, says in refused.text) == (422, True), refused.text
        assert (await send(blob_name="a")).status_code == 422
    async with stack.browser(token("vera")) as vera:
        assert (await vera.post(address, json=referred)).status_code == 403


@asynccontextmanager
async def _signed_in(stack: Stack) -> AsyncGenerator[httpx.AsyncClient]:
    async with AsyncExitStack() as exits:
        browser = await exits.enter_async_context(stack.browser(""))
        await sign_in(browser, OPERATOR)
        yield browser


async def asking(browser: httpx.AsyncClient, id: str, sign: str) -> str:
    """The page of a run, once it shows a sign of what is asked."""
    page = ""

    async def asks() -> bool:
        nonlocal page
        page = (await browser.get(f"/runs/{id}")).text
        return sign in page

    await eventually(asks)
    return page


def fields_of(page: str, form: str) -> dict[str, str]:
    """What a form of a page sends as it stands, without its boxes and buttons."""
    [found] = re.findall(f'<form [^>]*id="{form}".*?</form>', page, re.DOTALL)
    hidden = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', found)
    given = {name: unescape(value) for name, value in hidden}
    for name, options in re.findall(r'<select [^>]*name="([^"]+)".*?>(.*?)</select>', found, re.S):
        chosen = re.findall(r'<option(?: value="([^"]*)")? selected>', options)
        given[name] = unescape(chosen[0]) if chosen else ""
    return given


def place_of(given: Mapping[str, str], header: str) -> str:
    """Name of the select of a column."""
    [name] = [name for name, text in given.items() if name[:6] == "label_" and text == header]
    return name.removeprefix("label_")


@pytest.mark.usefixtures("worker")
async def test_the_page_of_a_run_takes_a_corrected_file(stack: Stack) -> None:
    id = await parked(stack)
    async with _signed_in(stack) as olga:

        async def is_linked() -> bool:
            return f'href="/runs/{id}"' in (await olga.get("/")).text

        await eventually(is_linked)
        page = (await olga.get(f"/runs/{id}")).text
        assert "is not in the blob store" in page
        assert "The columns of the document cannot be shown:" in page and "Stored as" in page
        given = fields_of(page, "corrected")
        for wrong, status in (({**given, "csrf": "x"}, 403), ({"csrf": given["csrf"]}, 422)):
            file = {"file": ("good.csv", ROWS)}
            assert (await olga.post("/runs/files", data=wrong, files=file)).status_code == status
        sent = await olga.post("/runs/files", data=given, files={"file": ("good.csv", ROWS)})
        assert sent.status_code == 303, sent.text
        assert sent.headers["location"] == f"/runs/{id}"
    async with stack.browser(OPERATOR) as browser:
        assert (await ended(browser, id))["state"] == "completed"
    async with stack.browser(token("alma", 1, "admin")) as admin:
        noted = (await admin.get("/api/v1/audit", params={"object": id})).json()["items"]
    [entry] = [each for each in noted if each["status"] == 303]
    assert entry["after"] == {"answer": "retry", "file": "good.csv"}


@pytest.mark.usefixtures("worker")
async def test_columns_of_a_parked_document_are_mapped_on_its_page(stack: Stack) -> None:
    content = b"Sachnummer,Description,Tagessatz,Farbe\nE-1,Crane,450,red\nE-2,Welder,12,blue\n"
    blob = await stack.resources.blobs.put(f"inbox/{uuid.uuid4().hex}.csv", content)
    project = f"P{uuid.uuid4().hex[:8]}"
    id = await parked(stack, project_id=project, blob_name=blob.name, map={"Tagessatz": "rate"})
    async with _signed_in(stack) as olga:
        page = await asking(olga, id, 'id="columns"')
        given = fields_of(page, "columns")
        number, rate, colour = (
            place_of(given, each) for each in ("Sachnummer", "Tagessatz", "Farbe")
        )
        assert "lacks the column code" in page and "(required)" in page
        assert (given[number], given[rate], given[colour]) == ("", "rate", "")
        assert "<li><bdi>E-1</bdi></li><li><bdi>E-2</bdi></li>" in page
        stale = await olga.post(f"/runs/{id}", data={**given, number: "code", "version": "old"})
        assert stale.status_code == 412 and 'role="alert"' in stale.text
        assert fields_of(stale.text, "columns")[number] == "code"
        german = (await olga.get(f"/runs/{id}", headers={"Accept-Language": "de"})).text
        assert "Was bedeuten die Spalten?" in german and "Antwort" in german
        for english in ("What do the columns", "Try again", "Stored as", "is read as the headers"):
            assert english not in german, english
        answered = await olga.post(f"/runs/{id}", data={**given, number: "code", colour: "-"})
        assert answered.status_code == 303, answered.text
    async with stack.browser(OPERATOR) as browser:
        done = await ended(browser, id)
    assert (done["state"], done["counts"]["created"]) == ("completed", 2)
    mapped = '{"Tagessatz": "rate", "Sachnummer": "code", "Farbe": "-"}'
    assert done["corrections"][-1]["changes"] == f"map: {mapped}"


@pytest.mark.usefixtures("worker")
async def test_a_field_moves_from_one_column_to_another(stack: Stack) -> None:
    content = b"Code,Code,Rate,Old rate\nE-1,x,450,1\n"
    blob = await stack.resources.blobs.put(f"inbox/{uuid.uuid4().hex}.csv", content)
    mapped = {"Old rate": "rate", "Rate": "code", "Farbe": "rate"}
    project = f"P{uuid.uuid4().hex[:8]}"
    id = await parked(stack, project_id=project, blob_name=blob.name, map=mapped)
    async with _signed_in(stack) as olga:
        given = fields_of(await asking(olga, id, 'id="columns"'), "columns")
        rate = place_of(given, "Rate")
        assert given[place_of(given, "Old rate")] == "rate" and given[rate] == "code"
        names = [text for name, text in given.items() if name.startswith("name_")]
        assert names == ["A", "B", "Rate", "Old rate", "Farbe"]
        colour = place_of(given, "Farbe")
        assert given[colour] == "rate"
        chosen = {**given, rate: "rate", "column-0": "code", colour: "-"}
        sent = await olga.post(f"/runs/{id}", data=chosen)
        assert sent.status_code == 303, sent.text
    async with stack.browser(OPERATOR) as browser:
        done = await ended(browser, id)
    assert (done["state"], done["counts"]["created"]) == ("completed", 1)
    changed = done["corrections"][0]["changes"].removeprefix("map: ")
    left_out = {"Old rate": "-", "Farbe": "-"}
    assert json.loads(changed) == {"A": "code", "Rate": "rate", **left_out}


@pytest.mark.usefixtures("worker")
async def test_rows_that_would_be_left_out_are_ticked_to_be_kept(stack: Stack) -> None:
    id = await parked(stack, left_out="ask")
    content = b"Code,Rate\nK-1,100\nK-2,50\nTotal,150\nCode,Rate\nK-3,7\n"
    async with stack.browser(OPERATOR) as olga, _signed_in(stack) as page:
        file = {"file": ("list.csv", content)}
        answered = await olga.post("/api/v1/documents/corrections", data={"id": id}, files=file)
        assert answered.status_code == 200, answered.text
        shown = await asking(page, id, 'id="left-out"')
        waiting = (await olga.get(f"/api/v1/documents/{id}")).json()
        assert waiting["question"]["field"] == "left_out"
        assert waiting["reason"].startswith("2 rows look like totals")
        assert [(each["line"], each["value"], each["reason"]) for each in waiting["problems"]] == [
            (4, "Total | 150", "left out: total"),
            (5, "Code | Rate", "left out: repeated header"),
        ]
        assert "Total | 150" in shown and "Keep all of them" in shown
        answer = {**fields_of(shown, "left-out"), "keep": "ticked"}
        none = await page.post(f"/runs/{id}", data=answer)
        assert none.status_code == 422 and "Tick the rows to keep" in none.text
        wrong = await page.post(f"/runs/{id}", data={**answer, "keep-0": "4", "keep-1": "four"})
        assert wrong.status_code == 422 and "keep_lines" in wrong.text
        assert 'value="4" aria-label="Keep line 4" checked' in wrong.text
        sent = await page.post(f"/runs/{id}", data={**answer, "keep-0": "4"})
        assert sent.status_code == 303, sent.text
        done = await ended(olga, id)
    assert (done["state"], done["counts"]["created"], done["problem_count"]) == ("completed", 4, 1)
    assert [each["line"] for each in done["problems"]] == [5]
    assert done["corrections"][-1]["changes"] == 'keep_lines: ["4"]'


@pytest.mark.usefixtures("worker")
async def test_a_document_is_submitted_by_a_form(stack: Stack) -> None:
    address = "/runs/new/document"
    async with _signed_in(stack) as olga, stack.browser("") as vera:
        await sign_in(vera, token("vera", 1, "viewer"))
        assert address in (await olga.get("/runs")).text
        assert address not in (await vera.get("/runs")).text
        assert (await vera.get(address)).status_code == 403
        german = (await olga.get(address, headers={"Accept-Language": "de"})).text
        for english in ("New document", "What is in the file?", "Needed for", "As the type says"):
            assert english not in german, english
        page = (await olga.get(address)).text
        given = {
            **{
                name: re.findall(f'name="{name}" value="([^"]+)"', page)[-1]
                for name in ("csrf", "key")
            },
            "document_type": "equipment",
            "project_id": "_odd",
            "strategy": "create_only",
            "sheet": "",
        }
        file = {"file": ("Kräne.csv", ROWS)}
        refused = await olga.post(address, data=given, files=file)
        assert refused.status_code == 422, refused.text
        beside = refused.text.split('id="project_id"')[1].split("</div>")[0]
        assert 'value="_odd"' in beside and 'aria-invalid="true"' in beside
        assert '<option value="equipment" selected>' in refused.text
        empty = await olga.post(address, data=given, files={"file": ("", b"")})
        assert empty.status_code == 422 and 'value="_odd"' in empty.text
        good = {**given, "project_id": f"P{uuid.uuid4().hex[:8]}"}
        sent = await olga.post(address, data=good, files=file)
        assert sent.status_code == 303, sent.text
        id = sent.headers["location"].removeprefix("/runs/")
        async with stack.browser(OPERATOR) as browser:
            assert (await ended(browser, id))["state"] == "completed"
        assert "Kräne.csv" in (await olga.get(f"/runs/{id}")).text
        again = await olga.post(address, data=good, files=file)
        assert again.headers["location"] == f"/runs/{id}"
        taken = await olga.post(address, data={**good, "csrf": "x"}, files=file)
        assert taken.status_code == 403
