"""What the table shows of a batch that takes long."""

from datetime import timedelta
from typing import Any

from activities.jobs.groups import BatchRecords, TaskGroups
from activities.shared.dependencies import Dependencies
from tests.support.scripted import ScriptedActivities, scripted
from tests.support.waiting import eventually
from workflows.jobs.batch_work import TaskBatch
from workflows.jobs.definitions import StageDefinition
from workflows.jobs.runs import (
    BatchEnd,
    GroupResult,
    StageRef,
    TaskAgain,
    TaskBatchInput,
    TaskCounts,
    TaskGroupInput,
)

ORDER = TaskBatchInput(
    job_id="5eed" * 16,
    ref=StageRef(stage=1, attempt=1),
    definition=StageDefinition(stage_number=1, stage_name="pieces", task_type="piece"),
    batch=0,
    tasks=3,
    window=3,
)


async def test_what_has_ended_is_sent_to_the_table_once(server: Any, run_worker: Any) -> None:
    due = {1: 8.0, 2: 60.0}

    def run(order: TaskGroupInput) -> GroupResult:
        [position] = order.positions
        if position in due:
            again = TaskAgain(position=position, seconds=due.pop(position))
            return GroupResult(again=(again,))
        return GroupResult(completed=1, lines=f"{position}\n")

    counts = TaskCounts(total=3, completed=3)
    script = scripted(
        TaskGroups,
        BatchRecords,
        Dependencies,
        results={"run_tasks": run, "close_batch": BatchEnd(counts=counts)},
    )
    async with (
        run_worker("jobs", [TaskBatch], script.activities()),
        run_worker("jobs-light", [], script.activities()),
    ):
        handle = await server.client.start_workflow(
            TaskBatch.run, ORDER, id="batch", task_queue="jobs"
        )
        for name, times, seconds in (
            ("run_tasks", 3, 6),
            ("record_tasks", 1, 3),
            ("run_tasks", 4, 12),
            ("record_tasks", 2, 60),
        ):
            await _made(script, name, times)
            await server.skip(handle, by=timedelta(seconds=seconds))
        assert (await handle.result()).counts == counts
    shown = [line for each in script.received["record_tasks"] for line in each.lines]
    assert shown[:2] == ["0\n", "1\n"]
    assert len(set(shown)) == len(shown)
    assert script.received["close_batch"][0].lines == ("0\n", "1\n", "2\n")


async def _made(script: ScriptedActivities, name: str, times: int) -> None:
    async def is_made() -> bool:
        return script.made(name) >= times

    await eventually(is_made)
