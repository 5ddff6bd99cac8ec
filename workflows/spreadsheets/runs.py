"""One spreadsheet from upload to rows: orders, steps, results, and what comes after."""

from datetime import datetime
from types import MappingProxyType
from typing import Annotated, Final

from pydantic import Field, StringConstraints

from workflows.shared.contracts import BlobRef, Contract, OperatorAnswer, Person, served
from workflows.shared.dependencies import Dependency
from workflows.spreadsheets.mappings import (
    COLUMNS,
    FIELDS,
    LINES_ABOVE,
    RULES,
    CellDecision,
    CellRule,
    CellSummary,
    ColumnMapping,
    DecisionRecord,
    FieldMetadata,
    FieldName,
    Header,
    HiddenParts,
    Layout,
    LineRanges,
    ReviewCounts,
    SpreadsheetState,
    TypeName,
    UndoState,
)

TASK_QUEUE: Final = "spreadsheets"
"""Where runs are started and workers of this pipeline look for work."""
SHEETS_NAMED: Final = 50
CHECK_REASON: Final = 500
"""Characters of why rows could not be checked."""
DAY: Final = 24 * 3600

Uuid = Annotated[
    str, StringConstraints(max_length=36, pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
]
"""Names one import in URLs; the workflow id is `spreadsheet/{uuid}`."""
Reason = Annotated[str, StringConstraints(max_length=2000)]
CheckReason = Annotated[str, StringConstraints(max_length=CHECK_REASON)]
Step = Annotated[str, StringConstraints(max_length=100)]


ScopeName = Annotated[str, StringConstraints(max_length=40, pattern=r"^[a-z][a-z0-9_]*$")]
ScopeValue = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=100, pattern=r"^[^\x00]*$"),
]


def workflow_id(uuid: str) -> str:
    """Id of the run of an import."""
    return f"spreadsheet/{uuid}"


class Patience(Contract):
    """How long a run waits for people; seconds."""

    remind_after: int = Field(default=3 * DAY, ge=1)
    remind_every: int = Field(default=7 * DAY, ge=1)
    escalate_after: int = Field(default=14 * DAY, ge=1)
    abandon_after: int = Field(default=90 * DAY, ge=1)
    undo_within: int = Field(default=30 * DAY, ge=1)


class SpreadsheetInput(Contract):
    """Input of the workflow, beside the state it continues from."""

    uuid: Uuid
    organisation_id: int = Field(ge=1, le=2**53)
    import_type: TypeName
    context_id: int | None = Field(default=None, ge=1, le=2**53)
    """Event, membership period or race that the rows belong to."""
    type_digest: Annotated[str, StringConstraints(max_length=64)] | None = None
    """The version of a declared type; None: the type is docflow's own."""
    scope: dict[ScopeName, ScopeValue] = Field(default_factory=dict, max_length=8)
    """What all rows of a declared type share."""
    source: BlobRef
    """The file as it was uploaded."""
    filename: str = Field(min_length=1, max_length=255)
    by: Person
    """Who uploaded it."""
    notify: Annotated[str, StringConstraints(max_length=320)] | None = None
    """Mail address of the uploader."""
    auto_start: bool = False
    """Go straight through when nothing needs a person."""
    asks_columns: bool = False
    """A column without a meaning needs a person as well."""
    dry_run: bool = False
    """Validate every row and report what would change; write nothing."""
    review: bool = False
    """Rows are checked and corrected by a person before they are processed."""
    layout: Layout = Layout()
    patience: Patience = Patience()
    fingerprint: Annotated[str, StringConstraints(max_length=64)] | None = None
    """What an Idempotency-Key stands for: sha256 over file and parameters."""
    link: Annotated[str, StringConstraints(max_length=2000)] | None = None
    """Page of this import, for notices."""
    notices: bool = False
    """People are sent notices; an order of a release that had reminders only asks for none."""
    remembers: bool = True
    """What people decide about it is proposed for later files of the organisation."""


class AnalysisInput(Contract):
    """Input of `spreadsheets.analyse`."""

    order: SpreadsheetInput
    layout: Layout
    version: int
    """Version of the mappings that the outcome becomes."""


class Analysis(Contract):
    """What the top of the file holds. The preview and samples are in the database."""

    layout: Layout
    """As found; `header_line` is set."""
    columns: tuple[ColumnMapping, ...] = Field(max_length=COLUMNS)
    fields: tuple[FieldMetadata, ...] = Field(max_length=FIELDS)
    """Fields of the import type, for this organisation; kept in the run."""
    other_sheets: tuple[Header, ...] = Field(default=(), max_length=SHEETS_NAMED)
    """Further sheets that hold something."""
    lines_above: tuple[int, ...] = Field(default=(), max_length=LINES_ABOVE)
    """Lines of another table above the header, which are not read."""
    hidden: HiddenParts = HiddenParts()
    """Rows among those that were looked at."""
    row_keys: tuple[FieldName, ...] = Field(default=(), max_length=8)
    """Fields that make a line a row; (): those of people."""
    needs_all_columns: bool = False
    """A column that is neither mapped nor left out by a person is refused."""
    has_rivals: bool = False
    """A column without a field names one that another column has."""


