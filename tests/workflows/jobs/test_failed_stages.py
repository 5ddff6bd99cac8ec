"""What becomes of a job in which tasks fail, ask, or wait."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowFailureError, WorkflowHandle, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from activities.jobs import groups
from activities.jobs.api import InputNeeded, NotReady, TaskContext
from adapters.ports.errors import Throttled, Unavailable
from tests.support.jobs.installation import JobInstallation, job_installation, order_of
from tests.support.jobs.types import Pieces, pieces
from tests.support.waiting import eventually
from workflows.jobs.definitions import OnFailure
from workflows.jobs.job import Job
from workflows.jobs.records import JobStatus, TaskStatus
from workflows.jobs.runs import JobInput, JobResult, JobRetry, StageRef, StageState
from workflows.shared import attributes
from workflows.shared.contracts import Answer
from workflows.shared.dependencies import WAITS, Dependency
from workflows.shared.errors import JOB_FAILED, RuleViolation

# A job, its stages and their batches are several runs at once, which no worker without a cache can
# serve well. Recorded histories replay them.
pytestmark = pytest.mark.cached(alone=True)

Act = Callable[[TaskContext[Any], int], Any]
Jobs = Any


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries come at once."""
    monkeypatch.setattr(groups, "PAUSES", (0.01,))


@pytest.fixture
def installed(server: Any, run_worker: Any, tmp_path: Path) -> Jobs:
    """Builds an installation with a job type whose pieces act as the test says."""

    @asynccontextmanager
    async def build(kind: type[Pieces], act: Act) -> AsyncIterator[JobInstallation]:
        kind.act = staticmethod(act)
        async with job_installation(server.client, tmp_path, run_worker, kind) as jobs:
            yield jobs

    return build


def first_fails(context: TaskContext[Any], begun: int) -> None:
    """Piece 1 has a fault of its own, once."""
    if context.index == "piece-1" and begun == 1:
        raise RuleViolation("piece 1 is crooked")


def always_fails(context: TaskContext[Any], begun: int) -> None:
    raise RuleViolation("crooked")


async def failed(handle: WorkflowHandle[Any, JobResult]) -> tuple[str, JobResult]:
    """How a job has failed."""
    with pytest.raises(WorkflowFailureError) as raised:
        await handle.result()
    cause = raised.value.cause
    assert isinstance(cause, ApplicationError) and cause.type == JOB_FAILED
    return cause.message, JobResult.model_validate(cause.details[0])


async def parked(handle: WorkflowHandle[Any, JobResult]) -> None:
    async def is_parked() -> bool:
        return (await handle.query(Job.status)).waiting_since is not None

    await eventually(is_parked)


async def states(jobs: JobInstallation, order: JobInput, stage: int = 1) -> list[TaskStatus]:
    return [task.status for task in await jobs.tasks(order, stage=stage)]


async def test_fail_fast_begins_no_further_task_and_fails_the_job(installed: Jobs) -> None:
    kind = pieces(max_parallel_tasks=1)
    order = order_of(kind, {"pieces": 4})
    async with installed(kind, first_fails) as jobs:
        message, result = await failed(await jobs.start(order))
        record = await jobs.record(order)
        rows = await states(jobs, order)
    assert "1 of 4 tasks failed" in message and "piece 1 is crooked" in message
    assert kind.done == ["piece-0", "piece-1"]
    assert rows == [
        TaskStatus.COMPLETED,
        TaskStatus.FAILED,
        TaskStatus.CANCELLED,
        TaskStatus.CANCELLED,
    ]
    counts = result.stages[0].counts
    assert (counts.total, counts.completed, counts.failed, counts.cancelled) == (4, 1, 1, 2)
    assert (record.status, record.failed_count) == (JobStatus.FAILED, 1)
    assert [task.task_index for task in record.failed_tasks] == ["piece-1"]


