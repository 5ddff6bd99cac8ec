"""What an activity, an update or a run returns stands in history: every part of it has an end."""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any, get_args

import pytest
from temporalio import activity, workflow

import activities.shared
from workers import catalogue
from workers.shared.plugin import docflow_plugin
from workers.shared.register import Pipeline
from workers.shared.worker_factory import COMMON_WORKFLOWS
from workflows.batches.runs import BatchProgress, DocumentCounts, WaitingBatches
from workflows.imports.runs import ImportInput, Preparation
from workflows.shared.contracts import Contract
from workflows.shared.dependencies import OutageStatus, Recovery
from workflows.shared.errands import ErrandResult
from workflows.shared.notifications import NotificationReceipt
from workflows.shared.records import RowRetentionResult, RunsSwept
from workflows.spreadsheets.mappings import CandidateLists, CellSummary, MappingsAnswer
from workflows.spreadsheets.runs import (
    Analysis,
    ColumnMappings,
    Processed,
    SpreadsheetProgress,
    SpreadsheetStatus,
)
from workflows.transfers.runs import Reception, TransferPlan

MOST_BYTES = 64 * 1024
"""Of one result at its very worst; Temporal takes payloads of 2 MB and warns from 512 KB."""
MOST_BYTES_CARRIED = 2 * MOST_BYTES
"""Of what a run passes on to the next one, once in thousands of events."""
MOST_BYTES_OF_COLUMNS = 3 * 512 * 1024
"""Of what holds every column of a spreadsheet, or the values that are open, in characters of four
bytes; a column with a header of 20 letters takes half a kilobyte."""
WIDER: set[type[Contract]] = {
    Preparation,
    RunsSwept,
    CandidateLists,
    WaitingBatches,
    Analysis,
    CellSummary,
    ColumnMappings,
    ErrandResult,
    MappingsAnswer,
    Processed,
    SpreadsheetProgress,
    SpreadsheetStatus,
}
CARRIED: set[type[Contract]] = {BatchProgress, DocumentCounts, SpreadsheetProgress}
"""Parts of inputs that a run hands to the run that continues it."""

BY_RULE: set[type[Contract]] = {ImportInput, Reception, TransferPlan}
"""What holds a message, an event, or a part of a file of settings: rules bound each, with tests."""


def most_bytes(contract: type[Contract]) -> int:
    """The bound of a contract as JSON."""
    if contract in WIDER:
        return MOST_BYTES_OF_COLUMNS
    return MOST_BYTES_CARRIED if contract in CARRIED else MOST_BYTES


def results(pipeline: Pipeline) -> set[type[Contract]]:
    """What activities, updates, queries and runs of a pipeline return."""
    package = importlib.import_module(pipeline.activities_package)
    return returned(_activities(package), pipeline.workflows())


def common_results() -> set[type[Contract]]:
    """What activities and workflows return that every worker serves."""
    return returned(_activities(activities.shared), COMMON_WORKFLOWS)


def returned(
    steps: Iterable[activity._Definition], workflows: Iterable[type]
) -> set[type[Contract]]:
    """The contracts that activities, and updates, queries and runs of workflows return."""
    kinds = [definition.ret_type for definition in steps]
    for found in map(workflow._Definition.must_from_class, workflows):
        kinds.append(found.ret_type)
        kinds += [each.ret_type for each in found.queries.values()]
        kinds += [each.ret_type for each in found.updates.values()]
    return {part for kind in kinds for part in _contracts(kind)}


def _activities(package: ModuleType) -> Iterator[activity._Definition]:
    """The activities of the modules of a package; those of its packages are none of them."""
    for found in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{found.name}")
        for _, kind in inspect.getmembers(module, inspect.isclass):
            for _, method in inspect.getmembers(kind, inspect.isfunction):
                if definition := activity._Definition.from_callable(method):
                    yield definition


def _contracts(kind: Any) -> Iterator[type[Contract]]:
    """The contracts in a type, those of unions and sequences included."""
    if inspect.isclass(kind) and issubclass(kind, Contract):
        yield kind
    for part in get_args(kind):
        yield from _contracts(part)


RESULTS = CARRIED.union(common_results(), *map(results, catalogue.PIPELINES))
LONGEST = (
    "a" * 32,
    "a" * 128,
    "arn:" + "a" * 600,
    "A" * 40,
    "A" * 64,
    "a" * 64,
    "5eed0000-0000-4000-8000-000000000000",
    "a" * 63,
    "1" * 200,
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
        case "string" if schema.get("format") == "date":
            return "2026-01-02"
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


def test_every_pipeline_returns_something() -> None:
    assert all(map(results, catalogue.PIPELINES))
    common = {Recovery, NotificationReceipt, OutageStatus, RowRetentionResult, RunsSwept}
    assert common <= common_results(), "what every worker serves"
    assert WIDER <= RESULTS


@pytest.mark.parametrize(
    "contract", sorted(RESULTS - BY_RULE, key=str), ids=lambda contract: contract.__name__
)
async def test_the_largest_result_is_small(contract: type[Contract]) -> None:
    schema = contract.model_json_schema()
    result = contract.model_validate(largest(schema, schema.get("$defs", {}), contract.__name__))
    converter = docflow_plugin().data_converter
    [payload] = await converter.encode([result])
    assert len(payload.data) < most_bytes(contract)
    assert await converter.decode([payload], [contract]) == [result]
