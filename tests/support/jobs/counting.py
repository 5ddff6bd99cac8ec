"""A job type for tests of the ways in."""

from collections.abc import AsyncIterator, Sequence

from pydantic import Field

from activities.jobs.api import JobType, StageContext, TaskContext, TaskDone, job_type, task
from workflows.jobs.definitions import StageDefinition, WorkflowDefinition
from workflows.jobs.runs import PlannedTask
from workflows.shared.contracts import Contract


class CountParameters(Contract):
    """What is counted."""

    files: tuple[str, ...] = ()
    size: int = Field(default=2, ge=1)


@job_type(
    WorkflowDefinition(
        job_type="count_words",
        description="Counts words.",
        total_stages=1,
        stages=(
            StageDefinition(
                stage_number=1, stage_name="count", task_type="count_words", max_parallel_tasks=10
            ),
        ),
    )
)
class CountWords(JobType[CountParameters]):
    """One task for each file."""

    parameters = CountParameters

    def inputs(self, parameters: CountParameters) -> Sequence[str]:
        return parameters.files

    async def plan(
        self, stage: StageDefinition, context: StageContext[CountParameters]
    ) -> AsyncIterator[PlannedTask]:
        for number, name in enumerate(context.parameters.files):
            yield PlannedTask(index=str(number), parameters={"file": name})

    @task("count_words")
    async def count(self, context: TaskContext[CountParameters]) -> TaskDone:
        return TaskDone(result={"words": 3})
