"""What can be done to import runs, by id."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from contracts.imports import Answer, DocumentType, ImportState, Key, Retry, workflow_id
from domain.imports.chunks import TaskKey
from workers.services.bodies import RefusedMessage
from workers.services.errors import InvalidRequest, NotFound, WrongState
from workers.services.imports.messages import read_message
from workers.services.verbs import AnswerRequest, Filters, Report, RunEntry, RunVerbs

_KEY: Final[TypeAdapter[str]] = TypeAdapter(Key)
_PREFIX: Final = "import"
_COUNTS: Final = ("created", "updated", "unchanged", "rejected")


def key_of(text: str) -> TaskKey | str | None:
    """The import that a text names.

    Returns:
        The key of `project/task` or `import/project/task`; the task id where only that is given;
        None: the text names none.
    """
    parts = text.strip().split("/")
    if len(parts) == 3 and parts[0] == _PREFIX:
        parts = parts[1:]
    try:
        names = [_KEY.validate_python(part) for part in parts]
    except ValidationError:
        return None
    match names:
        case [task_id]:
            return task_id
        case [project_id, task_id]:
            return TaskKey(project_id, task_id)
        case _:
            return None


class ImportVerbs:
    """What can be done to import runs."""

    pipeline = "imports"
    naming = "a task id, project/task or import/project/task of an import"
    states: Sequence[str] = tuple(ImportState)
    filters = frozenset({"type", "project"})
    corrects = frozenset({"retry"})

    def recognises(self, workflow_id: str) -> bool:
        """Three parts, of which the first is `import`."""
        return workflow_id.count("/") == 2 and isinstance(key_of(workflow_id), TaskKey)

    async def resolve(self, text: str, environment: Mapping[str, str]) -> Sequence[str] | None:
        """The database is read only for a bare task id."""
        from workers.services.imports import access

        named = key_of(text)
        if named is None:
            return None
        if isinstance(named, TaskKey):
            return [workflow_id(named.project_id, named.task_id)]
        async with access.open_imports(environment) as opened:
            return [row.workflow_id for row in await opened.tasks.find(named)]

    def name(self, workflow_id: str) -> str:
        """Project and task."""
        return workflow_id.removeprefix(f"{_PREFIX}/")

    def offered(self, workflow_id: str) -> Sequence[str]:
        """Every verb."""
        return ("retry", "skip", "fail", "cancel", "report")

    async def list(self, environment: Mapping[str, str], filters: Filters) -> Sequence[RunEntry]:
        """Status rows of imports."""
        from workers.services.imports import access

        kind = filters.more.get("type")
        if kind is not None and kind not in tuple(DocumentType):
            return []
        async with access.open_imports(environment) as opened:
            rows = await opened.tasks.list(
                filters.limit,
                ImportState(filters.state) if filters.state else None,
                DocumentType(kind) if kind else None,
                filters.more.get("project"),
            )
        return [
            RunEntry(
                workflow_id=row.workflow_id,
                name=self.name(row.workflow_id),
                pipeline=self.pipeline,
                type=row.document_type,
                state=row.state,
                since=row.updated_at,
                note=row.reason or row.note,
                columns={name: f"{getattr(row.counts, name):,}" for name in _COUNTS},
                row=TypeAdapter(type(row)).dump_python(row, mode="json"),
            )
            for row in rows
        ]

    async def answer(
        self, environment: Mapping[str, str], workflow_id: str, request: AnswerRequest
    ) -> Mapping[str, Any]:
        """`retry` may carry a corrected message; the status afterwards."""
        from workers.services.imports import runs

        answer: Retry | Answer = Answer(reason=request.reason, by=request.by)
        if request.verb == "retry":
            answer = Retry(message=_corrected(request.correction), by=request.by)
        opened = await runs.open_runs(environment)
        status = await opened.answer(workflow_id, request.verb, answer)
        return status.model_dump(mode="json")

    @asynccontextmanager
    async def report(
        self, environment: Mapping[str, str], workflow_id: str
    ) -> AsyncGenerator[Report]:
        """The spreadsheet of rejected rows."""
        from workers.services.imports import access

        key, name = key_of(workflow_id), self.name(workflow_id)
        assert isinstance(key, TaskKey)
        async with access.open_imports(environment) as opened:
            row = await opened.tasks.get(key.project_id, key.task_id)
            if row is None:
                raise NotFound(f"there is no import {name}; `docflow list` shows what there is")
            if row.report is None:
                why = "no row was rejected" if row.problem_count == 0 else f"it is {row.state}"
                raise WrongState(f"{name} has no report: {why}")
            blob, count = row.report.name, row.problem_count
            yield Report(
                f"{key.task_id}-problems.xlsx",
                lambda target: opened.blobs.download(blob, target),
                f"{count:,} problem{'' if count == 1 else 's'}; correct the rows and submit it as "
                "a new task",
            )


def _corrected(body: bytes | None) -> Any:
    if body is None:
        return None
    try:
        return read_message(body)
    except RefusedMessage as refused:
        raise InvalidRequest(f"the corrected message: {refused.description}") from refused


VERBS: Final[RunVerbs] = ImportVerbs()
