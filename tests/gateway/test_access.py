"""Who may do what, over every operation that the OpenAPI document names."""

from collections.abc import AsyncIterator, Sequence

import pytest
import pytest_asyncio
from fastapi import FastAPI

from tests.support.access import (
    INVALID,
    Operation,
    finds_nothing_of_others,
    needs_a_token,
    needs_its_least_role,
    operations_of,
)
from tests.support.gateway import Stack, import_in
from workers.shared.gateway.access import LEAST
from workers.shared.services.identity import ROLES

pytestmark = pytest.mark.asyncio(loop_scope="session")

OURS = "City Marathon"
"""The event of our organisation."""


@pytest.fixture(scope="module")
def operations(stack: Stack) -> Sequence[Operation]:
    """All of them."""
    return operations_of(stack.app)


@pytest.fixture(scope="module")
def app(stack: Stack) -> FastAPI:
    """A gateway whose streams of events end at once, as its errands do, which no worker takes."""
    return stack.gateway(stopping=lambda: True, patience=0.2)


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


@pytest.mark.parametrize("kind", INVALID)
async def test_every_operation_needs_a_token(
    stack: Stack, operations: Sequence[Operation], kind: str
) -> None:
    await needs_a_token(stack.app, operations, kind)


@pytest.mark.parametrize("role", [None, *ROLES])
async def test_every_operation_needs_its_least_role(
    app: FastAPI, operations: Sequence[Operation], waiting: str, role: str | None
) -> None:
    await needs_its_least_role(app, operations, role, waiting)


async def test_strangers_find_nothing_of_an_organisation(
    stack: Stack, app: FastAPI, operations: Sequence[Operation], waiting: str
) -> None:
    def names(each: Operation) -> bool:
        return "{uuid}" in each.path

    await finds_nothing_of_others(app, operations, waiting, [OURS], names)
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
