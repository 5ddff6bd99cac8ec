"""The ways a document import can go."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from temporalio.client import Client, WorkflowHandle

from contracts.imports import Answer, ImportOrder, Retry
from tests.support.imports import OUTCOME, World, import_message, permanent
from workflows import attributes
from workflows.imports.document_import import DocumentImport

Handle = WorkflowHandle[Any, Any]


async def _nothing(handle: Handle, world: World) -> None:
    return


async def _when_parked(handle: Handle) -> None:
    while not (await handle.query(DocumentImport.status)).next_steps:
        await asyncio.sleep(0.05)


async def _retry(handle: Handle, world: World) -> None:
    await _when_parked(handle)
    await handle.execute_update(DocumentImport.retry, Retry(by="ann"))


async def _retry_corrected(handle: Handle, world: World) -> None:
    await _when_parked(handle)
    corrected = world.prepared[0].model_copy(update={"blob_name": "uploads/right.csv"})
    await handle.signal("retry", Retry(message=corrected, by="ann"))


async def _skip(handle: Handle, world: World) -> None:
    await _when_parked(handle)
    await handle.signal("skip")


async def _cancel(handle: Handle, world: World) -> None:
    await world.working.wait()
    await handle.execute_update(DocumentImport.cancel, Answer(reason="enough"))


@dataclass
class Case:
    """One way a run can go."""

    world: World
    message: dict[str, Any] = field(default_factory=dict[str, Any])
    act: Callable[[Handle, World], Awaitable[None]] = _nothing
    park: timedelta = timedelta(days=14)

    workflow = DocumentImport

    def activities(self) -> list[Callable[..., Any]]:
        """For the worker."""
        return self.world.activities()

    async def start(self, client: Client, name: str, task_queue: str) -> Handle:
        """Start the run."""
        message = import_message(task_id=name, **self.message)
        return await client.start_workflow(
            DocumentImport.run,
            ImportOrder(message=message, park_for_seconds=int(self.park.total_seconds())),
            id=message.workflow_id,
            task_queue=task_queue,
            search_attributes=attributes.at_start(
                "imports", message.document_type, message.project_id
            ),
        )

    async def go(self, handle: Handle) -> None:
        """Do what people do."""
        await self.act(handle, self.world)


CASES: dict[str, Case] = {
    "plain": Case(World()),
    "plain-remote": Case(World(path="remote")),
    "parked-and-retried": Case(World(failures=[permanent()]), act=_retry),
    "parked-and-corrected": Case(
        World(failures=[permanent()], path="remote"), act=_retry_corrected
    ),
    "parked-and-skipped": Case(World(failures=[permanent()]), act=_skip),
    "parked-too-long": Case(World(failures=[permanent()]), park=timedelta(seconds=1)),
    "skipped": Case(World(skip="completed already by task t-0")),
    "cancelled": Case(World(block=True, path="remote"), act=_cancel),
    "cancelled-local": Case(World(block=True), act=_cancel),
    "bulk": Case(
        World(),
        {"document_type": "schedule_fill_level", "payload": {"level": 2, "value": "Unit 100"}},
    ),
    "delete": Case(World(), {"document_type": "mto_delete", "service_id": "s1"}),
    "held-back": Case(
        World(outcomes=[OUTCOME.model_copy(update={"held_back": "nothing was written"})]),
        {"all_or_nothing": True},
        act=_retry,
    ),
    "result-not-recorded": Case(World(finish_failures=[permanent("no database")]), act=_retry),
}

CASES_OF = {"DocumentImport": CASES}
