"""What can be done to import runs, by id."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol, cast
from urllib.parse import unquote

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from workers import catalogue
from workers.imports.messages import read_message
from workers.imports.service import CorrectedFile, ImportAnswers, RunAnswer
from workers.shared.register import Run, recognise
from workers.shared.services.bodies import RefusedMessage
from workers.shared.services.errors import InvalidRequest, NotFound, WrongState
from workers.shared.services.known_runs import prefixes
from workers.shared.services.verbs import AnswerRequest, Filters, Report, RunEntry, RunVerbs
from workflows.imports.messages import DocumentType, Key, encoded, workflow_id
from workflows.imports.runs import ImportState, TaskKey
from workflows.shared.contracts import built_when_used

if TYPE_CHECKING:
    from activities.imports.views import ImportTaskRow

_KEY: Final[TypeAdapter[str]] = TypeAdapter(Key, config=built_when_used())
_COUNTS: Final = ("created", "updated", "unchanged", "rejected")


class Named(Protocol):
    """A key, a message, a result or a status row of one import."""

    @property
    def project_id(self) -> str: ...

    @property
    def task_id(self) -> str: ...


def name_of(named: Named) -> str:
    """How people name an import: `project/task`, or its id where that could be of another run."""
    whole = workflow_id(named.project_id, named.task_id)
    return whole if named.project_id in prefixes() else whole.partition("/")[2]


class ImportVerbs:
    """What can be done to import runs."""

    pipeline = "imports"
    naming = "a task id, project/task or import/project/task of an import"
    states: Sequence[str] = tuple(ImportState)
    filters = frozenset({"type", "project"})
    corrects = frozenset({"retry"})
    changes = frozenset({"retry"})

    async def resolve(self, text: str, environment: Mapping[str, str]) -> Sequence[Run] | None:
        """`project/task`, or a bare task id, for which alone the database is read."""
        from workers.imports import access

        if text.count("/") == 1:
            project, task = map(unquote, text.split("/"))
            if not (_is_key(project) and _is_key(task)):
                return None
            found = _known(workflow_id(project, task))
            return None if found is None else [_distinct(text, found)]
        task_id = unquote(text)
        # As people see it in ids of runs: what is not plain is encoded.
        if encoded(task_id) != text or not _is_key(task_id):
            return None
        async with access.open_tasks(environment) as tasks:
            rows = await tasks.find(task_id)
        return [found for row in rows if (found := _known(row.workflow_id))]

    def name(self, run: Run) -> str:
        """Project and task."""
        return name_of(run.key)

    async def list(self, environment: Mapping[str, str], filters: Filters) -> Sequence[RunEntry]:
        """Status rows of imports."""
        from adapters.database.models.imports import FINAL
        from workers.imports import access

        kind = filters.more.get("type")
        if kind is not None and kind not in tuple(DocumentType):
            return []
        async with access.open_tasks(environment) as tasks:
            rows = await tasks.list(
                filters.limit,
                ImportState(filters.state) if filters.state else None,
                DocumentType(kind) if kind else None,
                filters.more.get("project"),
            )
        return [
            RunEntry(
                workflow_id=row.workflow_id,
                name=name_of(row),
                pipeline=self.pipeline,
                type=row.document_type,
                state=row.state,
                since=row.updated_at,
                note=row.reason or row.note,
                is_open=row.state not in FINAL,
                columns={name: f"{getattr(row.counts, name):,}" for name in _COUNTS},
                row=to_jsonable_python(dict(row)),
            )
            for row in rows
        ]

    async def answer(
        self, environment: Mapping[str, str], run: Run, request: AnswerRequest
    ) -> Mapping[str, Any]:
        """`retry` may carry a corrected message, changes of it or a file; the status afterwards."""
        from workers.imports import access, runs

        answer = RunAnswer(
            request.verb,
            request.by,
            request.reason,
            _corrected(request.correction),
            request.changes,
        )
        opened = await runs.open_runs(environment)
        if request.file is None:
            status = await opened.answer(run.workflow_id, request.verb, answer.as_contract())
            return status.model_dump(mode="json")
        path = request.file
        async with access.open_imports(environment) as imports:
            file = CorrectedFile(path.name, lambda name: imports.blobs.upload(path, name))
            answers = ImportAnswers(opened, imports.tasks, imports.blobs)
            status = await answers.send(run, replace(answer, file=file))
        return status.model_dump(mode="json")

    @asynccontextmanager
    async def report(self, environment: Mapping[str, str], run: Run) -> AsyncGenerator[Report]:
        """The spreadsheet of rejected rows."""
        from workers.imports import access

        key, name = cast(TaskKey, run.key), self.name(run)
        async with access.open_imports(environment) as opened:
            row = await opened.tasks.get(key.project_id, key.task_id)
            if row is None:
                raise NotFound(f"there is no import {name}; `docflow list` shows what there is")
            if row.report is None:
                why = _no_report(row)
                raise WrongState(f"{name} has no report: {why}")
            blob, count = row.report.name, row.problem_count
            yield Report(
                f"{encoded(key.task_id)}-problems.xlsx",
                lambda target: opened.blobs.download(blob, target),
                f"{count:,} problem{'' if count == 1 else 's'}; correct the rows and submit it as "
                "a new task",
            )


def _no_report(row: "ImportTaskRow") -> str:
    if row.problems_removed_at is not None:
        return f"its time was over, and it was removed at {row.problems_removed_at:%Y-%m-%d}"
    return "no row was rejected or left out" if row.problem_count == 0 else f"it is {row.state}"


def _is_key(text: str) -> bool:
    try:
        _KEY.validate_python(text)
    except ValidationError:
        return False
    return True


def _known(workflow_id: str) -> Run | None:
    return recognise(catalogue.PIPELINES, workflow_id)


def _distinct(text: str, found: Run) -> Run:
    """An import, unless its short form begins as the ids of other runs do."""
    project = found.key.project_id
    if project in prefixes():
        raise InvalidRequest(
            f"{text!r} names no run: {project}/ begins ids of another form; an import of a project "
            f"called {project} has the full id {found.workflow_id}"
        )
    return found


def _corrected(body: bytes | None) -> Any:
    if body is None:
        return None
    try:
        return read_message(body)
    except RefusedMessage as refused:
        raise InvalidRequest(f"the corrected message: {refused.description}") from refused


VERBS: Final[RunVerbs] = ImportVerbs()
