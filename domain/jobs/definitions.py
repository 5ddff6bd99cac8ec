"""Whether a definition can run: checked when a job type is registered."""

from collections.abc import Collection, Iterator

from contracts.jobs import StageDefinition, WorkflowDefinition


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
