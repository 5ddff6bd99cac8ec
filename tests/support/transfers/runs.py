"""Runs of transfers on a server that all tests of a session share."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowHandle
from temporalio.worker import Worker

from tests.support.transfers.scripted import ScriptedTransfer
from tests.support.waiting import eventually
from workflows.shared import attributes
from workflows.transfers.events import TASK_QUEUE, queue_task_queue
from workflows.transfers.file_event import FileEvent
from workflows.transfers.file_job import FileJob
from workflows.transfers.runs import (
    FileEventInput,
    FileJobInput,
    TransferView,
    file_job_id,
    transfer_workflow_id,
)

Handle = WorkflowHandle[Any, TransferView]


@dataclass
class TransferRuns:
    """Starts events and jobs, on workers with scripted activities.

    Queues have the same task queues in every test, so that tests of them run one after another.
    """

    server: Any
    run_worker: Any
    queues: tuple[str, ...] = ("jobs",)
    _open: list[Worker] = field(default_factory=list[Worker])

    def task_queue_of(self, queue: str) -> str:
        return queue_task_queue(queue)

    @asynccontextmanager
    async def workers(self, script: ScriptedTransfer) -> AsyncGenerator[None]:
        """One worker for events, and one for the jobs of the queue `jobs`."""
        activities = script.activities()
        async with (
            self.run_worker(TASK_QUEUE, [FileEvent], activities),
            self.run_worker(queue_task_queue("jobs"), [FileJob], activities),
        ):
            yield

    async def start_event(self, order: FileEventInput) -> Handle:
        return await self.server.client.start_workflow(
            FileEvent.run,
            order,
            id=transfer_workflow_id(order.transfer_id),
            task_queue=TASK_QUEUE,
            memo={"digest": order.digest},
            search_attributes=attributes.at_start("transfers", "event", "TMS001"),
        )

    async def start_job(self, order: FileJobInput) -> Handle:
        return await self.server.client.start_workflow(
            FileJob.run,
            order,
            id=file_job_id(order.transfer_id),
            task_queue=queue_task_queue(order.queue),
            search_attributes=attributes.at_start("transfers", order.queue, "TMS001"),
        )

    def handle(self, workflow_id: str) -> Handle:
        return self.server.client.get_workflow_handle(workflow_id, result_type=TransferView)

    async def parked(self, run: Handle) -> TransferView:
        """Wait until a run awaits a person."""
        seen: list[TransferView] = []

        async def is_parked() -> bool:
            view = await run.query("status", result_type=TransferView)
            seen.append(view)
            return view.since is not None

        await eventually(is_parked)
        return seen[-1]

    async def eventually_made(self, script: ScriptedTransfer, name: str, times: int) -> None:
        """Wait until an activity was called so often."""

        async def made() -> bool:
            return script.made(name) >= times

        await eventually(made)

    async def skip_timer(self, run: Handle, by: timedelta) -> None:
        """Let the time of a timer pass that a run has begun, or is about to begin."""

        async def has_timer() -> bool:
            kinds = [event.event_type async for event in run.fetch_history_events()]
            begun = kinds.count(EventType.EVENT_TYPE_TIMER_STARTED)
            return begun > kinds.count(EventType.EVENT_TYPE_TIMER_FIRED)

        await eventually(has_timer)
        await self.server.skip(run, by=by)
