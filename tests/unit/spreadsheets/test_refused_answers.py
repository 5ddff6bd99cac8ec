"""Messages to a person whose answer a run could not take."""

from pathlib import Path
from typing import Any, cast

import pytest
from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from workers.shared.services.errors import Refused, ServiceError, TemporalUnavailable
from workers.spreadsheets.runs import _refusal
from workflows.shared.errors import INVALID_DECISION, THROTTLING, TRANSIENT, UNAVAILABLE


@pytest.mark.parametrize(
    ("kind", "refusal"),
    [
        (UNAVAILABLE, TemporalUnavailable),
        (TRANSIENT, TemporalUnavailable),
        (THROTTLING, TemporalUnavailable),
        (INVALID_DECISION, Refused),
    ],
)
def test_an_answer_that_an_outage_prevents_may_be_given_again(
    kind: str, refusal: type[ServiceError]
) -> None:
    failed = WorkflowUpdateFailedError(ApplicationError("no", type=kind))
    assert type(_refusal(cast(Any, None), failed)) is refusal


def test_updates_are_sent_to_runs_in_one_place() -> None:
    """Time limits and what becomes of a lost answer are the same for every pipeline."""
    root = Path(__file__).parents[3]
    sending = [
        str(path.relative_to(root))
        for path in (root / "workers").rglob("*.py")
        if ".execute_update(" in path.read_text()
    ]
    assert sending == ["workers/shared/services/runs.py"]
