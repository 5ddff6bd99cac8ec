"""Staging: the whole file is read while a person looks at its columns."""

import asyncio
from collections.abc import Sequence

from temporalio import workflow
from temporalio.exceptions import FailureError

from activities.spreadsheets.staging import SpreadsheetStaging
from contracts.spreadsheets import ColumnMapping, Staged, StageInput
from workflows import policies
from workflows.failures import failure_type
from workflows.spreadsheets.pauses import HOPELESS
from workflows.spreadsheets.state import SpreadsheetRun


class Staging:
    """The rows of the file, staged in parallel with everything else that the run does."""

    def __init__(self, run: SpreadsheetRun) -> None:
        self._run = run
        self._task: asyncio.Task[Staged] | None = None

    def restart(self) -> None:
        """Stage the rows again unless they are staged: the layout may have changed."""
        self.cancel()
        self._task = None
        if self._run.now.staged is None:
            self._task = asyncio.create_task(self._stage())

    def cancel(self) -> None:
        """Stop reading the file."""
        if self._task is not None:
            self._task.cancel()

    async def result(self) -> Staged:
        """Wait until the rows are staged; a failed attempt is made again at the next call."""
        while self._run.now.staged is None:
            task = self._task or asyncio.create_task(self._stage())
            self._task = None
            await task
        return self._run.now.staged

    async def ended(self) -> None:
        """Wait until nothing is in flight: a run that closes before has to be closed twice."""
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    def is_hopeless(self) -> bool:
        """The rest of the file turned out to be unreadable: no answer can help."""
        if self._task is None or not self._task.done() or self._task.cancelled():
            return False
        error = self._task.exception()
        return isinstance(error, FailureError) and failure_type(error) in HOPELESS

    async def _stage(self) -> Staged:
        layout = self._run.now.layout
        staged = await workflow.execute_activity_method(
            SpreadsheetStaging.stage,
            StageInput(order=self._run.order, layout=layout, columns=_bare(self._run.now.columns)),
            summary="put the rows aside",
            **policies.LONG,
        )
        if layout == self._run.now.layout:
            self._run.set(staged=staged)
        return staged


def _bare(columns: Sequence[ColumnMapping]) -> tuple[ColumnMapping, ...]:
    """Columns without their suggestions, which only people need."""
    return tuple(column.model_copy(update={"alternatives": ()}) for column in columns)
