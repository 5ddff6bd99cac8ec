"""What the audit says of changes over HTTP, and who reads it."""

from typing import Any

import httpx
import pytest

from adapters.database.access import SqlAudit
from adapters.database.engine import open_database
from stack.children import free_port
from tests.support.gateway import Stack, import_in, page_of, sign_in, token, upload

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def entries(browser: httpx.AsyncClient, **wanted: str) -> list[dict[str, Any]]:
    """Entries of the audit, the oldest first."""
    answer = await browser.get("/api/v1/audit", params=wanted)
    assert answer.status_code == 200, answer.text
    return answer.json()["items"][::-1]


async def test_the_audit_lists_changes_and_refusals(stack: Stack) -> None:
    async with stack.browser(token("paula")) as paula:
        uuid = await import_in(paula, "COLUMN_MAPPING")
        await paula.put(f"/api/imports/{uuid}/column-mappings", json=[{"id": 1, "wrong": True}])
        await paula.get(f"/api/imports/{uuid}")
        await paula.delete(f"/api/imports/{uuid}", headers={"X-Request-Id": "r-7"})
    async with stack.browser(token("paula", 1, "viewer")) as viewer:
        await viewer.delete(f"/api/imports/{uuid}")
        await viewer.get("/api/v1/schedules")
    async with stack.browser(token("alma", 1, "admin")) as admin:
        found = await entries(admin, who="paula")
        assert [(each["action"], each["object"], each["status"]) for each in found] == [
            ("createImport", uuid, 201),
            ("putColumns", uuid, 422),
            ("cancelImport", uuid, 200),
            ("cancelImport", uuid, 403),
            ("listSchedules", None, 403),
        ]
        assert {(each["by"], each["organisation_id"]) for each in found} == {("person", 1)}
        assert (found[2]["request_id"], found[2]["from_where"]) == ("r-7", "127.0.0.1")
        assert await entries(admin, object=uuid) == found[:4]
        first = (await admin.get("/api/v1/audit", params={"who": "paula", "limit": 3})).json()
        rest = await entries(admin, who="paula", cursor=first["next"])
        assert [*rest, *first["items"][::-1]] == found
    async with stack.browser(token("otto", 2, "admin")) as stranger:
        assert await entries(stranger, organisation="1") == []
        assert await entries(stranger, who="paula") == []


async def test_an_entry_says_why_and_names_the_whole_object(stack: Stack) -> None:
    async with stack.browser(token("aline", 1, "admin")) as admin:
        why = {"reason": "a test"}
        await admin.post("/api/v1/rejected-messages/999999999/dismiss", json=why)
        await admin.post("/api/v1/schedules/none/pause", json=why)
        await admin.delete("/api/imports/none", params=why)
        await admin.post("/api/v1/webhooks/999999/messages/8/resend")
        found = await entries(admin, who="aline")
    assert [(each["action"], each["object"], each["reason"]) for each in found] == [
        ("dismissRejectedMessage", "999999999", "a test"),
        ("pauseSchedule", "none", "a test"),
        ("cancelImport", "none", "a test"),
        ("resendWebhookMessage", "999999/8", None),
    ]


async def test_forms_of_pages_are_in_the_audit(stack: Stack) -> None:
    session = token("piet")
    async with stack.browser(session) as piet:
        uuid = await import_in(piet, "COLUMN_MAPPING")
        await sign_in(piet, session)
        csrf = (await page_of(piet, uuid)).partition('name="csrf" value="')[2].partition('"')[0]
        left = await piet.post(f"/uploads/{uuid}/cancel", data={"csrf": csrf})
        assert left.status_code == 303
    async with stack.browser(token("alma", 1, "admin")) as admin:
        last = (await entries(admin, who="piet"))[-1]
    assert (last["action"], last["object"]) == ("POST /uploads/{uuid}/cancel", uuid)


async def test_nothing_changes_if_the_audit_cannot_be_written(stack: Stack) -> None:
    app = stack.gateway()
    async with open_database(f"postgresql://nobody@127.0.0.1:{free_port()}/none") as away:
        app.state.audit = SqlAudit(away)
        async with stack.browser(token("nick"), app=app) as nick:
            assert (await upload(nick)).status_code == 503
            assert (await nick.get("/api/v1/runs", params={"owner": "nick"})).json()["items"] == []
