"""A job type that cannot run is refused when it is registered, with what is wrong."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from activities.jobs.api import JobType, StageContext, TaskContext, TaskDone, job_type, task
from workflows.jobs.definitions import InvalidDefinition, StageDefinition, WorkflowDefinition
from workflows.jobs.runs import PlannedTask
from workflows.shared.contracts import Contract


class _Parameters(Contract):
    pass


class _Whole(JobType[_Parameters]):
    parameters = _Parameters

    async def plan(
        self, stage: StageDefinition, context: StageContext[_Parameters]
    ) -> AsyncIterator[PlannedTask]:
        yield PlannedTask(index="0")

    @task("piece")
    async def piece(self, context: TaskContext[_Parameters]) -> TaskDone:
        return TaskDone()


class _Unplanned(JobType[_Parameters]):
    @task("piece")
    async def piece(self, context: TaskContext[_Parameters]) -> TaskDone:
        return TaskDone()


def stage(number: int, name: str = "", **fields: Any) -> StageDefinition:
    given = {"stage_name": name or f"s{number}", "task_type": "piece", **fields}
    return StageDefinition(stage_number=number, **given)


def definition(*stages: StageDefinition, **fields: Any) -> WorkflowDefinition:
    given = {"total_stages": len(stages), "description": "", **fields}
    return WorkflowDefinition(job_type="pieces", stages=stages, **given)


@pytest.mark.parametrize(
    ("stages", "problem"),
    [
        ([stage(1, task_type="pice")], "task type 'pice', for which there is no function"),
        ([stage(1), stage(3)], "stages are numbered [1, 3]"),
        ([stage(1, "a"), stage(2, "a")], "two stages are called 'a'"),
        ([stage(1, depends_on_stage=2), stage(2)], "that is a cycle"),
        ([stage(1, depends_on_stage=1)], "that is a cycle"),
        ([stage(1), stage(2, depends_on_stage=7)], "stage 7, which does not exist"),
    ],
)
def test_stages_that_cannot_run_are_refused(stages: list[StageDefinition], problem: str) -> None:
    with pytest.raises(InvalidDefinition) as raised:
        job_type(definition(*stages))(_Whole)
    assert problem in str(raised.value)


def test_a_wrong_number_of_stages_is_refused() -> None:
    with pytest.raises(InvalidDefinition, match="total_stages is 2, and 1 stages are defined"):
        job_type(definition(stage(1), total_stages=2))(_Whole)


def test_a_class_without_plan_and_parameters_is_refused() -> None:
    with pytest.raises(InvalidDefinition, match="_Unplanned does not say its parameters and plan"):
        job_type(definition(stage(1)))(_Unplanned)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (StageDefinition, {"stage_number": 1, "stage_name": "a", "task_type": "piece"}),
        (WorkflowDefinition, {"job_type": "a", "description": "", "total_stages": 1, "stages": ()}),
        (PlannedTask, {"index": "0"}),
        (TaskDone, {}),
    ],
)
def test_a_misspelt_field_is_refused_where_it_is_written(
    kind: type[Contract], fields: dict[str, Any]
) -> None:
    written = kind(**fields).model_dump_json()
    with pytest.raises(TypeError, match="has no field 'max_paralel_tasks'"):
        kind(**fields, max_paralel_tasks=3)
    # A newer release may have written more than this one knows.
    newer = written.replace("{", '{"another": 1,', 1).replace(",}", "}")
    assert kind.model_validate_json(newer) == kind(**fields)
