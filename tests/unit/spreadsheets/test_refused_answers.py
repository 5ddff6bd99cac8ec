"""Messages to a person whose answer a run could not take."""

from typing import Any, cast

import pytest
from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from contracts.errors import INVALID_DECISION, THROTTLING, TRANSIENT, UNAVAILABLE
from workers.services.errors import Refused, ServiceError, TemporalUnavailable
from workers.services.spreadsheets.runs import _refusal


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
