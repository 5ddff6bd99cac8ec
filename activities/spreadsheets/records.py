"""What the gateway reads; moments are UTC."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Generic, TypeVar

from workflows.shared.contracts import BlobRef, Problem
from workflows.spreadsheets.decisions import record_title
from workflows.spreadsheets.mappings import (
    Alternative,
    CellMapping,
    ColumnMapping,
    Layout,
    MappingStatus,
    Outcome,
    SpreadsheetState,
    UndoState,
)
from workflows.spreadsheets.reviews import Operation
from workflows.spreadsheets.runs import RowCounts, UndoCounts

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some of many."""

    items: Sequence[T]
    total: int
    """How many there are on all pages."""
    has_more: bool = False
    """There are more than `total`: they are counted only so far."""


class ImportSorting(StrEnum):
    """In which order imports are listed."""

    NEWEST = "NEWEST"
    OLDEST = "OLDEST"
    FILENAME = "FILENAME"
    """By the name of the file; of the same name the newest first."""


@dataclass(frozen=True, slots=True)
class ImportFilter:
    """Which imports are listed; None and "": all."""

    state: SpreadsheetState | None = None
    import_type: str | None = None
    context_id: int | None = None
    """Event, membership period or race."""
    by: str | None = None
    """Who uploaded them."""
    text: str = ""
    """Part of the name of the file, whatever its case."""
    sorting: ImportSorting = ImportSorting.NEWEST


@dataclass(frozen=True, slots=True)
class LearntColumn:
    """What people decided about a header."""

    organisation_id: int
    import_type: str
    header: str
    """As written."""
    target: str | None
    """The field; None: the column is left out."""
    decided_by: str
    """"" where an older release did not note it."""
    decided_at: datetime


@dataclass(frozen=True, slots=True)
class LearntEdit:
    """A change of whole columns in a review that is suggested for the next file."""

    organisation_id: int
    import_type: str
    about: str
    """Key of it."""
    headers: Mapping[int, str]
    """Of the columns that it is about, by the ids in the operation."""
    operation: Operation
    decided_by: str
    decided_at: datetime
    file_headers: Sequence[str] = ()
    """Of the files that it is suggested for, where it is about no column of them."""


@dataclass(frozen=True, slots=True)
class LearntValue:
    """What people decided about a value."""

    organisation_id: int
    import_type: str
    field: str
    value: str
    """As written."""
    target_id: int | None
    target_name: str | None
    """Of the row; without id and name the value is left empty."""
    decided_by: str
    decided_at: datetime


@dataclass(frozen=True, slots=True)
class SpreadsheetRow:
    """The status row of one import."""

    uuid: str
    workflow_id: str
    organisation_id: int
    import_type: str
    context_id: int | None
    filename: str
    """Blank once the import was purged, like `by` and `assignee`."""
    by: str
    auto_start: bool
    dry_run: bool
    fingerprint: str | None
    state: SpreadsheetState
    state_since: datetime
    step: str
    reason: str | None
    """Why it waits beside mappings, or why it failed."""
    assignee: str
    waiting_since: datetime | None
    """Since when a person is waited for; None: none is."""
    version: int
    """Of the mappings: the value of an ETag."""
    revision: int
    """Rises with every change of the row: id of an event."""
    total: int | None
    """Rows of the file, as far as they are counted."""
    counts: RowCounts
    parked: int
    """Rows that wait for a value."""
    values_total: int
    values_open: int
    layout: Layout
    report: BlobRef | None
    undo_state: UndoState | None
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None
    purged_at: datetime | None
    round: int = 0
    """0: every row is processed for the first time; later: rows that had waited."""


@dataclass(frozen=True, slots=True)
class ColumnView:
    """One column, what it means, and up to five of its values."""

    id: int
    index: int
    """Place in the file's rows, from 0."""
    header: str
    target: str | None
    status: MappingStatus
    confidence: float
    alternatives: tuple[Alternative, ...]
    samples: Sequence[str]
    why: str = ""
    """Why it matched by itself, or was left out, where its header does not show it."""
    blanks: Sequence[str] = ()
    """Texts among its values that count as blank."""


@dataclass(frozen=True, slots=True)
class ColumnsView:
    """The columns by place, and the version of the mappings."""

    version: int
    columns: Sequence[ColumnView]

    @property
    def are_empty(self) -> bool:
        """There are headers, and nothing below them."""
        return bool(self.columns) and not any(each.samples or each.blanks for each in self.columns)

    @property
    def mappings(self) -> Sequence[ColumnMapping]:
        """What each column means, without what else it could."""
        return [
            ColumnMapping(
                id=each.id,
                index=each.index,
                header=each.header,
                target=each.target,
                status=each.status,
                confidence=each.confidence,
            )
            for each in self.columns
        ]


@dataclass(frozen=True, slots=True)
class CellsView:
    """Some distinct values, and the version of the mappings."""

    version: int
    items: Sequence[CellMapping]
    total: int
    """How many there are on all pages."""


@dataclass(frozen=True, slots=True)
class QuestionGroup:
    """Open questions of one kind."""

    question: str
    reason: str
    count: int
    first_id: int
    """Of the first value that is asked about."""


@dataclass(frozen=True, slots=True)
class ResultRow:
    """Outcome of one row."""

    line: int
    """As the user's program shows it, from 1."""
    outcome: Outcome
    message: str | None
    problems: Sequence[Problem] = ()
    """What is wrong with its cells."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What an import has changed in a row that was there; a dry run: would change."""

    line: int
    table: str
    column: str
    before: str | None
    after: str | None
    record: str = ""
    """What the row is to people, as `Person`."""
    title: str = ""
    """What people call the column."""


@dataclass(frozen=True, slots=True)
class SummaryView:
    """Outcome of the rows in figures."""

    counts: RowCounts
    parked: int
    differences: Sequence[Difference]
    """The first hundred."""


@dataclass(frozen=True, slots=True)
class UndoView:
    """How far an undo has come."""

    state: UndoState
    counts: UndoCounts
    by: str | None
    requested_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class UndoConflict:
    """A row that an undo left alone."""

    line: int
    """Of the file that had written it."""
    table: str
    row_id: int
    reason: str
    """Follows the row: `was changed since`."""

    @property
    def record(self) -> str:
        """What the row is to people, as `Person`."""
        return record_title(self.table)
