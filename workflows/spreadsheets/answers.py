"""What answers do to the mappings of a spreadsheet import.

Answers are taken one at a time. Each is checked again when it is its turn: another may have been
taken since it was accepted.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from datetime import timedelta
from typing import Final, TypeVar

from temporalio import workflow
from temporalio.exceptions import ApplicationError, FailureError

from workflows.shared import attributes, policies
from workflows.shared.errors import INVALID_DECISION
from workflows.shared.failures import explain, failure_type, reraise_cancellation
from workflows.spreadsheets import pauses
from workflows.spreadsheets.calls import Staging
from workflows.spreadsheets.fields import KEYS
from workflows.spreadsheets.mappings import (
    FINAL,
    CellDecisions,
    ColumnDecisions,
    ColumnMapping,
    DecisionRecord,
    Layout,
    LayoutChange,
    MappingsAnswer,
    SpreadsheetState,
)
from workflows.spreadsheets.pauses import HOPELESS
from workflows.spreadsheets.review import ReviewStep
from workflows.spreadsheets.reviews import (
    CheckAgain,
    DecideRows,
    ReviewChange,
    ReviewChanged,
    RowDecisions,
)
from workflows.spreadsheets.runs import (
    Analysis,
    AnalysisInput,
    Confirmation,
    DecideCells,
    Reassignment,
    SaveColumns,
)
from workflows.spreadsheets.state import SpreadsheetRun
from workflows.spreadsheets.steps import (
    SpreadsheetAnalysis,
    SpreadsheetLifecycle,
    SpreadsheetValues,
)

T = TypeVar("T")

_COLUMNS: Final = (SpreadsheetState.COLUMN_MAPPING,)
_VALUES: Final = (SpreadsheetState.CELL_MAPPING,)
_COLLECTING_SECONDS: Final = 20
"""How long an answer that confirms columns waits for the values to be collected."""


class SpreadsheetAnswers:
    """Checks answers about columns and values, and applies them."""

    def __init__(self, run: SpreadsheetRun, staging: Staging, review: ReviewStep) -> None:
        self._run, self._staging, self._review = run, staging, review
        # One answer at a time: each is based on what the one before has left.
        self._turn = asyncio.Lock()

    async def update_columns(self, answer: ColumnDecisions) -> MappingsAnswer:
        """Apply decisions about columns, all or none."""
        async with self._turn:
            columns, trail = self.decided_columns(answer)
            keys = self._keys(self._run.now.columns)
            await self._save_columns(columns, *trail)
            if self._keys(columns) != keys and workflow.patched("skipped-rows"):
                # Which rows are no data depends on the columns of keys.
                self._run.set(staged=None)
                self._staging.restart()
        return self._run.mappings()

    async def decide_rows(self, answer: RowDecisions) -> MappingsAnswer:
        """Keep rows that look like no people, or leave rows out."""
        async with self._turn:
            self.check_columns_open(answer.expected_version)
            version = self._run.now.version + 1
            work = DecideRows(
                uuid=self._run.order.uuid,
                version=version,
                rows=answer.rows,
                keep=answer.keep,
                by=answer.by,
                at=workflow.now(),
            )
            await _reported_to_caller(
                workflow.execute_activity_method(
                    SpreadsheetLifecycle.decide_rows,
                    work,
                    summary="keep rows" if answer.keep else "leave rows out",
                    **policies.ANSWER,
                )
            )
            self._run.set(version=version)
            self._run.touch()
        return self._run.mappings()

    def _keys(self, columns: Sequence[ColumnMapping]) -> list[tuple[int, str]]:
        names = self._run.now.row_keys or KEYS
        return [
            (each.index, each.target) for each in columns if each.target and each.target in names
        ]

    def decided_columns(
        self, answer: ColumnDecisions
    ) -> tuple[tuple[ColumnMapping, ...], tuple[DecisionRecord, ...]]:
        """The columns as the answer leaves them, and the trail."""
        self.check_columns_open(answer.expected_version)
        return pauses.decide_columns(
            self._run.now.columns, self._run.now.fields, answer.decisions, answer.by, workflow.now()
        )

    def check_columns_open(self, expected_version: int | None) -> None:
        """Refuse an answer about columns that comes at the wrong time."""
        pauses.refuse_other_state(self._run.now.state, _COLUMNS)
        if self._run.now.columns_confirmed:
            raise pauses.wrong_state("the columns are confirmed already")
        pauses.refuse_other_version(expected_version, self._run.now.version)

    async def _save_columns(
        self,
        columns: tuple[ColumnMapping, ...],
        *trail: DecisionRecord,
        remember: bool = False,
    ) -> None:
        version = self._run.now.version + 1
        save = SaveColumns(
            uuid=self._run.order.uuid,
            organisation_id=self._run.order.organisation_id,
            import_type=self._run.order.import_type,
            version=version,
            columns=columns,
            trail=trail,
            remember=remember,
        )
        await _reported_to_caller(
            workflow.execute_activity_method(
                SpreadsheetLifecycle.save_columns,
                save,
                summary="save column mappings",
                **policies.ANSWER,
            )
        )
        self._run.set(columns=columns, version=version)
        self._run.touch()

    async def change_layout(self, change: LayoutChange) -> MappingsAnswer:
        """Read the file in another way; the columns start over."""
        async with self._turn:
            self.check_columns_open(change.expected_version)
            version = self._run.now.version + 1
            analysis = await self._analyse_again(change.layout, version)
            if self._run.now.state is SpreadsheetState.COLUMN_MAPPING:
                self._run.take(analysis, version)
                self._run.set(staged=None)
                self._run.touch()
                self._staging.restart()
                line = self._run.trail("layout", analysis.layout.model_dump_json(), change.by)
                await self._run.record(line)
        return self._run.mappings()

    async def _analyse_again(self, layout: Layout, version: int) -> Analysis:
        work = AnalysisInput(order=self._run.order, layout=layout, version=version)
        return await _reported_to_caller(
            workflow.execute_activity_method(
                SpreadsheetAnalysis.analyse,
                work,
                summary="read the top of the file in another way",
                **policies.LONG,
            )
        )

    async def confirm_columns(
        self, answer: Confirmation, *, skip_values: bool = False
    ) -> MappingsAnswer:
        """Let the values be collected; returns when they are, or after a while."""
        async with self._turn:
            self.check_confirm_columns(answer)
            line = self._run.trail("start" if skip_values else "confirm", "columns", answer.by)
            await self._save_columns(self._run.now.columns, line, remember=True)
            if self._run.now.state is SpreadsheetState.COLUMN_MAPPING:
                self._run.set(columns_confirmed=True, skip_values=skip_values)
        try:
            await workflow.wait_condition(
                self._has_moved_on,
                timeout=timedelta(seconds=_COLLECTING_SECONDS),
                timeout_summary="the answer waits for the values",
            )
        except TimeoutError:
            workflow.logger.info("values are still being collected; answering without them")
        return self._run.mappings()

    def check_confirm_columns(self, answer: Confirmation) -> None:
        """Refuse to confirm columns while some are open that the type refuses, or while required
        fields are missing, unless the review may make their columns."""
        self.check_columns_open(answer.expected_version)
        pauses.refuse_open_columns(self._run.mappings(), self._run.open_columns)
        if answer.incomplete:
            if not self._run.order.review:
                raise pauses.wrong_state("only an import with a review can be incomplete")
            return
        pauses.refuse_open_fields(self._run.mappings(), self._run.titles)

    def _has_moved_on(self) -> bool:
        state = self._run.now.state
        if state is SpreadsheetState.CELL_MAPPING:
            return self._run.now.collected or self._run.parking.waits
        return state is not SpreadsheetState.COLUMN_MAPPING or self._run.parking.waits

    async def update_values(self, answer: CellDecisions) -> MappingsAnswer:
        """Apply decisions about values, all or none."""
        async with self._turn:
            self.check_values(answer)
            await self._decide_values(answer)
        return self._run.mappings()

    def check_values(self, answer: CellDecisions) -> None:
        """Refuse an answer about values that comes at the wrong time or is malformed."""
        self._check_values_open(answer.expected_version)
        pauses.refuse_malformed_answer(answer)

    def _check_values_open(self, expected_version: int | None) -> None:
        pauses.refuse_other_state(self._run.now.state, _VALUES)
        if not self._run.now.collected:
            raise pauses.wrong_state("the values are still being collected; try again in a moment")
        if self._run.now.values_confirmed:
            raise pauses.wrong_state("the values are confirmed already")
        pauses.refuse_other_version(expected_version, self._run.now.version)

    async def _decide_values(self, answer: CellDecisions, *, confirm: bool = False) -> None:
        version = self._run.now.version + 1
        decide = DecideCells(
            order=self._run.order,
            version=version,
            decisions=answer.decisions,
            rules=answer.rules,
            by=answer.by,
            at=workflow.now(),
            confirm=confirm,
        )
        cells = await _reported_to_caller(
            workflow.execute_activity_method(
                SpreadsheetValues.decide_cells,
                decide,
                summary="save value mappings",
                **policies.ANSWER,
            )
        )
        known = self._run.now.cells.candidates
        kept = cells.candidates or known
        self._run.set(cells=cells.model_copy(update={"candidates": kept}), version=version)
        self._run.touch()

    async def confirm_values(
        self, answer: Confirmation, *, skip_review: bool = False
    ) -> MappingsAnswer:
        """Let the rows be reviewed or processed; returns when they are, or when the run parks."""
        was_in_review = self._run.now.in_review
        async with self._turn:
            self.check_confirm_values(answer)
            if self._run.now.in_review:
                await self._review.confirm(answer)
            else:
                await self._decide_values(CellDecisions(by=answer.by), confirm=True)
                if self._run.now.state is SpreadsheetState.CELL_MAPPING:
                    reviewed = self._run.now.reviewed or skip_review
                    self._run.set(values_confirmed=True, reviewed=reviewed)
        await workflow.wait_condition(
            lambda: (
                self._run.now.state is not SpreadsheetState.CELL_MAPPING
                or self._run.parking.waits
                or (self._run.now.in_review and not was_in_review)
            )
        )
        return self._run.mappings()

    async def change_review(self, change: ReviewChange) -> ReviewChanged:
        """Apply a change to the rows that are reviewed, or look at it."""
        async with self._turn:
            return await self._review.change(change)

    async def check_review(self, answer: CheckAgain) -> MappingsAnswer:
        """Have all rows that are reviewed checked once more, after that has failed."""
        async with self._turn:
            await self._review.check_again(answer)
        return self._run.mappings()

    def check_confirm_values(self, answer: Confirmation) -> None:
        """Refuse to confirm values while some are open; in a review its rows are confirmed."""
        if self._run.now.in_review:
            self._review.check_confirm(answer)
            return
        if answer.import_now:
            raise pauses.wrong_state("the rows are not being reviewed")
        self._check_values_open(answer.expected_version)
        pauses.refuse_open_values(self._run.mappings(), self._run.titles)

    async def start(self, answer: Confirmation) -> MappingsAnswer:
        """Confirm what is being mapped, and skip what comes before the rows."""
        if self._run.now.state is SpreadsheetState.COLUMN_MAPPING:
            return await self.confirm_columns(answer, skip_values=True)
        self.check_start(answer)
        return await self.confirm_values(answer, skip_review=True)

    def check_start(self, answer: Confirmation) -> None:
        """Refuse what neither columns nor values can be confirmed by."""
        pauses.refuse_other_state(self._run.now.state, _COLUMNS + _VALUES)
        if self._run.now.state is SpreadsheetState.COLUMN_MAPPING:
            self.check_confirm_columns(answer)
        else:
            self.check_confirm_values(answer)

    def check_not_over(self) -> None:
        """Refuse an answer to an import that has ended."""
        if self._run.now.state in FINAL:
            raise pauses.wrong_state("too late: the import has ended")

    async def reassign(self, answer: Reassignment) -> MappingsAnswer:
        """Wait for another person."""
        async with self._turn:
            self.check_not_over()
            self._run.set(assignee=answer.to, notify=answer.notify)
            self._run.touch()
            if self._run.now.waiting_since is not None:
                workflow.upsert_search_attributes([attributes.WAITING_FOR.value_set(answer.to)])
            await self._run.record(self._run.trail("reassign", answer.to, answer.by))
        return self._run.mappings()


async def _reported_to_caller(step: Awaitable[T]) -> T:
    """Do a step of an answer; its failure is the caller's, and the run continues."""
    try:
        return await step
    except FailureError as error:
        reraise_cancellation(error)
        kind = failure_type(error)
        if kind in HOPELESS:
            # Of another layout: the file as it was read before is not affected.
            kind = INVALID_DECISION
        raise ApplicationError(explain(error), type=kind, non_retryable=True) from error
