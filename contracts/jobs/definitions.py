"""What a job type is made of: stages, and how each of them runs its tasks."""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field, StringConstraints

from contracts.base import AuthoredContract

TASK_QUEUE: Final = "jobs"
"""Workflows, and the short steps of docflow's own."""

HEAVY_MEMORY: Final = "DOCFLOW_JOBS_HEAVY_MEMORY_MB"
"""Setting of the address space that a process of a heavy task has."""

JobTypeName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
TaskTypeName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
StageName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,63}$")]
TaskIndex = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
"""Names a task within its stage: `0`, or by meaning, `tile-x5-y10`."""

STAGES: Final = 50
"""A job type has no more."""
TASKS_PER_STAGE: Final = 100_000
TASKS_PER_BATCH: Final = 500
"""Tasks of one `TaskBatch`: what keeps its history within limits."""


class Lane(StrEnum):
    """Where the tasks of a stage are worked on; each lane has a task queue and slots of its own."""

    CONTROL = "jobs"
    """Steps that plan, and end in a moment."""
    LIGHT = "jobs-light"
    """Tasks that wait more than they compute."""
    HEAVY = "jobs-heavy"
    """Tasks that compute, in processes with a memory limit."""


class OnFailure(StrEnum):
    """What becomes of a stage in which a task has failed."""

    FAIL_FAST = "fail_fast"
    """No further task is begun; the job fails."""
    CONTINUE = "continue"
    """The others are finished; the job completes and lists the failed tasks."""
    PARK = "park"
    """The others are finished; then the job waits for a person."""


class StageDefinition(AuthoredContract):
    """One stage."""

    stage_number: int = Field(ge=1, le=STAGES)
    stage_name: StageName
    task_type: TaskTypeName
    max_parallel_tasks: int = Field(default=1, ge=1, le=2_000)
    """Tasks of the stage at once, over all its batches."""
    timeout_minutes: int = Field(default=30, ge=1, le=24 * 60)
    """For each attempt of one task."""
    depends_on_stage: int | None = None
    """Whose results its tasks are planned from; None: the stage before it."""
    tasks_per_activity: int = Field(default=1, ge=1, le=500)
    """Tiny tasks are worked on in groups: an activity costs more than they do."""
    on_failure: OnFailure = OnFailure.FAIL_FAST
    lane: Lane = Lane.LIGHT

    @property
    def planned_from(self) -> int | None:
        """Number of the stage whose results its tasks are planned from; None: of none."""
        if self.depends_on_stage is not None:
            return self.depends_on_stage
        return self.stage_number - 1 or None


class WorkflowDefinition(AuthoredContract):
    """A job type: its stages in the order in which they run."""

    job_type: JobTypeName
    description: str = Field(max_length=500)
    version: int = Field(default=1, ge=1)
    """Raised when the same parameters give another result: jobs of another version are others."""
    total_stages: int = Field(ge=1, le=STAGES)
    stages: tuple[StageDefinition, ...] = Field(max_length=STAGES)

    def stage(self, number: int) -> StageDefinition:
        """The stage of that number.

        Raises:
            KeyError: There is none.
        """
        for each in self.stages:
            if each.stage_number == number:
                return each
        raise KeyError(number)
