"""The JSON of the API: camelCase names, and UNRESOLVED for UNMATCHED of the contracts."""

from datetime import datetime
from typing import Any, Final

from pydantic import Field

from contracts.spreadsheets import (
    MappingsAnswer,
    MappingStatus,
    Outcome,
    SpreadsheetState,
    UndoState,
)
from workers.gateway.spreadsheets.descriptions import DESCRIBED
from workers.gateway.spreadsheets.review_schemas import CorrectionView
from workers.services.bodies import Body
from workers.services.spreadsheets.upload_form import LayoutBody

UNRESOLVED: Final = "UNRESOLVED"


class View(Body):
    """What is answered; its properties are described in `descriptions`."""

    model_config = DESCRIBED


class AlternativeView(View):
    """What a column or a value might mean as well."""

    name: str
    score: float
    id: int | None = None
    reason: str = ""


class ColumnMappingView(View):
    """One column, and what it means."""

    id: int
    column_index: int
    source_header: str
    target_field: str | None
    status: str
    confidence_score: float
    reason: str
    alternatives: list[AlternativeView]
    samples: list[str]
    blanks: list[str]


class CellMappingView(View):
    """One distinct value, and what it means."""

    id: int
    target_field: str
    source_value: str
    status: str
    target_entity_id: int | None
    target_name: str | None
    create: bool
    confidence_score: float
    alternatives: list[AlternativeView]
    row_count: int
    question: str | None = None
    """Kind of a question about a person; `forAll` answers every open one of a kind."""
    reason: str | None = None
    """Why a person is asked about."""


class QuestionView(View):
    """Open questions about people, of one kind."""

    question: str
    reason: str
    count: int
    first_id: int
    """Of one of the values: `forAll` with it answers all."""


class ImportView(View):
    """The status of an import."""

    identifier: str
    import_type: str
    status: SpreadsheetState
    original_filename: str
    organisation_id: int
    context_id: int | None
    total_rows: int | None
    """None until the rows are counted."""
    processed_rows: int
    success_count: int
    error_count: int
    parked_rows: int
    """Rows that wait for the meaning of a value."""
    open_values: int
    progress_percent: int
    step: str
    reason: str | None
    created_by: str
    assignee: str | None
    waiting_since: datetime | None
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None
    purged_at: datetime | None
    auto_start: bool
    dry_run: bool
    has_report: bool
    rows_per_second: float | None
    seconds_left: int | None
    undo_status: UndoState | None
    version: int
    context_name: str | None = None
    column_mappings: list[ColumnMappingView] | None = None
    cell_mappings: list[CellMappingView] | None = None


class OpenValueView(View):
    """A value without a decision so far."""

    id: int
    target_field: str
    source_value: str
    row_count: int


class AnswerView(View):
    """What has become of an answer."""

    identifier: str
    status: SpreadsheetState
    version: int
    missing_fields: list[str]
    open_values: int
    first_open_values: list[OpenValueView]
    left_out_columns: list[str]
    """Headers of columns that fill no field."""
    left_out_sheets: list[str]
    """Further sheets that hold something and are not read."""
    left_out_lines: list[int]
    """Lines of another table above the header, which are not read."""
    skipped_rows: int
    hidden_rows: int
    """Rows that are read although they are hidden in the file."""
    hidden_lines: str
    hidden_columns: list[str]
    hidden_sheet: bool


class SkippedRowView(View):
    """A row that is no person, or may be none."""

    row_number: int
    cells: list[str]
    reason: str
    left_out: bool


class PreviewRowView(View):
    """A row as a person sees it."""

    row_number: int
    cells: list[str]


class PreviewView(View):
    """The top of the file."""

    format: str
    sheets: list[str]
    layout: LayoutBody
    rows: list[PreviewRowView]


class CandidateView(View):
    """Something a value may mean."""

    id: int
    display_name: str


class ProblemView(View):
    """What is wrong with a row, or with one of its cells."""

    column: str | None
    value: str | None
    reason: str


class ResultCellView(View):
    """A cell of a column that fills a field."""

    column: str
    target_field: str
    value: str