UNUSED: Final = 10
"""Unused columns that are named."""


class UnusedCells(Contract):
    """A column that means no field, and holds something."""

    index: int = Field(ge=0, lt=16_384)
    values: int


class StageInput(Contract):
    """Input of `spreadsheets.stage`."""

    order: SpreadsheetInput
    layout: Layout
    columns: tuple[ColumnMapping, ...] = Field(default=(), max_length=COLUMNS)
    """What they mean so far: they tell which rows are no people."""


class Staged(Contract):
    """All rows below the header, staged in a form that can be read from any row on."""

    rows: BlobRef
    total: int
    """Rows that hold anything."""
    hidden_rows: int = 0
    """How many of them the program of the file's owner does not show."""
    hidden_lines: LineRanges = ""
    """Their lines."""
    skipped_rows: int = 0
    """Rows that are no people: repeated headers, totals, footers. A person may keep them."""
    width: int = 0
    """Cells that a row of a text table may have: more were cut in the wrong places. 0: any."""
    asks_about_skipped: bool = False
    """A person has to see the rows that are skipped before any is written."""
    unused: tuple[UnusedCells, ...] = Field(default=(), max_length=UNUSED + 1)
    """Of an import that goes straight through: columns that meant nothing when it was read; the
    first of them, and one more if there are others."""


class CollectInput(Contract):
    """Input of `spreadsheets.collect_values`."""

    order: SpreadsheetInput
    staged: Staged
    columns: tuple[ColumnMapping, ...] = Field(max_length=COLUMNS)


class SaveColumns(Contract):
    """Input of `spreadsheets.save_columns`: the mappings as a person left them, and the trail."""

    uuid: Uuid
    organisation_id: int
    import_type: TypeName
    version: int
    columns: tuple[ColumnMapping, ...] = Field(max_length=COLUMNS)
    trail: tuple[DecisionRecord, ...] = Field(default=(), max_length=COLUMNS)
    remember: bool = False
    """The columns are confirmed: what people decided holds for the next file as well."""


class DecideCells(Contract):
    """Input of `spreadsheets.decide_cells`; all of it is taken, or nothing."""

    order: SpreadsheetInput
    version: int
    """Version of the mappings that this becomes: a decision that came twice is taken once."""
    decisions: tuple[CellDecision, ...] = Field(max_length=200)
    rules: tuple[CellRule, ...] = Field(default=(), max_length=RULES)
    by: Person
    at: datetime
    confirm: bool = False
    """The values are confirmed: what people decided holds for the next file as well."""


class RowCounts(Contract):
    """Outcome of the rows so far."""

    created: Annotated[int, served("Rows that are new", 100)] = 0
    updated: Annotated[int, served("Rows that changed what was there", 40)] = 0
    skipped: Annotated[int, served("Rows with nothing to change", 7)] = 0
    error: Annotated[int, served("Rows that did not go in", 1)] = 0

    @property
    def done(self) -> int:
        """Rows with an outcome."""
        return self.created + self.updated + self.skipped + self.error


class ProcessInput(Contract):
    """Input of `spreadsheets.process`."""

    order: SpreadsheetInput
    staged: Staged
    columns: tuple[ColumnMapping, ...] = Field(max_length=COLUMNS)
    round: int = Field(ge=0)
    """0: every row; later: the rows that were parked, now that their values are known."""
    counting: bool = False
    """Values were not collected ahead: their rows are counted on the way."""


class ProcessCursor(Contract):
    """Heartbeat of `spreadsheets.process`: what the progress mark in the database holds too."""

    rows: int
    total: int


class Processed(Contract):
    """What a round did."""

    counts: RowCounts
    """Of all rounds."""
    parked: int = 0
    """Rows that wait for a value."""
    cells: CellSummary = CellSummary()
    hands_over: bool = False
    """Once no row waits, the accepted rows become a file."""
    note: Annotated[str, StringConstraints(max_length=130)] | None = None
    """What became of stored rows that the file lacks."""


class StatusRecord(Contract):
    """Input of `spreadsheets.record`: one transition of the status row.

    A record whose `sequence` is below the stored one changes nothing.
    """

    uuid: Uuid
    sequence: int
    state: SpreadsheetState
    step: Step = ""
    reason: Reason | None = None
    version: int = 0
    assignee: Person | None = None
    waiting_since: datetime | None = None
    """Since when the run waits for a person; None: it does not wait."""
    cells: CellSummary = CellSummary()
    at: datetime
    trail: tuple[DecisionRecord, ...] = Field(default=(), max_length=5)


