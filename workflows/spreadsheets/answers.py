"""What an answer does to a spreadsheet import, and what the import tells about itself.

Answers are taken one at a time. Each is checked when its turn has come: another may have been
taken since it was let in.
"""

import asyncio
from collections.abc import Awaitable
from datetime import timedelta
from typing import Any, Final, TypeVar

from temporalio import workflow
from temporalio.exceptions import ApplicationError, FailureError, is_cancelled_exception

from activities.spreadsheets.analysis import SpreadsheetAnalysis
from activities.spreadsheets.lifecycle import SpreadsheetLifecycle
from activities.spreadsheets.values import SpreadsheetValues
from contracts.errors import INVALID_DECISION, INVALID_DOCUMENT, UNREADABLE_DOCUMENT
from contracts.spreadsheets import (
    FINAL,
    Analysis,
    AnalysisInput,
    Answer,
    CellDecision,
    CellDecisions,
    CellSummary,
    ColumnDecisions,
    ColumnMapping,
    ColumnMappings,
    Confirmation,
    DecideCells,
    DecisionRecord,
    Layout,
    LayoutChange,
    MappingsAnswer,
    Reassignment,
    SaveColumns,
    SpreadsheetOrder,
    SpreadsheetProgress,
    SpreadsheetState,
    SpreadsheetStatus,
    StatusRecord,
)
from domain.spreadsheets.decisions import missing_fields
from workflows import attributes, policies
from workflows.spreadsheets import refusals
from workflows.steps import Answered, Decision, Parking, explain, kind_of

T = TypeVar("T")

_COLUMNS: Final = (SpreadsheetState.COLUMN_MAPPING,)
_VALUES: Final = (SpreadsheetState.CELL_MAPPING,)
_COLLECTING_SECONDS: Final = 20
"""How long an answer that confirms columns waits for the values to be collected."""


