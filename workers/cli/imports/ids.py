"""How a person names an import: `task`, `project/task` or `import/project/task`."""

from typing import Protocol

from pydantic import TypeAdapter, ValidationError

from contracts.imports import Key
from domain.imports.chunks import TaskKey
from workers.cli.context import CliContext
from workers.cli.errors import CommandError, UsageError

_KEY: TypeAdapter[str] = TypeAdapter(Key)


class Named(Protocol):
    """A key, a message, a result or a status row of one import."""

    @property
    def project_id(self) -> str: ...

    @property
    def task_id(self) -> str: ...


def name_of(named: Named) -> str:
    """How people name this import."""
    return f"{named.project_id}/{named.task_id}"


def parse_id(text: str) -> TaskKey | str:
    """Tell a full name from a bare task id.

    Returns:
        The key of a full name, or the task id, whose project is not known yet.

    Raises:
        UsageError: It is neither.
    """
    parts = text.strip().split("/")
    if len(parts) == 3 and parts[0] == "import":
        parts = parts[1:]
    try:
        names = [_KEY.validate_python(part) for part in parts]
    except ValidationError:
        names = []
    match names:
        case [task_id]:
            return task_id
        case [project_id, task_id]:
            return TaskKey(project_id, task_id)
        case _:
            raise UsageError(
                f"{text!r} names no import; write the task id, project/task or the workflow id "
                "import/project/task"
            )


async def resolve(cli: CliContext, text: str) -> TaskKey:
    """Find the import that a person means; the database is asked only for a bare task id.

    Raises:
        UsageError: It is not a name, or it fits several projects.
        CommandError: There is no import of this task id.
    """
    named = parse_id(text)
    if isinstance(named, TaskKey):
        return named
    async with cli.resources() as resources:
        rows = await resources.tasks.find(named)
    if len(rows) > 1:
        full = ", ".join(name_of(row) for row in rows)
        raise UsageError(f"task {named} is in several projects: write one of {full}")
    if not rows:
        raise CommandError(
            f"there is no import of task {named} yet: `docflow list` shows what there is; "
            "for one that has just begun write project/task"
        )
    return TaskKey(rows[0].project_id, rows[0].task_id)
