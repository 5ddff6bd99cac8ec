"""Activities that do nothing, fanned out by bare workflows in the shape of a stage."""

import asyncio
from datetime import timedelta
from typing import Final

from temporalio import activity, workflow
from temporalio.common import RetryPolicy

from workflows.shared.contracts import Contract

QUEUE: Final = "bare"
LIGHT: Final = "bare-light"


class BareInput(Contract):
    """Input of both workflows."""

    batches: int
    tasks: int
    """Of each batch."""
    window: int


class BareTask(Contract):
    """Input of the activity."""

    number: int


class BareResult(Contract):
    """Its result."""

    greeting: str


@activity.defn(name="bare.greet")
async def greet(task: BareTask) -> BareResult:
    """Answer."""
    return BareResult(greeting=f"Hello World from task {task.number}")


@workflow.defn(name="BareBatch")
class BareBatch:
    """A sliding window of activities."""

    @workflow.run
    async def run(self, order: BareInput) -> int:
        """How many were done."""
        window = asyncio.Semaphore(order.window)

        async def one(number: int) -> None:
            async with window:
                await workflow.execute_activity(
                    greet,
                    BareTask(number=number),
                    task_queue=LIGHT,
                    start_to_close_timeout=timedelta(minutes=1),
                    retry_policy=RetryPolicy(maximum_attempts=1),
                )

        await asyncio.gather(*(one(number) for number in range(order.tasks)))
        return order.tasks


@workflow.defn(name="BareJob")
class BareJob:
    """All batches side by side."""

    @workflow.run
    async def run(self, order: BareInput) -> int:
        """How many tasks were done."""
        own = workflow.info().workflow_id
        done = await asyncio.gather(
            *(
                workflow.execute_child_workflow(BareBatch.run, order, id=f"{own}/{batch}")
                for batch in range(order.batches)
            )
        )
        return sum(done)
