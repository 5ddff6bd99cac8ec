"""`hello_world`: three stages with any fan-out, for tests and for measuring."""

from collections.abc import AsyncIterator

from pydantic import ConfigDict, Field

from activities.jobs.api import JobType, StageContext, TaskContext, TaskDone, job_type, task
from workflows.jobs.definitions import TASKS_PER_STAGE, StageDefinition, WorkflowDefinition
from workflows.jobs.records import JsonObject, TaskStatus
from workflows.jobs.runs import PlannedTask
from workflows.shared.contracts import Contract


class HelloParameters(Contract):
    """What `hello_world` takes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    n: int = Field(default=3, ge=0, le=TASKS_PER_STAGE)
    """Greetings, and as many replies."""
    message: str = Field(default="Hello World", max_length=200)


@job_type(
    WorkflowDefinition(
        job_type="hello_world",
        description="Greets, replies to each greeting, and counts both.",
        total_stages=3,
        stages=(
            StageDefinition(
                stage_number=1,
                stage_name="greeting",
                task_type="hello_world_greeting",
                max_parallel_tasks=1_000,
                timeout_minutes=1,
                tasks_per_activity=10,
            ),
            StageDefinition(
                stage_number=2,
                stage_name="reply",
                task_type="hello_world_reply",
                max_parallel_tasks=1_000,
                timeout_minutes=1,
                tasks_per_activity=10,
                depends_on_stage=1,
            ),
            StageDefinition(
                stage_number=3,
                stage_name="summary",
                task_type="hello_world_summary",
                timeout_minutes=1,
                depends_on_stage=2,
            ),
        ),
    )
)
class HelloWorld(JobType[HelloParameters]):
    """Greeting, reply, summary."""

    parameters = HelloParameters

    async def plan(
        self, stage: StageDefinition, context: StageContext[HelloParameters]
    ) -> AsyncIterator[PlannedTask]:
        """`n` greetings, a reply to each that was given, one summary."""
        match stage.stage_number:
            case 1:
                for number in range(context.parameters.n):
                    yield PlannedTask(index=str(number), parameters={"number": number})
            case 2:
                async for greeting in context.previous():
                    if greeting.status is TaskStatus.COMPLETED:
                        yield PlannedTask(index=greeting.index)
            case _:
                replies = 0
                async for reply in context.previous():
                    replies += reply.status is TaskStatus.COMPLETED
                if replies:
                    yield PlannedTask(index="summary", parameters={"replies": replies})

    @task("hello_world_greeting")
    async def greet(self, context: TaskContext[HelloParameters]) -> TaskDone:
        """One greeting."""
        number = context.task["number"]
        return TaskDone(
            result={"greeting": f"{context.parameters.message} from task {number}"},
            next_stage_params={"to": f"task {number}"},
        )

    @task("hello_world_reply")
    async def reply(self, context: TaskContext[HelloParameters]) -> TaskDone:
        """The reply to the greeting of the same index."""
        greeting = context.predecessor
        assert greeting is not None
        to = greeting.next_stage_params["to"]
        return TaskDone(
            result={"reply": f"Hello to {to}", "replied_to": greeting.result["greeting"]}
        )

    @task("hello_world_summary")
    async def summarise(self, context: TaskContext[HelloParameters]) -> TaskDone:
        """How many there were."""
        return TaskDone(
            result={
                "greetings": context.stage_results[1].get("tasks", 0),
                "replies": context.task["replies"],
            }
        )

    async def aggregate(
        self, stage: StageDefinition, context: StageContext[HelloParameters]
    ) -> JsonObject:
        """How many tasks have completed; of the summary, what it says."""
        done = 0
        result: JsonObject = {}
        async for each in context.previous():
            if each.status is TaskStatus.COMPLETED:
                done, result = done + 1, each.result
        return result if stage.stage_number == 3 else {"tasks": done}
