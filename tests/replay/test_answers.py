"""Answers that people gave to earlier releases still mean the same."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from workers import catalogue
from workflows.shared.contracts import Contract

HISTORIES = Path(__file__).parent / "histories"

every_answer = pytest.mark.parametrize(
    ("workflow", "name", "contract"),
    [
        (kind.workflow, name, contract)
        for pipeline in catalogue.PIPELINES
        for kind in pipeline.runs
        for name, contract in kind.answers.items()
    ],
)


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


@every_answer
def test_every_field_of_an_answer_may_be_left_out(
    workflow: str, name: str, contract: type[Contract]
) -> None:
    contract.model_validate({})


@every_answer
def test_a_recorded_answer_decodes_to_what_was_sent(
    workflow: str, name: str, contract: type[Contract]
) -> None:
    recorded = _of(workflow, name)
    assert recorded, f"no history has {name} of {workflow}"
    for answer in recorded:
        decoded = contract.model_validate(answer)
        assert decoded.model_dump(mode="json", exclude_unset=True) == answer
