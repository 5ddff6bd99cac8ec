"""Steps of a spreadsheet import beside its answers: one method, one activity."""

from temporalio import workflow

from activities.spreadsheets.analysis import SpreadsheetAnalysis
from activities.spreadsheets.lifecycle import SpreadsheetLifecycle
from activities.spreadsheets.reports import SpreadsheetReports
from activities.spreadsheets.rows import SpreadsheetRows
from activities.spreadsheets.values import SpreadsheetValues
from contracts.blobs import BlobRef
from contracts.spreadsheets import (
    Analysis,
    AnalysisInput,
    CellSummary,
    CollectInput,
    DecisionRecord,
    Finishing,
    Processed,
    ProcessInput,
    ReportInput,
    SpreadsheetResult,
    Staged,
)
from workflows import policies
from workflows.spreadsheets.state import SpreadsheetRun


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
