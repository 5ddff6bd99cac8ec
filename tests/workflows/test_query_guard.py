"""A query that comes with a workflow task leaves a history that replays."""

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from temporalio import activity, workflow
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.service import RPCError
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner

from workers.shared.plugin import QueryGuard, QueryMetEnd, docflow_plugin

STEPS = 2
SHORTLY = timedelta(seconds=10)


@activity.defn(name="guard.step")
async def step(seconds: float) -> None:
    await asyncio.sleep(seconds)


@workflow.defn(name="GuardedRun")
class GuardedRun:
    """Every signal does a short step, and then starts another timer."""

    @workflow.init
    def __init__(self, seconds: float) -> None:
        self._seconds, self._done = seconds, 0
        self._turn = asyncio.Lock()

    @workflow.run
    async def run(self, seconds: float) -> int:
        while (seen := self._done) < STEPS:
            await workflow.wait_condition(
                lambda seen=seen: self._done != seen, timeout=SHORTLY * 60
            )
        await workflow.wait_condition(workflow.all_handlers_finished)
        return self._done

    @workflow.signal
    async def go(self) -> None:
        async with self._turn:
            self._done += 1
            await workflow.execute_local_activity(
                step, self._seconds, start_to_close_timeout=SHORTLY
            )

    @workflow.query
    def done(self) -> int:
        return self._done


@pytest.mark.cached(alone=True)
@pytest.mark.parametrize("seconds", [0.0, 0.003, 0.1])
async def test_a_query_that_meets_the_end_of_a_local_activity_leaves_a_history_that_replays(
    server: Any, run_worker: Any, seconds: float
) -> None:
    queue = f"guard-{seconds}"

    async def one(number: int) -> None:
        id = f"{queue}-{number}"
        handle = await server.client.start_workflow(
            GuardedRun.run, seconds, id=id, task_queue=queue
        )
        await handle.signal(GuardedRun.go)
        await handle.signal(GuardedRun.go)
        # No worker runs yet: the server gives the query along with the first task.
        query = asyncio.create_task(_answer(handle))
        pending.append((handle, query))

    pending: list[Any] = []
    for number in range(5):
        await one(number)
    await asyncio.sleep(0.2)
    async with run_worker(queue, [GuardedRun], [step]):
        for handle, query in pending:
            assert await query in range(1, STEPS + 1)
            assert await handle.result() == STEPS
    replayer = Replayer(
        workflows=[GuardedRun],
        plugins=[docflow_plugin()],
        workflow_runner=UnsandboxedWorkflowRunner(),
    )
    for handle, _ in pending:
        await replayer.replay_workflow(await handle.fetch_history())


async def test_a_query_behind_the_end_of_a_local_activity_lets_the_task_be_done_again() -> None:
    guard = QueryGuard()
    guard.ended("run", "1")
    with pytest.raises(QueryMetEnd):
        guard.begin(_queried())
    # Done again, the local activity waits for the query, and then for its answer to be sent.
    end = asyncio.create_task(guard.before_end("run"))
    await asyncio.sleep(0)
    answer = guard.begin(_queried())
    assert answer is not None
    await asyncio.sleep(0)
    assert not end.done()
    guard.answered("run", answer)
    await end


async def test_a_query_is_answered_where_the_workflow_knows_of_every_end() -> None:
    guard = QueryGuard()
    guard.ended("run", "1")
    resolved = WorkflowActivation(run_id="run")
    resolved.jobs.add().resolve_activity.seq = 1
    assert guard.begin(resolved) is None
    assert guard.begin(_queried()) is not None


async def test_a_query_of_its_own_task_holds_nothing_back() -> None:
    guard = QueryGuard()
    guard.ended("run", "1")
    assert guard.begin(_queried("legacy_query")) is None
    await guard.before_end("run")


async def _answer(handle: Any) -> int:
    while True:
        # On a busy machine tasks of a run time out, and no query is answered meanwhile.
        with suppress(RPCError):
            return await handle.query(GuardedRun.done)


def _queried(id: str = "with-a-task") -> WorkflowActivation:
    activation = WorkflowActivation(run_id="run")
    activation.jobs.add().query_workflow.query_id = id
    return activation
