"""A job type of two stages: read lists of parts, then price them."""

from collections.abc import AsyncIterator
from pathlib import Path

from pydantic import ConfigDict

from docflow.extend import (
    Contract,
    InvalidDocument,
    JobType,
    JsonObject,
    OnFailure,
    PlannedTask,
    StageContext,
    StageDefinition,
    TaskContext,
    TaskDone,
    WorkflowDefinition,
    job_type,
    task,
)


class CountParameters(Contract):
    """What a request says; a name that is not known is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    lists: list[str]
    prices: str
    """Path of a file with a price for each list: `name=price`, a line each."""


@job_type(
    WorkflowDefinition(
        job_type="count_parts",
        description="Counts the parts of lists, and prices them.",
        total_stages=2,
        stages=(
            StageDefinition(
                stage_number=1, stage_name="count", task_type="count_list", max_parallel_tasks=10
            ),
            StageDefinition(
                stage_number=2,
                stage_name="price",
                task_type="price_list",
                # After a task that fails, no other one begins.
                on_failure=OnFailure.FAIL_FAST,
            ),
        ),
    )
)
class CountParts(JobType[CountParameters]):
    """One task for each list and stage."""

    parameters = CountParameters

    async def plan(
        self, stage: StageDefinition, context: StageContext[CountParameters]
    ) -> AsyncIterator[PlannedTask]:
        for name in context.parameters.lists:
            yield PlannedTask(index=name, parameters={"list": name})

    @task("count_list")
    async def count(self, context: TaskContext[CountParameters]) -> TaskDone:
        return TaskDone(result={"parts": len(context.task["list"])})

    @task("price_list")
    async def price(self, context: TaskContext[CountParameters]) -> TaskDone:
        counted = context.predecessor
        assert counted is not None
        lines = Path(context.parameters.prices).read_text().splitlines()
        prices = dict(line.split("=") for line in lines)
        if context.index not in prices:
            raise InvalidDocument(f"the list {context.index} has no price")
        return TaskDone(result={"price": counted.result["parts"] * int(prices[context.index])})

    async def aggregate(
        self, stage: StageDefinition, context: StageContext[CountParameters]
    ) -> JsonObject:
        return {"price": sum([each.result.get("price", 0) async for each in context.previous()])}
