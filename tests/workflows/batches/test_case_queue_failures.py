"""A case whose table of batches cannot be used, with every activity scripted."""

import asyncio
import uuid
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.batches.validation import CaseBacklog
from tests.support.scripted import scripted
from tests.support.waiting import eventually
from workflows.batches.case_queue import DATABASE_PAUSE, CaseQueue
from workflows.batches.events import JobFinished
from workflows.batches.runs import CaseInput, WaitingBatches
from workflows.shared.errors import PERMANENT

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    # Without a cache, each of hundreds of events would replay all those before it.
    pytest.mark.cached(alone=True),
]


async def test_a_case_that_fails_for_long_begins_anew_and_keeps_its_events(
    server: Any, run_worker: Any
) -> None:
    queue, case_id = uuid.uuid4().hex, uuid.uuid4().int % 1_000_000_000 + 1
    failing, event = True, JobFinished(case_id=case_id, batch_id=1)

    def note(_: object) -> WaitingBatches:
        if failing:
            raise ApplicationError("no such column", type=PERMANENT, non_retryable=True)
        return WaitingBatches()

    script = scripted(CaseBacklog, results={"note": note})
    async with run_worker(queue, [CaseQueue], script.activities()):
        order = CaseInput(case_id=case_id)
        case = await server.client.start_workflow(
            CaseQueue.run, order, id=f"case/{case_id}", task_queue=queue
        )
        await case.execute_update(CaseQueue.take, event)
        begun = (await case.describe()).run_id
        latest = server.client.get_workflow_handle(case.id)

        async def anew() -> bool:
            # Events of another case change nothing, and make the history long.
            other = JobFinished(case_id=case_id + 1, batch_id=1)
            await asyncio.gather(*(latest.signal("take", other) for _ in range(50)))
            await server.skip(latest, DATABASE_PAUSE)
            return (await latest.describe()).run_id != begun

        await eventually(anew, seconds=60, pause=0.2)
        assert (await latest.query(CaseQueue.status)).unrecorded == (event.batch_id,)
        failing = False

        async def recorded() -> bool:
            await server.skip(latest, DATABASE_PAUSE)
            return (await latest.query(CaseQueue.status)).unrecorded == ()

        await eventually(recorded)
        await latest.terminate()
    assert [asked.events for asked in script.received["note"] if asked.events][-1] == (event,)
