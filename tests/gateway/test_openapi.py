"""The OpenAPI document."""

import json
from typing import Any

import pytest
from pydantic import BaseModel

from activities.imports import views as imports
from activities.spreadsheets import records, review_rules
from activities.transfers import records as transfers
from tests.support.gateway import HEADER, Stack, import_in, sheet
from workers.spreadsheets import api, bodies, memory_v1, review_v1, upload_form, v1

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_the_document_is_complete(stack: Stack) -> None:
    async with stack.browser("") as anonymous:
        document = (await anonymous.get("/openapi.json")).json()
    problem = {"$ref": "#/components/schemas/ProblemDetails"}
    for path, methods in document["paths"].items():
        for method, endpoint in methods.items():
            where = f"{method} {path}"
            assert endpoint["security"] == [{"token": []}], where
            assert endpoint["description"], where
            assert {"401", "403", "422", "503"} <= set(endpoint["responses"]), where
            # A case is a number: what was never set of it has the installation's value.
            of_one = "{" in path and not path.startswith("/api/v1/cases/")
            assert ("404" in endpoint["responses"]) == of_one, where
            for status, response in endpoint["responses"].items():
                if status.startswith(("4", "5")):
                    kind = response["$ref"].rpartition("/")[2]
                    response = document["components"]["responses"][kind]
                    assert list(response["content"]) == ["application/problem+json"], where
                    schema = response["content"]["application/problem+json"]["schema"]
                    assert schema == problem, where
    creating = document["paths"]["/api/imports"]["post"]
    assert "multipart/form-data" in creating["requestBody"]["content"]
    assert not list(unresolved(document, document))


async def test_properties_are_described_with_examples(stack: Stack) -> None:
    async with stack.browser("") as anonymous:
        document = (await anonymous.get("/openapi.json")).json()
    own = {
        each.__name__
        for module in (
            *(records, imports, transfers, review_rules, bodies, upload_form),
            *(api, v1, review_v1, memory_v1),
        )
        for each in vars(module).values()
        if isinstance(each, type)
        and issubclass(each, BaseModel)
        and each.__module__ == module.__name__
    }
    found = document["components"]["schemas"]
    served = {"SpreadsheetRow", "ImportStatus", "ImportCell", "ResultRow", "LearntValueBody"}
    assert served <= own & found.keys()
    for name in own & found.keys():
        for key, each in found[name].get("properties", {}).items():
            assert each.get("description") and each.get("examples"), f"{name}.{key}"


async def test_bodies_that_no_record_describes_have_an_example(stack: Stack) -> None:
    async with stack.browser("") as anonymous:
        document = (await anonymous.get("/openapi.json")).json()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            body = operation.get("requestBody", {}).get("content", {})
            for kind, content in body.items():
                described = "$ref" in json.dumps(content["schema"]) or "/stac/" in path
                assert described or "example" in content, f"{method} {path} {kind}"


async def test_operations_keep_their_names(stack: Stack) -> None:
    async with stack.browser("") as anonymous:
        document = (await anonymous.get("/openapi.json")).json()
    names = [each["operationId"] for path in document["paths"].values() for each in path.values()]
    assert len(set(names)) == len(names)
    assert {"createImport", "listImports", "putColumns", "undoUpload", "listContexts"} <= set(names)


async def test_headers_are_declared(stack: Stack) -> None:
    async with stack.browser("") as anonymous:
        paths = (await anonymous.get("/openapi.json")).json()["paths"]
    for path, method, status, names in (
        ("/api/imports", "get", "200", {"Link", "X-Total-Count"}),
        ("/api/imports/{uuid}/results", "get", "200", {"Link", "X-Total-Count"}),
        ("/api/imports/{uuid}/column-mappings", "put", "202", {"ETag"}),
        ("/api/imports/{uuid}/cell-mappings", "get", "200", {"ETag", "Link", "X-Total-Count"}),
        ("/api/v1/uploads/{uuid}/undo", "post", "202", {"Location"}),
        ("/api/v1/uploads/{uuid}/columns", "patch", "200", {"ETag"}),
    ):
        assert set(paths[path][method]["responses"][status]["headers"]) == names, (method, path)


async def test_another_method_is_answered_with_those_that_there_are(stack: Stack) -> None:
    async with stack.browser() as anna:
        refused = await anna.patch("/api/imports")
        assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD, POST")
        refused = await anna.post("/api/imports/x/column-mappings")
        assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD, PUT")


async def test_a_uuid_may_be_in_capitals(stack: Stack) -> None:
    async with stack.browser() as anna:
        uuid = await import_in(anna, "COLUMN_MAPPING")
        found = await anna.get(f"/api/imports/{uuid.upper()}")
        assert (found.status_code, found.json()["identifier"]) == (200, uuid)
        columns = await anna.get(f"/api/imports/{uuid.upper()}/column-mappings")
        assert columns.status_code == 200 and columns.json()


async def test_results_name_what_is_wrong_with_which_cell(stack: Stack) -> None:
    bad = sheet(HEADER, ("Anna", "", "anna-at-example", "Junior (U18)"))
    async with stack.browser() as anna:
        uuid = await import_in(anna, "COMPLETED", bad, autoStart="true")
        [row] = (await anna.get(f"/api/imports/{uuid}/results")).json()
    assert [(each["column"], each["value"]) for each in row["problems"]] == [
        ("Email", "anna-at-example"),
    ]
    assert row["problems"][0]["reason"].startswith("is not a mail address")
    assert row["name"] == "Anna"
    assert row["cells"] == [
        {"column": "First name", "targetField": "FIRST_NAME", "value": "Anna"},
        {"column": "Email", "targetField": "EMAIL", "value": "anna-at-example"},
        {"column": "Category", "targetField": "EVENT_CATEGORY_NAME", "value": "Junior (U18)"},
    ]


def unresolved(document: dict[str, Any], part: Any) -> list[str]:
    """References that lead nowhere."""
    if isinstance(part, list):
        return [ref for each in part for ref in unresolved(document, each)]
    if not isinstance(part, dict):
        return []
    found = [ref for each in part.values() for ref in unresolved(document, each)]
    ref = part.get("$ref")
    _, _, kind, name = ref.rsplit("/", 3) if isinstance(ref, str) else ("", "", "", "")
    if isinstance(ref, str) and name not in document["components"][kind]:
        found.append(ref)
    return found
