"""What operators keep for all pipelines, over `/api/v1`."""

import pytest

from tests.support.gateway import Stack, token
from workers.shared.schedules import reconcile

pytestmark = pytest.mark.asyncio(loop_scope="session")
OPERATOR = token("olga", 1, "operator")
SCHEDULE = "/api/v1/schedules/imports-retention"
REJECTED = "/api/v1/rejected-messages"


async def test_the_note_of_a_schedule_says_who_and_why(stack: Stack) -> None:
    await reconcile(stack.client, ["imports"])
    async with stack.browser(OPERATOR) as olga:
        paused = await olga.post(f"{SCHEDULE}/pause", json={"reason": "audit"})
        assert paused.status_code == 200, paused.text
        assert (paused.json()["state"], paused.json()["note"]) == (
            "paused",
            "olga paused it: audit",
        )
        assert (await olga.post(f"{SCHEDULE}/trigger")).json()["note"] == "olga triggered it"
        assert (await olga.get(SCHEDULE)).json()["state"] == "paused"
        assert (await olga.post(f"{SCHEDULE}/resume")).json()["state"] == "active"
        items = (await olga.get("/api/v1/schedules")).json()["items"]
        states = {each["id"]: each["state"] for each in items}
        assert (states["imports-retention"], states["job-retention"]) == ("active", "missing")
        assert (await olga.post("/api/v1/schedules/job-retention/pause")).status_code == 404
        assert (await olga.get("/api/v1/schedules/x")).status_code == 404


async def test_rejected_messages_are_listed_and_dismissed(stack: Stack) -> None:
    for number in range(3):
        await stack.resources.rejected.record("kept", f"m{number}", "InvalidMessage", "why", b"{")
    async with stack.browser(OPERATOR) as olga:
        first = (await olga.get(REJECTED, params={"queue": "kept", "limit": 2})).json()
        assert [each["message_id"] for each in first["items"]] == ["m2", "m1"]
        assert "body" not in first["items"][0]
        rest = (await olga.get(REJECTED, params={"queue": "kept", "cursor": first["next"]})).json()
        assert ([each["message_id"] for each in rest["items"]], rest["next"]) == (["m0"], None)
        at = f"{REJECTED}/{rest['items'][0]['id']}"
        assert (await olga.get(at)).json()["body"] == "{"
        done = (await olga.post(f"{at}/dismiss", json={"reason": "a test"})).json()
        assert (done["by"], done["note"], done["dismissed_at"] is None) == ("olga", "a test", False)
        left = (await olga.get(REJECTED, params={"queue": "kept", "open": True})).json()["items"]
        assert [each["message_id"] for each in left] == ["m2", "m1"]
        assert (await olga.get(f"{REJECTED}/999999")).status_code == 404


@pytest.mark.parametrize("path", ["/api/v1/schedules", REJECTED])
async def test_what_operators_keep_is_theirs(stack: Stack, path: str) -> None:
    async with stack.browser(token("ida")) as ida:
        assert (await ida.get(path)).status_code == 403
