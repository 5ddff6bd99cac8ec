"""A group of tasks: its cursor, its results, and what it does with tasks that fail."""

import asyncio
import dataclasses
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.jobs import groups
from activities.jobs.api import JobTypes, TaskContext
from activities.jobs.completion import StageClosing
from activities.jobs.groups import BatchRecords, TaskGroups
from activities.jobs.planning import StagePlanning
from activities.jobs.types.hello_world import HelloWorld
from activities.shared.failures import LOST_WORKERS
from adapters.database.engine import open_database
from adapters.files.computation import ForkingExecutor
from adapters.ports.errors import ProcessLost, Throttled, Unavailable
from adapters.ports.spatial import SubprocessExecutor
from tests.support.fresh_database import fresh_url
from tests.support.jobs import computations
from tests.support.jobs.groups import (
    REF,
    Build,
    Rows,
    environment,
    finished,
    group_of,
    planning,
    recording_of,
)
from tests.support.jobs.installation import order_of, ports_of
from tests.support.memory.blobs import MemoryBlobs
from workflows.jobs.definitions import HEAVY_MEMORY, Lane
from workflows.jobs.records import JobStatus, TaskStatus
from workflows.jobs.runs import (
    FinishedTask,
    GroupCursor,
    GroupResult,
    JobInput,
    JobRecording,
    PlannedTask,
    StageInput,
    StageTally,
)
from workflows.shared.dependencies import Dependency
from workflows.shared.errors import UNAVAILABLE

ROOT = Path(__file__).parents[3]


@pytest.fixture
def build(tmp_path: Path) -> Build:
    return planning(tmp_path)


async def test_a_worker_that_follows_a_killed_one_continues_at_the_next_task(build: Build) -> None:
    kind, ports, job = await build(lambda context, begun: None)
    before = GroupResult(completed=2, lines='{"index":"piece-0","ordinal":0,"status":"x"}\n')
    env = environment(heartbeat_details=[GroupCursor(done=2, result=before)], attempt=2)
    result = await env.run(TaskGroups(ports).run_tasks, group_of(job))
    assert kind.done == ["piece-2", "piece-3", "piece-4"]
    assert result.completed == 5
    assert result.lines.startswith(before.lines)


