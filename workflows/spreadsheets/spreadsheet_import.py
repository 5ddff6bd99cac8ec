"""One spreadsheet, from the upload over the pauses for a person to rows in the database."""

import asyncio
from typing import NoReturn

from temporalio import workflow
from temporalio.exceptions import (
    ApplicationError,
    FailureError,
    is_cancelled_exception,
)

from activities.spreadsheets.analysis import SpreadsheetAnalysis
from activities.spreadsheets.lifecycle import SpreadsheetLifecycle
from activities.spreadsheets.reports import SpreadsheetReports
from activities.spreadsheets.rows import SpreadsheetRows
from activities.spreadsheets.staging import SpreadsheetStaging
from activities.spreadsheets.values import SpreadsheetValues
from contracts.blobs import BlobRef
from contracts.errors import SPREADSHEET_FAILED
from contracts.spreadsheets import (
    NEXT,
    AnalysisInput,
    CollectInput,
    DecisionRecord,
    Finishing,
    ProcessInput,
    ReportInput,
    SpreadsheetOrder,
    SpreadsheetProgress,
    SpreadsheetResult,
    SpreadsheetState,
    Staged,
    StageInput,
)
from workflows import attributes, policies
from workflows.spreadsheets.pauses import HOPELESS, Abandoned, Failed, SpreadsheetPauses
from workflows.steps import explain, kind_of


