"""The state of one spreadsheet import, shared by its workflow, its answers and its pauses."""

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Final

from temporalio import workflow
from temporalio.exceptions import FailureError

from workflows.shared import policies
from workflows.shared.failures import Cancellation, explain, reraise_cancellation
from workflows.shared.parking import Parking
from workflows.shared.run_notifications import Notifications
from workflows.shared.waiting import Waiting
from workflows.spreadsheets import decisions
from workflows.spreadsheets.decisions import field_titles, missing_fields, titled
from workflows.spreadsheets.mappings import (
    NEXT,
    DecisionRecord,
    HiddenParts,
    MappingsAnswer,
    MappingStatus,
    SpreadsheetState,
)
from workflows.spreadsheets.runs import (
    UNUSED,
    Analysis,
    Answer,
    ColumnMappings,
    SpreadsheetInput,
    SpreadsheetProgress,
    SpreadsheetStatus,
    Staged,
    StatusRecord,
)
from workflows.spreadsheets.steps import SpreadsheetLifecycle

_HEADER: Final = 60
_RETRIES: Final = 4
"""Retries of one status record that stand in the trail, beside another line; the last ones."""


class SpreadsheetRun:
    """What is known of a run now, and its status row.

    Attributes:
        order: What the run was started with.
        now: Everything that a run which continues as new takes along.
        step: What it is doing.
        last_refusal: Why the last signal was refused.
        cancellation: The request to stop.
        waiting: Its waits for what docflow itself needs.
        notices: Sent to people.
    """

    def __init__(
        self,
        order: SpreadsheetInput,
        progress: SpreadsheetProgress | None,
        parking: Parking,
        waiting: Waiting,
        notices: Notifications,
    ) -> None:
        self.order = order
        self.now = progress or SpreadsheetProgress(
            assignee=order.by, notify=order.notify, layout=order.layout
        )
        self.step = "waiting for a worker"
        self.last_refusal: str | None = None
        self.cancellation = Cancellation[Answer]()
        self.parking, self.waiting = parking, waiting
        self.notices = notices
        self._retries: tuple[DecisionRecord, ...] = ()
        notices.facts = {
            "link": order.link,
            "about": {
                "uuid": order.uuid,
                "organisation_id": order.organisation_id,
                "import_type": order.import_type,
                "filename": order.filename,
            },
        }

    def set(self, **changes: Any) -> None:
        """Change some fields of `now`."""
        self.now = self.now.model_copy(update=changes)

    def enter(self, state: SpreadsheetState) -> None:
        """Go to another state."""
        self.check_next(state)
        self.set(state=state)

    def check_next(self, state: SpreadsheetState) -> None:
        """A transition that the contract does not know is a fault of the program."""
        assert state in NEXT[self.now.state], f"{self.now.state} -> {state}"

    def touch(self) -> None:
        """A person has done something: reminders count from here."""
        self.set(touched=workflow.now(), reminders=0, escalated=False)

    @property
    def missing_fields(self) -> tuple[str, ...]:
        """Required fields that no column has."""
        return missing_fields(self.now.columns, self.now.fields)

    @property
    def open_columns(self) -> tuple[str, ...]:
        """Columns that still have to be mapped or left out."""
        return decisions.open_columns(self.now.columns) if self.now.needs_all_columns else ()

    @property
    def unused(self) -> str | None:
        """Columns with values that nobody has left out and that mean no field, for people."""
        columns = self.now.columns
        open = {each.index: each for each in columns if each.status is MappingStatus.UNMATCHED}
        staged = self.now.staged
        found = [each for each in staged.unused if each.index in open] if staged else []
        named = [
            f"{open[each.index].header[:_HEADER]!r} "
            f"({each.values:,} value{'' if each.values == 1 else 's'})"
            for each in found[:UNUSED]
        ]
        more = " and others" if len(found) > UNUSED else ""
        return f"Columns not used: {', '.join(named)}{more}" if named else None

    @property
    def titles(self) -> Mapping[str, str]:
        """What people call the fields, by name."""
        return field_titles(self.now.fields)

    @property
    def missing_titles(self) -> Sequence[str]:
        """Required fields that no column has, as people call them."""
        return titled(self.missing_fields, self.titles)

    def take(self, analysis: Analysis, version: int) -> None:
        """How the file is read from now on, and what its columns mean."""
        self.set(
            layout=analysis.layout,
            columns=analysis.columns,
            fields=analysis.fields,
            other_sheets=analysis.other_sheets,
            lines_above=analysis.lines_above,
            hidden=analysis.hidden,
            row_keys=analysis.row_keys,
            needs_all_columns=analysis.needs_all_columns,
            version=version,
        )

    @property
    def is_clear(self) -> bool:
        """Whether the file leaves no doubt: which of several sheets or tables is meant is asked,
        and whether what is hidden is meant at all."""
        asks_sheet = self.now.other_sheets and self.order.layout.sheet is None
        hidden = self.now.hidden != HiddenParts()
        is_open = self.missing_fields or self.open_columns
        if self.order.asks_columns:
            is_open = is_open or decisions.open_columns(self.now.columns)
        return not (is_open or asks_sheet or self.now.lines_above or hidden)

    def asks_about_rows(self, staged: Staged, *, is_seen: bool) -> bool:
        """Whether a person has to look at columns again: hidden rows stand further down than the
        file was looked at, or the type asks about rows that are skipped, and no one would see them
        before rows are imported.

        Args:
            staged: The rows.
            is_seen: They were there when the columns were confirmed.
        """
        known = self.now.hidden.rows
        if staged.hidden_rows > known:
            rows = {"rows": staged.hidden_rows, "lines": staged.hidden_lines}
            self.set(hidden=self.now.hidden.model_copy(update=rows))
        asks = self.order.auto_start and staged.hidden_rows > 0 and known == 0
        asks = asks or (staged.asks_about_skipped and not is_seen)
        if asks:
            self.set(columns_confirmed=False)
        return asks

    def mappings(self) -> MappingsAnswer:
        """What an accepted update returns."""
        return MappingsAnswer(
            state=self.now.state,
            version=self.now.version,
            missing_fields=self.missing_fields,
            cells=self.now.cells,
            left_out_columns=decisions.left_out(self.now.columns),
            left_out_sheets=self.now.other_sheets,
            left_out_lines=self.now.lines_above,
            skipped_rows=self.now.staged.skipped_rows if self.now.staged else 0,
            hidden=self.now.hidden,
            hidden_columns=tuple(
                each.header
                for each in self.now.columns
                if each.target and each.id in self.now.hidden.columns
            ),
        )

    def trail(self, kind: str, decision: str, by: str) -> DecisionRecord:
        """One line of the trail of decisions."""
        return DecisionRecord(kind=kind, decision=decision[:200], by=by, at=workflow.now())

    def note_retry(self, step: str, by: str) -> None:
        """Put who had a step retried into the trail, with the next status record."""
        self._retries = (*self._retries, self.trail("retry", step, by))[-_RETRIES:]

    async def record(self, *trail: DecisionRecord) -> None:
        """Bring the status row up to date."""
        self.set(sequence=self.now.sequence + 1)
        await workflow.execute_local_activity_method(
            SpreadsheetLifecycle.record,
            self.status_record(*trail),
            summary=f"record {self.now.state}",
            **policies.SHORT,
        )
        self._retries = ()

    def status_record(self, *trail: DecisionRecord, reason: str | None = None) -> StatusRecord:
        """The status row as it is to be."""
        return StatusRecord(
            uuid=self.order.uuid,
            sequence=self.now.sequence,
            state=self.now.state,
            step=self.step,
            reason=reason or self.parking.reason,
            version=self.now.version,
            assignee=self.now.assignee,
            waiting_since=self.parking.since or self.now.waiting_since,
            cells=self.now.cells,
            at=workflow.now(),
            trail=(*self._retries, *trail),
        )

    async def apply_signal(self, name: str, answer: Awaitable[object]) -> None:
        """Apply the answer of a signal; its sender gets no refusal, so the status shows it."""
        try:
            await answer
        except FailureError as error:
            reraise_cancellation(error)
            self.last_refusal = f"{name}: {explain(error)}"
            workflow.logger.warning("signal %s refused: %s", name, explain(error))
        else:
            self.last_refusal = None

    def status(self) -> SpreadsheetStatus:
        """Where the run stands."""
        return SpreadsheetStatus(
            state=self.now.state,
            step=self.step,
            version=self.now.version,
            assignee=self.now.assignee,
            waiting_since=self.parking.since or self.now.waiting_since,
            reason=self.parking.reason,
            total=self.now.staged.total if self.now.staged else None,
            counts=self.now.counts,
            missing_fields=self.missing_fields,
            cells=self.now.cells,
            last_refusal=self.last_refusal,
            review=self.now.review if self.now.in_review else None,
            check_failure=self.now.check_failure if self.now.in_review else None,
            waiting_for=self.waiting.dependency,
        )

    def column_mappings(self) -> ColumnMappings:
        """Every column, and what it means."""
        return ColumnMappings(
            version=self.now.version, columns=self.now.columns, missing_fields=self.missing_fields
        )