@pytest.mark.parametrize("pieces_of_stage", [3, 25])
async def test_fail_fast_does_not_wait_for_what_is_not_ready(
    installed: Jobs, pieces_of_stage: int
) -> None:
    """In a stage that does its tasks by itself, and in one with a batch."""

    def act(context: TaskContext[Any], begun: int) -> None:
        if context.index == "piece-0":
            raise NotReady("the scene is not there yet", 3_600)
        first_fails(context, begun)

    kind = pieces()
    order = order_of(kind, {"pieces": pieces_of_stage})
    async with installed(kind, act) as jobs:
        message, _ = await failed(await jobs.start(order))
        rows = await states(jobs, order)
    assert f"1 of {pieces_of_stage} tasks failed" in message
    assert rows[:2] == [TaskStatus.CANCELLED, TaskStatus.FAILED]


async def test_continue_finishes_the_others_and_lists_what_failed(installed: Jobs) -> None:
    kind = pieces(OnFailure.CONTINUE)
    order = order_of(kind, {"pieces": 4})
    async with installed(kind, first_fails) as jobs:
        result = await jobs.run(order)
        record = await jobs.record(order)
    assert (result.status, result.failed_count) == (JobStatus.COMPLETED, 1)
    assert record.status is JobStatus.COMPLETED
    assert [task.reason for task in record.failed_tasks] == ["piece 1 is crooked"]
    assert record.result_data == {"pieces": ["piece-0", "piece-2", "piece-3"]}


async def test_a_stage_of_which_nothing_is_left_fails_whatever_its_policy(installed: Jobs) -> None:
    kind = pieces(OnFailure.CONTINUE)
    async with installed(kind, always_fails) as jobs:
        message, _ = await failed(await jobs.start(order_of(kind)))
    assert "3 of 3 tasks failed" in message


async def test_a_parked_stage_is_done_again_without_its_good_tasks(installed: Jobs) -> None:
    kind = pieces(OnFailure.PARK)
    order = order_of(kind)
    async with installed(kind, first_fails) as jobs:
        handle = await jobs.start(order)
        await parked(handle)
        assert (await jobs.record(order)).status is JobStatus.PARKED
        view = await handle.execute_update(Job.retry, JobRetry(by="ann"))
        result = await handle.result()
        rows = await states(jobs, order)
    assert view.next_steps is None
    assert sorted(kind.done) == ["piece-0", "piece-1", "piece-1", "piece-2"]
    assert (result.status, result.failed_count) == (JobStatus.COMPLETED, 0)
    assert rows == [TaskStatus.COMPLETED] * 3


async def test_a_person_may_leave_out_what_failed(installed: Jobs) -> None:
    kind = pieces(OnFailure.PARK)
    order = order_of(kind)
    async with installed(kind, first_fails) as jobs:
        handle = await jobs.start(order)
        await parked(handle)
        await handle.execute_update(Job.skip, Answer(by="ann"))
        result = await handle.result()
        record = await jobs.record(order)
    assert (result.status, result.failed_count) == (JobStatus.COMPLETED, 1)
    assert record.result_data == {"pieces": ["piece-0", "piece-2"]}


async def test_a_person_may_give_a_parked_job_up(installed: Jobs) -> None:
    kind = pieces(OnFailure.PARK)
    async with installed(kind, first_fails) as jobs:
        handle = await jobs.start(order_of(kind))
        await parked(handle)
        await handle.execute_update(Job.fail, Answer(by="ann", reason="no use"))
        message, _ = await failed(handle)
    assert message.startswith("1 of 3 tasks failed") and message.endswith("; no use (ann)")


async def test_a_parameter_that_is_missing_is_asked_for_whatever_the_policy(
    installed: Jobs,
) -> None:
    def needs_year(context: TaskContext[Any], begun: int) -> dict[str, Any]:
        if context.parameters.year is None:
            raise InputNeeded("year", "in which year was it taken?")
        return {"year": context.parameters.year}

    kind = pieces(OnFailure.FAIL_FAST)
    order = order_of(kind, {"pieces": 2})
    async with installed(kind, needs_year) as jobs:
        handle = await jobs.start(order)
        await parked(handle)
        view = await handle.query(Job.status)
        with pytest.raises(WorkflowUpdateFailedError) as refused:
            await handle.execute_update(Job.retry, JobRetry(by="ann"))
        await handle.execute_update(Job.retry, JobRetry(by="ann", parameters={"year": 1999}))
        result = await handle.result()
        record = await jobs.record(order)
        tasks = await jobs.tasks(order, stage=1)
    [question] = view.questions
    assert (question.parameter, question.question) == ("year", "in which year was it taken?")
    assert "retry needs the parameter year" in str(refused.value.cause)
    assert result.status is JobStatus.COMPLETED
    assert record.parameters == {"pieces": 2, "year": 1999}
    assert [task.result_data for task in tasks] == [{"year": 1999}] * 2


