"""Sentences say where a run or a row stands as people do, whatever programs call its state."""

from collections.abc import Callable
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import pytest
from temporalio.client import WorkflowExecutionStatus

from activities.shared.records import reason_of
from adapters.ports.records import RunEnd
from workers.batches import labels
from workers.shared.services import runs
from workflows.batches.names import LoaderStatus
from workflows.spreadsheets import runs as spreadsheets
from workflows.spreadsheets.mappings import SpreadsheetState
from workflows.transfers import runs as transfers
from workflows.transfers.events import TransferStatus


@pytest.mark.parametrize(
    ("states", "standing"),
    [
        (LoaderStatus, labels.standing),
        (SpreadsheetState, spreadsheets.status_label),
        (TransferStatus, transfers.status_label),
        (WorkflowExecutionStatus, runs.standing),
    ],
)
def test_every_state_can_be_said(states: type[Enum], standing: Callable[[Any], str]) -> None:
    for state in states:
        said = standing(state)
        assert said.split()[0] in ("is", "has", "was", "waits")
        assert said == said.lower()
        assert "_" not in said


@pytest.mark.parametrize("status", [each.name.lower() for each in WorkflowExecutionStatus])
def test_the_end_of_a_run_is_said_in_words(status: str) -> None:
    end = RunEnd(status, at=datetime(2026, 5, 3, 9, 30, tzinfo=UTC))
    reason = reason_of("batch/7/1", end)
    assert "_" not in reason
    assert reason.endswith(" at 2026-05-03 09:30 UTC and could not record its end")
