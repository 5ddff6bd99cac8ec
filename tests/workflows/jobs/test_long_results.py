"""Results: those too long for the table reach all that follows; a job type may make its own."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from temporalio import activity
from temporalio.client import WorkflowUpdateFailedError

from activities.jobs.api import JobType, StageContext, TaskContext, TaskDone, job_type, task
from activities.jobs.completion import StageClosing
from adapters.database.engine import open_database
from tests.support.fresh_database import fresh_url
from tests.support.jobs.groups import environment
from tests.support.jobs.installation import job_installation, order_of, ports_of
from tests.support.memory.blobs import MemoryBlobs
from tests.support.waiting import eventually
from workflows.jobs.definitions import StageDefinition, WorkflowDefinition
from workflows.jobs.job import Job
from workflows.jobs.records import JobStatus, JsonObject
from workflows.jobs.runs import JobRecording, JobRetry, PlannedTask, StageRef
from workflows.shared.contracts import Answer, Contract
from workflows.shared.errors import WorkersLost

LONG = 20_000
"""Characters; the installation keeps up to 10,000 in the table."""


class Nothing(Contract):
    pass


@job_type(
    WorkflowDefinition(
        job_type="long_results",
        description="A long text, measured by all that follow.",
        total_stages=2,
        stages=(
            StageDefinition(stage_number=1, stage_name="write", task_type="write"),
            StageDefinition(stage_number=2, stage_name="measure", task_type="measure"),
        ),
    )
)
class LongResults(JobType[Nothing]):
    parameters = Nothing

    async def plan(
        self, stage: StageDefinition, context: StageContext[Nothing]
    ) -> AsyncIterator[PlannedTask]:
        if stage.stage_number == 1:
            yield PlannedTask(index="0")
        async for each in context.previous():
            yield PlannedTask(index=each.index, parameters={"planned": len(each.result["text"])})

    @task("write")
    async def write(self, context: TaskContext[Nothing]) -> TaskDone:
        return TaskDone(result={"text": "x" * LONG})

    @task("measure")
    async def measure(self, context: TaskContext[Nothing]) -> TaskDone:
        assert context.predecessor is not None
        return TaskDone(result={**context.task, "seen": len(context.predecessor.result["text"])})

    async def aggregate(self, stage: StageDefinition, context: StageContext[Nothing]) -> JsonObject:
        results = [each.result async for each in context.previous()]
        return results[0] if stage.stage_number == 2 else {"length": len(results[0]["text"])}

    async def result(self, context: StageContext[Nothing]) -> JsonObject:
        # A local activity has no heartbeats: an attempt that lost its worker would leave no trace.
        assert not activity.info().is_local
        return {**context.stage_results[1], **context.stage_results[2]}


async def test_a_long_result_is_read_by_plan_task_and_aggregation(
    server: Any, run_worker: Any, tmp_path: Path
) -> None:
    order = order_of(LongResults)
    async with job_installation(server.client, tmp_path, run_worker, LongResults) as jobs:
        await jobs.run(order)
        record = await jobs.record(order)
        (row,) = await jobs.tasks(order, stage=1)
    assert record.result_data == {"length": LONG, "planned": LONG, "seen": LONG}
    assert row.result_data == {} and row.large_metadata_path is not None


async def test_a_job_whose_result_loses_its_workers_parks_with_the_reason(
    server: Any, run_worker: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def crashes(self: LongResults, context: StageContext[Nothing]) -> JsonObject:
        raise WorkersLost("20 workers in a row were lost")

    async def is_parked() -> bool:
        return (await handle.query(Job.status)).status is JobStatus.PARKED

    order = order_of(LongResults)
    async with job_installation(server.client, tmp_path, run_worker, LongResults) as jobs:
        with monkeypatch.context() as crashing:
            crashing.setattr(LongResults, "result", crashes)
            handle = await jobs.start(order)
            await eventually(is_parked)
        view, row = await handle.query(Job.status), await jobs.record(order)
        for refused in (
            handle.execute_update(Job.retry, JobRetry(by="ann", parameters={"year": 1999})),
            handle.execute_update(Job.skip, Answer(by="ann")),
        ):
            with pytest.raises(WorkflowUpdateFailedError) as raised:
                await refused
            assert "the stages of the job are done" in str(raised.value.cause)
        await handle.execute_update(Job.retry, JobRetry(by="ann"))
        result = await handle.result()
        record = await jobs.record(order)
    assert view.reason == "20 workers in a row were lost" and row.status is JobStatus.PARKED
    assert view.next_steps == "retry, fail or cancel"
    assert result.status is JobStatus.COMPLETED
    assert record.result_data["length"] == LONG


async def test_the_end_of_a_job_that_an_earlier_release_began_makes_its_result(
    tmp_path: Path,
) -> None:
    order = order_of(LongResults)
    refs = tuple(StageRef(stage=stage, attempt=1) for stage in (1, 2))
    url = fresh_url()
    recording = JobRecording(
        job=order, status=JobStatus.COMPLETED, stage=2, began_at=datetime.now(UTC), stages=refs
    )
    async with open_database(url) as database:
        ports = ports_of(tmp_path, MemoryBlobs(), database, [LongResults])
        for ref in refs:
            result = {f"stage {ref.stage}": "found"}
            await ports.folders.put_stage_result(order.job_id, ref, result, ())
        await environment().run(StageClosing(ports).record, recording)
        row = await ports.store.job(order.job_id)
    assert row is not None and row.result_data == {"stage 1": "found", "stage 2": "found"}
