"""Import runs for the gateway: where one stands, and a person's answer to it."""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from contracts.imports import ImportStatus
from domain.imports.chunks import TaskKey
from workers import catalogue
from workers.pipelines.base import Run, recognise
from workers.services.errors import InvalidRequest, NotFound
from workers.services.identity import Identity, require_operator
from workers.services.imports.answers import CorrectedFile, ImportAnswers, RunAnswer

if TYPE_CHECKING:
    from adapters.database.imports.views import ImportTaskRow, SqlImportTasks
    from adapters.ports import Blobs
    from workers.services.imports.runs import ImportRuns

PIPELINE: Final = "imports"
LARGEST_FILE: Final = 500_000_000
"""Bytes of a corrected document."""


@dataclass(frozen=True)
class ImportView:
    """An import as its row and its run have it."""

    run: Run
    row: "ImportTaskRow"
    status: ImportStatus | None
    """None: no worker answers."""

    @property
    def answers(self) -> tuple[str, ...]:
        """What a person may answer now."""
        waits = self.status is not None and self.status.next_steps is not None
        return tuple(self.run.kind.answers) if waits else ()


class ImportService:
    """What operators see of imports, and do to them.

    Args:
        runs: Temporal.
        tasks: Status rows.
        blobs: Where corrected documents go.
    """

    def __init__(self, runs: "ImportRuns", tasks: "SqlImportTasks", blobs: "Blobs") -> None:
        self._runs = runs
        self._tasks = tasks
        self._blobs = blobs
        self._answers = ImportAnswers(runs, tasks, blobs)

    async def get(self, who: Identity, id: str) -> ImportView:
        """Where an import stands.

        Args:
            who: The caller.
            id: Workflow id.

        Raises:
            Forbidden: The caller is not an operator.
            NotFound: There is no such import.
        """
        run = _run(who, id)
        key = cast(TaskKey, run.key)
        row = await self._tasks.get(key.project_id, key.task_id)
        if row is None:
            raise NotFound(f"there is no import {key.project_id}/{key.task_id}")
        return ImportView(run, row, await self._runs.status(run.workflow_id))

    async def answer(self, who: Identity, id: str, answer: RunAnswer) -> ImportStatus:
        """Answer a run, in the name of the caller.

        Raises:
            Forbidden: The caller is not an operator.
            InvalidRequest: There is no such answer.
            ServiceError: See `ImportAnswers.send`.
        """
        run = _run(who, id)
        if answer.verb not in run.kind.answers:
            known = ", ".join(run.kind.answers)
            raise InvalidRequest(f"there is no answer {answer.verb!r}; there are {known}")
        return await self._answers.send(run, answer)

    async def retry_with(
        self,
        who: Identity,
        id: str,
        filename: str,
        content: Callable[[], AsyncIterator[bytes]],
        changes: Mapping[str, Any],
    ) -> ImportStatus:
        """Try again with a corrected document, which is streamed."""
        file = CorrectedFile(filename, lambda name: self._blobs.write(name, content()))
        answer = RunAnswer("retry", by=who.subject, changes=changes, file=file)
        return await self.answer(who, id, answer)


def _run(who: Identity, id: str) -> Run:
    require_operator(who, "imports")
    run = recognise(catalogue.PIPELINES, id)
    if run is None or run.pipeline.name != PIPELINE or not run.kind.answers:
        raise NotFound(f"{id!r} is not an import; its id reads import/PROJECT/TASK")
    return run
