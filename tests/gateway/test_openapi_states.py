"""Requests made up from the OpenAPI document, against imports in every state there is.

Answers have to be among those that the document declares, of the shapes that it declares.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final
from uuid import uuid4

import httpx
import hypothesis
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    ignored_auth,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)
from schemathesis.specs.openapi.schemas import OpenApiSchema

from activities.spreadsheets.store import SqlSpreadsheetStore
from tests.support.gateway import (
    GOOD,
    HEADER,
    STRANGE,
    TRIED,
    TRIED_EVENT,
    Stack,
    import_in,
    served,
    sheet,
    token,
)
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

CHECKS: Final = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    unsupported_method,
    ignored_auth,
]
FORMS: Final = {
    "/api/imports": ("importType", "contextId"),
    "/api/v1/uploads": ("import_type", "context_id"),
}
UNKNOWN: Final = "4b0c6b3c-5a0f-4b7e-9f64-5f2b8f4d7c11"
BAD: Final = ("Dora", "", "dora@example.org", "Senior (18+)")


async def test_every_endpoint_in_every_state_answers_as_documented(stack: Stack) -> None:
    # An event stream of an import that waits would never end otherwise.
    gateway = stack.gateway(stopping=lambda: True)
    async with (
        served(gateway) as address,
        stack.browser(token("tess", TRIED), address=address) as tess,
    ):
        document = (await tess.get("/openapi.json")).json()
        # Reading it takes longer than most endpoints.
        schema = schemathesis.openapi.from_dict(document)
        kept, seen = await _settled(stack, tess), set[int]()
        for path, method in _in_order(document["paths"]):
            changes = "{uuid}" in path and method != "get"
            pool = [*kept, *(await _waiting(tess) if changes else ())]
            seen |= await asyncio.to_thread(_ask, schema, address, path, method, pool)
    # Where it never comes this far, it has seen nothing but refusals of unknown imports.
    assert seen >= {200, 201, 202, 400, 404, 406, 409, 410, 412, 422}


def _in_order(paths: Mapping[str, Mapping[str, object]]) -> Sequence[tuple[str, str]]:
    """Endpoints that only read come first, the one that cancels comes last."""
    order = ("get", "put", "patch", "post", "delete")
    return sorted(
        ((path, method) for path, methods in paths.items() for method in methods),
        key=lambda endpoint: order.index(endpoint[1]),
    )


def _ask(
    schema: OpenApiSchema, address: str, path: str, method: str, pool: Sequence[str]
) -> set[int]:
    """Ask one endpoint a few times, also what does not fit; status codes of the answers."""
    operation = schema[path][method.upper()]
    headers = {"Authorization": f"Bearer {token('tess', TRIED)}"}
    seen: set[int] = set()
    modes = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    cases = st.one_of(*(operation.as_strategy(generation_mode=mode) for mode in modes))

    @hypothesis.seed(1)
    @settings(
        max_examples=6,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases, uuid=st.sampled_from(pool), fits=st.booleans())
    def ask(case: schemathesis.Case, uuid: str, fits: bool) -> None:
        if "uuid" in case.path_parameters:
            case.path_parameters["uuid"] = uuid
        if fits and path in FORMS and isinstance(case.body, dict):
            # No chance finds a type, an event and an organisation that there are.
            kind, context = FORMS[path]
            case.body = {
                kind: "EVENT_PARTICIPANT",
                context: TRIED_EVENT,
                "file": sheet(HEADER, *GOOD),
            }
        answer = case.call_and_validate(base_url=address, headers=headers, checks=CHECKS)
        seen.add(answer.status_code)

    ask()
    return seen


async def _settled(stack: Stack, tess: httpx.AsyncClient) -> Sequence[str]:
    """Imports to look at, and one that is not there."""
    bad = sheet(HEADER, *GOOD, BAD)
    done = await _import_in(tess, "COMPLETED", bad, autoStart="true")
    dry = await _import_in(tess, "COMPLETED", bad, autoStart="true", dryRun="true")
    failed = await _import_in(tess, "FAILED", b"a\0b")
    cancelled = await _import_in(tess, "COLUMN_MAPPING")
    await tess.delete(f"/api/imports/{cancelled}")
    purged = await _import_in(tess, "COMPLETED", bad, autoStart="true")
    assert await SqlSpreadsheetStore(stack.resources.database).purge(purged, datetime.now(UTC))
    undone = await _undone(tess)
    return [*await _waiting(tess), done, dry, failed, cancelled, purged, undone, UNKNOWN]


async def _waiting(tess: httpx.AsyncClient) -> Sequence[str]:
    """Imports that wait for a person, whatever that is going to be."""
    # A decision about a value is remembered: this one has not been seen before.
    rows = (*GOOD, ("Cleo", "Diaz", "cleo@example.org", f"Kids {uuid4()}"))
    odd = sheet(HEADER, *rows)
    return [
        await _import_in(tess, "COLUMN_MAPPING", sheet(STRANGE, *((*row, 42) for row in rows))),
        await _import_in(tess, "COLUMN_MAPPING", odd),
        await _import_in(tess, "CELL_MAPPING", odd, autoStart="true"),
    ]


async def _import_in(
    tess: httpx.AsyncClient, state: str, content: bytes | None = None, **fields: str
) -> str:
    return await import_in(tess, state, content, contextId=str(TRIED_EVENT), **fields)


async def _undone(tess: httpx.AsyncClient) -> str:
    uuid = await _import_in(tess, "COMPLETED", autoStart="true")
    await tess.post(f"/api/v1/uploads/{uuid}/undo")

    async def undone() -> bool:
        return (await tess.get(f"/api/v1/uploads/{uuid}/undo")).json()["state"] == "UNDONE"

    await eventually(undone)
    return uuid
