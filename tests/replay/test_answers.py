"""Answers that people gave to earlier releases still mean the same."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contracts import imports, spreadsheets
from contracts.base import Contract
from contracts.batches import BatchAnswer

HISTORIES = Path(__file__).parent / "histories"
NOTHING = {"reason": None, "by": None}
CONTRACTS: dict[tuple[str, str], tuple[type[Contract], dict[str, Any]]] = {
    ("DocumentImport", "retry"): (imports.Retry, {"message": None, "by": None}),
    ("DocumentImport", "skip"): (imports.Answer, NOTHING),
    ("DocumentImport", "fail"): (imports.Answer, NOTHING),
    ("DocumentImport", "cancel"): (imports.Answer, NOTHING),
    ("BatchLifecycle", "retry"): (BatchAnswer, NOTHING),
    ("BatchLifecycle", "skip"): (BatchAnswer, NOTHING),
    ("BatchLifecycle", "fail"): (BatchAnswer, NOTHING),
    ("SpreadsheetImport", "retry"): (spreadsheets.Answer, {"reason": None, "by": "operator"}),
    ("SpreadsheetImport", "cancel"): (spreadsheets.Answer, {"reason": None, "by": "operator"}),
    ("SpreadsheetUndo", "retry"): (spreadsheets.Answer, {"reason": None, "by": "operator"}),
}
"""The contract of each answer, and what it says when nothing is sent."""


def _answers() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path in sorted(HISTORIES.glob("*/*.json")):
        for event in json.loads(path.read_text())["events"]:
            signal = event.get("workflowExecutionSignaledEventAttributes", {})
            accepted = event.get("workflowExecutionUpdateAcceptedEventAttributes", {})
            update = accepted.get("acceptedRequest", {}).get("input", {})
            for name, given in (
                (signal.get("signalName"), signal.get("input", {})),
                (update.get("name"), update.get("args", {})),
            ):
                for payload in given.get("payloads", []) if name else []:
                    yield path.parent.name, name, json.loads(base64.b64decode(payload["data"]))


def _of(workflow: str, name: str) -> list[dict[str, Any]]:
    return [answer for found, called, answer in _answers() if (found, called) == (workflow, name)]


@pytest.mark.parametrize(("workflow", "name"), CONTRACTS)
def test_an_answer_without_fields_decodes_to_its_defaults(workflow: str, name: str) -> None:
    contract, defaults = CONTRACTS[workflow, name]
    assert contract.model_validate({}).model_dump() == defaults


@pytest.mark.parametrize(("workflow", "name"), CONTRACTS)
def test_a_recorded_answer_decodes_to_what_was_sent(workflow: str, name: str) -> None:
    contract, defaults = CONTRACTS[workflow, name]
    for answer in _of(workflow, name):
        assert contract.model_validate(answer).model_dump(mode="json") == {**defaults, **answer}


@pytest.mark.parametrize(
    ("workflow", "name"),
    [
        ("DocumentImport", "retry"),
        ("DocumentImport", "skip"),
        ("DocumentImport", "fail"),
        ("DocumentImport", "cancel"),
        ("BatchLifecycle", "retry"),
        ("BatchLifecycle", "skip"),
        ("BatchLifecycle", "fail"),
        ("SpreadsheetImport", "retry"),
        ("SpreadsheetImport", "cancel"),
        ("SpreadsheetUndo", "retry"),
    ],
)
def test_answers_of_every_kind_are_recorded(workflow: str, name: str) -> None:
    assert _of(workflow, name)
