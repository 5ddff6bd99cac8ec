"""What an activity, an update or a run returns stands in history: every part of it has an end."""

import re
from typing import Any

import pytest

from contracts.base import Contract
from contracts.batches import (
    BatchPlan,
    BatchProgress,
    BatchResult,
    BatchStatus,
    CaseResult,
    CaseStatus,
    DocumentCounts,
    GivenUp,
    Line,
    LoadResult,
    Orphans,
    PolledDepth,
    Redriven,
    StepDone,
    StepOutcome,
    Swept,
    Taken,
    Validation,
)
from contracts.imports import HandlerOutcome, ImportResult, ImportStatus, Preparation
from contracts.spreadsheets import (
    Analysis,
    CellSummary,
    ColumnMappings,
    ExpiredPage,
    MappingsAnswer,
    Processed,
    PurgeResult,
    RowCounts,
    SpreadsheetProgress,
    SpreadsheetResult,
    SpreadsheetStatus,
    Staged,
    UndoResult,
)
from workers.plugin import docflow_plugin

MOST_BYTES = 64 * 1024
"""Of one result at its very worst; Temporal takes payloads of 2 MB and warns from 512 KB."""
MOST_BYTES_OF_COLUMNS = 1024 * 1024
"""Of what holds every column of a spreadsheet, or the values that are open."""
SMALL = [
    BatchPlan,
    BatchProgress,
    BatchResult,
    BatchStatus,
    CaseResult,
    CaseStatus,
    DocumentCounts,
    GivenUp,
    LoadResult,
    Orphans,
    PolledDepth,
    Redriven,
    StepDone,
    StepOutcome,
    Swept,
    Taken,
    Validation,
    HandlerOutcome,
    ImportResult,
    ImportStatus,
    Preparation,
    ExpiredPage,
    PurgeResult,
    RowCounts,
    SpreadsheetResult,
    Staged,
    UndoResult,
]
WIDER = [
    Line,
    Analysis,
    CellSummary,
    ColumnMappings,
    MappingsAnswer,
    Processed,
    SpreadsheetProgress,
    SpreadsheetStatus,
]
LONGEST = (
    "a" * 32,
    "a" * 128,
    "arn:" + "a" * 600,
    "A" * 40,
    "A" * 64,
    "5eed0000-0000-4000-8000-000000000000",
)
"""Longest texts of the patterns that contracts use."""
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
        case "object" if "properties" not in schema:
            assert "maxProperties" in schema, f"{path} has no end: give it a max_length"
            value = largest(
                schema.get("additionalProperties")
                or next(iter(schema["patternProperties"].values())),
                definitions,
                path,
            )
            return {f"{'A' * 60}{n:04}": value for n in range(schema["maxProperties"])}
        case "object":
            fields = schema["properties"].items()
            return {name: largest(of, definitions, f"{path}.{name}") for name, of in fields}
        case "array":
            assert "maxItems" in schema, f"{path} has no end: give it a max_length"
            return [largest(schema["items"], definitions, path)] * schema["maxItems"]
        case "string" if schema.get("format") == "date-time":
            return "2026-01-02T03:04:05.678901Z"
        case "string":
            if "pattern" in schema:
                return matching(schema["pattern"], schema.get("maxLength"))
            assert "maxLength" in schema, f"{path} has no end: give it a max_length"
            return WIDE * schema["maxLength"]
        case "integer":
            if "exclusiveMaximum" in schema:
                return schema["exclusiveMaximum"] - 1
            return schema.get("maximum", LARGEST_NUMBER)
        case "number":
            return schema.get("maximum", 1 / 3)
        case "boolean":
            return False
        case other:
            raise AssertionError(f"{path}: teach this test how large a {other} gets")


def matching(pattern: str, most: int | None) -> str:
    """The longest of the texts that we know, for a pattern that bounds what it matches."""
    known = (text[:most] for text in LONGEST)
    return max((text for text in known if re.fullmatch(pattern, text)), key=len)


@pytest.mark.parametrize("contract", SMALL + WIDER, ids=lambda contract: contract.__name__)
async def test_the_largest_result_is_small(contract: type[Contract]) -> None:
    schema = contract.model_json_schema()
    result = contract.model_validate(largest(schema, schema.get("$defs", {}), contract.__name__))
    converter = docflow_plugin().data_converter
    [payload] = await converter.encode([result])
    assert len(payload.data) < (MOST_BYTES if contract in SMALL else MOST_BYTES_OF_COLUMNS)
    assert await converter.decode([payload], [contract]) == [result]
