"""One spreadsheet, from the upload over the pauses for a person to rows in the database."""

import asyncio
from datetime import timedelta
from types import MappingProxyType
from typing import Final, NoReturn

from temporalio import workflow
from temporalio.exceptions import ApplicationError, FailureError

from workflows.shared import attributes
from workflows.shared.contracts import BlobRef
from workflows.shared.errors import SPREADSHEET_FAILED
from workflows.shared.failures import explain
from workflows.shared.notifications import NotificationKind, counted
from workflows.shared.parking import Parkable, Parking
from workflows.shared.run_notifications import Notifications
from workflows.shared.waiting import Waiting
from workflows.spreadsheets.answers import SpreadsheetAnswers
from workflows.spreadsheets.calls import SpreadsheetSteps, Staging
from workflows.spreadsheets.mappings import (
    FINAL,
    CandidateLists,
    CellDecisions,
    CellSummary,
    ColumnDecisions,
    DecisionRecord,
    LayoutChange,
    MappingsAnswer,
    SpreadsheetState,
)
from workflows.spreadsheets.pauses import Abandoned, Failed, SpreadsheetPauses
from workflows.spreadsheets.review import ReviewStep
from workflows.spreadsheets.reviews import CheckAgain, ReviewChange, ReviewChanged, RowDecisions
from workflows.spreadsheets.runs import (
    Answer,
    ColumnMappings,
    Confirmation,
    Reassignment,
    SpreadsheetInput,
    SpreadsheetProgress,
    SpreadsheetResult,
    SpreadsheetStatus,
)
from workflows.spreadsheets.state import SpreadsheetRun

_MEANINGS: Final = MappingProxyType({"retry": "try again", "cancel": "give it up"})