async def test_the_cursor_is_in_every_heartbeat(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    beats: list[GroupCursor] = []
    _, ports, job = await build(lambda context, begun: context.progress(0.5, "half"))
    monkeypatch.setattr(groups.Heartbeater, "beat", lambda self, details: beats.append(details))
    await environment().run(TaskGroups(ports).run_tasks, group_of(job, 0, 1))
    assert [(beat.done, beat.progress, beat.message) for beat in beats] == [
        (0, 0.5, "half"),
        (1, 0.0, ""),
        (1, 0.5, "half"),
        (2, 0.0, ""),
    ]


async def test_a_task_at_which_many_workers_were_lost_fails(build: Build) -> None:
    kind, ports, job = await build(lambda context, begun: None)
    cursor = GroupCursor(done=1, attempt=2, result=GroupResult(completed=1))
    env = environment(heartbeat_details=[cursor], attempt=2 + LOST_WORKERS)
    result = await env.run(TaskGroups(ports).run_tasks, group_of(job, 0, 1, 2))
    assert (result.completed, result.failed) == (2, 1)
    assert kind.done == ["piece-2"]
    assert finished(result)[0].error == "20 workers in a row were lost while they did it"


@pytest.mark.parametrize("step", ["plan", "aggregation", "results of a batch", "result"])
async def test_a_step_of_a_job_at_which_many_workers_were_lost_fails(
    build: Build, step: str
) -> None:
    _, ports, job = await build(lambda context, begun: None)
    order = StageInput(job=job, stage=1)
    env = environment(heartbeat_details=[{"ended": 0}], attempt=1 + LOST_WORKERS)
    with pytest.raises(ApplicationError, match="20 workers in a row were lost") as raised:
        match step:
            case "plan":
                await env.run(StagePlanning(ports).plan_stage, order)
            case "aggregation":
                await env.run(StageClosing(ports).close_stage, StageTally(order=order, tasks=5))
            case "result":
                await env.run(StageClosing(ports).make_result, _ended(job))
            case _:
                await env.run(BatchRecords(ports).close_batch, recording_of(job))
    assert raised.value.non_retryable


def _ended(job: JobInput) -> JobRecording:
    return JobRecording(job=job, status=JobStatus.COMPLETED, stage=2, began_at=datetime.now(UTC))


async def test_a_task_whose_process_is_killed_loses_none_of_its_retries(build: Build) -> None:
    def act(context: TaskContext[Any], begun: int) -> None:
        raise ProcessLost("the process computing the task was lost; try again")

    _, ports, job = await build(act)
    order = group_of(job, 0, 1, tries={0: LOST_WORKERS - 1, 1: LOST_WORKERS})
    result = await environment().run(TaskGroups(ports).run_tasks, order)
    assert [(each.position, each.tries) for each in result.again] == [(0, LOST_WORKERS)]
    assert result.failed == 1


async def test_a_task_that_needs_more_memory_than_it_may_fails_by_itself(build: Build) -> None:
    async def act(context: TaskContext[Any], begun: int) -> dict[str, Any]:
        size = 1 << 30 if context.index == "piece-1" else 1_000
        return await context.compute(computations.swollen, {"bytes": size})

    _, ports, job = await build(act, lane=Lane.HEAVY)
    async with ForkingExecutor(1, HEAVY_MEMORY, 256 << 20) as computing:
        ports.resources.more[SubprocessExecutor] = computing  # type: ignore[index]
        result = await environment().run(TaskGroups(ports).run_tasks, group_of(job, 0, 1, 2))
    assert (result.completed, result.failed, result.again) == (2, 1, ())
    assert finished(result)[1].error == (
        "computing the task needs more than 256 MB of memory (DOCFLOW_JOBS_HEAVY_MEMORY_MB); "
        "divide it, or raise the limit"
    )


async def test_long_results_go_to_blobs_and_very_long_ones_to_their_own(build: Build) -> None:
    def long(context: TaskContext[Any], begun: int) -> dict[str, Any]:
        sizes = {"piece-0": 10, "piece-1": 5_000, "piece-2": 6_000, "piece-3": 20_000}
        return {"text": "x" * sizes.get(context.index, 10)}

    _, ports, job = await build(long)
    result = await environment().run(TaskGroups(ports).run_tasks, group_of(job))
    names = [f"{result.blob}-{number}.jsonl" for number in range(result.blobs)]
    lines = [line async for line in ports.folders.lines(names)]
    tasks = [*map(FinishedTask.model_validate_json, lines), *finished(result)]
    assert result.blobs >= 1
    assert len(result.lines) < 6_000
    assert [task.index for task in tasks] == [f"piece-{number}" for number in range(5)]
    assert len(tasks[2].result["text"]) == 6_000
    assert tasks[3].result == {}
    assert tasks[3].large_result is not None and tasks[3].large_result.endswith("/large/3.json")


async def test_a_result_that_is_not_json_fails_the_task(build: Build) -> None:
    def wrong(context: TaskContext[Any], begun: int) -> dict[str, Any]:
        return {"share": float("nan")} if context.index == "piece-0" else {"path": Path("x")}

    _, ports, job = await build(wrong)
    result = await environment().run(
        TaskGroups(ports).run_tasks, group_of(job, 0, 1, tries={0: 3, 1: 3})
    )
    assert result.failed == 2


async def test_a_server_that_asks_to_slow_down_says_for_how_long(build: Build) -> None:
    def slow(context: TaskContext[Any], begun: int) -> None:
        raise Throttled("slow down", 17.5)

    _, ports, job = await build(slow)
    result = await environment().run(TaskGroups(ports).run_tasks, group_of(job, 0, 1, tries={1: 5}))
    [again] = result.again
    assert (again.position, again.seconds, again.tries) == (0, 17.5, 1)
    assert result.failed == 1


async def test_a_task_that_takes_too_long_is_tried_again(build: Build) -> None:
    async def hangs() -> None:
        await asyncio.Event().wait()

    _, ports, job = await build(lambda context, begun: hangs())
    result = await environment().run(
        TaskGroups(ports).run_tasks, group_of(job, 0, 1, timeout_seconds=0, tries={1: 3})
    )
    assert [again.position for again in result.again] == [0]
    assert finished(result)[0].error == "it did not end within 0:00:00"


async def test_an_outage_leaves_what_is_done_and_the_rest(build: Build) -> None:
    def second_needs_the_store(context: TaskContext[Any], begun: int) -> None:
        if context.index == "piece-1":
            raise Unavailable("the store is down", Dependency.BLOB_STORE)

    _, ports, job = await build(second_needs_the_store)
    run = TaskGroups(ports).run_tasks
    result = await environment().run(run, group_of(job))
    assert (result.completed, result.rest) == (1, (1, 2, 3, 4))
    with pytest.raises(ApplicationError) as failed:
        await environment().run(run, group_of(job, *result.rest))
    assert failed.value.type == UNAVAILABLE
    given_up = await environment().run(run, group_of(job, 1, 2, give_up=True))
    assert (given_up.completed, given_up.failed) == (1, 1)


async def test_a_folder_is_empty_and_is_removed(build: Build) -> None:
    folders: list[Path] = []

    def keeps(context: TaskContext[Any], begun: int) -> None:
        folders.append(context.folder)
        assert list(context.folder.iterdir()) == []
        (context.folder / "file").write_bytes(b"x")

    _, ports, job = await build(keeps)
    result = await environment().run(TaskGroups(ports).run_tasks, group_of(job, 0, 1))
    assert result.completed == 2
    assert len(folders) == 2 and not any(folder.exists() for folder in folders)


async def test_a_worker_that_is_stopped_gives_the_group_back(build: Build) -> None:
    working = asyncio.Event()

    async def holds() -> None:
        working.set()
        await asyncio.Event().wait()

    _, ports, job = await build(lambda context, begun: holds())
    env = environment()
    running = asyncio.create_task(env.run(TaskGroups(ports).run_tasks, group_of(job)))
    await working.wait()
    env.cancel(activity.ActivityCancellationDetails(worker_shutdown=True))
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_plan_names_its_tasks_once_and_keeps_within_bounds(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, ports, job = await build(lambda context, begun: None)
    plan = StagePlanning(ports).plan_stage

    async def twice(*_: Any) -> Any:
        for _ in range(2):
            yield PlannedTask(index="same")

    monkeypatch.setattr(kind, "plan", twice)
    with pytest.raises(ApplicationError, match="plans two tasks with the index 'same'"):
        await environment().run(plan, StageInput(job=job, stage=1))
    monkeypatch.undo()
    monkeypatch.setattr("activities.jobs.planning.TASKS_PER_STAGE", 4)
    with pytest.raises(ApplicationError, match="plans more than 4 tasks"):
        await environment().run(plan, StageInput(job=job, stage=1))


def test_a_job_type_of_another_package_is_found_by_its_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "foreign_jobs.py").write_text(
        "from tests.support.jobs.types import pieces\nForeign = pieces(name='foreign')\n"
    )
    metadata = tmp_path / "foreign_jobs-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: foreign-jobs\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[docflow.jobs]\nforeign = foreign_jobs:Foreign\n")
    # Nothing else that is installed where the test runs.
    monkeypatch.setattr("sys.path", [str(tmp_path), str(ROOT)])
    types = JobTypes.installed()
    assert types["foreign"].definition.job_type == "foreign"
    assert set(types["foreign"].task_functions) == {"piece", "sum"}


