"""Who may do what, over every operation that the OpenAPI document names."""

import re
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import pytest_asyncio
from fastapi import FastAPI
from joserfc import jwt
from joserfc.jwk import OctKey

from tests.support.gateway import KEY, TOKENS, Stack, import_in
from workers.shared.gateway.access import LEAST, Least
from workers.shared.services.identity import ROLES

pytestmark = pytest.mark.asyncio(loop_scope="session")

UNKNOWN = "5b0d0f3e-7b1c-4c0f-9f1e-3a2f4c1d6e8b"
SENT: Sequence[dict[str, Any]] = (
    {},
    {"content": "{", "headers": {"content-type": "application/json"}},
)
"""No body, and one that cannot be read: access comes before it."""
OURS = "City Marathon"
"""The event of our organisation."""


@dataclass(frozen=True)
class Operation:
    """One of the document."""

    name: str
    method: str
    path: str

    @property
    def least(self) -> Least:
        return LEAST[self.name]

    async def ask(
        self, browser: httpx.AsyncClient, id: str = UNKNOWN, **sent: Any
    ) -> httpx.Response:
        """Send it without a body, with one id for whatever its path names."""
        path = re.sub(r"\{number\}", "1", self.path)
        return await browser.request(self.method, re.sub(r"\{\w+\}", id, path), **sent)


def signed(roles: Any, *, expires: int = 60) -> str:
    """A token with any claim of roles."""
    claims = {
        "iss": TOKENS.issuer,
        "aud": TOKENS.audience,
        "sub": "nora",
        "exp": int(time.time()) + expires,
        "organisations": [1],
        "roles": roles,
    }
    return jwt.encode({"alg": "HS256"}, claims, OctKey.import_key(KEY))


@pytest.fixture(scope="module")
def operations(stack: Stack) -> Sequence[Operation]:
    """All of them."""
    return [
        Operation(described["operationId"], method.upper(), path)
        for path, methods in stack.app.openapi()["paths"].items()
        for method, described in methods.items()
    ]


@pytest.fixture(scope="module")
def app(stack: Stack) -> FastAPI:
    """A gateway whose streams of events end at once."""
    return stack.gateway(stopping=lambda: True)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def waiting(stack: Stack) -> AsyncIterator[str]:
    """An import of our organisation that waits for a person."""
    async with stack.browser() as anna:
        uuid = await import_in(anna, "COLUMN_MAPPING")
        yield uuid
        await anna.delete(f"/api/imports/{uuid}")


async def test_every_operation_has_a_least_role(operations: Sequence[Operation]) -> None:
    named = [each.name for each in operations]
    assert sorted(set(named) - LEAST.keys()) == [], "add them to workers/shared/gateway/access.py"
    assert len(named) == len(set(named)) >= 60


@pytest.mark.parametrize(
    ("bearer", "challenge"),
    [
        ("", "Bearer"),
        ("x.y.z", 'Bearer error="invalid_token"'),
        (signed(["admin"], expires=-60), 'Bearer error="invalid_token"'),
    ],
    ids=["none", "malformed", "expired"],
)
async def test_every_operation_needs_a_token(
    stack: Stack, operations: Sequence[Operation], bearer: str, challenge: str
) -> None:
    async with stack.browser(bearer) as anonymous:
        for each in operations:
            for sent in SENT:
                refused = await each.ask(anonymous, **sent)
                assert refused.status_code == 401, each
                assert refused.headers["www-authenticate"] == challenge, each
                assert refused.headers["content-type"] == "application/problem+json", each


@pytest.mark.parametrize("role", [None, *ROLES])
async def test_every_operation_needs_its_least_role(
    stack: Stack, app: FastAPI, operations: Sequence[Operation], waiting: str, role: str | None
) -> None:
    roles = ["importer"] if role is None else [role]
    everywhere, ours = signed(roles), signed({"1": roles})
    for each in operations:
        enough = role is not None and ROLES.index(role) >= ROLES.index(each.least.role)
        for bearer in (everywhere, ours):
            may = enough and not (each.least.of_all and bearer == ours)
            async with stack.browser(bearer, app=app) as browser:
                # Without the role it is refused before anything is looked at.
                id = UNKNOWN if may else waiting
                for sent in SENT:
                    answer = await each.ask(browser, id, **sent)
                    assert (answer.status_code not in (401, 403)) == may, (each, answer.text)
                    if not may and role is not None:
                        assert each.least.role in answer.json()["detail"], each


async def test_strangers_find_nothing_of_an_organisation(
    stack: Stack, app: FastAPI, operations: Sequence[Operation], waiting: str
) -> None:
    for each in operations:
        async with stack.browser(signed({"2": [each.least.role]}), app=app) as stranger:
            theirs = await each.ask(stranger, waiting)
            if each.least.of_all:
                assert theirs.status_code == 403, each
            elif "{uuid}" in each.path:
                unknown = await each.ask(stranger)
                assert theirs.status_code == unknown.status_code in (404, 422), each
                assert theirs.json() == unknown.json(), each
            assert OURS not in theirs.text, each
            assert theirs.status_code >= 400 or waiting not in theirs.text, each
    async with stack.browser() as anna:
        assert (await anna.get(f"/api/imports/{waiting}")).json()["status"] == "COLUMN_MAPPING"
        assert OURS in (await anna.get("/api/v1/uploads/contexts")).text


@pytest.mark.parametrize(
    "uuid", ["x", "0" * 36, "%2e%2e", "5B0D0F3E-7B1C-4C0F-9F1E-3A2F4C1D6E8B", "a'--", "\u0660" * 8]
)
async def test_what_names_no_import_is_not_found(stack: Stack, uuid: str) -> None:
    async with stack.browser() as anna:
        assert (await anna.get(f"/api/imports/{uuid}")).status_code == 404


async def test_a_body_is_read_after_access_is_checked(stack: Stack, waiting: str) -> None:
    async with stack.browser() as anna:
        for content in ("{", '{"no": "field"}'):
            refused = await anna.put(
                f"/api/imports/{waiting}/column-mappings",
                content=content,
                headers={"content-type": "application/json"},
            )
            assert refused.status_code == 422
