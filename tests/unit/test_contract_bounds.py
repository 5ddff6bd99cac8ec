"""What an activity, an update or a run returns stands in history: every part of it has an end."""

from typing import Any

import pytest

from contracts.base import Contract
from contracts.imports import HandlerOutcome, ImportResult, ImportStatus, Preparation
from workers.plugin import docflow_plugin

MOST_BYTES = 64 * 1024
"""Of one result at its very worst; Temporal takes payloads of 2 MB and warns from 512 KB."""
LARGEST_NUMBER = 2**63 - 1
WIDE = "\N{MATHEMATICAL FRAKTUR CAPITAL U}"
"""A character of four bytes."""


def largest(schema: dict[str, Any], definitions: dict[str, Any], path: str) -> Any:
    """The largest value that a JSON schema allows; a schema without an end is an error."""
    if "$ref" in schema:
        return largest(definitions[schema["$ref"].rpartition("/")[2]], definitions, path)
    if "anyOf" in schema:
        choices = [choice for choice in schema["anyOf"] if choice != {"type": "null"}]
        assert len(choices) == 1, f"{path}: teach this test which of {choices} is largest"
        return largest(choices[0], definitions, path)
    if "enum" in schema:
        return max(schema["enum"], key=len)
    match schema.get("type"):
        case "object":
            fields = schema["properties"].items()
            return {name: largest(of, definitions, f"{path}.{name}") for name, of in fields}
        case "array":
            assert "maxItems" in schema, f"{path} has no end: give it a max_length"
            return [largest(schema["items"], definitions, path)] * schema["maxItems"]
        case "string":
            assert "maxLength" in schema, f"{path} has no end: give it a max_length"
            return ("a" if "pattern" in schema else WIDE) * schema["maxLength"]
        case "integer":
            return LARGEST_NUMBER
        case "boolean":
            return False
        case other:
            raise AssertionError(f"{path}: teach this test how large a {other} gets")


@pytest.mark.parametrize("contract", [HandlerOutcome, ImportResult, ImportStatus, Preparation])
async def test_the_largest_result_is_small(contract: type[Contract]) -> None:
    schema = contract.model_json_schema()
    result = contract.model_validate(largest(schema, schema.get("$defs", {}), contract.__name__))
    converter = docflow_plugin().data_converter
    [payload] = await converter.encode([result])
    assert len(payload.data) < MOST_BYTES
    assert await converter.decode([payload], [contract]) == [result]
