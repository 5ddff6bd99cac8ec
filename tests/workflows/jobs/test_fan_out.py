"""More tasks than one batch holds."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowFailureError

from activities.jobs.api import TaskContext
from tests.support.jobs.installation import job_installation, order_of
from tests.support.jobs.types import pieces
from workflows.jobs.records import JobStatus, TaskStatus
from workflows.jobs.runs import StageRef, job_workflow_id, stage_workflow_id
from workflows.shared.errors import RuleViolation

MANY = 1_100
ALONE = pytest.mark.cached(alone=True)


@ALONE
async def test_batches_run_side_by_side_and_history_stays_short(
    server: Any, run_worker: Any, tmp_path: Path
) -> None:
    kind = pieces(name="many", max_parallel_tasks=1_000, tasks_per_activity=50)
    kind.act = staticmethod(lambda context, begun: None)
    order = order_of(kind, {"pieces": MANY})
    async with job_installation(server.client, tmp_path, run_worker, kind) as jobs:
        result = await jobs.run(order)
        tasks = await jobs.tasks(order, stage=1)
        stage = stage_workflow_id(order.job_id, StageRef(stage=1, attempt=1))
        histories = [
            await jobs.client.get_workflow_handle(id).fetch_history()
            for id in (job_workflow_id(order.job_id), stage)
        ]
    assert result.stages[0].counts.completed == MANY
    assert [task.ordinal for task in tasks] == list(range(MANY))
    assert len(kind.done) == MANY
    assert max(len(history.events) for history in histories) < 200
    reported = [
        event.event_time.ToDatetime().timestamp()
        for event in histories[1].events
        if event.HasField("signal_external_workflow_execution_initiated_event_attributes")
    ]
    # The clock of a workflow stands still while it works, so that a little less may pass.
    assert all(later - earlier > 0.5 for earlier, later in pairwise(reported))


@ALONE
async def test_a_failure_in_one_batch_stops_the_others(
    server: Any, run_worker: Any, tmp_path: Path
) -> None:
    def act(context: TaskContext[Any], begun: int) -> None:
        if context.index == "piece-0":
            raise RuleViolation("crooked")

    kind = pieces(name="stopped", max_parallel_tasks=1, tasks_per_activity=10)
    kind.act = staticmethod(act)
    order = order_of(kind, {"pieces": MANY})
    async with job_installation(server.client, tmp_path, run_worker, kind) as jobs:
        with pytest.raises(WorkflowFailureError):
            await jobs.run(order)
        record = await jobs.record(order)
        tasks = await jobs.tasks(order, stage=1)
    states = [task.status for task in tasks]
    assert record.status is JobStatus.FAILED
    assert states[0] is TaskStatus.FAILED
    assert states[1:10] == [TaskStatus.COMPLETED] * 9
    assert states[10:] == [TaskStatus.CANCELLED] * (MANY - 10)