async def test_what_is_not_ready_is_asked_again_and_uses_up_no_retry(installed: Jobs) -> None:
    def ready_at_last(context: TaskContext[Any], begun: int) -> None:
        if begun < 7:
            raise NotReady("the archive fetches it", 0.01)

    kind = pieces()
    order = order_of(kind, {"pieces": 1})
    async with installed(kind, ready_at_last) as jobs:
        await jobs.run(order)
        [task] = await jobs.tasks(order, stage=1)
    assert (len(kind.done), task.retry_count) == (7, 0)


@pytest.mark.parametrize(
    ("error", "retries"),
    [(Unavailable("a hiccup"), 3), (Throttled("slow down", 0.01), 5), (RuleViolation("no"), 0)],
    ids=["transient", "throttling", "permanent"],
)
async def test_a_task_is_tried_again_as_often_as_its_failure_allows(
    installed: Jobs, error: Exception, retries: int
) -> None:
    def fails(context: TaskContext[Any], begun: int) -> None:
        if context.index == "piece-0" or begun <= retries:
            raise error

    kind = pieces(OnFailure.CONTINUE)
    order = order_of(kind, {"pieces": 2})
    async with installed(kind, fails) as jobs:
        await jobs.run(order)
        tasks = await jobs.tasks(order, stage=1)
    assert [task.retry_count for task in tasks] == [retries, retries]
    assert kind.done.count("piece-0") == retries + 1
    assert [task.status for task in tasks] == [TaskStatus.FAILED, TaskStatus.COMPLETED]


async def test_an_outage_is_waited_for_and_uses_up_no_retry(installed: Jobs) -> None:
    def needs_the_store(context: TaskContext[Any], begun: int) -> None:
        if context.index == "piece-1" and begun < 4:
            raise Unavailable("the store is down", Dependency.BLOB_STORE)

    kind = pieces(tasks_per_activity=3)
    order = order_of(kind)
    async with installed(kind, needs_the_store) as jobs:
        result = await jobs.run(order)
        tasks = await jobs.tasks(order, stage=1)
        waits = jobs.waits.calls
    assert result.status is JobStatus.COMPLETED
    assert waits == ["wait"]
    assert kind.done.count("piece-0") == 1
    assert [task.retry_count for task in tasks] == [0, 0, 0]


async def test_a_task_that_blames_what_answers_fails_by_itself(installed: Jobs) -> None:
    def blames(context: TaskContext[Any], begun: int) -> None:
        if context.index == "piece-1":
            raise Unavailable("the store is down", Dependency.BLOB_STORE)

    kind = pieces(OnFailure.CONTINUE)
    order = order_of(kind)
    async with installed(kind, blames) as jobs:
        jobs.waits.results["wait"] = {"was_down": False}
        await jobs.run(order)
        tasks = await jobs.tasks(order, stage=1)
    assert [task.status for task in tasks] == [
        TaskStatus.COMPLETED,
        TaskStatus.FAILED,
        TaskStatus.COMPLETED,
    ]
    assert tasks[1].error_details == "the store is down"


async def test_an_empty_fan_out_is_skipped_and_is_no_failure(installed: Jobs) -> None:
    kind = pieces()
    order = order_of(kind, {"pieces": 0})
    async with installed(kind, first_fails) as jobs:
        result = await jobs.run(order)
    assert [view.state for view in result.stages] == [StageState.SKIPPED, StageState.COMPLETED]


async def test_a_trial_run_begins_no_more_tasks_than_its_limit(installed: Jobs) -> None:
    kind = pieces()
    order = order_of(kind, {"pieces": 50}, limit=3)
    async with installed(kind, lambda context, begun: None) as jobs:
        result = await jobs.run(order)
    assert [view.counts.total for view in result.stages] == [3, 1]
    assert sorted(kind.done) == ["piece-0", "piece-1", "piece-2"]


