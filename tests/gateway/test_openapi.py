"""The OpenAPI document, and what happens when somebody takes it at its word."""

import asyncio
import sys
from asyncio.subprocess import PIPE, STDOUT
from pathlib import Path
from typing import Any

import pytest

from tests.support.gateway import ODD, STRANGE, Stack, import_in, served, sheet, token

pytestmark = pytest.mark.asyncio(loop_scope="session")

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
)


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
            assert ("404" in endpoint["responses"]) == ("{uuid}" in path), where
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


async def test_no_request_that_fits_or_not_leads_to_a_server_error(
    stack: Stack, tmp_path: Path
) -> None:
    """Requests made up from the document, against an import that waits for a person."""
    async with (
        served(stack.app) as address,
        stack.browser(token("sam"), address=address) as sam,
    ):
        rows = sheet(STRANGE, *((*row, 42) for row in ODD))
        uuid = await import_in(sam, "COLUMN_MAPPING", rows)
        settings = tmp_path / "schemathesis.toml"
        settings.write_text(f'[parameters]\n"path.uuid" = "{uuid}"\n')
        program = Path(sys.executable).parent / "schemathesis"
        process = await asyncio.create_subprocess_exec(
            str(program),
            "--config-file",
            str(settings),
            "run",
            f"{address}/openapi.json",
            "--header",
            f"Authorization: Bearer {token('sam')}",
            "--checks",
            ",".join(CHECKS),
            "--exclude-method",
            "DELETE",
            "--exclude-path-regex",
            "/events$",
            "--phases",
            "examples,coverage",
            "--workers",
            "2",
            "--seed",
            "1",
            "--no-color",
            "--continue-on-failure",
            stdout=PIPE,
            stderr=STDOUT,
            cwd=tmp_path,
        )
        output, _ = await process.communicate()
        assert process.returncode == 0, output.decode()[-8000:]
        assert (await sam.get(f"/api/imports/{uuid}")).status_code == 200
