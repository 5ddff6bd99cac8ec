"""What the store, the service, the API and the pages know of imports; moments are UTC."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Final, Generic, Self, TypeVar

from pydantic import Field, PlainSerializer, SerializationInfo, computed_field

from adapters.database.models.spreadsheets import TARGETS
from workflows.shared.contracts import BlobRef, PlainRecord, not_served, served
from workflows.spreadsheets.decisions import record_title
from workflows.spreadsheets.mappings import (
    Alternative,
    CellMapping,
    ColumnMapping,
    DecisionRecord,
    Layout,
    MappingsAnswer,
    MappingStatus,
    OpenValue,
    Outcome,
    SpreadsheetState,
    UndoState,
)
from workflows.spreadsheets.reviews import Operation, described
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


UNRESOLVED: Final = "UNRESOLVED"
"""What the API calls UNMATCHED."""


def mapping_status(name: str | None) -> MappingStatus | None:
    """The mapping status of a name in the API."""
    if name is None:
        return None
    return MappingStatus.UNMATCHED if name == UNRESOLVED else MappingStatus(name)


def _status_name(status: MappingStatus, info: SerializationInfo) -> str:
    is_unresolved = info.by_alias and status is MappingStatus.UNMATCHED
    return UNRESOLVED if is_unresolved else status.value


_Status = Annotated[
    MappingStatus,
    PlainSerializer(_status_name, return_type=str, when_used="json"),
    served("How far it is understood", "AUTO_MATCHED"),
]


_Alternatives = Annotated[
    tuple[Alternative, ...],
    served("What it may mean as well, the likeliest first; at most 3", []),
]


class CellView(CellMapping):
    """One distinct value of one field, and what it means."""

    status: _Status
    alternatives: _Alternatives = ()  # pyright: ignore[reportIncompatibleVariableOverride]


class DecisionView(DecisionRecord):
    """Who decided what, and what else there was to choose from."""

    alternatives: _Alternatives = ()  # pyright: ignore[reportIncompatibleVariableOverride]


class LearntColumn(PlainRecord):
    """What people decided about a header."""

    organisation_id: Annotated[int, served("Organisation that remembers it", 1)]
    import_type: Annotated[str, served("What the rows are", "EVENT_PARTICIPANT")]
    header: Annotated[str, served("The header, as it stands in files", "Alterskl.")]
    target: Annotated[str | None, served("The field; null: the column is ignored", "CLUB")]
    decided_by: Annotated[
        str | None,
        served("Who decided it last; null: an older release did not note it", "anna@example.org"),
    ]
    decided_at: Annotated[datetime, served("When it was decided last", "2026-01-03T10:02:00Z")]


class LearntEdit(PlainRecord):
    """A change of whole columns that reviews suggest; `key` names it when it is to be forgotten."""

    organisation_id: Annotated[int, served("Organisation that remembers it", 1)]
    import_type: Annotated[str, served("What the rows are", "EVENT_PARTICIPANT")]
    about: Annotated[str, served("Names it when it is to be forgotten", "6b86b273" * 8, "key")]
    headers: Annotated[
        Mapping[int, str],
        PlainSerializer(lambda headers: list(headers.values()), return_type=list[str]),
        served("Headers of the columns that it is about", ["Date of birth"]),
    ]
    """By the ids in the operation."""
    operation: Annotated[
        Operation, served("The change, as it can be requested", {"kind": "EXCLUDE", "rows": [4]})
    ]
    decided_by: Annotated[str, served("Who confirmed it in a review", "anna@example.org")]
    decided_at: Annotated[datetime, served("When", "2026-01-03T10:00:01Z")]
    file_headers: Annotated[
        Sequence[str],
        served("All headers of its files, in short, if it is about no column", ["first name"]),
    ] = ()

    @computed_field(description="What it is about, in words", examples=["Date of birth"])
    @property
    def subject(self) -> str:
        """What it is about, in words."""
        return described(self.operation, self.headers)[0]

    @computed_field(description="What it does, in words", examples=["read as day first"])
    @property
    def decision(self) -> str:
        """What it does, in words."""
        return described(self.operation, self.headers)[1]


class LearntValue(PlainRecord):
    """What people decided about a value; without a row it is left empty."""

    organisation_id: Annotated[int, served("Organisation that remembers it", 1)]
    import_type: Annotated[str, served("What the rows are", "EVENT_PARTICIPANT")]
    field: Annotated[str, served("Its field", "EVENT_CATEGORY_NAME")]
    value: Annotated[str, served("The value, as it stands in files", "Oldies")]
    target_id: Annotated[int | None, served("Row that is meant; null: none", 43)]
    target_name: Annotated[
        str | None, served("Name of the row that is meant; null: none", "Masters (40+)")
    ]
    decided_by: Annotated[
        str | None,
        served("Who decided it last; null: an older release did not note it", "anna@example.org"),
    ]
    decided_at: Annotated[datetime, served("When it was decided last", "2026-01-03T10:02:00Z")]


class ColumnView(PlainRecord):
    """One column, and what it means."""

    id: Annotated[int, served("Number of it, as answers and requests name it", 4)]
    index: Annotated[int, served("Place in the rows of the file, from 0", 3)]
    header: Annotated[str, served("The header, as it stands in the file", "Alterskl.")]
    target: Annotated[
        str | None,
        served("Field of the import type; null: none", "EVENT_CATEGORY_NAME"),
    ]
    status: _Status
    confidence: Annotated[float, served("How sure the match is, from 0 to 1", 0.95)]
    alternatives: _Alternatives
    samples: Annotated[
        Sequence[str],
        served("The first values of the column that differ; at most 5", ["Meier", "Novak"]),
    ]
    why: Annotated[
        str,
        served("Why, if the header does not show it; else empty", "left out before"),
    ] = ""
    blanks: Annotated[
        Sequence[str],
        served("Texts of the column that count as blank; at most 5", ["n/a", "-"]),
    ] = ()


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
    items: Sequence[CellView]
    total: int
    """How many there are on all pages."""


@dataclass(frozen=True, slots=True)
class Pace:
    """What the counts and times of an import say about its speed.

    Attributes:
        rows_per_second: Rows read or processed, since the step began.
        seconds_left: Until the last row is processed; None: it is not known how many come.
    """

    rows_per_second: float
    seconds_left: int | None = None


_LEAST: Final = timedelta(seconds=3)
"""Work that has just begun says nothing about its speed."""


class SpreadsheetRow(PlainRecord):
    """The status of an import."""

    uuid: Annotated[str, served("UUID of the import", "0d2f8a52-6c1e-4d4e-9d8f-5b1a7f0c2b11")]
    workflow_id: Annotated[
        str,
        served(
            "Its run: /api/v1/runs/{id}", "spreadsheet/0d2f8a52-6c1e-4d4e-9d8f-5b1a7f0c2b11", "id"
        ),
    ]
    organisation_id: Annotated[int, served("Organisation that it belongs to", 1)]
    import_type: Annotated[str, served("What the rows are", "EVENT_PARTICIPANT")]
    context_id: Annotated[int | None, served("Event, membership period or race; null: none", 7)]
    type_digest: Annotated[
        str | None, served("Version of its declared type; null: the type is docflow's own", None)
    ] = None
    scope: Annotated[
        Mapping[str, str],
        served("What all rows of a declared type share", {"project_id": "P1"}),
    ] = Field(default_factory=dict[str, str])
    filename: Annotated[str, served("Name of the uploaded file", "registrations.xlsx")]
    """Blank once the import was purged, like `by` and `assignee`."""
    by: Annotated[str, served("Who uploaded it", "anna@example.org")]
    auto_start: Annotated[bool, served("It stops only if a person is needed", False)]
    dry_run: Annotated[bool, served("Rows are checked and nothing is written", False)]
    fingerprint: Annotated[str | None, not_served()]
    state: Annotated[SpreadsheetState, served("Where it stands", "COLUMN_MAPPING")]
    state_since: Annotated[datetime, served("Since when it has this state", "2026-01-03T10:00:01Z")]
    step: Annotated[str, served("What is being done now; empty: nothing", "process rows")]
    reason: Annotated[
        str | None,
        served("Why it waits, if not for mappings, or why it failed", "the database is down"),
    ]
    assignee: Annotated[
        str, served("Who is waited for; empty once it was removed", "anna@example.org")
    ]
    waiting_since: Annotated[
        datetime | None,
        served("Since when it waits for a person; null: it does not", "2026-01-03T10:00:01Z"),
    ]
    version: Annotated[int, served("Of the mappings: the value of the ETag", 3)]
    revision: Annotated[int, served("Rises with every change: id of an event", 12)]
    total: Annotated[int | None, served("Rows of the file; null until they are counted", 150)]
    counts: Annotated[RowCounts, served("Outcome of the rows so far", {"created": 100})]
    parked: Annotated[int, served("Rows that wait for the meaning of a value", 2)]
    values_total: Annotated[int, served("Values that have to have a meaning", 4)]
    open_values: Annotated[int, served("Values without a meaning so far", 1)]
    layout: Annotated[Layout, not_served()]
    report: Annotated[BlobRef | None, not_served()]
    undo_state: Annotated[
        UndoState | None,
        served("How far an undo has come; null: none was asked for", None),
    ]
    created_at: Annotated[datetime, served("When it was uploaded", "2026-01-03T10:00:00Z")]
    updated_at: Annotated[datetime, served("When this changed last", "2026-01-03T10:00:01Z")]
    finished_at: Annotated[
        datetime | None, served("When it ended; null: it has not", "2026-01-03T10:05:00Z")
    ]
    purged_at: Annotated[
        datetime | None,
        served("When rows and mappings were removed; null: they were not", None),
    ]
    mark_round: Annotated[int, not_served()] = 0
    """0: every row is processed for the first time; later: rows that had waited."""
    context_name: Annotated[
        str | None, served("Name of the event, period or race; in lists alone", "City Marathon")
    ] = None
    type_changed: Annotated[
        bool,
        served(
            "Another version of its declared type is in force by now, and the import keeps its "
            "own; not in lists",
            False,
        ),
    ] = False

    @computed_field(description="Rows with an outcome", examples=[148])
    @property
    def processed_rows(self) -> int:
        """Rows with an outcome."""
        return self.counts.done

    @computed_field(description="Rows created, updated or skipped", examples=[147])
    @property
    def success_count(self) -> int:
        """Rows created, updated or skipped."""
        return self.counts.done - self.counts.error

    @computed_field(description="Rows that did not go in", examples=[1])
    @property
    def error_count(self) -> int:
        """Rows that did not go in."""
        return self.counts.error

    @computed_field(description="How much is processed, from 0 to 100", examples=[98])
    @property
    def progress_percent(self) -> int:
        """How much is processed, from 0 to 100."""
        if self.state is SpreadsheetState.COMPLETED:
            return 100
        return min(99, 100 * self.counts.done // self.total) if self.total else 0

    @computed_field(description="There is a report of the rows that did not go in", examples=[True])
    @property
    def has_report(self) -> bool:
        """There is a report of the rows that did not go in."""
        return self.report is not None

    @computed_field(
        description="Rows read or processed, about; null: it does not work on rows",
        examples=[812.5],
    )
    @property
    def rows_per_second(self) -> float | None:
        """Rows read or processed, about; None: it does not work on rows."""
        pace = self.pace(datetime.now(UTC))
        return pace and round(pace.rows_per_second, 1)

    @computed_field(
        description="Until the last row is processed, about; null: not known", examples=[40]
    )
    @property
    def seconds_left(self) -> int | None:
        """Until the last row is processed, about; None: not known."""
        pace = self.pace(datetime.now(UTC))
        return pace and pace.seconds_left

    def pace(self, now: datetime) -> Pace | None:
        """How fast it works; None: it does not, or nothing can be said.

        While rows are read it is not known how many there are. Of rows that had waited for a value
        the moment at which they were taken up is not known row by row, so nothing is said of them.
        """
        working = now - self.state_since
        if self.waiting_since is not None or working < _LEAST:
            return None
        if self.state is SpreadsheetState.COLUMN_MAPPING and self.total:
            return Pace(self.total / working.total_seconds())
        if self.state is not SpreadsheetState.PROCESSING or self.mark_round or not self.total:
            return None
        done = self.counts.done + self.parked
        if not done or done >= self.total:
            return None
        rate = done / working.total_seconds()
        return Pace(rate, round((self.total - done) / rate))


class AnswerView(PlainRecord):
    """What has become of an answer."""

    uuid: Annotated[str, served("UUID of the import", "0d2f8a52-6c1e-4d4e-9d8f-5b1a7f0c2b11")]
    state: Annotated[SpreadsheetState, served("Where it stands", "COLUMN_MAPPING")]
    version: Annotated[int, served("Of the mappings: the value of the ETag", 3)]
    missing_fields: Annotated[
        Sequence[str], served("Required fields without a column", ["LAST_NAME"])
    ]
    open_values: Annotated[int, served("Values without a meaning so far", 1)]
    first_open_values: Annotated[
        Sequence[OpenValue], served("The first values without a meaning; at most 50", [])
    ]
    left_out_columns: Annotated[
        Sequence[str], served("Headers of columns that fill no field", ["Shirt size"])
    ]
    left_out_sheets: Annotated[
        Sequence[str],
        served("Further sheets that hold something and are not read", ["Waiting list"]),
    ]
    left_out_lines: Annotated[
        Sequence[int],
        served("Lines of another table above the header, which are not read", [2, 3]),
    ]
    skipped_rows: Annotated[int, served("Rows that are no people, as far as the file was read", 2)]
    hidden_rows: Annotated[
        int, served("Rows that are read although they are hidden in the file, as far as known", 12)
    ]
    hidden_lines: Annotated[str, served("Their lines, the first ones named", "5-9, 14")]
    hidden_columns: Annotated[
        Sequence[str], served("Headers of hidden columns that fill a field", ["Date of birth"])
    ]
    hidden_sheet: Annotated[bool, served("The sheet that is read is hidden in the file", False)]

    @classmethod
    def of(cls, uuid: str, answer: MappingsAnswer) -> Self:
        """What has become of an answer to an import."""
        return cls(
            uuid=uuid,
            state=answer.state,
            open_values=answer.cells.open,
            first_open_values=answer.cells.first_open,
            hidden_rows=answer.hidden.rows,
            hidden_lines=answer.hidden.lines,
            hidden_sheet=answer.hidden.sheet,
            **answer.model_dump(exclude={"state", "cells", "hidden"}),
        )


class QuestionGroup(PlainRecord):
    """Open questions about people, of one kind."""

    question: Annotated[str, served("Kind of the question", "BIRTHDATE")]
    reason: Annotated[str, served("Why it is asked, in words", "the birthdate differs")]
    count: Annotated[int, served("How many there are", 12)]
    first_id: Annotated[int, served("Of one of the values: `for_all` with it answers all", 4)]


class CellProblem(PlainRecord):
    """What is wrong with a row, or with one of its cells."""

    column: Annotated[str | None, served("Header, or name, of the column", "Email")]
    value: Annotated[
        str | None, served("What stands in the cell; null: nothing", "anna(at)example.org")
    ]
    reason: Annotated[str, served("What is wrong, in words", "is not a mail address")]


class ResultCell(PlainRecord):
    """A cell that is not blank, of a column that fills a field."""

    column: Annotated[str, served("Header, as it stands in the file", "Vorname")]
    field: Annotated[str, served("Field that the column fills", "FIRST_NAME")]
    title: Annotated[str, not_served()]
    """What people call the field."""
    value: Annotated[str, served("What stands in the cell", "Anna")]


class RowCorrection(PlainRecord):
    """A cell that was corrected in the review."""

    column: Annotated[str, served("Header of the column", "Date of birth")]
    before: Annotated[str | None, served("What the cell held; null: nothing", "3/4/2026")]
    after: Annotated[str | None, served("What it holds since; null: nothing", "2026-04-03")]
    by: Annotated[str, served("Who corrected it", "ben@example.org")]
    at: Annotated[datetime, served("When", "2026-01-03T10:02:00Z")]


class ResultRow(PlainRecord):
    """Outcome of a row."""

    line: Annotated[int, served("Line of the row, as a spreadsheet shows it, from 1", 17)]
    outcome: Annotated[Outcome, served("What became of the row", "ERROR")]
    message: Annotated[
        str | None, served("Why, in words; null: there is nothing to say", "Email is missing")
    ]
    problems: Annotated[
        Sequence[CellProblem], served("What is wrong with the row, cell by cell", [])
    ] = ()
    name: Annotated[
        str | None,
        served("Whom the row is about, or its first cell; null: it is no longer kept", "Anna M."),
    ] = None
    cells: Annotated[
        Sequence[ResultCell],
        served("Its cells that are not blank, in columns that fill a field", []),
    ] = ()
    corrections: Annotated[
        Sequence[RowCorrection], served("Cells of the row that were corrected in the review", [])
    ] = ()

    @computed_field(description="Number of it: its line", examples=[17])
    @property
    def id(self) -> int:
        """Number of it: its line."""
        return self.line


class Difference(PlainRecord):
    """What the import has changed in a row that was there; a dry run: would change."""

    line: Annotated[int, served("Line of the row, as a spreadsheet shows it, from 1", 17)]
    table: Annotated[str, served("Table of the row", "events")]
    column: Annotated[str, served("Its column", "first_name")]
    before: Annotated[str | None, served("Value that is there; null: none", "Anna")]
    after: Annotated[str | None, served("Value that it gets; null: none", "Anne")]
    record: Annotated[str, served("What the row is, as people call it", "Event participant")] = ""
    title: Annotated[str, served("As people call the column", "First name")] = ""


class SummaryView(RowCounts):
    """Rows per outcome."""

    parked: Annotated[int, served("Rows that wait for the meaning of a value", 2)]
    differences: Annotated[
        Sequence[Difference],
        served("What a dry run would change in rows that are there; the first 100", []),
    ] = ()

    @computed_field(description="All of them", examples=[150])
    @property
    def total(self) -> int:
        """All of them."""
        return self.done + self.parked


class UndoConflict(PlainRecord):
    """A row that an undo left alone."""

    line: Annotated[int, served("Line of the file that had written it", 17)]
    table: Annotated[str, served("Table of the row", "events")]
    row_id: Annotated[str, not_served()]
    reason: Annotated[str, served("Why; follows the row", "was changed since")]

    @computed_field(
        description="What the row is, as people call it", examples=["Event participant"]
    )
    @property
    def record(self) -> str:
        """What the row is to people, as `Person`."""
        return record_title(self.table)

    @computed_field(
        description="Natural key of the row; null: docflow knows it by a number alone",
        examples=[None],
    )
    @property
    def key(self) -> str | None:
        """Natural key of the row; None: docflow knows it by a number alone."""
        return None if self.table in TARGETS else self.row_id


class UndoPreview(UndoCounts):
    """What an undo would do now."""

    conflicts: Annotated[
        Sequence[UndoConflict], served("The first of the rows that are left alone", [])
    ] = ()


class UndoView(UndoPreview):
    """How far an undo has come."""

    state: Annotated[UndoState, served("How far it has come", "RUNNING")]
    reason: Annotated[
        str | None,
        served("If it is RUNNING: why it waits for a retry; if it has FAILED: why", None),
    ] = None
    by: Annotated[str | None, served("Who asked for it", "anna@example.org")]
    requested_at: Annotated[
        datetime | None, served("When it was asked for", "2026-01-05T09:00:00Z")
    ]
    finished_at: Annotated[
        datetime | None, served("When it ended; null: it has not", "2026-01-05T09:01:00Z")
    ]


class AvailableContext(PlainRecord):
    """An event, a membership period, a race or a custom list."""

    table: Annotated[
        str, served("`events`, `membership_periods`, `races` or `custom_lists`", "events")
    ]
    id: Annotated[int, served("Value of `context_id`", 7)]
    name: Annotated[str, served("As people see it", "City Marathon")]
    organisation_id: Annotated[int, served("Organisation that it belongs to", 1)]


class FieldView(PlainRecord):
    """A field of an import type, which a column may fill."""

    name: Annotated[str, served("Its name", "EVENT_CATEGORY_NAME")]
    title: Annotated[str, served("As people call it", "Category")]
    required: Annotated[bool, served("It has to be given", True)]
    resolver: Annotated[
        str | None, served("Rows that its cells refer to; null: none", "countries")
    ] = None
    creates: Annotated[bool, served("A missing row may be made", True)] = False
    aliases: Annotated[
        Sequence[str], served("Other headers that mean it", ["Vorname", "given name"])
    ] = ()
    examples: Annotated[Sequence[str], served("Cells that are right", ["Anna", "Jean-Luc"])] = ()
    either: Annotated[str | None, not_served()] = None
    """A file with a column for this other field can do without."""


class ContextView(PlainRecord):
    """What the rows of a type belong to."""

    table: Annotated[str, served("Its table", "events")]
    title: Annotated[str, served("As people call it", "Event")]
    required: Annotated[bool, served("It has to be given", True)]


class ImportTypeView(PlainRecord):
    """What can be imported."""

    name: Annotated[str, served("Its name", "EVENT_PARTICIPANT")]
    title: Annotated[str, served("As people call it", "Event participants")]
    context: Annotated[
        ContextView | None,
        served("What the rows belong to; null: the organisation alone", None),
    ]
    scope: Annotated[
        Sequence[str], served("What an upload gives for all rows, as `scope.NAME`", [])
    ] = ()
    fields: Annotated[Sequence[FieldView], served("Its fields", [])]


class SkippedRowView(PlainRecord):
    """A row that is no person, or may be none."""

    line: Annotated[int, served("Line of the row, as a spreadsheet shows it, from 1", 17)]
    cells: Annotated[Sequence[str], served("Its cells, as a person sees them", ["Total", "12"])]
    reason: Annotated[str, served("Why, in words", "is a total")]
    is_skipped: Annotated[bool, served("The row is not imported", True)]
