"""Organisations take turns, on a server that knows fairness keys."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.common import RawValue
from temporalio.worker import Worker

from activities.jobs.types.hello_world import HelloWorld
from stack.temporal import temporal_server
from tests.adapters.transfers.test_fairness import BURST, ONE_AT_A_TIME
from tests.support.waiting import eventually
from workers.jobs.runs import JobRuns
from workers.shared.connect import connect
from workers.spreadsheets.runs import SpreadsheetRuns
from workflows.jobs.runs import JobInput, job_workflow_id
from workflows.shared.contracts import BlobRef
from workflows.spreadsheets.runs import SpreadsheetInput, workflow_id

LOUD, QUIET = 1, 2
_STEP = timedelta(seconds=30)
Start = Callable[[Client, int, int], Awaitable[str]]


async def upload(client: Client, organisation: int, number: int) -> str:
    """Start the run of an upload; its id."""
    uuid = f"{organisation:08}-0000-4000-8000-{number:012}"
    order = SpreadsheetInput(
        uuid=uuid,
        organisation_id=organisation,
        import_type="EVENT_PARTICIPANT",
        source=BlobRef(name="a.csv", size=1),
        filename="a.csv",
        by="ann",
        requested_at=datetime.now(UTC),
    )
    await SpreadsheetRuns(client).start_once(order, {})
    return workflow_id(uuid)


async def job(client: Client, organisation: int, number: int) -> str:
    """Start a job; the id of its run."""
    id = f"{organisation:032x}{number:032x}"
    definition = HelloWorld.definition
    order = JobInput(job_id=id, definition=definition, organisation_id=organisation)
    await JobRuns(client).start(order)
    return job_workflow_id(id)


@workflow.defn(dynamic=True)
class Anything:
    """Takes one step, as every run does."""

    @workflow.run
    async def run(self, _: Sequence[RawValue]) -> None:
        step = workflow.info().workflow_id
        await workflow.execute_activity("step", step, start_to_close_timeout=_STEP)


@pytest.mark.parametrize(("start", "task_queue"), [(upload, "spreadsheets"), (job, "jobs")])
async def test_an_organisation_does_not_wait_for_the_burst_of_another_one(
    start: Start, task_queue: str, tmp_path: Path
) -> None:
    order: list[str] = []

    @activity.defn
    async def step(id: str) -> None:
        order.append(id)

    async with temporal_server(tmp_path, ui=False, in_memory=True) as server:
        client = await connect(server.address)
        for number in range(BURST):
            await start(client, LOUD, number)
        quiet = await start(client, QUIET, 0)
        options: dict[str, Any] = {"activities": [step], **ONE_AT_A_TIME}
        async with Worker(client, task_queue=task_queue, workflows=[Anything], **options):

            async def came() -> bool:
                return quiet in order

            await eventually(came)
    # It was started after all of the others; without turns all of them come first.
    assert order.index(quiet) < BURST // 2, order
