"""What people and programs do to jobs: start them once, again, from a stage; cancel them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowFailureError

from activities.jobs.api import InputNeeded, TaskContext
from tests.support.jobs.installation import JobInstallation, job_installation, order_of
from tests.support.jobs.types import Pieces, pieces
from tests.support.waiting import eventually
from workers.jobs.runs import JobRuns
from workers.shared.services.errors import InvalidRequest, NotFound, TemporalRefused, WrongState
from workflows.jobs.definitions import OnFailure
from workflows.jobs.job import Job
from workflows.jobs.records import JobStatus
from workflows.jobs.runs import JobInput, JobRetry, job_workflow_id
from workflows.shared.errors import RuleViolation

CACHED = pytest.mark.cached(alone=True)


@asynccontextmanager
async def installed(
    server: Any, run_worker: Any, folder: Path, kind: type[Pieces]
) -> AsyncIterator[tuple[JobInstallation, JobRuns]]:
    async with job_installation(server.client, folder, run_worker, kind) as jobs:
        yield jobs, JobRuns(jobs.client, jobs.store, jobs.opened.ports.folders)


async def ended(jobs: JobInstallation, order: JobInput) -> None:
    handle = jobs.client.get_workflow_handle(job_workflow_id(order.job_id))
    try:
        await handle.result()
    except WorkflowFailureError:
        return


@CACHED
async def test_a_request_is_done_once_until_it_is_asked_for_again(
    server: Any, run_worker: Any, tmp_path: Path
) -> None:
    kind = pieces(name="done_once")
    kind.act = staticmethod(lambda context, begun: None)
    order = order_of(kind, {"pieces": 1})
    async with installed(server, run_worker, tmp_path, kind) as (jobs, runs):
        first = await runs.start(order)
        await ended(jobs, order)
        second = await runs.start(order)
        third = await runs.start(order, rerun=True)
        await ended(jobs, order)
        with pytest.raises(WrongState, match="every stage of the job is done"):
            await runs.restart(order.job_id)
        record = await jobs.record(order)
    assert (first.created, second.created, third.created) == (True, False, True)
    assert (first.attempt, second.attempt, third.attempt) == (1, 1, 2)
    assert not second.notes
    assert (record.attempt, record.status) == (2, JobStatus.COMPLETED)
    assert kind.done == ["piece-0", "piece-0"]


async def test_a_job_that_temporal_never_takes_is_refused_and_is_no_outage(server: Any) -> None:
    order = order_of(parameters={"message": "x" * 3_000_000})
    with pytest.raises(TemporalRefused, match=r"does not take the request: .*limit"):
        await JobRuns(server.client).start(order)


@CACHED
async def test_a_project_may_have_128_characters_of_any_script(
    server: Any, run_worker: Any, tmp_path: Path
) -> None:
    kind = pieces(name="projects")
    kind.act = staticmethod(lambda context, begun: None)
    order = order_of(kind, {"pieces": 1}).model_copy(update={"project": "測" * 128})
    async with installed(server, run_worker, tmp_path, kind) as (jobs, runs):
        assert (await runs.start(order)).created
        await ended(jobs, order)
        assert (await jobs.record(order)).status is JobStatus.COMPLETED


@CACHED
async def test_a_job_that_completed_without_some_tasks_does_those_again(
    server: Any, run_worker: Any, tmp_path: Path
) -> None:
    def act(context: TaskContext[Any], begun: int) -> None:
        if context.index == "piece-1" and context.attempt == 1:
            raise RuleViolation("crooked")

    kind = pieces(OnFailure.CONTINUE, name="partly")
    kind.act = staticmethod(act)
    order = order_of(kind, {"pieces": 3})
    async with installed(server, run_worker, tmp_path, kind) as (jobs, runs):
        await runs.start(order)
        await ended(jobs, order)
        again = await runs.restart(order.job_id)
        await ended(jobs, order)
        record = await jobs.record(order)
    assert (again.attempt, record.status, record.failed_count) == (2, JobStatus.COMPLETED, 0)
    assert sorted(kind.done[:3]) == ["piece-0", "piece-1", "piece-2"]
    assert kind.done[3:] == ["piece-1"]
    assert record.result_data == {"pieces": ["piece-0", "piece-1", "piece-2"]}


@CACHED
async def test_tasks_left_out_before_the_stage_that_is_done_anew_still_count_as_failed(
    server: Any, run_worker: Any, tmp_path: Path
) -> None:
    def act(context: TaskContext[Any], begun: int) -> None:
        if context.index == "piece-1":
            raise RuleViolation("crooked")

    kind = pieces(OnFailure.CONTINUE, name="left_out")
    kind.act = staticmethod(act)
    order = order_of(kind, {"pieces": 3})
    async with installed(server, run_worker, tmp_path, kind) as (jobs, runs):
        await runs.start(order)
        await ended(jobs, order)
        await runs.restart(order.job_id, from_stage=2)
        handle = jobs.client.get_workflow_handle_for(Job.run, job_workflow_id(order.job_id))
        result = await handle.result()
        record = await jobs.record(order)
    assert (result.attempt, result.failed_count) == (2, 1)
    assert (record.failed_count, len(record.failed_tasks)) == (1, 1)


@CACHED
async def test_a_failed_job_continues_at_its_failed_stage_with_what_was_given_meanwhile(
    server: Any, run_worker: Any, tmp_path: Path
) -> None:
    def act(context: TaskContext[Any], begun: int) -> dict[str, Any]:
        if context.parameters.year is None:
            raise InputNeeded("year", "which year?")
        if context.index == "piece-1" and context.attempt == 1:
            raise RuleViolation("crooked")
        return {"year": context.parameters.year}

    kind = pieces(name="continued")
    kind.act = staticmethod(act)
    order = order_of(kind, {"pieces": 2})
    async with installed(server, run_worker, tmp_path, kind) as (jobs, runs):
        await runs.start(order)
        handle = jobs.client.get_workflow_handle_for(Job.run, job_workflow_id(order.job_id))

        async def asks() -> bool:
            return bool((await handle.query(Job.status)).questions)

        await eventually(asks)
        with pytest.raises(WrongState, match="the job has not ended"):
            await runs.start(order, rerun=True)
        await handle.execute_update(Job.retry, JobRetry(parameters={"year": 1999}))
        await ended(jobs, order)
        met = await runs.start(order)
        with pytest.raises(InvalidRequest, match="from stage 1 to 1, and not from 2"):
            await runs.restart(order.job_id, 2)
        kind.done.clear()
        again = await runs.restart(order.job_id)
        await ended(jobs, order)
        record = await jobs.record(order)
    assert (met.created, again.created, again.attempt) == (False, True, 2)
    assert f"docflow job restart {order.job_id[:8]}" in met.notes[0]
    assert kind.done == ["piece-1"]
    assert (record.status, record.parameters["year"]) == (JobStatus.COMPLETED, 1999)


@CACHED
async def test_a_stage_that_is_done_can_be_done_anew(
    server: Any, run_worker: Any, tmp_path: Path
) -> None:
    kind = pieces(name="anew")
    kind.act = staticmethod(lambda context, begun: None)
    order = order_of(kind, {"pieces": 2})
    async with installed(server, run_worker, tmp_path, kind) as (jobs, runs):
        await runs.start(order)
        await ended(jobs, order)
        await runs.restart(order.job_id, 2)
        await ended(jobs, order)
        after_sum = list(kind.done)
        await runs.restart(order.job_id, 1)
        await ended(jobs, order)
        record = await jobs.record(order)
    assert sorted(after_sum) == ["piece-0", "piece-1"]
    assert sorted(kind.done) == ["piece-0", "piece-0", "piece-1", "piece-1"]
    assert (record.attempt, record.result_data) == (3, {"pieces": ["piece-0", "piece-1"]})


@CACHED
async def test_a_parked_job_is_answered_and_a_terminated_one_continues(
    server: Any, run_worker: Any, tmp_path: Path
) -> None:
    def act(context: TaskContext[Any], begun: int) -> None:
        if context.index == "piece-1" and begun < 3:
            raise RuleViolation("crooked")

    kind = pieces(OnFailure.PARK, name="parked_once")
    kind.act = staticmethod(act)
    order = order_of(kind, {"pieces": 2})
    async with installed(server, run_worker, tmp_path, kind) as (jobs, runs):
        await runs.start(order)
        handle = jobs.client.get_workflow_handle_for(Job.run, job_workflow_id(order.job_id))

        async def parked_at(begun: int) -> bool:
            is_waiting = (await handle.query(Job.status)).waiting_since is not None
            return is_waiting and kind.done.count("piece-1") == begun

        await eventually(lambda: parked_at(1))
        answered = await runs.restart(order.job_id)
        await eventually(lambda: parked_at(2))
        await handle.terminate("a test")
        again = await runs.restart(order.job_id)
        await ended(jobs, order)
        record = await jobs.record(order)
    assert (answered.created, answered.notes) == (False, ("it was parked, and tries again",))
    assert (again.created, again.attempt) == (True, 2)
    assert sorted(kind.done) == ["piece-0", "piece-1", "piece-1", "piece-1"]
    assert record.status is JobStatus.COMPLETED


@CACHED
async def test_what_temporal_has_forgotten_is_answered_from_its_record(
    server: Any, run_worker: Any, tmp_path: Path
) -> None:
    kind = pieces(name="forgotten")
    kind.act = staticmethod(lambda context, begun: None)
    order = order_of(kind, {"pieces": 1})
    async with installed(server, run_worker, tmp_path, kind) as (jobs, runs):
        await jobs.run(order)
        other = order.model_copy(update={"job_id": "f" * 64})
        done = (await jobs.record(order)).model_copy(update={"job_id": "f" * 64, "attempt": 4})
        await jobs.store.put_job(done)
        met = await runs.start(other)
        with pytest.raises(NotFound, match="submit it again"):
            await runs.restart(other.job_id)
        await jobs.store.put_job(done.model_copy(update={"status": JobStatus.FAILED}))
        again = await runs.start(other)
        await ended(jobs, other)
    assert (met.created, met.attempt) == (False, 4)
    assert (again.created, again.attempt) == (True, 5)


@CACHED
async def test_a_job_is_cancelled_by_a_person(server: Any, run_worker: Any, tmp_path: Path) -> None:
    kind = pieces(OnFailure.PARK, name="given_up")
    kind.act = staticmethod(_crooked)
    order = order_of(kind, {"pieces": 1})
    async with installed(server, run_worker, tmp_path, kind) as (jobs, runs):
        await runs.start(order)
        handle = jobs.client.get_workflow_handle_for(Job.run, job_workflow_id(order.job_id))

        async def is_parked() -> bool:
            return (await handle.query(Job.status)).waiting_since is not None

        await eventually(is_parked)
        await runs.cancel(order.job_id, "no use")
        await ended(jobs, order)
        met, record = await runs.start(order), await jobs.record(order)
        await handle.result()
    assert (record.status, record.error_details) == (JobStatus.CANCELLED, "no use")
    assert "was cancelled" in met.notes[0]


def _crooked(context: TaskContext[Any], begun: int) -> None:
    raise RuleViolation("crooked")
