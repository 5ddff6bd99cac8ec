"""An update that meets the end of a step is sent again, and applied once."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from temporalio import activity, workflow
from temporalio.api.enums.v1 import EventType
from temporalio.client import StartWorkflowUpdateInput, WorkflowHandle, WorkflowUpdateStage
from temporalio.service import RPCError, RPCStatusCode

from workers.shared import plugin

SHORTLY = timedelta(seconds=10)
QUEUE = "update-attempts"


class Meeting:
    """A step that ends while the answer of a workflow task is written."""

    def __init__(self) -> None:
        self._answered = asyncio.Event()
        self._ended = asyncio.Event()

    @activity.defn(name="meeting.slow_step")
    async def slow_step(self) -> None:
        await self._answered.wait()
        self._ended.set()

    @activity.defn(name="meeting.answer")
    async def answer(self) -> None:
        self._answered.set()
        await self._ended.wait()
        # Until the server knows that the step has ended, and this task does not.
        await asyncio.sleep(0.5)

    def activities(self) -> list[Callable[..., Any]]:
        return [self.slow_step, self.answer]


@workflow.defn(name="MeetingRun")
class MeetingRun:
    def __init__(self) -> None:
        self._answers = 0

    @workflow.run
    async def run(self) -> int:
        step = workflow.start_activity("meeting.slow_step", start_to_close_timeout=SHORTLY)
        await workflow.wait_condition(lambda: self._answers > 0)
        await workflow.wait_condition(workflow.all_handlers_finished)
        step.cancel()
        return self._answers

    @workflow.update
    async def close(self) -> str:
        await workflow.execute_local_activity(
            "meeting.answer", start_to_close_timeout=SHORTLY, result_type=type(None)
        )
        self._answers += 1
        return "closed"


async def _begun(server: Any, id: str) -> WorkflowHandle[Any, Any]:
    handle = await server.client.start_workflow(MeetingRun.run, id=id, task_queue=QUEUE)
    while not (await handle.describe()).raw_description.pending_activities:
        await asyncio.sleep(0.05)
    return handle


async def test_an_update_that_meets_the_end_of_a_step_is_applied_once(
    server: Any, run_worker: Any
) -> None:
    for number in range(5):
        async with run_worker(QUEUE, [MeetingRun], Meeting().activities()):
            handle = await _begun(server, f"update-attempts-{number}")
            assert await handle.execute_update(MeetingRun.close) == "closed"
            assert await handle.result() == 1
            events = [event.event_type async for event in handle.fetch_history_events()]
        # On a busy machine the end of the step may come too late to meet it.
        if EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED in events:
            return
    pytest.fail("no update met the end of a step")


class _Refusing:
    """Gives every update back."""

    def __init__(self, status: RPCStatusCode) -> None:
        self.ids: list[str | None] = []
        self._status = status

    async def start_workflow_update(self, input: Any) -> None:
        self.ids.append(input.update_id)
        raise RPCError("refused", self._status, b"")


@pytest.mark.parametrize(
    ("status", "times"),
    [(RPCStatusCode.FAILED_PRECONDITION, plugin.ATTEMPTS), (RPCStatusCode.NOT_FOUND, 1)],
)
async def test_attempts_have_one_id_and_an_end(
    monkeypatch: pytest.MonkeyPatch, status: RPCStatusCode, times: int
) -> None:
    monkeypatch.setattr(plugin, "SECONDS_BETWEEN", 0)
    refusing: Any = _Refusing(status)
    client = plugin.UpdateAttempts().intercept_client(refusing)
    update = StartWorkflowUpdateInput(
        *("run", None, None, None, "close"),
        args=[],
        wait_for_stage=WorkflowUpdateStage.COMPLETED,
        headers={},
        ret_type=None,
        rpc_metadata={},
        rpc_timeout=None,
    )
    with pytest.raises(RPCError):
        await client.start_workflow_update(update)
    assert len(refusing.ids) == times and len(set(refusing.ids)) == 1 and refusing.ids[0]