class Notice(Contract):
    """Something a person should hear of; goes through the notification port."""

    kind: Annotated[str, StringConstraints(max_length=20)]
    """`reminder`, `escalation`, `abandoned` or `parked`."""
    uuid: Uuid
    organisation_id: int
    import_type: TypeName
    filename: str = Field(max_length=255)
    state: SpreadsheetState
    assignee: Person
    notify: Annotated[str, StringConstraints(max_length=320)] | None = None
    waiting_since: datetime
    open: Reason
    """What is awaited, in a sentence."""
    link: Annotated[str, StringConstraints(max_length=2000)] | None = None


class SpreadsheetResult(Contract):
    """Result of the workflow."""

    uuid: Uuid
    state: SpreadsheetState
    counts: RowCounts = RowCounts()
    dry_run: bool = False
    report: BlobRef | None = None
    """The user's rows that did not go in, with comments on the cells that are wrong."""
    reason: Reason | None = None


class Finishing(Contract):
    """Input of `spreadsheets.finish`."""

    result: SpreadsheetResult
    """Its counts are those of the run; the progress mark knows better."""
    record: StatusRecord


class HandOverInput(Contract):
    """Input of `spreadsheets.hand_over`."""

    order: SpreadsheetInput
    counts: RowCounts
    report: BlobRef | None = None


class ReportInput(Contract):
    """Input of `spreadsheets.write_report`."""

    order: SpreadsheetInput
    staged: Staged
    layout: Layout
    columns: tuple[ColumnMapping, ...] = Field(max_length=COLUMNS)


class SpreadsheetProgress(Contract):
    """The state of a run: what it continues from as a new run."""

    state: SpreadsheetState = SpreadsheetState.UPLOADED
    sequence: int = 0
    """Of the newest status record."""
    version: int = 0
    """Counts the accepted changes of the mappings."""
    assignee: Person
    """Who is waited for."""
    notify: Annotated[str, StringConstraints(max_length=320)] | None = None
    layout: Layout = Layout()
    columns: tuple[ColumnMapping, ...] = Field(default=(), max_length=COLUMNS)
    fields: tuple[FieldMetadata, ...] = Field(default=(), max_length=FIELDS)
    other_sheets: tuple[Header, ...] = Field(default=(), max_length=SHEETS_NAMED)
    lines_above: tuple[int, ...] = Field(default=(), max_length=LINES_ABOVE)
    hidden: HiddenParts = HiddenParts()
    row_keys: tuple[FieldName, ...] = Field(default=(), max_length=8)
    needs_all_columns: bool = False
    staged: Staged | None = None
    columns_confirmed: bool = False
    skip_values: bool = False
    """Rows are processed before a person has looked at values."""
    collected: bool = False
    """Values were collected, or are those of parked rows."""
    values_confirmed: bool = False
    cells: CellSummary = CellSummary()
    counts: RowCounts = RowCounts()
    hands_over: bool = False
    """The accepted rows become a file at the end."""
    note: Annotated[str, StringConstraints(max_length=130)] | None = None
    round: int = 0
    waiting_since: datetime | None = None
    touched: datetime | None = None
    """When a person last did anything; reminders count from here."""
    reminders: int = 0
    escalated: bool = False
    in_review: bool = False
    """Rows are being reviewed; the state is CELL_MAPPING."""
    check_failure: CheckReason | None = None
    """Why the last check of all rows in the review has failed; None: it has not."""
    reviewed: bool = False
    review: ReviewCounts = ReviewCounts()


class ColumnMappings(Contract):
    """Result of the `column_mappings` query."""

    version: int
    columns: tuple[ColumnMapping, ...] = Field(default=(), max_length=COLUMNS)
    missing_fields: tuple[FieldName, ...] = Field(default=(), max_length=FIELDS)


class Confirmation(Contract):
    """Input of `confirm_column_mappings`, `confirm_cell_mappings` and `start`."""

    by: Person = "operator"
    expected_version: int | None = Field(default=None, ge=0)
    import_now: bool = False
    """A dry run whose rows are reviewed is imported: rows are written."""
    incomplete: bool = False
    """Columns are confirmed without those of required fields: the review makes them."""


class Answer(OperatorAnswer):
    """Input of `cancel` and `retry`."""


class Reassignment(Contract):
    """Input of `reassign`: the run waits for another person."""

    to: Person = Field(min_length=1)
    notify: Annotated[str, StringConstraints(max_length=320)] | None = None
    by: Person = "operator"


