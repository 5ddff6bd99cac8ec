"""Of many remarks the last one says how many more there are."""

from pathlib import Path

import pytest

from activities.transfers.endpoints import StepFiles
from tests.support.transfers.actions import Endpoints, reading, step_of
from workflows.transfers.runs import Manifest, in_one_sentence

MANY = [f"file {number} is odd" for number in range(12)]


async def test_an_action_says_how_many_remarks_it_leaves_out(tmp_path: Path) -> None:
    ends = Endpoints.at(tmp_path)
    step = StepFiles(ends.ports.staging, ends.order(reading("in"), {"path": "in"}))
    result = await step.result(Manifest(), [], remarks=[*MANY, *MANY])
    assert result.remarks == (*MANY[:9], "and 3 more remarks of action 1")
    assert (await step_of(ends, result)).remarks == result.remarks
    few = await step.result(Manifest(), [], remarks=MANY[:10])
    assert few.remarks == tuple(MANY[:10])


@pytest.mark.parametrize(
    ("remarks", "said"),
    [
        ([], ""),
        (["one", "two"], "one; two"),
        (["a" * 500], "a" * 500),
        (["a" * 600], "a" * 500),
        (["a" * 300, "b" * 300, "c"], "a" * 300 + "; and 2 more remarks"),
        (["a" * 600, "b"], "a" * 481 + "; and 1 more remark"),
    ],
)
def test_a_row_says_how_many_remarks_it_leaves_out(remarks: list[str], said: str) -> None:
    assert in_one_sentence(remarks) == said
