"""Steps of a spreadsheet import beside its answers: one method, one activity."""

import asyncio
from collections.abc import Sequence

from temporalio import workflow
from temporalio.exceptions import FailureError

from workflows.shared import policies
from workflows.shared.contracts import BlobRef
from workflows.shared.failures import failure_type
from workflows.spreadsheets.mappings import CellSummary, ColumnMapping, DecisionRecord
from workflows.spreadsheets.pauses import HOPELESS
from workflows.spreadsheets.runs import (
    Analysis,
    AnalysisInput,
    CollectInput,
    Finishing,
    HandOverInput,
    Processed,
    ProcessInput,
    ReportInput,
    SpreadsheetResult,
    Staged,
    StageInput,
)
from workflows.spreadsheets.state import SpreadsheetRun
from workflows.spreadsheets.steps import (
    SpreadsheetAnalysis,
    SpreadsheetFiles,
    SpreadsheetLifecycle,
    SpreadsheetReports,
    SpreadsheetRows,
    SpreadsheetStaging,
    SpreadsheetValues,
)


class SpreadsheetSteps:
    """The steps of one import; each raises `FailureError` when it has failed permanently."""

    def __init__(self, run: SpreadsheetRun) -> None:
        self._run = run

    async def begin(self) -> None:
        """Make the status row."""
        await workflow.execute_local_activity_method(
            SpreadsheetLifecycle.begin, self._run.order, summary="begin", **policies.SHORT
        )

    async def analyse(self) -> Analysis:
        """Read the top of the file."""
        order = self._run.order
        return await workflow.execute_activity_method(
            SpreadsheetAnalysis.analyse,
            AnalysisInput(order=order, layout=self._run.now.layout, version=1),
            summary=f"{order.import_type} {order.filename}"[:200],
            **policies.LONG,
        )

    async def collect_values(self) -> CellSummary:
        """Find the distinct values of the columns that refer to other tables."""
        run = self._run
        return await workflow.execute_activity_method(
            SpreadsheetValues.collect_values,
            CollectInput(order=run.order, staged=self._staged, columns=run.now.columns),
            summary="collect values",
            **policies.LONG,
        )

    def next_round(self) -> ProcessInput:
        """The rows that are next: all of them, later those that were parked."""
        run = self._run
        return ProcessInput(
            order=run.order,
            staged=self._staged,
            columns=run.now.columns,
            round=run.now.round,
            counting=run.now.skip_values,
        )

    async def process(self, work: ProcessInput) -> Processed:
        """Write a round of rows."""
        return await workflow.execute_activity_method(
            SpreadsheetRows.process,
            work,
            summary=f"process rows, round {work.round + 1}",
            **policies.LONG,
        )

    async def report(self) -> BlobRef | None:
        """Write the rows that were not imported into a file for the user."""
        run = self._run
        return await workflow.execute_activity_method(
            SpreadsheetReports.write_report,
            ReportInput(
                order=run.order,
                staged=self._staged,
                layout=run.now.layout,
                columns=run.now.columns,
            ),
            summary="error report",
            **policies.LONG,
        )

    async def hand_over(self, report: BlobRef | None) -> BlobRef:
        """Write the accepted rows into a file, and tell who loads them."""
        run = self._run
        return await workflow.execute_activity_method(
            SpreadsheetFiles.hand_over,
            HandOverInput(order=run.order, counts=run.now.counts, report=report),
            summary="hand rows over",
            **policies.LONG,
        )

    async def finish(
        self, result: SpreadsheetResult, trail: tuple[DecisionRecord, ...]
    ) -> SpreadsheetResult:
        """Record the end; the result has the counts of the database then."""
        record = self._run.status_record(*trail, reason=result.reason)
        counts = await workflow.execute_local_activity_method(
            SpreadsheetLifecycle.finish,
            Finishing(result=result, record=record),
            summary=f"record {result.state}",
            **policies.SHORT,
        )
        return result.model_copy(update={"counts": counts})

    @property
    def _staged(self) -> Staged:
        assert self._run.now.staged is not None
        return self._run.now.staged


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
