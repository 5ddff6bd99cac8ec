"""Accounts that share a queue take turns, on a server that knows fairness keys."""

import json
from pathlib import Path
from typing import Any

import pytest
from temporalio.worker import Worker

from activities.transfers.operators_files import Queue
from stack.temporal import temporal_server
from tests.support.memory.rejected import MemoryRejectedMessages
from tests.support.transfers.events import an_event
from tests.support.transfers.scripted import ScriptedTransfer
from tests.support.waiting import eventually
from workers.shared.connect import connect
from workers.transfers.starts import TransferIntake
from workflows.transfers.events import TASK_QUEUE, queue_task_queue
from workflows.transfers.file_event import FileEvent
from workflows.transfers.file_job import FileJob
from workflows.transfers.runs import ActionInput, ActionResult

BURST = 40
ONE_AT_A_TIME = {
    "max_cached_workflows": 0,
    "max_concurrent_workflow_tasks": 1,
    "max_concurrent_workflow_task_polls": 1,
    "max_concurrent_activities": 1,
    "max_concurrent_activity_task_polls": 1,
}


@pytest.mark.parametrize("queue", [None, "jobs"], ids=["routed by rules", "routed already"])
async def test_an_account_does_not_wait_for_the_burst_of_another_one(
    queue: str | None, tmp_path: Path
) -> None:
    order: list[str] = []

    def read(asked: ActionInput) -> ActionResult:
        order.append(asked.job.event.account_id)
        return ActionResult(files=asked.files)

    script = ScriptedTransfer(results={"read_file": read})
    async with temporal_server(tmp_path, ui=False, in_memory=True) as server:
        client = await connect(server.address)
        known = None if queue is None else Queue(name=queue, handler="x")
        intake = TransferIntake(client, MemoryRejectedMessages(), way_in="test", queue=known)

        async def send(account: str, number: int) -> None:
            event = an_event(id=f"{account}-{number}", data={"accountId": account})
            await intake.accept(json.dumps(event).encode(), 0, None)

        for number in range(BURST):
            await send("LOUD", number)
        await send("QUIET", 0)
        options: dict[str, Any] = {"activities": script.activities(), **ONE_AT_A_TIME}
        async with (
            Worker(client, task_queue=TASK_QUEUE, workflows=[FileEvent], **options),
            Worker(client, task_queue=queue_task_queue("jobs"), workflows=[FileJob], **options),
        ):

            async def came() -> bool:
                return "QUIET" in order

            await eventually(came)
    # It was sent after all of the others, and takes several steps. How many of them pass by differs
    # from run to run; without turns all do.
    assert order.index("QUIET") < BURST, order
