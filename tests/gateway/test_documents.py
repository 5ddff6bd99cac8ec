"""Document imports that wait for a person, answered over HTTP and on their page."""

import json
import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx
import pytest
import pytest_asyncio

from tests.support.gateway import Stack, token
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

        async def send(**given: Any) -> httpx.Response:
            form = {"message": json.dumps({**message, **given})}
            file = {"file": ("Kräne.csv", ROWS)}
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
        browser.cookies.set("docflow_session", OPERATOR)
        yield browser


@pytest.mark.usefixtures("worker")
async def test_the_page_asks_and_takes_the_answer(stack: Stack) -> None:
    id = await parked(stack)
    async with _signed_in(stack) as olga:

        async def is_linked() -> bool:
            return f'href="/documents?id={id}"' in (await olga.get("/")).text

        await eventually(is_linked)
        page = await olga.get("/documents", params={"id": id})
        assert page.status_code == 200, page.text
        assert "is not in the blob store" in page.text
        csrf = page.text.split('name="csrf" value="')[1].split('"')[0]
        wrong = await olga.post(
            "/documents/answers",
            data={"csrf": csrf, "id": id, "verb": "retry", "map": "no equals sign"},
        )
        assert wrong.status_code == 422
        sent = await olga.post(
            "/documents/files",
            data={"csrf": csrf, "id": id, "sheet": ""},
            files={"file": ("good.csv", ROWS)},
        )
        assert sent.status_code == 303, sent.text
        assert sent.headers["location"] == f"/documents?id={id}"
    async with stack.browser(OPERATOR) as browser:
        assert (await ended(browser, id))["state"] == "completed"


@pytest.mark.usefixtures("worker")
async def test_rows_that_would_be_left_out_are_shown_and_kept_by_line(stack: Stack) -> None:
    id = await parked(stack, left_out="ask")
    content = b"Code,Rate\nK-1,100\nK-2,50\nTotal,150\nCode,Rate\nK-3,7\n"
    async with stack.browser(OPERATOR) as olga, _signed_in(stack) as page:
        file = {"file": ("list.csv", content)}
        answered = await olga.post("/api/v1/documents/corrections", data={"id": id}, files=file)
        assert answered.status_code == 200, answered.text
        waiting: dict[str, Any] = {}

        async def asks() -> bool:
            waiting.update((await olga.get(f"/api/v1/documents/{id}")).json())
            return waiting["question"] is not None

        await eventually(asks)
        assert waiting["question"]["field"] == "left_out"
        assert waiting["reason"].startswith("2 rows look like totals")
        assert [(each["line"], each["value"], each["reason"]) for each in waiting["problems"]] == [
            (4, "Total | 150", "left out: total"),
            (5, "Code | Rate", "left out: repeated header"),
        ]
        shown = (await page.get("/documents", params={"id": id})).text
        assert "Total | 150" in shown and "Lines to keep" in shown
        csrf = shown.split('name="csrf" value="')[1].split('"')[0]
        answer = {"csrf": csrf, "id": id, "verb": "retry", "field": "keep_lines"}
        wrong = await page.post("/documents/answers", data={**answer, "value": "four"})
        assert wrong.status_code == 422 and "keep_lines" in wrong.text
        sent = await page.post("/documents/answers", data={**answer, "value": "4"})
        assert sent.status_code == 303, sent.text
        done = await ended(olga, id)
    assert (done["state"], done["counts"]["created"], done["problem_count"]) == ("completed", 4, 1)
    assert [each["line"] for each in done["problems"]] == [5]
    assert done["corrections"][-1]["changes"] == 'keep_lines: ["4"]'
