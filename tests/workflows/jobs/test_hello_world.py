"""A job from its first stage to its end, on a real server."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.jobs.installation import JobInstallation, job_installation, order_of
from workflows.jobs.records import JobStatus, TaskStatus
from workflows.jobs.runs import StageRef, StageState, job_workflow_id, stage_workflow_id


@pytest.mark.cached
async def test_hello_world_greets_replies_and_counts(
    server: Any, run_worker: Any, tmp_path: Path
) -> None:
    order = order_of(parameters={"n": 12})
    async with job_installation(server.client, tmp_path, run_worker) as jobs:
        result = await jobs.run(order)
        record, tasks = await jobs.record(order), await jobs.tasks(order)
        of_job = await _begun(jobs, job_workflow_id(order.job_id))
        stage = stage_workflow_id(order.job_id, StageRef(stage=1, attempt=1))
        of_stage = await _begun(jobs, stage)
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
    # Each of these is a step that waits for a worker: quick stages are to have few.
    assert of_job == Counter({"Stage": 3})
    assert of_stage == Counter(
        {"jobs.plan_stage": 1, "jobs.run_tasks": 2, "jobs.close_small_stage": 1}
    )
    fifth = tasks[12 + 5]
    assert fifth.task_id == f"{order.job_id[:8]}-2-5"
    assert fifth.result_data == {
        "reply": "Hello to task 5",
        "replied_to": "Hello World from task 5",
    }


async def _begun(jobs: JobInstallation, workflow_id: str) -> Counter[str]:
    """Activities, children and signals of a run, by name."""
    history = await jobs.client.get_workflow_handle(workflow_id).fetch_history()
    found = Counter[str]()
    for event in history.events:
        if event.HasField("activity_task_scheduled_event_attributes"):
            found[event.activity_task_scheduled_event_attributes.activity_type.name] += 1
        elif event.HasField("start_child_workflow_execution_initiated_event_attributes"):
            child = event.start_child_workflow_execution_initiated_event_attributes
            found[child.workflow_type.name] += 1
        elif event.HasField("workflow_execution_signaled_event_attributes"):
            found[event.workflow_execution_signaled_event_attributes.signal_name] += 1
    return found