async def test_a_cancelled_job_stops_its_tasks_and_counts_them_truly(installed: Jobs) -> None:
    cleaned: list[str] = []
    working = asyncio.Event()

    async def holds(context: TaskContext[Any]) -> None:
        if context.index == "piece-0":
            return
        if context.index == "piece-2":
            # Two at once: it begins when the end of the first one is known.
            working.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append(context.index)

    kind = pieces(max_parallel_tasks=2)
    order = order_of(kind, {"pieces": 5})
    async with installed(kind, lambda context, begun: holds(context)) as jobs:
        handle = await jobs.start(order)
        await asyncio.wait_for(working.wait(), 30)
        await handle.execute_update(Job.cancel, Answer(by="ann", reason="wrong input"))
        result = await handle.result()
        record, rows = await jobs.record(order), await states(jobs, order)
    counts = result.stages[0].counts
    assert (counts.total, counts.completed, counts.cancelled) == (5, 1, 4)
    assert set(cleaned) == set(kind.done) - {"piece-0"}
    assert len(kind.done) <= 3
    assert (record.status, record.error_details) == (JobStatus.CANCELLED, "wrong input")
    assert rows == [TaskStatus.COMPLETED] + [TaskStatus.CANCELLED] * 4


async def test_another_attempt_keeps_every_good_task_of_the_failed_stage(installed: Jobs) -> None:
    kind = pieces(max_parallel_tasks=1)
    order = order_of(kind, {"pieces": 4})
    async with installed(kind, first_fails) as jobs:
        await failed(await jobs.start(order))
        again = order.model_copy(
            update={
                "attempt": 2,
                "restart_from": 1,
                "kept": (StageRef(stage=1, attempt=1),),
            }
        )
        result = await jobs.run(again)
        record = await jobs.record(order)
        tasks = await jobs.tasks(order, stage=1)
    assert kind.done == ["piece-0", "piece-1", "piece-1", "piece-2", "piece-3"]
    assert result.stages[0].counts.completed == 4
    assert (record.attempt, record.status) == (2, JobStatus.COMPLETED)
    assert [task.attempt for task in tasks] == [2] * 4
    assert record.result_data == {"pieces": [f"piece-{n}" for n in range(4)]}


async def test_a_job_type_that_the_worker_lacks_is_named(installed: Jobs) -> None:
    unknown = pieces(name="unknown_kind")
    async with installed(pieces(), first_fails) as jobs:
        message, _ = await failed(await jobs.start(order_of(unknown)))
    assert "this worker has no job type 'unknown_kind'; installed are: hello_world" in message


async def test_a_wait_for_an_outage_is_shown_by_the_job_and_in_lists(
    installed: Jobs, server: Any
) -> None:
    def needs_the_store(context: TaskContext[Any], begun: int) -> None:
        if begun < 4:
            raise Unavailable("the store is down", Dependency.BLOB_STORE)

    kind = pieces()
    order = order_of(kind, {"pieces": 1})
    async with installed(kind, needs_the_store) as jobs:
        jobs.waits.held = {"wait"}
        handle = await jobs.start(order)

        async def waits() -> bool:
            return (await handle.query(Job.status)).awaits is not None

        await eventually(waits)
        view = await handle.query(Job.status)
        run = await handle.describe()
        memo = await run.memo()
        jobs.waits.held = set()
        result = await handle.result()
        after = await handle.describe()
    assert view.awaits is not None and view.status is JobStatus.PROCESSING
    assert "the blob store" in view.awaits.what and "the store is down" in view.awaits.what
    assert view.awaits.outage == "outage/blob-store"
    assert run.typed_search_attributes.get(attributes.STATE) == "waiting"
    assert run.typed_search_attributes.get(attributes.WAITING_FOR) == "outage/blob-store"
    assert "the store is down" in memo[WAITS]
    assert result.status is JobStatus.COMPLETED
    assert after.typed_search_attributes.get(attributes.STATE) == "completed"
    assert WAITS not in await after.memo()
