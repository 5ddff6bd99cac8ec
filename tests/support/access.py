"""Every operation of a gateway, tried with each role, another organisation's token, and none."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import httpx
from fastapi import FastAPI
from joserfc import jwt
from joserfc.jwk import OctKey

from tests.support.gateway import KEY, TOKENS
from workers.shared.gateway.access import LEAST, Least
from workers.shared.services.identity import ROLES

UNKNOWN: Final = "5b0d0f3e-7b1c-4c0f-9f1e-3a2f4c1d6e8b"
SENT: Final[Sequence[dict[str, Any]]] = (
    {},
    {"content": "{", "headers": {"content-type": "application/json"}},
)
"""No body, and one that cannot be read: access comes before it."""


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


def operations_of(app: FastAPI, below: str = "/") -> Sequence[Operation]:
    """The operations of a gateway whose path begins so."""
    return [
        Operation(described["operationId"], method.upper(), path)
        for path, methods in app.openapi()["paths"].items()
        if path.startswith(below)
        for method, described in methods.items()
    ]


def signed(roles: Any, *, expires: int = 60, organisations: Sequence[int] = (1,)) -> str:
    """A token with any claim of roles."""
    claims = {
        "iss": TOKENS.issuer,
        "aud": TOKENS.audience,
        "sub": "nora",
        "exp": int(time.time()) + expires,
        "organisations": list(organisations),
        "roles": roles,
    }
    return jwt.encode({"alg": "HS256"}, claims, OctKey.import_key(KEY))


def caller(app: FastAPI, bearer: str) -> httpx.AsyncClient:
    """A program with a token; an empty one: without."""
    headers = {"authorization": f"Bearer {bearer}"} if bearer else {}
    transport = httpx.ASGITransport(app)
    return httpx.AsyncClient(
        transport=transport, base_url="http://gateway", headers=headers, timeout=60
    )


INVALID: Final[Mapping[str, tuple[str, str]]] = {
    "none": ("", "Bearer"),
    "malformed": ("x.y.z", 'Bearer error="invalid_token"'),
    "expired": (signed(["admin"], expires=-60), 'Bearer error="invalid_token"'),
}
"""Tokens that open nothing, each with what is asked of who sends it."""


async def needs_a_token(app: FastAPI, operations: Sequence[Operation], kind: str) -> None:
    """Every operation refuses a token of `INVALID`."""
    bearer, challenge = INVALID[kind]
    async with caller(app, bearer) as anonymous:
        for each in operations:
            for sent in SENT:
                refused = await each.ask(anonymous, **sent)
                assert refused.status_code == 401, each
                assert refused.headers["www-authenticate"] == challenge, each
                assert refused.headers["content-type"] == "application/problem+json", each


async def needs_its_least_role(
    app: FastAPI,
    operations: Sequence[Operation],
    role: str | None,
    theirs: str,
    unknown: Callable[[Operation], str] = lambda each: UNKNOWN,
) -> None:
    """Every operation is open to its role, in all organisations or in one, and to no lesser one.

    Args:
        app: The gateway.
        operations: Of it.
        role: That the caller has; None: one that docflow does not know.
        theirs: Id of something that there is, for callers who are refused.
        unknown: Id of something that there is not, for the others.
    """
    roles = ["importer"] if role is None else [role]
    everywhere, ours = signed(roles), signed({"1": roles})
    for each in operations:
        enough = role is not None and ROLES.index(role) >= ROLES.index(each.least.role)
        for bearer in (everywhere, ours):
            may = enough and not (each.least.of_all and bearer == ours)
            async with caller(app, bearer) as browser:
                # Without the role it is refused before anything is looked at.
                id = unknown(each) if may else theirs
                for sent in SENT:
                    answer = await each.ask(browser, id, **sent)
                    assert (answer.status_code not in (401, 403)) == may, (each, answer.text)
                    if not may and role is not None:
                        assert each.least.role in answer.json()["detail"], each


async def finds_nothing_of_others(
    app: FastAPI,
    operations: Sequence[Operation],
    theirs: str,
    secrets: Sequence[str],
    names: Callable[[Operation], bool],
) -> None:
    """What belongs to organisation 1 does not exist for members of organisation 2.

    Args:
        app: The gateway.
        operations: Of it.
        theirs: Id of something of organisation 1.
        secrets: Texts that stand in no answer.
        names: Whether the path of an operation names such a thing.
    """
    for each in operations:
        stranger = signed({"2": [each.least.role]}, organisations=[2])
        async with caller(app, stranger) as browser:
            answer = await each.ask(browser, theirs)
            if each.least.of_all:
                assert answer.status_code == 403, each
            elif names(each):
                unknown = await each.ask(browser)
                assert answer.status_code == unknown.status_code in (404, 422), (each, answer.text)
                said = answer.text.replace(theirs, UNKNOWN)
                assert said == unknown.text, each
            for secret in secrets:
                assert secret not in answer.text, each
            if each.name == "listAudit":
                # What they have tried stands there, with the id that they wrote.
                entries = answer.json()["items"]
                assert {entry["organisation_id"] for entry in entries} <= {2}, each
            else:
                assert answer.status_code >= 400 or theirs not in answer.text, each
