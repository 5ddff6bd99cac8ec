"""Cases whose histories are recorded and replayed."""

from collections.abc import Callable
from typing import Any

from temporalio.client import Client, WorkflowHandle

from tests.sixth.activities.weighing import ParcelWeighing
from tests.sixth.contracts import ParcelAnswer, ParcelInput
from tests.sixth.register import NAME
from tests.sixth.workflows import ParcelDelivery
from workers.shared.register import activities_of
from workflows.shared import attributes


class Case:
    """A parcel that an operator lets go."""

    workflow = ParcelDelivery

    def activities(self) -> list[Callable[..., Any]]:
        """For the worker."""
        return list(activities_of(ParcelWeighing(10)))

    async def start(self, client: Client, name: str, task_queue: str) -> WorkflowHandle[Any, Any]:
        """Start the run."""
        return await client.start_workflow(
            ParcelDelivery.run,
            ParcelInput(parcel=name),
            id=f"parcel/{name}",
            task_queue=task_queue,
            search_attributes=attributes.at_start(NAME, "parcel", "P1"),
        )

    async def go(self, handle: WorkflowHandle[Any, Any]) -> None:
        """Do what an operator does."""
        await handle.execute_update(ParcelDelivery.retry, ParcelAnswer(by="ann"))


CASES_OF = {"ParcelDelivery": {"plain": Case()}}
