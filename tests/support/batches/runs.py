"""Runs of batches whose activities are scripted."""

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from temporalio.api.enums.v1 import EventType
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import (
    WorkflowExecutionStatus,
    WorkflowHandle,
)

from tests.support.batches.scripted import (
    KEY,
    REMOVING,
    ScriptedBatch,
    ended,
)
from tests.support.waiting import eventually
from workflows.batches.batch_lifecycle import BatchLifecycle
from workflows.batches.names import Phase, Purpose, Timings
from workflows.batches.runs import BatchInput, BatchResult, BatchStatus
from workflows.shared import attributes
from workflows.shared.run_notifications import NoticeDelivery

Handle = WorkflowHandle[Any, BatchResult]
QUICK = Timings(settle=0, poll=1, hold=0)
"""For what time has no part in."""


@dataclass
class BatchRuns:
    """Starts runs of batches on a worker of the test's own."""

    server: Any
    run_worker: Any

    @asynccontextmanager
    async def running(
        self,
        script: ScriptedBatch,
        timings: Timings = QUICK,
        purpose: Purpose = Purpose.LOAD,
        *,
        notices: bool = False,
    ) -> AsyncIterator[Handle]:
        queue = f"batches-{uuid.uuid4().hex}"
        workflows = [BatchLifecycle, NoticeDelivery]
        async with self.run_worker(queue, workflows, script.activities()):
            handle = await self.server.client.start_workflow(
                BatchLifecycle.run,
                BatchInput(key=KEY, purpose=purpose, timings=timings, notices=notices),
                id=f"{KEY.workflow_id}/{queue}",
                task_queue=queue,
                search_attributes=attributes.at_start("batches", purpose, str(KEY.case_id)),
            )
            try:
                yield handle
            finally:
                # A run that a failed test leaves behind must not hold the worker up.
                if (await handle.describe()).status is WorkflowExecutionStatus.RUNNING:
                    await handle.terminate()


async def status_of(handle: Handle) -> BatchStatus:
    return await handle.query(BatchLifecycle.status)


async def reach(handle: Handle, phase: Phase) -> BatchStatus:
    """Wait until a run is in a phase; its attributes say so without a worker's work."""

    async def reached() -> bool:
        return (
            await attribute_of(handle, attributes.STATE) == phase
            and (await status_of(handle)).phase is phase
        )

    await eventually(reached)
    return await status_of(handle)


async def timers_of(handle: Handle) -> list[int]:
    """Seconds of every timer that the run set, in order."""
    history = await handle.fetch_history()
    return [
        round(
            event.timer_started_event_attributes.start_to_fire_timeout.ToTimedelta().total_seconds()
        )
        for event in history.events
        if event.event_type == EventType.EVENT_TYPE_TIMER_STARTED
    ]


async def skip_to_the_end(server: Any, handle: Handle, by: timedelta) -> None:
    async def over() -> bool:
        if (await handle.describe()).status is not WorkflowExecutionStatus.RUNNING:
            return True
        await server.skip(handle, by)
        return False

    # Every skip is an event of the run's history, so they are few.
    await eventually(over, seconds=60, pause=0.2)


async def attribute_of(handle: Handle, key: Any) -> Any:
    return (await handle.describe()).typed_search_attributes.get(key)


def removed_by(script: ScriptedBatch) -> list[str]:
    return [name for name in script.calls if name in REMOVING]


async def holds(truth: bool) -> bool:
    return truth


async def shows(handle: Handle, *lines: str) -> None:
    """Wait until the details of a run hold these lines."""

    async def reported() -> bool:
        shown = await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
        return all(line in shown.current_details for line in lines)

    await eventually(reported)


async def end(handle: Handle) -> None:
    """Answer BATCH_END_START, once it is asked for."""
    await reach(handle, Phase.ENDING)
    await handle.signal(BatchLifecycle.take, ended())