class SpreadsheetAnswers:
    """State of an import, and how it is answered and asked."""

    def __init__(self, order: SpreadsheetOrder, progress: SpreadsheetProgress) -> None:
        self._order = order
        self._now = progress
        self._step = "waiting for a worker"
        self._parking = Parking[None](
            timedelta(seconds=order.patience.abandon_after),
            {"retry": "try again", "cancel": "give it up"},
        )
        self._stopped: Answer | None = None
        self._last_refusal: str | None = None
        self._work: asyncio.Task[None] | None = None
        # One answer at a time: each is based on what the one before has left.
        self._turn = asyncio.Lock()

    def _set(self, **changes: Any) -> None:
        self._now = self._now.model_copy(update=changes)

    def _touch(self) -> None:
        """Somebody is at it: reminders count from here."""
        self._set(touched=workflow.now(), reminders=0, escalated=False)

    @property
    def _missing(self) -> tuple[str, ...]:
        return missing_fields(self._now.columns, self._now.fields)

    def _answer(self) -> MappingsAnswer:
        return MappingsAnswer(
            state=self._now.state,
            version=self._now.version,
            missing_fields=self._missing,
            cells=self._now.cells,
        )

    async def _record(self, *trail: DecisionRecord) -> None:
        """Bring the status row up to date."""
        self._set(sequence=self._now.sequence + 1)
        await workflow.execute_local_activity_method(
            SpreadsheetLifecycle.record,
            self._status_record(*trail),
            summary=f"record {self._now.state}",
            **policies.SHORT,
        )

    def _status_record(self, *trail: DecisionRecord, reason: str | None = None) -> StatusRecord:
        return StatusRecord(
            uuid=self._order.uuid,
            sequence=self._now.sequence,
            state=self._now.state,
            step=self._step,
            reason=reason or self._parking.reason,
            version=self._now.version,
            assignee=self._now.assignee,
            waiting_since=self._parking.since or self._now.waiting_since,
            cells=self._now.cells,
            at=workflow.now(),
            trail=trail,
        )

    def _line(self, kind: str, decision: str, by: str) -> DecisionRecord:
        return DecisionRecord(kind=kind, decision=decision[:200], by=by, at=workflow.now())

    async def _take_columns(self, answer: ColumnDecisions) -> MappingsAnswer:
        async with self._turn:
            columns, trail = self._decided_columns(answer)
            await self._save_columns(columns, *trail)
        return self._answer()

    def _decided_columns(
        self, answer: ColumnDecisions
    ) -> tuple[tuple[ColumnMapping, ...], tuple[DecisionRecord, ...]]:
        self._check_column_turn(answer.expected_version)
        return refusals.decide_columns(
            self._now.columns, self._now.fields, answer.decisions, answer.by, workflow.now()
        )

    def _check_column_turn(self, expected_version: int | None) -> None:
        refusals.refuse_other_state(self._now.state, _COLUMNS)
        if self._now.columns_confirmed:
            raise refusals.wrong_state("the columns are confirmed already")
        refusals.refuse_other_version(expected_version, self._now.version)

    async def _save_columns(
        self,
        columns: tuple[ColumnMapping, ...],
        *trail: DecisionRecord,
        remember: bool = False,
    ) -> None:
        version = self._now.version + 1
        save = SaveColumns(
            uuid=self._order.uuid,
            organisation_id=self._order.organisation_id,
            import_type=self._order.import_type,
            version=version,
            columns=columns,
            trail=trail,
            remember=remember,
        )
        await _told(
            workflow.execute_activity_method(
                SpreadsheetLifecycle.save_columns,
                save,
                summary="save column mappings",
                **policies.ANSWER,
            )
        )
        self._set(columns=columns, version=version)
        self._touch()

    async def _take_layout(self, change: LayoutChange) -> MappingsAnswer:
        async with self._turn:
            self._check_column_turn(change.expected_version)
            version = self._now.version + 1
            analysis = await self._analyse_anew(change.layout, version)
            if self._now.state is SpreadsheetState.COLUMN_MAPPING:
                self._set(
                    layout=analysis.layout,
                    columns=analysis.columns,
                    fields=analysis.fields,
                    version=version,
                    staged=None,
                )
                self._touch()
                self._stage_anew()
                line = self._line("layout", analysis.layout.model_dump_json(), change.by)
                await self._record(line)
        return self._answer()

    async def _analyse_anew(self, layout: Layout, version: int) -> Analysis:
        work = AnalysisInput(order=self._order, layout=layout, version=version)
        return await _told(
            workflow.execute_activity_method(
                SpreadsheetAnalysis.analyse,
                work,
                summary="read the top of the file in another way",
                **policies.LONG,
            )
        )

    def _stage_anew(self) -> None:
        """The layout has changed: the story puts the rows aside again."""
        raise NotImplementedError

    async def _confirm_columns(
        self, answer: Confirmation, *, skip_values: bool = False
    ) -> MappingsAnswer:
        async with self._turn:
            self._check_confirm_columns(answer)
            line = self._line("start" if skip_values else "confirm", "columns", answer.by)
            await self._save_columns(self._now.columns, line, remember=True)
            if self._now.state is SpreadsheetState.COLUMN_MAPPING:
                self._set(columns_confirmed=True, skip_values=skip_values)
        try:
            await workflow.wait_condition(
                self._has_moved_on,
                timeout=timedelta(seconds=_COLLECTING_SECONDS),
                timeout_summary="the answer waits for the values",
            )
        except TimeoutError:
            workflow.logger.info("values are still being collected; answering without them")
        return self._answer()

    def _check_confirm_columns(self, answer: Confirmation) -> None:
        self._check_column_turn(answer.expected_version)
        refusals.refuse_open_fields(self._answer())

    def _has_moved_on(self) -> bool:
        state = self._now.state
        if state is SpreadsheetState.CELL_MAPPING:
            return self._now.collected or self._parking.waits
        return state is not SpreadsheetState.COLUMN_MAPPING or self._parking.waits

    async def _take_values(self, answer: CellDecisions) -> MappingsAnswer:
        async with self._turn:
            self._check_values(answer)
            await self._decide_values(answer.decisions, answer.by)
        return self._answer()

    def _check_values(self, answer: CellDecisions) -> None:
        self._check_value_turn(answer.expected_version)
        refusals.refuse_malformed_values(answer.decisions)

    def _check_value_turn(self, expected_version: int | None) -> None:
        refusals.refuse_other_state(self._now.state, _VALUES)
        if not self._now.collected:
            raise refusals.wrong_state(
                "the values are still being collected; try again in a moment"
            )
        if self._now.values_confirmed:
            raise refusals.wrong_state("the values are confirmed already")
        refusals.refuse_other_version(expected_version, self._now.version)

    async def _decide_values(
        self, decisions: tuple[CellDecision, ...], by: str, *, confirm: bool = False
    ) -> None:
        version = self._now.version + 1
        decide = DecideCells(
            order=self._order,
            version=version,
            decisions=decisions,
            by=by,
            at=workflow.now(),
            confirm=confirm,
        )
        cells = await _told(
            workflow.execute_activity_method(
                SpreadsheetValues.decide_cells,
                decide,
                summary="save value mappings",
                **policies.ANSWER,
            )
        )
        self._set(cells=cells, version=version)
        self._touch()

    async def _confirm_values(self, answer: Confirmation) -> MappingsAnswer:
        async with self._turn:
            self._check_confirm_values(answer)
            await self._decide_values((), answer.by, confirm=True)
            if self._now.state is SpreadsheetState.CELL_MAPPING:
                self._set(values_confirmed=True)
        await workflow.wait_condition(
            lambda: self._now.state is not SpreadsheetState.CELL_MAPPING or self._parking.waits
        )
        return self._answer()

    def _check_confirm_values(self, answer: Confirmation) -> None:
        self._check_value_turn(answer.expected_version)
        refusals.refuse_open_values(self._answer())

    async def _start(self, answer: Confirmation) -> MappingsAnswer:
        if self._now.state is SpreadsheetState.COLUMN_MAPPING:
            return await self._confirm_columns(answer, skip_values=True)
        self._check_start(answer)
        return await self._confirm_values(answer)

    def _check_start(self, answer: Confirmation) -> None:
        refusals.refuse_other_state(self._now.state, _COLUMNS + _VALUES)
        if self._now.state is SpreadsheetState.COLUMN_MAPPING:
            self._check_confirm_columns(answer)
        else:
            self._check_confirm_values(answer)

    async def _cancel(self, answer: Answer) -> MappingsAnswer:
        self._check_not_over()
        self._stopped = self._stopped or answer
        if self._work is not None:
            self._work.cancel()
        await workflow.wait_condition(lambda: self._now.state in FINAL)
        return self._answer()

    def _check_not_over(self) -> None:
        if self._now.state in FINAL:
            raise refusals.wrong_state("too late: the import has ended")

    async def _reassign(self, answer: Reassignment) -> MappingsAnswer:
        async with self._turn:
            self._check_not_over()
            self._set(assignee=answer.to, notify=answer.notify)
            self._touch()
            if self._now.waiting_since is not None:
                workflow.upsert_search_attributes([attributes.WAITING_FOR.value_set(answer.to)])
            await self._record(self._line("reassign", answer.to, answer.by))
        return self._answer()

    def _retry(self, answer: Answer) -> MappingsAnswer:
        self._parking.answer(Answered(Decision.RETRY, by=answer.by))
        return self._answer()

    @workflow.query(name="status")
    def status(self) -> SpreadsheetStatus:
        """Where the run stands."""
        return SpreadsheetStatus(
            state=self._now.state,
            step=self._step,
            version=self._now.version,
            assignee=self._now.assignee,
            waiting_since=self._parking.since or self._now.waiting_since,
            reason=self._parking.reason,
            total=self._now.staged.total if self._now.staged else None,
            counts=self._now.counts,
            missing_fields=self._missing,
            cells=self._now.cells,
            last_refusal=self._last_refusal,
        )

    @workflow.query(name="column_mappings")
    def column_mappings(self) -> ColumnMappings:
        """Every column, and what it means."""
        return ColumnMappings(
            version=self._now.version, columns=self._now.columns, missing_fields=self._missing
        )

    @workflow.query(name="cell_mappings")
    def cell_mappings(self) -> CellSummary:
        """The values in figures, and the first that are open."""
        return self._now.cells


async def _told(step: Awaitable[T]) -> T:
    """Do a step of an answer; whoever answers hears why it cannot be done."""
    try:
        return await step
    except FailureError as error:
        if is_cancelled_exception(error):
            raise
        kind = kind_of(error)
        if kind in (UNREADABLE_DOCUMENT, INVALID_DOCUMENT):
            # Of another layout: the file as it was read before is none the worse for it.
            kind = INVALID_DECISION
        raise ApplicationError(explain(error), type=kind, non_retryable=True) from error
