"""Odd errors and results of tasks: none of them ends more than its own task."""

import math
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.jobs.api import InputNeeded, NotReady, TaskContext
from activities.jobs.groups import TRANSIENT_RETRIES, BatchRecords, TaskGroups
from tests.support.jobs.groups import (
    Build,
    environment,
    finished,
    group_of,
    planning,
    recording_of,
)
from workflows.shared.errors import RuleViolation


@pytest.fixture
def build(tmp_path: Path) -> Build:
    return planning(tmp_path)


class _Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("it says nothing")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RuleViolation("scene_\udcff.tif is empty"), "scene_?.tif is empty"),
        (ApplicationError("scene_\udcff.tif", type="Own"), "scene_?.tif"),
        (InputNeeded("year", "of scene_\udcff.tif"), "year: of scene_?.tif"),
    ],
)
async def test_a_reason_that_cannot_be_encoded_fails_its_task_alone(
    build: Build, error: Exception, said: str
) -> None:
    def act(context: TaskContext[Any], begun: int) -> None:
        if context.index == "piece-1":
            raise error

    _, ports, job = await build(act)
    result = await environment().run(TaskGroups(ports).run_tasks, group_of(job))
    assert (result.completed, result.failed) == (4, 1)
    assert [each.error for each in finished(result) if each.error] == [said]


@pytest.mark.parametrize("error", [_Mute(), NotReady("soon", math.nan), NotReady("x\udcff", 1.0)])
async def test_odd_errors_have_only_their_task_done_again(build: Build, error: Exception) -> None:
    def act(context: TaskContext[Any], begun: int) -> None:
        if context.index == "piece-1":
            raise error

    _, ports, job = await build(act)
    result = await environment().run(TaskGroups(ports).run_tasks, group_of(job))
    assert (result.completed, [each.position for each in result.again]) == (4, [1])
    result.model_dump_json().encode()


async def test_a_result_that_cannot_be_encoded_fails_its_task_alone(build: Build) -> None:
    def act(context: TaskContext[Any], begun: int) -> Any:
        return {"name": "\udcff"} if context.index == "piece-1" else None

    _, ports, job = await build(act)
    order = group_of(job, tries=dict.fromkeys(range(5), TRANSIENT_RETRIES))
    result = await environment().run(TaskGroups(ports).run_tasks, order)
    assert (result.completed, result.failed) == (4, 1)


async def test_texts_keep_the_line_ends_of_unicode(build: Build) -> None:
    def act(context: TaskContext[Any], begun: int) -> None:
        raise RuleViolation("one\u2028two\u2029three\x85four")

    _, ports, job = await build(act)
    result = await environment().run(TaskGroups(ports).run_tasks, group_of(job))
    recording = recording_of(job, result.lines)
    end = await environment().run(BatchRecords(ports).close_batch, recording)
    assert end.counts.failed == 5


class _Panic(BaseException):
    """As libraries in Rust raise it."""


@pytest.mark.parametrize("error", [_Panic("index out of bounds"), SystemExit(3)])
async def test_a_panic_or_an_exit_is_a_failure_of_its_task(
    build: Build, error: BaseException
) -> None:
    def act(context: TaskContext[Any], begun: int) -> None:
        if context.index == "piece-1":
            raise error

    _, ports, job = await build(act)
    order = group_of(job, tries=dict.fromkeys(range(5), TRANSIENT_RETRIES))
    result = await environment().run(TaskGroups(ports).run_tasks, order)
    assert (result.completed, result.failed) == (4, 1)
    [reason] = [each.error for each in finished(result) if each.error]
    assert reason.startswith(f"unexpected {type(error).__name__}: ")