class SpreadsheetStatus(Contract):
    """Result of the `status` query."""

    state: SpreadsheetState
    step: Step
    version: int
    assignee: Person
    waiting_since: datetime | None = None
    reason: Reason | None = None
    """Why it waits beside mappings: a step that could not be done."""
    total: int | None = None
    counts: RowCounts = RowCounts()
    missing_fields: tuple[FieldName, ...] = Field(default=(), max_length=FIELDS)
    cells: CellSummary = CellSummary()
    last_refusal: Reason | None = None
    """Why the last signal was not taken."""
    review: ReviewCounts | None = None
    """While rows are reviewed: their figures."""
    check_failure: CheckReason | None = None
    """While rows are reviewed: why all of them could not be checked at the newest version."""
    waiting_for: Dependency | None = None
    """What docflow itself needs and does not answer; the run continues when it does."""


PROBLEMS_NAMED: Final = 5


def undo_id(uuid: str) -> str:
    """Id of the run that undoes an import."""
    return f"spreadsheet-undo/{uuid}"


MOST_UNDONE: Final = 10_000
"""Rows of a file that one undo names."""


class UndoInput(Contract):
    """Input of the undo workflow and of `spreadsheets.undo`."""

    uuid: Uuid
    organisation_id: int
    by: Person
    filename: str = Field(max_length=255)
    requested_at: datetime
    within: int = Field(default=30 * DAY, ge=1)
    """Seconds after its end in which an import can be undone."""
    notices: bool = False
    """People are sent notices; an order of a release that had none asks for none."""
    retried_by: tuple[Person, ...] = Field(default=(), max_length=20)
    """Who had the step retried, in order."""
    lines: tuple[Annotated[int, Field(ge=1)], ...] = Field(default=(), max_length=MOST_UNDONE)
    """Rows of the file that are taken back; none named: all of them."""


class FailedUndo(Contract):
    """Input of `spreadsheets.park_undo` and `spreadsheets.fail_undo`."""

    uuid: Uuid
    reason: Reason
    by: Person
    """Who asked for the undo."""
    at: datetime


class UndoCounts(Contract):
    """What an undo did."""

    deleted: Annotated[int, served("Rows that are deleted", 100)] = 0
    restored: Annotated[int, served("Rows that get their values back", 40)] = 0
    left_alone: Annotated[
        int, served("Rows that were changed since, or that others refer to", 2)
    ] = 0


class UndoResult(Contract):
    """Result of the undo workflow."""

    uuid: Uuid
    state: UndoState
    counts: UndoCounts = UndoCounts()
    problems: tuple[Reason, ...] = Field(default=(), max_length=PROBLEMS_NAMED)
    """The first few that were left alone; all of them are in the report."""


class RetentionInput(Contract):
    """Input of the retention workflow; seconds and counts."""

    finished_after: int = Field(default=7 * DAY, ge=1)
    """COMPLETED, FAILED, CANCELLED and TERMINATED, from their end."""
    waiting_after: int = Field(default=90 * DAY, ge=1)
    """UPLOADED, COLUMN_MAPPING and CELL_MAPPING, from their last change."""
    undo_after: int = Field(default=30 * DAY, ge=1)
    """Before-images, from the end of the import."""
    page: int = Field(default=100, ge=1, le=200)
    most: int = Field(default=10_000, ge=1)
    """Imports of one run; the next run takes the rest."""


class ExpiredPage(Contract):
    """Imports that are due, the oldest first."""

    uuids: tuple[Uuid, ...] = Field(default=(), max_length=200)
    waiting: tuple[Uuid, ...] = Field(default=(), max_length=200)
    """Those of them whose run still waits for a person."""


class ExpiredInput(Contract):
    """Input of `spreadsheets.expired`."""

    order: RetentionInput
    now: datetime


class PurgeInput(Contract):
    """Input of `spreadsheets.purge`."""

    uuids: tuple[Uuid, ...] = Field(max_length=200)
    now: datetime


class PurgeResult(Contract):
    """Result of `spreadsheets.purge` and of the retention workflow."""

    purged: int = 0
    journals: int = 0
    """Before-images that were removed."""
    uploads: int = 0
    """Files of uploads that never became an import."""
    proposals: int = 0
    """Changes of reviews that were proposed and never applied."""


_S = SpreadsheetState

_STANDS: Final = MappingProxyType(
    {
        _S.UPLOADED: "is being read",
        _S.COLUMN_MAPPING: "is at the mapping of its columns",
        _S.CELL_MAPPING: "is at the mapping of its values",
        _S.PROCESSING: "is being processed",
        _S.COMPLETED: "is complete",
        _S.FAILED: "has failed",
        _S.CANCELLED: "was cancelled",
        _S.TERMINATED: "was terminated",
    }
)


def status_label(state: SpreadsheetState) -> str:
    """What follows "the import": `is complete`, `has failed`."""
    return _STANDS[state]