async def test_a_reply_reads_the_greeting_of_the_same_index(tmp_path: Path) -> None:
    database = open_database(fresh_url())
    ports = ports_of(tmp_path, MemoryBlobs(), database, [])
    ports = dataclasses.replace(ports, store=Rows())  # type: ignore[arg-type]
    job = order_of(HelloWorld, {"n": 2})
    await ports.folders.put_size(job.job_id, REF, 1, 0)
    greetings = [
        FinishedTask(
            index=str(number),
            ordinal=number,
            status=TaskStatus.COMPLETED,
            result={"greeting": f"{number}{'!' * 9_000 * number}"},
            next_stage_params={"to": f"task {number}"},
        )
        for number in range(2)
    ]
    await ports.folders.put_results(job.job_id, REF, 0, greetings)
    order = StageInput(job=job, stage=2, done=(REF,))
    await environment().run(StagePlanning(ports).plan_stage, order)
    short, long = await ports.folders.plan(job.job_id, order.ref, 0)
    assert short.predecessor == greetings[0]
    assert (long.predecessor, long.predecessor_at is not None) == (None, True)
    group = group_of(job, 0, 1).model_copy(update={"ref": order.ref})
    result = await environment().run(TaskGroups(ports).run_tasks, group)
    lines = [line async for line in ports.folders.lines([f"{result.blob}-0.jsonl"])]
    replies = [FinishedTask.model_validate_json(line).result for line in lines]
    assert [reply["reply"] for reply in replies] == ["Hello to task 0", "Hello to task 1"]
    assert [len(reply["replied_to"]) for reply in replies] == [1, 9_001]
