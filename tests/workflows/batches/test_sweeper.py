"""The sweeper, with every activity scripted."""

import uuid
from typing import Any

import pytest

from tests.support.batches.scripted import MAKING, REMOVING, ScriptedSweep, denied
from tests.support.waiting import eventually
from workflows.batches.batch_lifecycle import BatchLifecycle
from workflows.batches.names import BatchKey, Phase
from workflows.batches.runs import BatchInput, SweepInput, Swept
from workflows.batches.sweeper import BatchSweeper
from workflows.shared import attributes
from workflows.shared.run_notifications import NoticeDelivery

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    # A sweep is several runs at once, which no worker without a cache can serve.
    pytest.mark.cached(alone=True),
]


def _keys(number: int) -> tuple[BatchKey, ...]:
    case_id = uuid.uuid4().int % 1_000_000_000 + 1
    return tuple(BatchKey(case_id=case_id, batch_id=id) for id in range(1, number + 1))


async def _sweep(server: Any, run_worker: Any, script: ScriptedSweep) -> Swept:
    queue = uuid.uuid4().hex
    workflows = [BatchSweeper, BatchLifecycle, NoticeDelivery]
    async with run_worker(queue, workflows, script.activities()):
        swept = await server.client.execute_workflow(
            BatchSweeper.run, SweepInput(), id=f"sweep/{queue}", task_queue=queue
        )

        async def all_notified() -> bool:
            return len(script.batch.notices) == swept.left

        await eventually(all_notified)
        return swept


async def test_everything_of_every_orphan_is_removed(server: Any, run_worker: Any) -> None:
    script = ScriptedSweep(_keys(3))
    swept = await _sweep(server, run_worker, script)
    assert swept == Swept(batches=3)
    for step in REMOVING:
        assert script.batch.made(step) == 3
    assert not set(script.batch.calls) & set(MAKING)


async def test_what_cannot_be_removed_is_counted_and_the_others_go(
    server: Any, run_worker: Any
) -> None:
    script = ScriptedSweep(_keys(3))
    script.batch.fails["delete_queue"] = [denied()]
    swept = await _sweep(server, run_worker, script)
    assert swept == Swept(batches=3, left=1)
    assert [notice.kind for notice in script.batch.notices] == ["needs-you"]
    assert script.batch.made("delete_dead_letters") == 3


async def test_the_result_names_batches_that_were_left_alone(server: Any, run_worker: Any) -> None:
    left_alone, swept = _keys(2)
    script = ScriptedSweep([swept], not_ours=[left_alone])
    assert await _sweep(server, run_worker, script) == Swept(batches=1, not_ours=(left_alone,))


async def test_a_batch_that_was_started_meanwhile_is_left_alone(
    server: Any, run_worker: Any
) -> None:
    keys = _keys(2)
    script, queue = ScriptedSweep(keys), uuid.uuid4().hex
    async with run_worker(queue, [BatchSweeper, BatchLifecycle], script.activities()):
        live = await server.client.start_workflow(
            BatchLifecycle.run,
            BatchInput(key=keys[0]),
            id=keys[0].workflow_id,
            task_queue=queue,
            search_attributes=attributes.at_start("batches", "load", str(keys[0].case_id)),
        )

        async def loading() -> bool:
            return (await live.query(BatchLifecycle.status)).phase is Phase.LOADING

        await eventually(loading)
        swept = await server.client.execute_workflow(
            BatchSweeper.run, SweepInput(), id=f"sweep/{queue}", task_queue=queue
        )
        assert swept == Swept(batches=1)
        assert await loading()
        await live.terminate()
    assert script.batch.made("delete_function") == 1
