"""The JSON of the API: camelCase names, and UNRESOLVED for UNMATCHED of the contracts."""

from datetime import datetime
from typing import Any, Final

from contracts.spreadsheets import (
    MappingsAnswer,
    MappingStatus,
    Outcome,
    SpreadsheetState,
    UndoState,
)
from workers.services.bodies import Body
from workers.services.spreadsheets.upload_form import LayoutBody

UNRESOLVED: Final = "UNRESOLVED"


class AlternativeView(Body):
    """What a column or a value might mean as well."""

    name: str
    score: float
    id: int | None = None


class ColumnMappingView(Body):
    """One column, and what it means."""

    id: int
    column_index: int
    source_header: str
    target_field: str | None
    status: str
    confidence_score: float
    alternatives: list[AlternativeView]
    samples: list[str]


class CellMappingView(Body):
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


class ImportView(Body):
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
    undo_status: UndoState | None
    version: int
    column_mappings: list[ColumnMappingView] | None = None
    cell_mappings: list[CellMappingView] | None = None


class OpenValueView(Body):
    """A value without a decision so far."""

    id: int
    target_field: str
    source_value: str
    row_count: int


class AnswerView(Body):
    """What has become of an answer."""

    identifier: str
    status: SpreadsheetState
    version: int
    missing_fields: list[str]
    open_values: int
    first_open_values: list[OpenValueView]


class PreviewRowView(Body):
    """A row as a person sees it."""

    row_number: int
    cells: list[str]


class PreviewView(Body):
    """The top of the file."""

    format: str
    sheets: list[str]
    layout: LayoutBody
    rows: list[PreviewRowView]


class CandidateView(Body):
    """Something a value may mean."""

    id: int
    display_name: str


class ResultView(Body):
    """Outcome of a row."""

    id: int
    row_number: int
    outcome: Outcome
    message: str | None


class DifferenceView(Body):
    """What a dry run would change."""

    row_number: int
    table: str
    column: str
    before: str | None
    after: str | None


class SummaryView(Body):
    """Rows per outcome."""

    total: int
    created: int
    updated: int
    skipped: int
    error: int
    parked: int
    differences: list[DifferenceView]


class DecisionView(Body):
    """Who decided what, and what else there was to choose from."""

    kind: str
    subject: str
    decision: str
    by: str
    at: datetime
    confidence: float | None
    alternatives: list[AlternativeView]


class UndoConflictView(Body):
    """A record that an undo left alone."""

    row_number: int
    table: str
    reason: str


class UndoView(Body):
    """How far an undo has come."""

    status: UndoState
    deleted: int
    restored: int
    left_alone: int
    requested_at: datetime | None
    finished_at: datetime | None
    conflicts: list[UndoConflictView]
    """The first of those that were left alone."""


class ContextView(Body):
    """What the rows of a type belong to."""

    table: str
    title: str
    required: bool


class FieldDescription(Body):
    """A field of an import type."""

    name: str
    title: str
    required: bool
    aliases: list[str]
    examples: list[str]
    resolver: str | None
    creates: bool


class ImportTypeView(Body):
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
