"""What the gateway does not take, and how it says so."""

import asyncio
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from temporalio.client import Client

from activities.spreadsheets.store import SqlSpreadsheetStore
from stack.children import free_port
from tests.support.gateway import (
    GOOD,
    HEADER,
    Stack,
    build_app,
    import_in,
    sheet,
    token,
    upload,
    uploaded_files,
)
from tests.support.waiting import eventually
from workers.shared.plugin import docflow_plugin

pytestmark = pytest.mark.asyncio(loop_scope="session")


def problem(answer: httpx.Response, status: int, kind: str) -> str:
    """The sentence of a problem that must be one of this kind."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert body["status"] == status
    assert body["type"] == f"urn:docflow:problem:{kind}"
    assert body["title"]
    return body["detail"]


async def test_unknown_addresses_and_methods(stack: Stack) -> None:
    async with stack.browser() as anna:
        assert "no address /api/nothing" in problem(
            await anna.get("/api/nothing"), 404, "not-found"
        )
        refused = await anna.patch("/api/imports")
        assert "it takes GET" in problem(refused, 405, "method-not-allowed")
        assert "POST" in refused.headers["allow"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"importType": ""}, "importType"),
        ({"importType": "PEOPLE"}, "there is no import type PEOPLE; there are EVENT_PARTICIPANT"),
        ({"importType": "no type"}, "importType"),
        ({"contextId": ""}, "contextId"),
        ({"contextId": "seven"}, "contextId"),
        ({"contextId": "0"}, "contextId"),
        ({"contextId": "999999"}, "in your organisation"),
        ({"organisationId": "2"}, "not one of your organisations"),
        ({"autoStart": "maybe"}, "autoStart"),
        ({"autostart": "true"}, "autostart"),
        ({"headerLine": "0"}, "headerLine"),
        ({"delimiter": ";;"}, "delimiter"),
        ({"encoding": "../x"}, "encoding"),
    ],
)
async def test_invalid_fields(stack: Stack, fields: dict[str, str], said: str) -> None:
    kept = uploaded_files(stack)
    async with stack.browser() as anna:
        before = (await anna.get("/api/imports")).headers["x-total-count"]
        refused = await upload(anna, **fields)
        assert said in problem(refused, 422, "refused")
        assert (await anna.get("/api/imports")).headers["x-total-count"] == before
    assert uploaded_files(stack) == kept


async def test_files_that_are_no_spreadsheets(stack: Stack) -> None:
    async with stack.browser() as anna:
        refused = await upload(anna, b"%PDF-1.7\n", filename="scan.pdf")
        assert "PDF" in problem(refused, 415, "unsupported-file")
        refused = await anna.post("/api/imports", json={"importType": "RESULT"})
        assert "form upload" in problem(refused, 415, "unsupported-file")
        assert "empty" in problem(await upload(anna, b""), 422, "refused")


async def test_files_that_are_too_large(stack: Stack) -> None:
    small = stack.gateway(upload_limit=1000)
    async with stack.browser(app=small) as anna:
        assert (await upload(anna, sheet(HEADER, *GOOD))).status_code == 201
        refused = await upload(anna, sheet(HEADER, *GOOD * 100))
        assert "1,000 bytes" in problem(refused, 413, "too-large")
        refused = await upload(anna, b"a;b\n" * 500_000)
        problem(refused, 413, "too-large")


async def test_other_bodies_are_small(stack: Stack) -> None:
    async with stack.browser() as anna:
        refused = await anna.put("/api/imports/x/column-mappings", content=b"[" * 1_100_000)
        assert refused.status_code == 413
        assert refused.headers["content-type"] == "application/problem+json"


async def test_too_many_uploads(stack: Stack) -> None:
    app = stack.gateway(create_per_minute=2)
    async with stack.browser(token("rita"), app=app) as rita:
        answers = await asyncio.gather(*(upload(rita) for _ in range(6)))
        taken = [answer for answer in answers if answer.status_code == 201]
        assert len(taken) <= 2
        refused = await upload(rita)
        # Those that met each other may all have been refused: then there is room again.
        while refused.status_code == 201:
            refused = await upload(rita)
        assert "2 uploads a minute" in problem(refused, 429, "too-many-requests")
        assert 0 < int(refused.headers["retry-after"]) <= 60
    async with stack.browser(token("rolf"), app=app) as rolf:
        assert [(await upload(rolf)).status_code for _ in range(2)] == [201, 201]


async def test_one_caller_may_not_ask_without_end(stack: Stack) -> None:
    app = stack.gateway(requests_per_minute=3)
    async with stack.browser(app=app) as anna, stack.browser(token("rolf"), app=app) as rolf:
        assert [(await anna.get("/api/v1/runs")).status_code for _ in range(3)] == [200] * 3
        refused = await anna.get("/api/v1/runs")
        assert "3 requests a minute" in problem(refused, 429, "too-many-requests")
        assert 0 < int(refused.headers["retry-after"]) <= 60
        assert (await rolf.get("/api/v1/runs")).status_code == 200


async def test_an_unknown_query_parameter_is_a_mistake(stack: Stack) -> None:
    async with stack.browser() as anna:
        said = problem(await anna.get("/api/v1/runs?status=parked"), 422, "refused")
        assert said.startswith("status: is not a query parameter of this operation; it has")
        assert "state" in said


async def test_invalid_decisions(stack: Stack) -> None:
    async with stack.browser() as anna:
        uuid = await import_in(anna, "COLUMN_MAPPING")
        url = f"/api/imports/{uuid}/column-mappings"
        before = (await anna.get(url)).json()
        for decisions, said in (
            ([], "at least 1"),
            ([{"id": 1}], "exactly one"),
            ([{"id": 1, "confirm": True, "ignore": True}], "exactly one"),
            ([{"id": 1, "target": "EMAIL"}], "target"),
            ([{"id": 99, "ignore": True}], "no column 99"),
            ([{"id": 1, "ignore": True}, {"id": 1, "ignore": True}], "twice"),
            ([{"id": 1, "targetField": "SHOE_SIZE"}], "no field SHOE_SIZE"),
            ([{"id": 1, "targetField": "EMAIL"}, {"id": 3, "targetField": "EMAIL"}], "fill Email"),
            ([{"id": n + 1, "ignore": True} for n in range(300)], "at most 256"),
            ("x", "list"),
        ):
            refused = await anna.put(url, json=decisions)
            assert said in problem(refused, 422, "refused")
        refused = await anna.put(url, content=b"[", headers={"content-type": "application/json"})
        assert refused.status_code == 422
        assert (await anna.get(url)).json() == before


async def test_two_people_at_once(stack: Stack) -> None:
    async with stack.browser() as anna, stack.browser(token("ben")) as ben:
        uuid = await import_in(anna, "COLUMN_MAPPING")
        url = f"/api/imports/{uuid}/column-mappings"
        seen = (await anna.get(url)).headers["etag"]
        body = [{"id": 3, "ignore": True}]
        answers = await asyncio.gather(
            anna.put(url, json=body, headers={"if-match": seen}),
            ben.put(url, json=body, headers={"if-match": seen}),
        )
        assert sorted(answer.status_code for answer in answers) == [202, 412]
        late = next(answer for answer in answers if answer.status_code == 412)
        problem(late, 412, "version-conflict")
        current = (await anna.get(url)).headers["etag"]
        assert late.headers["etag"] == current

        for tag in (f"W/{current}", '"999"', "nonsense", f'{seen}, "999"'):
            problem(
                await ben.put(url, json=body, headers={"if-match": tag}), 412, "version-conflict"
            )
        either = f"{seen}, {current}"
        assert (await ben.put(url, json=body, headers={"if-match": either})).status_code == 202
        assert (await ben.put(url, json=body, headers={"if-match": "*"})).status_code == 202
        assert (await ben.put(url, json=body)).status_code == 202
        confirm = await ben.post(f"{url}/confirm", headers={"if-match": seen})
        problem(confirm, 412, "version-conflict")


async def test_answers_in_the_wrong_state(stack: Stack) -> None:
    async with stack.browser() as anna:
        uuid = await import_in(anna, "COLUMN_MAPPING")
        url = f"/api/imports/{uuid}"
        problem(
            await anna.put(f"{url}/cell-mappings", json=[{"id": 1, "ignore": True}]),
            409,
            "wrong-state",
        )
        problem(await anna.post(f"{url}/cell-mappings/confirm"), 409, "wrong-state")
        upload, run = f"/api/v1/uploads/{uuid}", f"/api/v1/runs/spreadsheet/{uuid}"
        problem(await anna.post(f"{run}/retry"), 409, "wrong-state")
        problem(await anna.post(f"{upload}/undo"), 409, "wrong-state")
        problem(await anna.get(f"{run}/report"), 409, "wrong-state")
        await anna.delete(url)
        for method, path, body in (
            ("put", f"{url}/column-mappings", [{"id": 1, "ignore": True}]),
            ("post", f"{url}/column-mappings/confirm", None),
            ("post", f"{url}/start", None),
            ("delete", url, None),
            ("patch", upload, {"layout": {}}),
            ("patch", upload, {"assignee": {"to": "ben"}}),
            ("patch", f"{upload}/columns", {"decisions": [{"id": 1, "ignore": True}]}),
            ("post", f"{upload}/confirm", {"what": "all"}),
            ("post", f"{run}/cancel", None),
        ):
            problem(await anna.request(method, path, json=body), 409, "wrong-state")


async def test_candidates_are_for_fields_that_refer_to_something(stack: Stack) -> None:
    async with stack.browser() as anna:
        uuid = await import_in(anna, "COLUMN_MAPPING")
        url = f"/api/imports/{uuid}/cell-mappings/candidates"
        for field in ("FIRST_NAME", "NO_SUCH_FIELD", "lower"):
            problem(await anna.get(url, params={"targetField": field}), 422, "refused")
        problem(await anna.get(url), 422, "refused")


@pytest.mark.parametrize(
    "query",
    ["page=-1", "page=x", "size=0", "size=201", "status=UNKNOWN", "organisationId=0", "page=1e9"],
)
async def test_pages_that_there_cannot_be(stack: Stack, query: str) -> None:
    async with stack.browser() as anna:
        problem(await anna.get(f"/api/imports?{query}"), 422, "refused")


async def test_what_was_purged_is_gone(stack: Stack) -> None:
    async with stack.browser() as anna:
        uuid = await import_in(anna, "COMPLETED", autoStart="true")
        assert await SqlSpreadsheetStore(stack.resources.database).purge(uuid, datetime.now(UTC))
        url = f"/api/imports/{uuid}"
        upload = f"/api/v1/uploads/{uuid}"
        for path in (
            *(f"{url}/{each}" for each in ("column-mappings", "cell-mappings", "results")),
            *(f"{upload}/{each}" for each in ("columns", "values", "preview", "results")),
            f"/api/v1/runs/spreadsheet/{uuid}/report",
        ):
            assert "retention" in problem(await anna.get(path), 410, "gone")
        problem(await anna.post(f"{url}/start"), 410, "gone")
        status = await anna.get(url, params={"includeMappings": "true"})
        assert status.json()["purgedAt"]
        assert status.json()["createdBy"] != "anna"
        assert (await anna.get(f"{upload}/decisions")).status_code == 200


async def test_what_cannot_be_undone_any_more(stack: Stack) -> None:
    async with stack.browser() as anna:
        uuid = await import_in(anna, "COMPLETED", autoStart="true")
        later = datetime.now(UTC) + timedelta(days=1)
        while await SqlSpreadsheetStore(stack.resources.database).purge_journals(later, 100):
            pass
        refused = await anna.post(f"/api/v1/uploads/{uuid}/undo")
        assert "are no longer kept" in problem(refused, 409, "wrong-state")


async def test_temporal_is_unavailable(stack: Stack) -> None:
    nowhere = await Client.connect(
        f"127.0.0.1:{free_port()}", lazy=True, plugins=[docflow_plugin()]
    )
    async with stack.browser() as anna:
        uuid = await import_in(anna, "COLUMN_MAPPING")
    app, _ = build_app(nowhere, stack.resources)
    async with stack.browser(app=app) as anna:
        assert (await anna.get(f"/api/imports/{uuid}")).status_code == 200
        for answer in (
            await anna.put(
                f"/api/imports/{uuid}/column-mappings", json=[{"id": 1, "ignore": True}]
            ),
            await anna.get("/api/inbox"),
            await upload(anna),
        ):
            problem(answer, 503, "unavailable")
            assert int(answer.headers["retry-after"]) > 0
        ready = await anna.get("/health/ready")
        assert (ready.status_code, ready.json()["status"]) == (503, "not ready")
        [why] = ready.json()["problems"]
        assert why.startswith("search attributes: Temporal does not answer")
        assert (await anna.get("/health/live")).status_code == 200


async def test_ready(stack: Stack) -> None:
    async with stack.browser("") as balancer:
        assert (await balancer.get("/health/ready")).json() == {"status": "ready"}


async def test_unexpected_errors_reveal_nothing(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: object) -> None:
        raise RuntimeError("secret of the database")

    monkeypatch.setattr(stack.app.state.inbox, "read", fails)
    transport = httpx.ASGITransport(stack.app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        answer = await client.get("/api/inbox", headers={"authorization": f"Bearer {token()}"})
    assert "secret" not in problem(answer, 500, "internal")


async def test_responses_carry_security_headers(stack: Stack) -> None:
    async with stack.browser() as anna:
        for path in ("/api/imports", "/api/nothing", "/health/live", "/openapi.json"):
            headers = (await anna.get(path)).headers
            policy = headers["content-security-policy"]
            assert "frame-ancestors 'none'" in policy
            assert "unsafe-inline" not in policy
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["referrer-policy"] == "same-origin"
            assert headers["cache-control"] == "no-store"
            assert "strict-transport-security" not in headers
    https = stack.gateway(public_url="https://docflow.example.org")
    async with stack.browser(app=https) as anna:
        headers = (await anna.get("/health/live")).headers
        assert headers["strict-transport-security"]


async def test_other_sites_are_closed_out_unless_named(stack: Stack) -> None:
    asked = {"origin": "https://club.example.org", "access-control-request-method": "PUT"}
    async with stack.browser("") as script:
        answer = await script.options("/api/imports", headers=asked)
        assert "access-control-allow-origin" not in answer.headers
    opened = stack.gateway(cors_origins=("https://club.example.org",))
    async with stack.browser("", app=opened) as script:
        for method in ("PUT", "PATCH"):
            wanted = {**asked, "access-control-request-method": method}
            answer = await script.options("/api/v1/uploads/x/columns", headers=wanted)
            assert (answer.status_code, method) == (200, method), answer.text
            assert answer.headers["access-control-allow-origin"] == "https://club.example.org"
        assert "access-control-allow-credentials" not in answer.headers
        other = {**asked, "origin": "https://evil.example.org"}
        refused = await script.options("/api/imports", headers=other)
        assert "access-control-allow-origin" not in refused.headers
        problem_ = await script.get("/api/imports", headers={"origin": "https://club.example.org"})
        assert problem_.headers["access-control-allow-origin"] == "https://club.example.org"


async def test_two_gateways_are_one(stack: Stack) -> None:
    other = stack.gateway()
    async with stack.browser() as anna, stack.browser(app=other) as elsewhere:
        uuid = await import_in(anna, "COLUMN_MAPPING")
        url = f"/api/imports/{uuid}"
        assert (await elsewhere.get(url)).json()["status"] == "COLUMN_MAPPING"
        tag = (await anna.get(f"{url}/column-mappings")).headers["etag"]
        body = [{"id": 4, "ignore": True}]
        answer = await elsewhere.put(f"{url}/column-mappings", json=body, headers={"if-match": tag})
        assert answer.status_code == 202
        late = await anna.put(f"{url}/column-mappings", json=body, headers={"if-match": tag})
        problem(late, 412, "version-conflict")
        assert (await anna.post(f"{url}/start")).status_code == 202

        async def completed() -> bool:
            return (await elsewhere.get(url)).json()["status"] == "COMPLETED"

        await eventually(completed)
        # It is remembered that the column was left out, which concerns no other test.
        learnt = {"import_type": "EVENT_PARTICIPANT", "header": HEADER[3]}
        gone = await anna.delete("/api/v1/uploads/memory/columns", params=learnt)
        assert gone.status_code == 204, gone.text
