"""Scripted activities of the spreadsheets pipeline, for tests of its workflows."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from temporalio.exceptions import ApplicationError

from activities.shared.dependencies import Dependencies
from activities.shared.notifications import NotificationSending
from activities.spreadsheets.analysis import SpreadsheetAnalysis
from activities.spreadsheets.lifecycle import (
    SpreadsheetLifecycle,
    SpreadsheetNotifications,
    SpreadsheetRetentionSteps,
)
from activities.spreadsheets.review import SpreadsheetReview
from activities.spreadsheets.rows import (
    SpreadsheetFiles,
    SpreadsheetReports,
    SpreadsheetRows,
    SpreadsheetUndoSteps,
)
from activities.spreadsheets.staging import SpreadsheetStaging
from activities.spreadsheets.values import SpreadsheetValues
from tests.support.scripted import ScriptedActivities, scripted
from workflows.shared.contracts import BlobRef
from workflows.shared.errors import INVALID_DECISION, TRANSIENT, UNREADABLE_DOCUMENT
from workflows.spreadsheets.mappings import (
    FINAL,
    NEXT,
    CellSummary,
    ColumnMapping,
    FieldMetadata,
    Layout,
    MappingStatus,
    OpenValue,
    ReviewCounts,
    SpreadsheetState,
    UndoState,
)
from workflows.spreadsheets.reviews import ChangeReview, ReviewChanged, ReviewInput
from workflows.spreadsheets.runs import (
    Analysis,
    AnalysisInput,
    DecideCells,
    ExpiredInput,
    ExpiredPage,
    Finishing,
    Processed,
    ProcessInput,
    PurgeInput,
    PurgeResult,
    RowCounts,
    SaveColumns,
    SpreadsheetInput,
    Staged,
    StatusRecord,
    UndoCounts,
    UndoInput,
    UndoResult,
)

CLASSES = (
    SpreadsheetLifecycle,
    SpreadsheetAnalysis,
    SpreadsheetStaging,
    SpreadsheetValues,
    SpreadsheetReview,
    SpreadsheetRows,
    SpreadsheetReports,
    SpreadsheetFiles,
    SpreadsheetNotifications,
    Dependencies,
    NotificationSending,
)
FIELDS = (
    FieldMetadata(name="LAST_NAME", required=True),
    FieldMetadata(name="FIRST_NAME"),
    FieldMetadata(name="EVENT_CATEGORY_NAME", resolver="event_categories", creates=True),
)
MATCHED = (
    ColumnMapping(
        id=1,
        index=0,
        header="Surname",
        target="LAST_NAME",
        status=MappingStatus.AUTO_MATCHED,
        confidence=0.95,
    ),
    ColumnMapping(
        id=2,
        index=1,
        header="Class",
        target="EVENT_CATEGORY_NAME",
        status=MappingStatus.AUTO_MATCHED,
        confidence=0.95,
    ),
)
UNMATCHED = (
    ColumnMapping(id=1, index=0, header="Who"),
    MATCHED[1],
    ColumnMapping(id=3, index=2, header="Shoe size"),
)
COUNTS = RowCounts(created=7, updated=2, skipped=1)


def spreadsheet_order(**fields: Any) -> SpreadsheetInput:
    """An order like one of the gateway."""
    return SpreadsheetInput.model_validate(
        {
            "uuid": str(uuid.uuid4()),
            "organisation_id": 1,
            "import_type": "EVENT_PARTICIPANT",
            "context_id": 5,
            "source": BlobRef(name="spreadsheets/x/y", size=10),
            "filename": "registrations.xlsx",
            "by": "ann",
            **fields,
        }
    )


def transient(message: str = "the database is unavailable") -> ApplicationError:
    """A failure whose retries are used up."""
    return ApplicationError(message, type=TRANSIENT, non_retryable=True)


def damaged(message: str = "the file is damaged") -> ApplicationError:
    """A file that cannot be read."""
    return ApplicationError(message, type=UNREADABLE_DOCUMENT, non_retryable=True)


class ScriptedSpreadsheet(ScriptedActivities):
    """Every activity of an import, with the values that are open.

    Args:
        columns: What the analysis finds.
        values: Values that are found open when they are collected.
        known: Number of values that are found and not open.
        late: Values that each round of rows finds, round by round.
        errors: Rows with outcome ERROR in each round.
        fails: Failures of the next calls, by name.
        held: Activities that do not end before the name is taken away.
        wrong: Rows with a problem when they are reviewed; each change corrects one.
        file: What the accepted rows become; None: their type has a table.
        needs_all_columns: The type refuses columns that mean no field.
        asks_about_skipped: The type asks about rows that are skipped.
    """

    def __init__(
        self,
        columns: Sequence[ColumnMapping] = MATCHED,
        values: Sequence[str] = (),
        known: int = 3,
        late: Iterable[Sequence[str]] = (),
        errors: int = 0,
        fails: Mapping[str, Iterable[BaseException]] | None = None,
        held: Iterable[str] = (),
        wrong: int = 0,
        file: str | None = None,
        *,
        needs_all_columns: bool = False,
        asks_about_skipped: bool = False,
    ) -> None:
        self._needs_all_columns = needs_all_columns
        self._file = file
        self._wrong = wrong
        self._columns = tuple(columns)
        self._values = values
        self._known = known
        self._late = list(late)
        self._errors = errors
        self._open: dict[int, str] = {}
        self.records: list[StatusRecord] = []
        """Transitions that could be recorded."""
        self.decided: list[DecideCells] = []
        """Decisions that were taken."""
        self._rounds = 0
        super().__init__(
            *CLASSES,
            results={
                "record": self.records.append,
                "finish": lambda finishing: finishing.result.counts,
                "analyse": self._analyse,
                "stage": Staged(
                    rows=BlobRef(name="spreadsheets/x/rows", size=5),
                    total=10,
                    asks_about_skipped=asks_about_skipped,
                ),
                "collect_values": lambda work: self._find(self._values),
                "decide_cells": self._decide,
                "open_review": self._check,
                "check_review": self._check,
                "change_review": self._change,
                "process": self._process,
                "hand_over": BlobRef(name=file or "none", size=3),
                "write_report": BlobRef(name="spreadsheets/x/report.xlsx", size=3),
            },
            fails=fails,
            held=held,
        )

    @property
    def saved(self) -> list[SaveColumns]:
        """Column mappings that were to be saved, every attempt."""
        return self.received["save_columns"]

    @property
    def processed(self) -> list[ProcessInput]:
        """Rounds of rows, every attempt."""
        return self.received["process"]

    @property
    def finished(self) -> list[Finishing]:
        """Ends that were to be recorded, every attempt."""
        return self.received["finish"]

    @property
    def layouts(self) -> list[Layout]:
        """Layouts that rows were to be staged with, every attempt."""
        return [work.layout for work in self.received["stage"]]

    @property
    def states(self) -> list[SpreadsheetState]:
        """States in the order they were shown, each once in a row."""
        shown = [SpreadsheetState.UPLOADED]
        for record in [*self.records, *(f.record for f in self.finished)]:
            if record.state is not shown[-1]:
                shown.append(record.state)
        return shown

    def check_legal(self) -> None:
        """Every transition that was shown is one of the contract; sequences only rise."""
        for before, after in zip(self.states, self.states[1:], strict=False):
            assert after in NEXT[before], (before, after)
        numbers = [record.sequence for record in self.records]
        assert numbers == sorted(numbers)
        assert all(record.state not in FINAL for record in self.records)

    def _analyse(self, work: AnalysisInput) -> Analysis:
        layout = work.layout.model_copy(update={"header_line": work.layout.header_line or 1})
        return Analysis(
            layout=layout,
            columns=self._columns,
            fields=FIELDS,
            needs_all_columns=self._needs_all_columns,
        )

    def _find(self, values: Sequence[str]) -> CellSummary:
        for value in values:
            self._open[len(self._open) + 1 + 100 * self._rounds] = value
        return self._summary()

    def _decide(self, decide: DecideCells) -> CellSummary:
        unknown = [d.id for d in decide.decisions if d.target_id == 404]
        if unknown:
            raise ApplicationError(
                f"value {unknown[0]}: there is no candidate 404",
                type=INVALID_DECISION,
                non_retryable=True,
            )
        for decision in decide.decisions:
            self._open.pop(decision.id, None)
        self.decided.append(decide)
        return self._summary()

    def _check(self, work: ReviewInput) -> ReviewCounts:
        return ReviewCounts(rows=10, wrong=self._wrong, checked=work.version)

    def _change(self, work: ChangeReview) -> ReviewChanged:
        if work.operation == 404:
            message = "there is no change 404 in this import"
            raise ApplicationError(message, type=INVALID_DECISION, non_retryable=True)
        if not work.preview:
            self._wrong -= 1
        counts = ReviewCounts(rows=10, wrong=self._wrong, checked=0)
        return ReviewChanged(version=work.version, counts=counts)

    def _process(self, work: ProcessInput) -> Processed:
        self._rounds += 1
        cells = self._find(self._late.pop(0) if self._late else ())
        counts = COUNTS.model_copy(update={"error": self._errors})
        is_file = self._file is not None
        return Processed(counts=counts, parked=len(self._open), cells=cells, hands_over=is_file)

    def _summary(self) -> CellSummary:
        first = tuple(
            OpenValue(id=id, field="EVENT_CATEGORY_NAME", value=value, rows=1)
            for id, value in sorted(self._open.items())
        )
        return CellSummary(total=self._known + len(first), open=len(first), first_open=first[:50])


def scripted_undo(*failures: BaseException) -> ScriptedActivities:
    """The undo of an import, which raises these failures first."""
    return scripted(
        SpreadsheetUndoSteps,
        Dependencies,
        NotificationSending,
        results={"undo": _undone},
        fails={"undo": failures},
    )


def _undone(order: UndoInput) -> UndoResult:
    counts = UndoCounts(deleted=7, restored=2, left_alone=1)
    return UndoResult(uuid=order.uuid, state=UndoState.UNDONE, counts=counts)


class ScriptedRetention(ScriptedActivities):
    """The retention activities, over a list of imports that are due.

    Args:
        due: Imports that can be removed, the oldest first.
        waiting: Those of them whose run is open.
        stuck: Nothing is ever removed.
        held: Activities that do not end before they are cancelled.
    """

    def __init__(
        self,
        due: Iterable[str] = (),
        waiting: Iterable[str] = (),
        stuck: bool = False,
        held: Iterable[str] = (),
    ) -> None:
        self.due = list(due)
        self.purged: list[str] = []
        self._waiting = set(waiting)
        self._stuck = stuck
        super().__init__(
            SpreadsheetRetentionSteps,
            Dependencies,
            NotificationSending,
            results={
                "expired": self._expired,
                "purge": self._purge,
                "purge_leftovers": PurgeResult(journals=2, uploads=1),
            },
            held=held,
        )

    @property
    def nows(self) -> set[datetime]:
        """Moments at which the run looked for imports that are due."""
        return {work.now for work in self.received["expired"]}

    def _expired(self, work: ExpiredInput) -> ExpiredPage:
        page = tuple(self.due[: work.order.page])
        return ExpiredPage(uuids=page, waiting=tuple(u for u in page if u in self._waiting))

    def _purge(self, work: PurgeInput) -> PurgeResult:
        if self._stuck:
            return PurgeResult()
        self.purged += work.uuids
        self.due = [uuid for uuid in self.due if uuid not in work.uuids]
        return PurgeResult(purged=len(work.uuids))
