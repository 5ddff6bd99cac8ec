"""The page about capacity is what its command writes, and counts as Temporal does."""

from pathlib import Path

import pytest

from benchmarks.capacity import Counted, costs, counted, page

ROOT = Path(__file__).parents[2]


def test_the_committed_page_is_what_the_command_writes() -> None:
    committed = (ROOT / "docs" / "capacity.md").read_text()
    assert page() == committed, "run `python -m benchmarks.capacity > docs/capacity.md`"


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        # A start, one short step, a change of search attributes.
        ("DocumentImport/done-by-the-first-step", (7, 3)),
        # A start, three short steps in one workflow task, a change of search attributes.
        ("DocumentImport/plain", (9, 3)),
        # The same with an activity, after which the last short step has a task of its own.
        ("DocumentImport/plain-remote", (14, 5)),
    ],
)
def test_actions_are_counted_as_they_are_billed(history: str, expected: tuple[int, int]) -> None:
    found = counted(history)
    assert (found.events, found.actions) == expected
    assert 2_500 < found.bytes < 6_000


def test_runs_add_up() -> None:
    assert Counted(1, 2, 3) + Counted(10, 20, 30) == Counted(11, 22, 33)


def test_processor_times_are_those_of_the_benchmarks() -> None:
    known = costs()
    assert known.worker > known.postgresql > 0
