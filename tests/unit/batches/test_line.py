"""Which batches of a case wait for which others."""

from datetime import UTC, datetime
from typing import Any

from workflows.batches.names import LoaderStatus, Purpose
from workflows.batches.runs import WaitingBatch
from workflows.batches.validation import waited_for_by, waits_for

SINCE = datetime(2026, 1, 2, tzinfo=UTC)


def batch(number: int, status: LoaderStatus = LoaderStatus.WAITING, **more: Any) -> WaitingBatch:
    return WaitingBatch(batch_id=number, status=status, since=SINCE, **more)


LINE = [
    batch(1, skipped=True),
    batch(2),
    batch(3, purpose=Purpose.LOAD),
    batch(4, LoaderStatus.PROCESSING),
    batch(5),
]


def test_a_batch_waits_for_the_one_that_loads_and_for_lower_numbers_that_are_not_passed_over() -> (
    None
):
    found = {
        number: [other.batch_id for other in waits_for(LINE, number)] for number in range(1, 6)
    }
    assert found == {1: [4], 2: [4], 3: [2, 4], 4: [], 5: [2, 3, 4]}
    assert waits_for(LINE, 9) == []


def test_who_waits_for_a_batch() -> None:
    assert {one.batch_id: waited_for_by(LINE, one.batch_id) for one in LINE} == {
        1: [],
        2: [3, 5],
        3: [5],
        4: [1, 2, 3, 5],
        5: [],
    }