@workflow.defn(name="SpreadsheetImport")
class SpreadsheetImport(SpreadsheetPauses):
    """analyse -> map columns -> map values -> process rows, and back to values for parked rows.

    A step that cannot be done parks the run where it stands; what was decided stays decided.
    """

    @workflow.init
    def __init__(
        self, order: SpreadsheetOrder, progress: SpreadsheetProgress | None = None
    ) -> None:
        super().__init__(
            order,
            progress
            or SpreadsheetProgress(assignee=order.by, notify=order.notify, layout=order.layout),
        )
        self._staging: asyncio.Task[Staged] | None = None
        self._report: BlobRef | None = None

    @workflow.run
    async def run(
        self, order: SpreadsheetOrder, progress: SpreadsheetProgress | None = None
    ) -> SpreadsheetResult:
        """Import the spreadsheet; a run that fails has state FAILED in its status row too."""
        self._work = asyncio.create_task(self._import())
        try:
            await self._work
        except Failed as failed:
            await self._fail(str(failed))
        except Abandoned as abandoned:
            return await self._close(SpreadsheetState.CANCELLED, reason=str(abandoned))
        except asyncio.CancelledError:
            return await self._cancelled()
        except FailureError as error:
            if not is_cancelled_exception(error):
                raise
            return await self._cancelled()
        return await self._close(SpreadsheetState.COMPLETED)

    async def _import(self) -> None:
        if self._now.state is SpreadsheetState.UPLOADED:
            await self._analyse()
        if self._now.state is SpreadsheetState.COLUMN_MAPPING:
            await self._map_columns()
        while self._now.state is SpreadsheetState.CELL_MAPPING:
            await self._map_values()
            await self._process()
        self._report = await self._write_report()

    async def _analyse(self) -> None:
        await self._do("make the status row", self._begin_status)
        analysis = await self._do(
            "read the top of the file",
            lambda: workflow.execute_activity_method(
                SpreadsheetAnalysis.analyse,
                AnalysisInput(order=self._order, layout=self._now.layout, version=1),
                summary=f"{self._order.import_type} {self._order.filename}"[:200],
                **policies.LONG,
            ),
        )
        self._set(
            layout=analysis.layout, columns=analysis.columns, fields=analysis.fields, version=1
        )
        # Before anybody can answer: columns that are confirmed are not to change any more.
        self._set(columns_confirmed=self._order.auto_start and not self._missing)
        await self._move(SpreadsheetState.COLUMN_MAPPING)

    async def _begin_status(self) -> None:
        await workflow.execute_local_activity_method(
            SpreadsheetLifecycle.begin, self._order, summary="begin", **policies.SHORT
        )

    async def _map_columns(self) -> None:
        self._stage_anew()
        try:
            await self._await_person(lambda: self._now.columns_confirmed or self._is_damaged())
            if self._now.staged is None:
                # A large file is read on for a while: nobody is waited for any more.
                await self._do("put the rows aside", self._record)
            staged = await self._do("put the rows aside", self._staged)
        finally:
            if self._staging is not None:
                self._staging.cancel()
        self._set(staged=staged)
        await self._move(SpreadsheetState.CELL_MAPPING)

    def _stage_anew(self) -> None:
        if self._staging is not None:
            self._staging.cancel()
        self._staging = None
        if self._now.staged is None:
            self._staging = asyncio.create_task(self._stage())

    async def _stage(self) -> Staged:
        """Read the whole file while a person looks at its columns."""
        layout = self._now.layout
        staged = await workflow.execute_activity_method(
            SpreadsheetStaging.stage,
            StageInput(order=self._order, layout=layout),
            summary="put the rows aside",
            **policies.LONG,
        )
        if layout == self._now.layout:
            self._set(staged=staged)
        return staged

    async def _staged(self) -> Staged:
        while self._now.staged is None:
            staging = self._staging or asyncio.create_task(self._stage())
            # Should it fail, the next attempt starts another.
            self._staging = None
            await staging
        return self._now.staged

    def _is_damaged(self) -> bool:
        """The rest of the file turned out unreadable: no answer can help it."""
        if self._staging is None or not self._staging.done() or self._staging.cancelled():
            return False
        error = self._staging.exception()
        return isinstance(error, FailureError) and kind_of(error) in HOPELESS

    async def _map_values(self) -> None:
        if not self._now.collected and not self._now.skip_values:
            await self._collect_values()
        if self._nobody_is_needed():
            self._set(values_confirmed=True)
        await self._await_person(lambda: self._now.values_confirmed)
        await self._move(SpreadsheetState.PROCESSING)

    async def _collect_values(self) -> None:
        assert self._now.staged is not None
        work = CollectInput(order=self._order, staged=self._now.staged, columns=self._now.columns)
        cells = await self._do(
            "collect values",
            lambda: workflow.execute_activity_method(
                SpreadsheetValues.collect_values, work, summary="collect values", **policies.LONG
            ),
        )
        self._set(cells=cells, collected=True)

    def _nobody_is_needed(self) -> bool:
        now = self._now
        if now.cells.open:
            return False
        return now.skip_values or self._order.auto_start or not now.cells.total or now.round > 0

    async def _process(self) -> None:
        assert self._now.staged is not None
        work = ProcessInput(
            order=self._order,
            staged=self._now.staged,
            columns=self._now.columns,
            round=self._now.round,
            counting=self._now.skip_values,
        )
        processed = await self._do(
            "process rows",
            lambda: workflow.execute_activity_method(
                SpreadsheetRows.process,
                work,
                summary=f"process rows, round {work.round + 1}",
                **policies.LONG,
            ),
        )
        self._set(
            counts=processed.counts,
            cells=processed.cells,
            round=work.round + 1,
            skip_values=False,
            collected=True,
            values_confirmed=False,
        )
        if processed.parked:
            await self._move(SpreadsheetState.CELL_MAPPING)

    async def _write_report(self) -> BlobRef | None:
        if not self._now.counts.error:
            return None
        assert self._now.staged is not None
        work = ReportInput(
            order=self._order,
            staged=self._now.staged,
            layout=self._now.layout,
            columns=self._now.columns,
        )
        return await self._do(
            "write the error report",
            lambda: workflow.execute_activity_method(
                SpreadsheetReports.write_report, work, summary="error report", **policies.LONG
            ),
        )

    async def _cancelled(self) -> SpreadsheetResult:
        stopped = self._stopped
        reason = (stopped and stopped.reason) or "cancelled; rows that were written stay"
        trail = () if stopped is None else (self._line("cancel", reason, stopped.by),)
        result = await self._close(SpreadsheetState.CANCELLED, reason=reason, trail=trail)
        if stopped is None:
            # Temporal's own cancel: the run shows as Canceled.
            raise asyncio.CancelledError(reason)
        return result

    async def _fail(self, reason: str) -> NoReturn:
        result = await self._close(SpreadsheetState.FAILED, reason=reason)
        raise ApplicationError(reason, result, type=SPREADSHEET_FAILED, non_retryable=True)

    async def _close(
        self,
        state: SpreadsheetState,
        *,
        reason: str | None = None,
        trail: tuple[DecisionRecord, ...] = (),
    ) -> SpreadsheetResult:
        assert state in NEXT[self._now.state], f"{self._now.state} -> {state}"
        self._step = "record the end"
        if self._staging is not None:
            # A run that closes while something is under way has to be closed twice.
            await asyncio.gather(self._staging, return_exceptions=True)
        self._set(state=state, sequence=self._now.sequence + 1, waiting_since=None)
        result = SpreadsheetResult(
            uuid=self._order.uuid,
            state=state,
            counts=self._now.counts,
            dry_run=self._order.dry_run,
            report=self._report,
            reason=reason,
        )
        result = await self._finish(result, trail)
        self._step = "done"
        workflow.upsert_search_attributes(attributes.going_on(state))
        workflow.set_current_details("")
        await workflow.wait_condition(workflow.all_handlers_finished)
        return result

    async def _finish(
        self, result: SpreadsheetResult, trail: tuple[DecisionRecord, ...]
    ) -> SpreadsheetResult:
        while True:
            try:
                counts = await workflow.execute_local_activity_method(
                    SpreadsheetLifecycle.finish,
                    Finishing(
                        result=result, record=self._status_record(*trail, reason=result.reason)
                    ),
                    summary=f"record {result.state}",
                    **policies.SHORT,
                )
                return result.model_copy(update={"counts": counts})
            except FailureError as error:
                if is_cancelled_exception(error):
                    # Too late to stop anything, and without its record the end would be lost.
                    continue
                # The work is done and only its record is missing: any answer tries again.
                await self._parking.wait(self._step, explain(error), _nobody)
                self._parking.resume(result.state)


async def _nobody() -> None:
    """Nothing to tell."""
