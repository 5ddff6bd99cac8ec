"""The OpenAPI document."""

from typing import Any

import pytest

from tests.support.gateway import Stack

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_the_document_is_complete(stack: Stack) -> None:
    async with stack.browser("") as anybody:
        document = (await anybody.get("/openapi.json")).json()
    problem = {"$ref": "#/components/schemas/Problem"}
    for path, methods in document["paths"].items():
        for method, endpoint in methods.items():
            where = f"{method} {path}"
            assert endpoint["security"] == [{"token": []}], where
            assert endpoint["description"], where
            assert {"401", "403", "422", "503"} <= set(endpoint["responses"]), where
            assert ("404" in endpoint["responses"]) == ("{" in path), where
            for status, response in endpoint["responses"].items():
                if status.startswith(("4", "5")):
                    assert list(response["content"]) == ["application/problem+json"], where
                    schema = response["content"]["application/problem+json"]["schema"]
                    assert schema == problem, where
    creating = document["paths"]["/api/imports"]["post"]
    assert "multipart/form-data" in creating["requestBody"]["content"]
    assert not list(unresolved(document, document))


def unresolved(document: dict[str, Any], part: Any) -> list[str]:
    """References that lead nowhere."""
    if isinstance(part, list):
        return [ref for each in part for ref in unresolved(document, each)]
    if not isinstance(part, dict):
        return []
    found = [ref for each in part.values() for ref in unresolved(document, each)]
    ref = part.get("$ref")
    if isinstance(ref, str) and ref.rsplit("/", 1)[-1] not in document["components"]["schemas"]:
        found.append(ref)
    return found
