"""What a gateway does to import runs."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol

from workers.imports.service import (
    RunAnswer,
    corrected,
)
from workers.shared.register import Run
from workers.shared.services.known_runs import prefixes
from workers.shared.services.run_actions import AnswerRequest, Report
from workflows.imports.messages import workflow_id

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


class ServedImports:
    """What a gateway does to import runs.

    Args:
        service: Of imports.
    """

    def __init__(self, service: "ImportService") -> None:
        self._service = service

    async def details(self, who: "Identity", run: Run) -> Mapping[str, Any] | None:
        """Its row, with its problems, and what its run has just said."""
        found = await self._service.get(who, run.workflow_id)
        return found.model_dump(mode="json", by_alias=True)

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
