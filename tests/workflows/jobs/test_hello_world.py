"""A job from its first stage to its end, on a real server."""

from pathlib import Path
from typing import Any

import pytest

from contracts.jobs import JobStatus, StageState, TaskStatus
from tests.support.jobs.installation import job_installation, order_of


@pytest.mark.cached
async def test_hello_world_greets_replies_and_counts(
    server: Any, run_worker: Any, tmp_path: Path
) -> None:
    order = order_of(parameters={"n": 12})
    async with job_installation(server.client, tmp_path, run_worker) as jobs:
        result = await jobs.run(order)
        record, tasks = await jobs.record(order), await jobs.tasks(order)
    assert [view.state for view in result.stages] == [StageState.COMPLETED] * 3
    assert [view.counts.completed for view in result.stages] == [12, 12, 1]
    assert (record.status, record.stage, record.total_stages) == (JobStatus.COMPLETED, 3, 3)
    assert record.stage_results == {
        "1": {"tasks": 12},
        "2": {"tasks": 12},
        "3": {"greetings": 12, "replies": 12},
    }
    assert record.result_data == {"greetings": 12, "replies": 12}
    assert {task.status for task in tasks} == {TaskStatus.COMPLETED}
    fifth = tasks[12 + 5]
    assert fifth.task_id == f"{order.job_id[:8]}-2-5"
    assert fifth.result_data == {
        "reply": "Hello to task 5",
        "replied_to": "Hello World from task 5",
    }
