"""Tokens of programs: made, used, listed, revoked, and worth no more than their maker."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import update

from adapters.database.access import SqlApiTokens
from adapters.database.models.access import api_tokens
from tests.support.gateway import TOKENS, Stack, import_in, token
from workers.shared.gateway.http.auth import ProgramTokens, Tokens, Unauthorised

pytestmark = pytest.mark.asyncio(loop_scope="session")

NEW: dict[str, Any] = {"name": "planning", "organisation_id": 1, "roles": ["mapper"]}
ADMIN = token("alma", 1, "admin")


async def made(stack: Stack, **changes: Any) -> dict[str, Any]:
    async with stack.browser(ADMIN) as admin:
        answer = await admin.post("/api/v1/tokens", json={**NEW, **changes})
    assert answer.status_code == 201, answer.text
    assert answer.headers["location"] == f"/api/v1/tokens/{answer.json()['id']}"
    return answer.json()


async def test_a_program_uploads_with_its_token_until_revoked(stack: Stack) -> None:
    new = await made(stack)
    assert new["token"].startswith(new["beginning"]) and len(new["beginning"]) < 20
    async with stack.browser(new["token"]) as program, stack.browser(ADMIN) as admin:
        uuid = await import_in(program, "COLUMN_MAPPING")
        assert (await program.get("/api/v1/schedules")).status_code == 403
        assert (await program.get("/api/v1/tokens")).status_code == 403
        at = f"/api/v1/tokens/{new['id']}"
        shown = (await admin.get(at)).json()
        assert (shown["made_by"], shown["last_used_at"] is not None) == ("alma", True)
        assert shown in (await admin.get("/api/v1/tokens")).json()["items"]
        params = {"who": f"planning (token {new['id']})"}
        noted = (await admin.get("/api/v1/audit", params=params)).json()["items"]
        assert [(each["by"], each["object"], each["status"]) for each in noted] == [
            *[("token", None, 403)] * 2,
            ("token", uuid, 201),
        ]
        await program.delete(f"/api/imports/{uuid}")
        assert (await admin.delete(at)).status_code == 204
        revoked = (await admin.get(at)).json()["revoked_at"]
        assert (await admin.delete(at)).status_code == 204
        assert (await admin.get(at)).json()["revoked_at"] == revoked
    # Another gateway has not read it before.
    async with stack.browser(new["token"], app=stack.gateway()) as program:
        refused = await program.get("/api/imports")
    assert (refused.status_code, "revoked" in refused.json()["detail"]) == (401, True)
    async with stack.browser(ADMIN) as admin:
        trail = (await admin.get("/api/v1/audit", params={"object": str(new["id"])})).text
    assert '"makeToken"' in trail and '"revokeToken"' in trail
    assert new["token"].rpartition("_")[2] not in trail


async def test_a_revoked_token_is_refused_within_seconds(stack: Stack) -> None:
    new, now = await made(stack), [0.0]
    store = SqlApiTokens(stack.resources.database)
    gateway = ProgramTokens(store, clock=lambda: now[0])
    who = (await gateway.verify(new["token"])).who
    assert (who.may("mapper", 1), who.may("operator", 1), who.may("viewer")) == (True, False, False)
    await store.revoke(new["id"])
    now[0] = 10.0
    with pytest.raises(Unauthorised, match="revoked"):
        await gateway.verify(new["token"])


async def test_only_the_text_that_was_made_is_accepted(stack: Stack) -> None:
    new = await made(stack, expires_at=(datetime.now(UTC) + timedelta(days=1)).isoformat())
    tokens = Tokens(TOKENS, SqlApiTokens(stack.resources.database))
    assert (await tokens.identify(new["token"])).by == "token"
    prefix, _, secret = new["token"].rpartition("_")
    for wrong in (
        *(f"{prefix}_{secret[:-1]}", f"{prefix}_", prefix, f"docflow_0_{secret}"),
        *(f"docflow_{'9' * 19}_{secret}", f"docflow_x_{secret}", f"docflow_\u0661_{secret}"),
    ):
        with pytest.raises(Unauthorised, match="nobody made it"):
            await tokens.identify(wrong)
    with pytest.raises(Unauthorised):
        await Tokens(TOKENS).identify(new["token"])
    passed = update(api_tokens).where(api_tokens.c.id == new["id"])
    async with stack.resources.database.transaction() as connection:
        await connection.execute(passed.values(expires_at=datetime.now(UTC)))
    with pytest.raises(Unauthorised, match="expired"):
        await Tokens(TOKENS, SqlApiTokens(stack.resources.database)).identify(new["token"])


async def test_a_token_is_worth_no_more_than_its_maker(stack: Stack) -> None:
    program = (await made(stack, roles=["admin"]))["token"]
    cases: Sequence[tuple[str, dict[str, Any], int]] = (
        (ADMIN, {"organisation_id": 2}, 403),
        (ADMIN, {"organisation_id": None}, 201),
        (token("olga", 1, "operator"), {}, 403),
        (program, {}, 403),
        (ADMIN, {"roles": []}, 422),
        (ADMIN, {"roles": ["boss"]}, 422),
        (ADMIN, {"name": "a\nb"}, 422),
        (ADMIN, {"expires_at": "2020-01-01T00:00:00Z"}, 422),
        (ADMIN, {"secret": "mine"}, 422),
    )
    for bearer, changes, status in cases:
        async with stack.browser(bearer) as browser:
            answer = await browser.post("/api/v1/tokens", json={**NEW, **changes})
        assert answer.status_code == status, (changes, answer.text)
    ours = (await made(stack))["id"]
    async with stack.browser(token("otto", 2, "admin")) as stranger:
        assert (await stranger.get(f"/api/v1/tokens/{ours}")).status_code == 404
        assert (await stranger.delete(f"/api/v1/tokens/{ours}")).status_code == 404
        listed = (await stranger.get("/api/v1/tokens")).json()["items"]
        assert {each["organisation_id"] for each in listed} <= {2, None}
