"""Job types of tests, whose tasks end as a test says."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, ClassVar

from pydantic import ConfigDict, Field

from activities.jobs.api import JobType, StageContext, TaskContext, TaskDone, job_type, task
from workflows.jobs.definitions import OnFailure, StageDefinition, WorkflowDefinition
from workflows.jobs.records import JsonObject, TaskStatus
from workflows.jobs.runs import PlannedTask
from workflows.shared.contracts import Contract


class PiecesParameters(Contract):
    """How many tasks the first stage has, and what else a task may look at."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pieces: int = 3
    year: int | None = None
    extra: dict[str, Any] = Field(default_factory=dict)


def pieces(
    on_failure: OnFailure = OnFailure.FAIL_FAST, *, name: str = "pieces", **stage: Any
) -> type["Pieces"]:
    """A job type of two stages: every piece, and one sum. `act` says what a piece does.

    Args:
        on_failure: Of the first stage.
        name: Of the type.
        stage: More fields of the first stage.
    """

    class Own(Pieces):
        done: ClassVar[list[str]] = []
        """Indexes of the pieces that were begun, in order."""

    definition = WorkflowDefinition(
        job_type=name,
        description="Pieces and their sum.",
        total_stages=2,
        stages=(
            StageDefinition(
                stage_number=1,
                stage_name="pieces",
                task_type="piece",
                on_failure=on_failure,
                **{"max_parallel_tasks": 10, **stage},
            ),
            StageDefinition(stage_number=2, stage_name="sum", task_type="sum"),
        ),
    )
    return job_type(definition)(Own)


class Pieces(JobType[PiecesParameters]):
    """Each piece does what `act` says; the sum counts what the pieces found."""

    parameters = PiecesParameters
    done: ClassVar[list[str]]
    act: ClassVar[Callable[[TaskContext[Any], int], Any]]
    """What a piece does at its nth begin, from 1; it returns the result."""

    async def plan(
        self, stage: StageDefinition, context: StageContext[PiecesParameters]
    ) -> AsyncIterator[PlannedTask]:
        """Pieces by number, and one sum."""
        if stage.stage_number == 1:
            for number in range(context.parameters.pieces):
                yield PlannedTask(index=f"piece-{number}", parameters={"number": number})
        else:
            yield PlannedTask(index="sum")

    @task("piece")
    async def piece(self, context: TaskContext[PiecesParameters]) -> TaskDone:
        """One piece."""
        self.done.append(context.index)
        result = type(self).act(context, self.done.count(context.index))
        if asyncio.iscoroutine(result):
            result = await result
        return TaskDone(result=result or {"number": context.task["number"]})

    @task("sum")
    async def sum(self, context: TaskContext[PiecesParameters]) -> TaskDone:
        """What the first stage has found."""
        return TaskDone(result=dict(context.stage_results[1]))

    async def aggregate(
        self, stage: StageDefinition, context: StageContext[PiecesParameters]
    ) -> JsonObject:
        """The pieces that are done."""
        done = [task async for task in context.previous() if task.status is TaskStatus.COMPLETED]
        if stage.stage_number == 2:
            return done[0].result
        return {"pieces": [task.index for task in done]}