class ResultView(View):
    """Outcome of a row."""

    id: int
    row_number: int
    name: str | None = Field(
        description="Whom the row is about, or else its first cell; null: it is no longer kept",
        examples=["Anna Meier"],
    )
    outcome: Outcome
    message: str | None
    problems: list[ProblemView]
    cells: list[ResultCellView] = Field(
        description="Its cells that are not blank, in columns that fill a field",
        examples=[[{"column": "Vorname", "targetField": "FIRST_NAME", "value": "Anna"}]],
    )
    corrections: list[CorrectionView]


class DifferenceView(View):
    """What the import has changed in a row that was there; a dry run: would change."""

    row_number: int
    table: str
    column: str
    record: str
    title: str
    before: str | None
    after: str | None


class SummaryView(View):
    """Rows per outcome."""

    total: int
    created: int
    updated: int
    skipped: int
    error: int
    parked: int
    differences: list[DifferenceView]


class DecisionView(View):
    """Who decided what, and what else there was to choose from."""

    kind: str
    subject: str
    decision: str
    by: str
    at: datetime
    confidence: float | None
    alternatives: list[AlternativeView]


class UndoConflictView(View):
    """A record that an undo left alone."""

    row_number: int
    table: str
    record: str
    reason: str


class UndoView(View):
    """How far an undo has come."""

    status: UndoState
    deleted: int
    restored: int
    left_alone: int
    requested_at: datetime | None
    finished_at: datetime | None
    conflicts: list[UndoConflictView]
    """The first of those that were left alone."""


class UndoPreviewView(View):
    """What an undo would do now."""

    deleted: int
    restored: int
    left_alone: int
    conflicts: list[UndoConflictView]
    """The first of the rows that would be left alone."""


class ContextView(View):
    """What the rows of a type belong to."""

    table: str
    title: str
    required: bool


class AvailableContextView(View):
    """An event, a membership period or a race."""

    id: int
    table: str
    name: str
    organisation_id: int


class LearntColumnView(View):
    """What a header means since people decided it."""

    organisation_id: int
    import_type: str
    header: str
    target_field: str | None
    """None: the column is left out."""
    decided_by: str | None
    decided_at: datetime


class LearntValueView(View):
    """What a value means since people decided it."""

    organisation_id: int
    import_type: str
    target_field: str
    source_value: str
    target_entity_id: int | None
    target_name: str | None
    """None, as the id: the value is left empty."""
    decided_by: str | None
    decided_at: datetime


class FieldDescription(View):
    """A field of an import type."""

    name: str
    title: str
    required: bool
    aliases: list[str]
    examples: list[str]
    resolver: str | None
    creates: bool


class ImportTypeView(View):
    """What can be imported."""

    name: str
    title: str
    context: ContextView | None
    fields: list[FieldDescription]


def wire_status(status: MappingStatus) -> str:
    """The name of a mapping status on the wire."""
    return UNRESOLVED if status is MappingStatus.UNMATCHED else status.value


def mapping_status(name: str | None) -> MappingStatus | None:
    """The mapping status of a name on the wire."""
    return None if name is None else MappingStatus(_STATUSES[name])


_STATUSES: dict[str, str] = {wire_status(status): status.value for status in MappingStatus}


def answer_fields(answer: MappingsAnswer) -> dict[str, Any]:
    """What is open after an answer, as it goes over the wire."""
    return {
        "missingFields": list(answer.missing_fields),
        "leftOutColumns": list(answer.left_out_columns),
        "leftOutSheets": list(answer.left_out_sheets),
        "leftOutLines": list(answer.left_out_lines),
        "skippedRows": answer.skipped_rows,
        "hiddenRows": answer.hidden.rows,
        "hiddenLines": answer.hidden.lines,
        "hiddenColumns": list(answer.hidden_columns),
        "hiddenSheet": answer.hidden.sheet,
        "openValues": answer.cells.open,
        "firstOpenValues": [
            {
                "id": value.id,
                "targetField": value.field,
                "sourceValue": value.value,
                "rowCount": value.rows,
            }
            for value in answer.cells.first_open
        ],
    }
