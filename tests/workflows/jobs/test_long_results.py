"""Results that are too long for the table reach plans, tasks and aggregations all the same."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from activities.jobs.api import JobType, StageContext, TaskContext, TaskDone, job_type, task
from contracts.base import Contract
from contracts.jobs import JsonObject, PlannedTask, StageDefinition, WorkflowDefinition
from tests.support.jobs.installation import job_installation, order_of

LONG = 20_000
"""Characters; the installation keeps up to 10,000 in the table."""


class Nothing(Contract):
    pass


@job_type(
    WorkflowDefinition(
        job_type="long_results",
        description="A long text, measured by all that follow.",
        total_stages=2,
        stages=(
            StageDefinition(stage_number=1, stage_name="write", task_type="write"),
            StageDefinition(stage_number=2, stage_name="measure", task_type="measure"),
        ),
    )
)
class LongResults(JobType[Nothing]):
    parameters = Nothing

    async def plan(
        self, stage: StageDefinition, context: StageContext[Nothing]
    ) -> AsyncIterator[PlannedTask]:
        if stage.stage_number == 1:
            yield PlannedTask(index="0")
        async for each in context.previous():
            yield PlannedTask(index=each.index, parameters={"planned": len(each.result["text"])})

    @task("write")
    async def write(self, context: TaskContext[Nothing]) -> TaskDone:
        return TaskDone(result={"text": "x" * LONG})

    @task("measure")
    async def measure(self, context: TaskContext[Nothing]) -> TaskDone:
        assert context.predecessor is not None
        return TaskDone(result={**context.task, "seen": len(context.predecessor.result["text"])})

    async def aggregate(self, stage: StageDefinition, context: StageContext[Nothing]) -> JsonObject:
        results = [each.result async for each in context.previous()]
        return results[0] if stage.stage_number == 2 else {"length": len(results[0]["text"])}

    async def result(self, context: StageContext[Nothing]) -> JsonObject:
        return {**context.stage_results[1], **context.stage_results[2]}


async def test_a_long_result_is_read_by_plan_task_and_aggregation(
    server: Any, run_worker: Any, tmp_path: Path
) -> None:
    order = order_of(LongResults)
    async with job_installation(server.client, tmp_path, run_worker, LongResults) as jobs:
        await jobs.run(order)
        record = await jobs.record(order)
        (row,) = await jobs.tasks(order, stage=1)
    assert record.result_data == {"length": LONG, "planned": LONG, "seen": LONG}
    assert row.result_data == {} and row.large_metadata_path is not None
