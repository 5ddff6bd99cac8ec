"""What a job type is made of, and whether it can run."""

import unicodedata
from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any, Final, cast

from pydantic import AfterValidator, Field, StringConstraints

from workflows.shared.contracts import AuthoredContract

NUL: Final = "holds a NUL character, which databases do not keep"
HALF: Final = "holds half of a surrogate pair, which is not a character"


def text_problem(text: str) -> str | None:
    """Why a text cannot be kept as it is; None: it can."""
    if "\0" in text:
        return NUL
    try:
        text.encode()
    except UnicodeEncodeError:
        return HALF
    return None


def unkept(value: Any, location: str) -> Iterator[tuple[str, str]]:
    """Where in a value of JSON texts cannot be kept, and why."""
    waiting = [(location, value)]
    while waiting:
        place, each = waiting.pop()
        match each:
            case str():
                if problem := text_problem(each):
                    yield place, problem
            case Mapping():
                for name, inner in cast(Mapping[str, Any], each).items():
                    waiting += ((f"{place}.{name}", part) for part in (name, inner))
            case list() | tuple():
                parts = enumerate(cast("list[Any]", each))
                waiting += ((f"{place}.{at}", part) for at, part in parts)
            case _:
                pass


def _shown(text: str) -> str:
    if problem := text_problem(text):
        raise ValueError(problem)
    if not text.strip():
        raise ValueError("is blank")
    if any(unicodedata.category(character) == "Cc" for character in text):
        raise ValueError("holds a control character")
    return text


ShownName = Annotated[str, AfterValidator(_shown)]
"""What people call something: not blank, in one line, without what steers a terminal."""


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


class InvalidDefinition(Exception):
    """A job type whose stages cannot run.

    Attributes:
        problems: Each of them, as a sentence.
    """

    def __init__(self, job_type: str, problems: Collection[str]) -> None:
        super().__init__(f"job type {job_type!r}: {'; '.join(problems)}")
        self.problems = tuple(problems)


def check_definition(definition: WorkflowDefinition, task_types: Collection[str]) -> None:
    """Check numbers, dependencies and task types of the stages.

    Args:
        definition: As its author wrote it.
        task_types: For which there is a function.

    Raises:
        InvalidDefinition: Something is wrong; all of it is named.
    """
    problems = [*_numbering(definition), *_dependencies(definition)]
    for stage in definition.stages:
        if stage.task_type not in task_types:
            known = ", ".join(sorted(task_types)) or "none"
            problems.append(
                f"{_name(stage)} has the task type {stage.task_type!r}, "
                f"for which there is no function; there are: {known}"
            )
    if problems:
        raise InvalidDefinition(definition.job_type, problems)


def _numbering(definition: WorkflowDefinition) -> Iterator[str]:
    numbers = [stage.stage_number for stage in definition.stages]
    if definition.total_stages != len(numbers):
        yield f"total_stages is {definition.total_stages}, and {len(numbers)} stages are defined"
    if numbers != list(range(1, len(numbers) + 1)):
        yield f"stages are numbered {numbers}; number them 1, 2, 3 ... in order, without a gap"
    names = [stage.stage_name for stage in definition.stages]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"two stages are called {name!r}"


def _dependencies(definition: WorkflowDefinition) -> Iterator[str]:
    numbers = {stage.stage_number for stage in definition.stages}
    for stage in definition.stages:
        before = stage.depends_on_stage
        if before is None:
            continue
        if before not in numbers:
            yield f"{_name(stage)} depends on stage {before}, which does not exist"
        elif before >= stage.stage_number:
            yield (
                f"{_name(stage)} depends on stage {before}, which does not come before it: "
                "that is a cycle"
            )


def _name(stage: StageDefinition) -> str:
    return f"stage {stage.stage_number} ({stage.stage_name})"
