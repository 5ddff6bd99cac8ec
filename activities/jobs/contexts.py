"""What plans, tasks and aggregations of a job are given."""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from activities.jobs.api import JobResources, JobType, JobTypes, StageContext
from activities.jobs.folders import StageFolders
from adapters.ports.jobs import JobStore
from contracts.base import Contract, problem_text
from contracts.jobs import FinishedTask, JobOrder, JsonObject, StageOrder, StageRef
from domain.errors import RuleViolation


@dataclass(frozen=True)
class JobPorts:
    """What the activities of jobs work with; one object for everything in a process."""

    types: JobTypes
    resources: JobResources
    folders: StageFolders
    store: JobStore
    result_bytes: int
    """Longer results of tasks go to a blob of their own."""

    def job_type(self, order: JobOrder) -> JobType[Any]:
        """The code of a job.

        Raises:
            RuleViolation: This worker has none, or it lacks tasks of the job's stages.
        """
        name = order.definition.job_type
        found = self.types.get(name)
        if found is None:
            known = ", ".join(sorted(self.types)) or "none"
            raise RuleViolation(
                f"this worker has no job type {name!r}; installed are: {known}. "
                "Install its package where the worker runs, then retry"
            )
        for stage in order.definition.stages:
            if stage.task_type not in found.task_functions:
                raise RuleViolation(
                    f"the job type {name!r} of this worker has no function for tasks of type "
                    f"{stage.task_type!r}, which this job has from an earlier release"
                )
        return found

    async def stage_results(self, order: StageOrder) -> Mapping[int, JsonObject]:
        """Aggregated results of the stages before."""
        return {
            ref.stage: await self.folders.stage_result(order.job.job_id, ref) for ref in order.done
        }

    async def stage_context(
        self, order: StageOrder, previous: Callable[[], AsyncIterator[FinishedTask]]
    ) -> StageContext[Any]:
        """What the plan or the aggregation of a stage is given."""
        job = order.job
        return StageContext(
            job_id=job.job_id,
            attempt=job.attempt,
            parameters=parameters_of(self.job_type(job), job),
            inputs=job.inputs,
            previous=previous,
            stage_results=await self.stage_results(order),
            resources=self.resources,
        )


def parameters_of(job_type: JobType[Any], job: JobOrder) -> Contract:
    """The parameters of a job as its type knows them.

    Raises:
        RuleViolation: They do not fit; each problem is named.
    """
    try:
        return job_type.parameters.model_validate(job.parameters)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, each['loc']))}: {problem_text(each)}"
            for each in error.errors(include_url=False, include_input=False)
        )
        raise RuleViolation(f"the parameters of the job are wrong: {problems}") from error


def depended_on(order: StageOrder) -> StageRef | None:
    """The stage whose tasks a stage is planned from; None: of none."""
    number = order.definition.planned_from
    return next((ref for ref in order.done if ref.stage == number), None)
