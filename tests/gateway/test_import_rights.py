"""Who may import rows of a declared type: every door asks for a role that the type names."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Final

import httpx
import pytest
import pytest_asyncio

from adapters.types.files import read_type
from adapters.types.store import SqlDeclaredTypes
from tests.support.gateway import Stack, eventually, import_in, sign_in, token, upload
from workers.imports.register import IMPORTS
from workers.imports.resources import import_resources
from workers.imports.settings import RunSettings
from workers.shared.worker_factory import build_worker
from workers.spreadsheets.v1 import PREFIX

pytestmark = pytest.mark.asyncio(loop_scope="session")

PEOPLE: Final = ("mapper", "operator", "admin")
"""Roles, the least first; each is a person of its own."""
_TYPE: Final = "key: [tool]\nfields:\n  tool: {kind: code, required: true}\n"
TYPES: Final = (
    f"name: guarded\ntitle: Guarded\nscope: [organisation_id]\nmay_import: [operator]\n{_TYPE}",
    f"name: sealed\ntitle: Sealed\nscope: []\nmay_import: [admin]\n{_TYPE}",
    f"name: shared\ntitle: Shared\nscope: []\n{_TYPE}",
    "name: asking\ntitle: Asking\nscope: [organisation_id]\n"
    f"{_TYPE}  of: {{kind: reference, to: guarded}}\n",
    "name: creating\ntitle: Creating\nscope: [organisation_id]\n"
    f"{_TYPE}  of: {{kind: reference, to: guarded, unknown: create}}\n",
    "name: creating_sealed\ntitle: Creating sealed\nscope: []\nmay_import: [operator]\n"
    f"{_TYPE}  of: {{kind: reference, to: sealed, unknown: create}}\n",
)
UPLOADS: Final[Mapping[str, str]] = {
    "guarded": "operator",
    "asking": "mapper",
    "creating": "operator",
    "shared": "operator",
    "sealed": "admin",
    "creating_sealed": "admin",
}
"""Type of an upload to the least role."""
DOCUMENTS: Final[Mapping[str, str]] = {**UPLOADS, "asking": "operator"}
_EXCLUDE: Final[dict[str, Any]] = {"json": {"kind": "EXCLUDE", "rows": [2]}}
_FILE: Final[dict[str, Any]] = {"files": {"file": ("tools.csv", b"tool,of\nT-1,G-1\n")}}
ANSWERS: Final[Mapping[str, Sequence[tuple[str, dict[str, Any]]]]] = {
    "/api/imports/{uuid}": [("delete", {})],
    "/api/imports/{uuid}/column-mappings": [("put", {"json": [{"id": 1, "confirm": True}]})],
    "/api/imports/{uuid}/column-mappings/confirm": [("post", {})],
    "/api/imports/{uuid}/cell-mappings": [("put", {"json": [{"id": 1, "ignore": True}]})],
    "/api/imports/{uuid}/cell-mappings/confirm": [("post", {})],
    "/api/imports/{uuid}/start": [("post", {})],
    f"{PREFIX}/{{uuid}}": [
        ("patch", {"json": {"layout": {"header_line": 1}}}),
        ("patch", {"json": {"rows": {"lines": [2], "keep": True}}}),
        ("patch", {"json": {"assignee": {"to": "ben@example.org"}}}),
    ],
    f"{PREFIX}/{{uuid}}/columns": [
        ("patch", {"json": {"decisions": [{"id": 1, "confirm": True}]}})
    ],
    f"{PREFIX}/{{uuid}}/values": [
        ("patch", {"json": {"decisions": [{"id": 1, "ignore": True}]}}),
        ("patch", {"json": {"rules": [{"ignore": True}]}}),
    ],
    f"{PREFIX}/{{uuid}}/values/file": [("post", _FILE)],
    f"{PREFIX}/{{uuid}}/confirm": [
        ("post", {"json": {"what": what}}) for what in ("columns", "values", "rows", "all")
    ],
    f"{PREFIX}/{{uuid}}/review/changes": [("post", _EXCLUDE)],
    f"{PREFIX}/{{uuid}}/review/changes/preview": [("post", _EXCLUDE)],
    f"{PREFIX}/{{uuid}}/review/file": [("post", _FILE)],
    f"{PREFIX}/{{uuid}}/undo": [("post", {})],
    f"{PREFIX}/{{uuid}}/undo/preview": [("get", {})],
    "/api/v1/runs/spreadsheet/{uuid}/retry": [("post", {})],
    "/api/v1/runs/spreadsheet/{uuid}/cancel": [("post", {})],
}
"""What changes an upload, or asks what an undo would change, by its address."""


@pytest_asyncio.fixture(loop_scope="session", scope="module", autouse=True)
async def _documents(stack: Stack) -> AsyncIterator[None]:
    """Works on documents, whose types are in force."""
    await SqlDeclaredTypes(stack.resources.database).apply(
        *(read_type(text, "types.yaml") for text in TYPES)
    )
    own = import_resources(stack.resources.database, stack.client, RunSettings.read({}))
    async with build_worker(stack.client, IMPORTS, stack.resources, own):
        yield


@pytest_asyncio.fixture(loop_scope="session")
async def people(stack: Stack) -> AsyncIterator[Mapping[str, httpx.AsyncClient]]:
    """A browser of each role, for API and pages."""
    async with AsyncExitStack() as exits:
        found: dict[str, httpx.AsyncClient] = {}
        for role in PEOPLE:
            bearer = token(role, 1, role)
            found[role] = await exits.enter_async_context(stack.browser(bearer))
            await sign_in(found[role], bearer)
        yield found


def is_refused(answer: httpx.Response) -> bool:
    """Whether a role is missing; any other answer comes from beyond the door."""
    return answer.status_code == 403


async def version_of(client: httpx.AsyncClient, uuid: str) -> tuple[str, int, str]:
    """State, version of the answers, and to whom an upload is assigned."""
    found = (await client.get(f"/api/imports/{uuid}")).json()
    return found["status"], found["version"], found["assignee"]


def refused(role: str, least: str) -> bool:
    return PEOPLE.index(role) < PEOPLE.index(least)


@pytest.mark.parametrize("role", PEOPLE)
@pytest.mark.parametrize(("kind", "least"), UPLOADS.items())
async def test_an_upload_needs_a_role_of_every_type_whose_rows_it_writes(
    people: Mapping[str, httpx.AsyncClient], kind: str, least: str, role: str
) -> None:
    made = await upload(people[role], b"tool\nT-1\n", importType=kind, contextId="")
    assert is_refused(made) is refused(role, least), made.text
    assert not is_refused(made) or "need the role" in made.json()["detail"]


@pytest.mark.parametrize(
    ("organisation", "told"),
    [
        (1, "422: blob_name: there is no uploads/none.csv"),
        (2, "403: your roles in organisation 2"),
        (" 2\u00a0", "403: your roles in organisation 2"),
        ("two", "422: scope.organisation_id: give the number"),
    ],
)
async def test_a_document_about_people_needs_a_role_in_their_organisation(
    people: Mapping[str, httpx.AsyncClient], organisation: int | str, told: str
) -> None:
    message = {
        "document_type": "events",
        "project_id": "P1",
        "blob_name": "uploads/none.csv",
        "scope": {"organisation_id": organisation},
    }
    answer = await people["operator"].post("/api/v1/documents", json=message)
    assert f"{answer.status_code}: {answer.json()['detail']}".startswith(told), answer.text


@pytest.mark.parametrize("role", PEOPLE)
@pytest.mark.parametrize(("kind", "least"), DOCUMENTS.items())
async def test_a_document_needs_a_role_of_every_type_whose_rows_it_writes(
    people: Mapping[str, httpx.AsyncClient], kind: str, least: str, role: str
) -> None:
    message: dict[str, Any] = {
        "document_type": kind,
        "project_id": "P1",
        "blob_name": "uploads/none.csv",
    }
    if kind not in ("shared", "sealed", "creating_sealed"):
        message["scope"] = {"organisation_id": "1"}
    made = await people[role].post("/api/v1/documents", json=message)
    assert is_refused(made) is refused(role, least), made.text


async def test_whoever_may_not_upload_a_file_changes_nothing_of_its_import(
    stack: Stack, people: Mapping[str, httpx.AsyncClient]
) -> None:
    doors = {
        path
        for path, methods in stack.app.openapi()["paths"].items()
        if "{uuid}" in path and methods.keys() - {"get"}
    }
    assert doors <= ANSWERS.keys()
    uuid = await import_in(
        people["operator"],
        *("COLUMN_MAPPING", b"tool\nT-1\n"),
        filename="tools.csv",
        importType="guarded",
        contextId="",
    )
    for role, client in people.items():
        before = await version_of(client, uuid)
        for door, answers in ANSWERS.items():
            for method, given in answers:
                answer = await client.request(method, door.format(uuid=uuid), **given)
                assert is_refused(answer) is refused(role, "operator"), (role, door, answer.text)
        if refused(role, "operator"):
            assert await version_of(client, uuid) == before


async def test_whoever_may_not_import_a_type_creates_no_row_of_it_for_a_value(
    people: Mapping[str, httpx.AsyncClient],
) -> None:
    fields = {"filename": "tools.csv", "importType": "asking", "contextId": ""}
    uuid = await import_in(
        people["mapper"],
        *("CELL_MAPPING", b"tool,of\nT-1,G-7\n"),
        **fields,
        autoStart="true",
    )
    cells = f"/api/imports/{uuid}/cell-mappings"
    values: list[dict[str, Any]] = []

    async def are_collected() -> bool:
        values[:] = (await people["mapper"].get(cells)).json()
        return bool(values)

    await eventually(are_collected)
    create = {"id": values[0]["id"], "create": True}
    doors: Sequence[tuple[str, str, Any]] = (
        ("put", cells, [create]),
        ("patch", f"{PREFIX}/{uuid}/values", {"decisions": [create]}),
        ("patch", f"{PREFIX}/{uuid}/values", {"rules": [{"field": "of", "create": True}]}),
    )
    for role in ("mapper", "operator"):
        for method, path, body in doors:
            answer = await people[role].request(method, path, json=body)
            assert is_refused(answer) is (role == "mapper"), (path, answer.text)
    answer = await people["mapper"].put(cells, json=[{"id": values[0]["id"], "ignore": True}])
    assert answer.is_success, answer.text


async def test_whoever_may_not_import_a_type_answers_no_parked_document(
    people: Mapping[str, httpx.AsyncClient],
) -> None:
    message = {"document_type": "sealed", "project_id": "P1", "blob_name": "uploads/none.csv"}
    made = await people["admin"].post("/api/v1/documents", json=message)
    id = made.json()["id"]

    async def is_parked() -> bool:
        found = await people["admin"].get(f"/api/v1/documents/{id}")
        return found.status_code == 200 and found.json()["state"] == "parked"

    await eventually(is_parked)
    for role in ("operator", "admin"):
        client = people[role]
        page = (await client.get(f"/runs/{id}")).text
        csrf = page.partition('name="csrf" value="')[2].partition('"')[0]
        given = {"id": id, "csrf": csrf}
        doors: tuple[tuple[str, dict[str, Any]], ...] = (
            (f"/runs/{id}", {"data": {**given, "verb": "retry"}}),
            ("/runs/files", {"data": given, **_FILE}),
            ("/api/v1/documents/corrections", {"data": {"id": id}, **_FILE}),
            (f"/api/v1/runs/{id}/retry", {"json": {"changes": {"sheet": "A"}}}),
            (f"/api/v1/runs/{id}/cancel", {}),
        )
        for path, body in doors:
            answer = await client.post(path, **body)
            assert is_refused(answer) is (role == "operator"), (path, answer.text)
            if role == "operator":
                assert "need the role admin" in answer.text, (path, answer.text)
