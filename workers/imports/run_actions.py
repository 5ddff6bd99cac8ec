"""What can be done to import runs, by id."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from workers.imports.service import (
    CorrectedFile,
    ImportAnswers,
    RunAnswer,
    corrected,
    report_of,
)
from workers.shared.register import Run
from workers.shared.services.known_runs import prefixes
from workers.shared.services.run_actions import AnswerRequest, Report, RunActions
from workflows.imports.messages import workflow_id
from workflows.imports.runs import TaskKey

if TYPE_CHECKING:
    from workers.imports.service import ImportService
    from workers.shared.services.identity import Identity


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
            corrected(request.correction),
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
            yield await report_of(opened.tasks, opened.blobs, key, name)


class ServedImports:
    """What a gateway does to import runs.

    Args:
        service: Of imports.
    """

    def __init__(self, service: "ImportService") -> None:
        self._service = service

    async def answer(self, who: "Identity", run: Run, request: AnswerRequest) -> None:
        """`retry` may carry a corrected message, or changes of it."""
        answer = RunAnswer(
            request.verb,
            by=who.subject,
            reason=request.reason,
            message=corrected(request.correction),
            changes=request.changes,
        )
        await self._service.answer(who, run.workflow_id, answer)

    def report(self, who: "Identity", run: Run) -> AbstractAsyncContextManager[Report]:
        """The spreadsheet of rejected rows."""
        return self._service.report(who, run.workflow_id)


RUN_ACTIONS: Final[RunActions] = ImportRunActions()