@workflow.defn(name="SpreadsheetImport")
class SpreadsheetImport(Parkable, retry=Answer):
    """analyse -> map columns -> map values -> process rows, and back to values for parked rows.

    A step that fails permanently parks the run where it stands; what was decided stays decided.

    An update is accepted only where it makes sense. The signals of the plain Temporal CLI cannot
    be refused: the reason why one is not applied stands in the `status` query.
    """

    @workflow.init
    def __init__(
        self, order: SpreadsheetInput, progress: SpreadsheetProgress | None = None
    ) -> None:
        self._notices, self._waiting = Notifications(order.notices), Waiting()
        timeout = timedelta(seconds=order.patience.abandon_after)
        super().__init__(Parking(timeout, self._notices, _MEANINGS))
        self._run = SpreadsheetRun(order, progress, self._parking, self._waiting, self._notices)
        self._steps = SpreadsheetSteps(self._run)
        self._staging = Staging(self._run)
        self._pauses = SpreadsheetPauses(self._run)
        self._review = ReviewStep(self._run, self._pauses)
        self._pauses.is_busy = lambda: self._review.is_busy
        self._answers = SpreadsheetAnswers(self._run, self._staging, self._review)
        self._report: BlobRef | None = None
        self._file: BlobRef | None = None

    @workflow.run
    async def run(
        self, order: SpreadsheetInput, progress: SpreadsheetProgress | None = None
    ) -> SpreadsheetResult:
        """Import the spreadsheet; a run that fails has state FAILED in its status row too."""
        self._notices.begin()
        try:
            is_complete = await self._run.cancellation.completes(self._import())
        except Failed as failed:
            await self._fail(str(failed))
        except Abandoned as abandoned:
            return await self._close(
                SpreadsheetState.CANCELLED, NotificationKind.ABANDONED, reason=str(abandoned)
            )
        if not is_complete:
            return await self._cancelled()
        reason = self._run.now.note
        if self._file is not None:
            reason = f"the accepted rows are in {self._file.name}"
        reason = ". ".join(filter(None, (reason, self._run.unused))) or None
        return await self._close(SpreadsheetState.COMPLETED, reason=reason)

    async def _import(self) -> None:
        run = self._run
        if run.now.state is SpreadsheetState.UPLOADED:
            await self._analyse()
        if run.now.state is SpreadsheetState.COLUMN_MAPPING:
            await self._map_columns()
        while run.now.state is SpreadsheetState.CELL_MAPPING:
            await self._map_values()
            await self._process()
        if run.now.counts.error or (run.now.staged and run.now.staged.skipped_rows):
            self._report = await self._pauses.do("write the error report", self._steps.report)
        if run.now.hands_over:
            self._file = await self._pauses.do(
                "hand the rows over", lambda: self._steps.hand_over(self._report)
            )

    async def _analyse(self) -> None:
        run = self._run
        await self._pauses.do("make the status row", self._steps.begin)
        analysis = await self._pauses.do("read the top of the file", self._steps.analyse)
        run.take(analysis, version=1)
        # Before anyone can answer: columns that are confirmed are not to change any more.
        is_clear = run.is_clear and not analysis.has_rivals
        run.set(columns_confirmed=run.order.auto_start and is_clear)
        await self._pauses.move(SpreadsheetState.COLUMN_MAPPING)

    async def _map_columns(self) -> None:
        run = self._run
        self._staging.restart()
        try:
            while True:
                await self._pauses.wait_for_person(
                    lambda: run.now.columns_confirmed or self._staging.is_hopeless()
                )
                is_seen = run.now.staged is not None
                if not is_seen:
                    # A large file takes a while longer; no answer is awaited any more.
                    await self._pauses.do("put the rows aside", run.record)
                staged = await self._pauses.do("put the rows aside", self._staging.result)
                if not run.asks_about_rows(staged, is_seen=is_seen):
                    break
        finally:
            self._staging.cancel()
        run.set(staged=staged)
        await self._pauses.move(SpreadsheetState.CELL_MAPPING)

    async def _map_values(self) -> None:
        run = self._run
        if not run.now.collected and not run.now.skip_values:
            cells = await self._pauses.do("collect values", self._steps.collect_values)
            run.set(cells=cells, collected=True)
        if self._is_no_answer_needed():
            run.set(values_confirmed=True)
        await self._pauses.wait_for_person(lambda: run.now.values_confirmed)
        if self._review.is_wanted:
            await self._review.hold()
        await self._pauses.move(SpreadsheetState.PROCESSING)

    def _is_no_answer_needed(self) -> bool:
        now, auto_start = self._run.now, self._run.order.auto_start
        is_clear = now.skip_values or auto_start or not now.cells.total or now.round > 0
        return is_clear and not now.cells.open

    async def _process(self) -> None:
        run = self._run
        work = self._steps.next_round()
        processed = await self._pauses.do("process rows", lambda: self._steps.process(work))
        run.set(counts=processed.counts, cells=processed.cells, round=work.round + 1)
        run.set(skip_values=False, collected=True, values_confirmed=False)
        run.set(hands_over=processed.hands_over, note=processed.note)
        if processed.parked:
            await self._pauses.move(SpreadsheetState.CELL_MAPPING)

    async def _cancelled(self) -> SpreadsheetResult:
        request = self._run.cancellation.request
        reason = (request and request.reason) or "cancelled; rows that were written stay"
        trail = () if request is None else (self._run.trail("cancel", reason, request.by),)
        result = await self._close(SpreadsheetState.CANCELLED, reason=reason, trail=trail)
        if request is None:
            # Temporal's own cancel: the run shows as Canceled.
            raise asyncio.CancelledError(reason)
        return result

    async def _fail(self, reason: str) -> NoReturn:
        result = await self._close(SpreadsheetState.FAILED, NotificationKind.FAILED, reason=reason)
        raise ApplicationError(reason, result, type=SPREADSHEET_FAILED, non_retryable=True)

    async def _close(
        self,
        state: SpreadsheetState,
        kind: NotificationKind = NotificationKind.ENDED,
        *,
        reason: str | None = None,
        trail: tuple[DecisionRecord, ...] = (),
    ) -> SpreadsheetResult:
        run = self._run
        run.check_next(state)
        run.step = "record the end"
        await self._staging.ended()
        await self._review.ended()
        run.set(state=state, sequence=run.now.sequence + 1, waiting_since=None)
        result = SpreadsheetResult(
            uuid=run.order.uuid,
            state=state,
            counts=run.now.counts,
            dry_run=run.order.dry_run,
            report=self._report,
            reason=reason,
        )
        result = await self._waiting.retried_despite_cancel(
            lambda: self._steps.finish(result, trail), self._park_unrecorded
        )
        run.step = "done"
        workflow.upsert_search_attributes(attributes.not_waiting(state))
        workflow.set_current_details("")
        await self._notices.end(
            kind, state, reason or counted(result.counts), notify=run.now.notify
        )
        await workflow.wait_condition(workflow.all_handlers_finished)
        return result

    async def _park_unrecorded(self, failure: FailureError) -> None:
        # The work is done and only its record is missing: any answer tries again.
        await self._parking.wait(self._run.step, explain(failure))
        self._parking.resume(self._run.now.state)

    @workflow.update(name="update_column_mappings")
    async def update_column_mappings(self, answer: ColumnDecisions) -> MappingsAnswer:
        """Decide what columns mean; all of the decisions are applied, or none."""
        return await self._answers.update_columns(answer)

    @update_column_mappings.validator
    def _validate_update_column_mappings(self, answer: ColumnDecisions) -> None:
        self._answers.decided_columns(answer)

    @workflow.signal(name="update_column_mappings")
    async def update_column_mappings_signal(self, answer: ColumnDecisions) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        await self._run.apply_signal("update_column_mappings", self._answers.update_columns(answer))

    @workflow.update(name="decide_rows")
    async def decide_rows(self, answer: RowDecisions) -> MappingsAnswer:
        """Keep rows that look like no people, or leave rows out."""
        return await self._answers.decide_rows(answer)

    @decide_rows.validator
    def _validate_decide_rows(self, answer: RowDecisions) -> None:
        self._answers.check_columns_open(answer.expected_version)

    @workflow.signal(name="decide_rows")
    async def decide_rows_signal(self, answer: RowDecisions) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        await self._run.apply_signal("decide_rows", self._answers.decide_rows(answer))

    @workflow.update(name="change_layout")
    async def change_layout(self, change: LayoutChange) -> MappingsAnswer:
        """Read the file in another way; what was decided about its columns starts over."""
        return await self._answers.change_layout(change)

    @change_layout.validator
    def _validate_change_layout(self, change: LayoutChange) -> None:
        self._answers.check_columns_open(change.expected_version)

    @workflow.signal(name="change_layout")
    async def change_layout_signal(self, change: LayoutChange) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        await self._run.apply_signal("change_layout", self._answers.change_layout(change))

    @workflow.update(name="confirm_column_mappings")
    async def confirm_column_mappings(self, answer: Confirmation) -> MappingsAnswer:
        """Continue with the values; returns when they are collected, or after a while."""
        return await self._answers.confirm_columns(answer)

    @confirm_column_mappings.validator
    def _validate_confirm_column_mappings(self, answer: Confirmation) -> None:
        self._answers.check_confirm_columns(answer)

    @workflow.signal(name="confirm_column_mappings")
    async def confirm_column_mappings_signal(self, answer: Confirmation | None = None) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        await self._run.apply_signal(
            "confirm_column_mappings", self._answers.confirm_columns(answer or Confirmation())
        )

    @workflow.update(name="update_cell_mappings")
    async def update_cell_mappings(self, answer: CellDecisions) -> MappingsAnswer:
        """Decide what values mean; all of the decisions are applied, or none."""
        return await self._answers.update_values(answer)

    @update_cell_mappings.validator
    def _validate_update_cell_mappings(self, answer: CellDecisions) -> None:
        self._answers.check_values(answer)

    @workflow.signal(name="update_cell_mappings")
    async def update_cell_mappings_signal(self, answer: CellDecisions) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        await self._run.apply_signal("update_cell_mappings", self._answers.update_values(answer))

    @workflow.update(name="confirm_cell_mappings")
    async def confirm_cell_mappings(self, answer: Confirmation) -> MappingsAnswer:
        """Continue with the rows."""
        return await self._answers.confirm_values(answer)

    @confirm_cell_mappings.validator
    def _validate_confirm_cell_mappings(self, answer: Confirmation) -> None:
        self._answers.check_confirm_values(answer)

    @workflow.signal(name="confirm_cell_mappings")
    async def confirm_cell_mappings_signal(self, answer: Confirmation | None = None) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        await self._run.apply_signal(
            "confirm_cell_mappings", self._answers.confirm_values(answer or Confirmation())
        )

    @workflow.update(name="change_review")
    async def change_review(self, change: ReviewChange) -> ReviewChanged:
        """Apply a change to the rows that are reviewed, or find out what it would change."""
        return await self._answers.change_review(change)

    @change_review.validator
    def _validate_change_review(self, change: ReviewChange) -> None:
        self._review.check_change(change)

    @workflow.signal(name="change_review")
    async def change_review_signal(self, change: ReviewChange) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        await self._run.apply_signal("change_review", self._answers.change_review(change))

    @workflow.update(name="check_review")
    async def check_review(self, answer: CheckAgain) -> MappingsAnswer:
        """Check all rows of the review once more, after that has failed."""
        return await self._answers.check_review(answer)

    @check_review.validator
    def _validate_check_review(self, answer: CheckAgain) -> None:
        self._review.check_check_again()

    @workflow.signal(name="check_review")
    async def check_review_signal(self, answer: CheckAgain) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        await self._run.apply_signal("check_review", self._answers.check_review(answer))

    @workflow.update(name="start")
    async def start(self, answer: Confirmation) -> MappingsAnswer:
        """Confirm all that matched by itself and process the rows."""
        return await self._answers.start(answer)

    @start.validator
    def _validate_start(self, answer: Confirmation) -> None:
        self._answers.check_start(answer)

    @workflow.signal(name="start")
    async def start_signal(self, answer: Confirmation | None = None) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        await self._run.apply_signal("start", self._answers.start(answer or Confirmation()))

    @workflow.update(name="cancel")
    async def cancel(self, answer: Answer) -> MappingsAnswer:
        """Cancel; rows that are written stay, and can be undone."""
        return await self._stop(answer)

    @cancel.validator
    def _validate_cancel(self, answer: Answer) -> None:
        self._answers.check_not_over()

    @workflow.signal(name="cancel")
    async def cancel_signal(self, answer: Answer | None = None) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        await self._run.apply_signal("cancel", self._stop(answer or Answer()))

    @workflow.update(name="reassign")
    async def reassign(self, answer: Reassignment) -> MappingsAnswer:
        """Wait for another person."""
        return await self._answers.reassign(answer)

    @reassign.validator
    def _validate_reassign(self, answer: Reassignment) -> None:
        self._answers.check_not_over()

    @workflow.signal(name="reassign")
    async def reassign_signal(self, answer: Reassignment) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        await self._run.apply_signal("reassign", self._answers.reassign(answer))

    async def _stop(self, answer: Answer) -> MappingsAnswer:
        self._answers.check_not_over()
        self._run.cancellation.stop(answer)
        await workflow.wait_condition(lambda: self._run.now.state in FINAL)
        return self._run.mappings()

    def _answered(self) -> MappingsAnswer:
        return self._run.mappings()

    @workflow.query(name="status")
    def status(self) -> SpreadsheetStatus:
        """Where the run stands."""
        return self._run.status()

    @workflow.query(name="column_mappings")
    def column_mappings(self) -> ColumnMappings:
        """Every column, and what it means."""
        return self._run.column_mappings()

    @workflow.query(name="cell_mappings")
    def cell_mappings(self) -> CellSummary:
        """The values in figures, and the first that are open."""
        return self._run.now.cells

    @workflow.query(name="candidates")
    def candidates(self) -> CandidateLists:
        """What the open values may mean: the first rows of each field, with their ids."""
        return CandidateLists(fields=self._run.now.cells.candidates)
