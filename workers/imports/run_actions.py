"""What can be done to import runs, by id."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from workers.imports.messages import read_message
from workers.imports.service import CorrectedFile, ImportAnswers, RunAnswer
from workers.shared.register import Run
from workers.shared.services.bodies import RefusedMessage
from workers.shared.services.errors import InvalidRequest, NotFound, WrongState
from workers.shared.services.known_runs import prefixes
from workers.shared.services.run_actions import AnswerRequest, Report, RunActions
from workflows.imports.messages import encoded, workflow_id
from workflows.imports.runs import TaskKey

if TYPE_CHECKING:
    from activities.imports.views import ImportTaskRow


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


class ImportRunActions:
    """What can be done to import runs."""

    pipeline = "imports"
    naming = "a task id, project/task or import/project/task of an import"
    corrects = frozenset({"retry"})
    changes = frozenset({"retry"})

    def name(self, run: Run) -> str:
        """Project and task."""
        return name_of(run.key)

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


def _corrected(body: bytes | None) -> Any:
    if body is None:
        return None
    try:
        return read_message(body, declared=None)
    except RefusedMessage as refused:
        raise InvalidRequest(f"the corrected message: {refused.description}") from refused


RUN_ACTIONS: Final[RunActions] = ImportRunActions()
