"""How stages are divided, and how their progress reads."""

from datetime import UTC, datetime, timedelta

import pytest

from workflows.jobs.definitions import StageDefinition
from workflows.jobs.progress import (
    FanOut,
    fan_out,
    groups,
    is_small,
    line,
    pause,
    tasks_of,
    with_progress,
)
from workflows.jobs.runs import StageState, StageView, TaskCounts

BEGAN = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("tasks", "most", "expected"),
    [
        (1, 1, FanOut(1, 1, 1)),
        (10_000, 1, FanOut(20, 1, 1)),
        (10_000, 1_000, FanOut(20, 20, 50)),
        (10_000, 60, FanOut(20, 2, 30)),
        (501, 1_000, FanOut(2, 2, 500)),
        (100_000, 2_000, FanOut(200, 40, 50)),
    ],
)
def test_a_stage_never_does_more_at_once_than_it_may(
    tasks: int, most: int, expected: FanOut
) -> None:
    found = fan_out(tasks, most)
    assert found == expected
    assert found.parallel * found.window <= most
    assert sum(tasks_of(batch, tasks) for batch in range(found.batches)) == tasks


@pytest.mark.parametrize(
    ("tasks", "together", "is_few"),
    [(20, 1, True), (21, 1, False), (200, 10, True), (201, 10, False), (501, 100, False)],
)
def test_a_stage_of_few_activities_is_small(tasks: int, together: int, is_few: bool) -> None:
    stage = StageDefinition(
        stage_number=1, stage_name="tiles", task_type="tile", tasks_per_activity=together
    )
    assert is_small(tasks, stage) is is_few


@pytest.mark.parametrize(
    ("seconds", "events", "expected"),
    [(60, 9_999, 60), (60, 12_999, 60), (60, 13_000, 120), (60, 51_000, 86_400), (0, 51_000, 0)],
)
def test_tasks_of_a_long_history_are_tried_again_less_often(
    seconds: float, events: int, expected: float
) -> None:
    assert pause(seconds, events) == expected


def test_groups_hold_every_position_once() -> None:
    assert list(groups(range(5), 2)) == [(0, 1), (2, 3), (4,)]


def test_progress_has_a_rate_and_an_estimated_end() -> None:
    view = StageView(stage=1, name="tiles", state=StageState.RUNNING, began_at=BEGAN)
    now = BEGAN + timedelta(seconds=10)
    shown = with_progress(view, TaskCounts(total=100, completed=19, failed=1), now)
    assert (shown.rate, shown.estimated_end) == (2.0, now + timedelta(seconds=40))
    said = line(shown)
    assert said == (
        "1. tiles: running, 20 of 100, 1 failed, 2.0/s, ends about 2026-01-02 00:00:50 UTC"
    )
    assert with_progress(view, TaskCounts(total=100), now).estimated_end is None
