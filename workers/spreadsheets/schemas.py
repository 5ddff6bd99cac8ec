"""The JSON of the API: camelCase names, and UNRESOLVED for UNMATCHED of the contracts."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from pydantic import ConfigDict, Field

from workers.shared.services.bodies import Body
from workers.spreadsheets.review_schemas import CorrectionView
from workers.spreadsheets.upload_form import LayoutBody
from workflows.spreadsheets.mappings import (
    MappingsAnswer,
    MappingStatus,
    Outcome,
    SpreadsheetState,
    UndoState,
)

PROPERTIES: Final[Mapping[str, tuple[str, Any]]] = {
    "id": ("Number of it, as answers and requests name it", 4),
    "name": ("Its name", "EVENT_CATEGORY_NAME"),
    "title": ("As people call it", "Category"),
    "score": ("How likely it is meant, from 0 to 1", 0.96),
    "reason": ("Why, in words; empty where there is nothing to say", "left out before"),
    "columnIndex": ("Place in the rows of the file, from 0", 3),
    "sourceHeader": ("The header, as it stands in the file", "Alterskl."),
    "targetField": ("Field of the import type; null: none", "EVENT_CATEGORY_NAME"),
    "confidenceScore": ("How sure the match is, from 0 to 1", 0.95),
    "alternatives": ("What it may mean as well, the likeliest first; at most 3", []),
    "samples": ("The first values of the column that differ; at most 5", ["Meier", "Novak"]),
    "blanks": ("Texts of the column that count as blank; at most 5", ["n/a", "-"]),
    "sourceValue": ("The value, as it stands in the file", "Oldies"),
    "targetEntityId": ("Row that is meant; null: none", 43),
    "targetName": ("Name of the row that is meant; null: none", "Masters (40+)"),
    "create": ("A row of this name is made when rows are processed", False),
    "rowCount": ("Rows of the file that hold it", 12),
    "identifier": ("UUID of the import", "0d2f8a52-6c1e-4d4e-9d8f-5b1a7f0c2b11"),
    "importType": ("What the rows are", "EVENT_PARTICIPANT"),
    "status": ("Where it stands", "COLUMN_MAPPING"),
    "originalFilename": ("Name of the file that was uploaded", "registrations.xlsx"),
    "organisationId": ("Organisation that it belongs to", 1),
    "contextId": ("Event, membership period or race; null: none", 7),
    "contextName": ("Name of the event, period or race; in lists alone", "City Marathon"),
    "totalRows": ("Rows of the file; null until they are counted", 150),
    "processedRows": ("Rows with an outcome", 148),
    "successCount": ("Rows created, updated or skipped", 147),
    "errorCount": ("Rows that did not go in", 1),
    "parkedRows": ("Rows that wait for the meaning of a value", 2),
    "openValues": ("Values without a meaning so far", 1),
    "progressPercent": ("How much is processed, from 0 to 100", 98),
    "step": ("What is being done now; empty: nothing", "process rows"),
    "createdBy": ("Who uploaded it", "anna@example.org"),
    "assignee": ("Who is waited for; null once it was removed", "anna@example.org"),
    "waitingSince": ("Since when it waits for a person; null: it does not", "2026-01-03T10:00:01Z"),
    "createdAt": ("When it was uploaded", "2026-01-03T10:00:00Z"),
    "updatedAt": ("When anything about it changed last", "2026-01-03T10:00:01Z"),
    "finishedAt": ("When it ended; null: it has not", None),
    "purgedAt": ("When it was removed after its retention; null: it was not", None),
    "autoStart": ("It stops only where a person is needed", False),
    "dryRun": ("Rows are checked and nothing is written", False),
    "hasReport": ("There is a report of the rows that did not go in", True),
    "rowsPerSecond": ("Rows read or processed, about; null: it does not work on rows", 812.5),
    "secondsLeft": ("Until the last row is processed, about; null: not known", 40),
    "undoStatus": ("How far an undo has come; null: none was asked for", None),
    "version": ("Of the mappings: the value of the ETag", 3),
    "columnMappings": ("Its columns, where they were asked for; else null", None),
    "cellMappings": ("Its first 200 values, where they were asked for; else null", None),
    "missingFields": ("Required fields without a column", ["LAST_NAME"]),
    "firstOpenValues": ("The first values without a meaning; at most 50", []),
    "leftOutColumns": ("Headers of columns that fill no field", ["Shirt size"]),
    "leftOutSheets": ("Further sheets that hold something and are not read", ["Waiting list"]),
    "leftOutLines": ("Lines of another table above the header, which are not read", [2, 3]),
    "skippedRows": ("Rows that are no people, as far as the file was read", 2),
    "leftOut": ("The row is not imported", True),
    "keep": ("The rows are imported; else they are left out", True),
    "hiddenRows": ("Rows that are read although they are hidden in the file, as far as known", 12),
    "hiddenLines": ("Their lines, the first ones named", "5-9, 14"),
    "hiddenColumns": ("Headers of hidden columns that fill a field", ["Date of birth"]),
    "hiddenSheet": ("The sheet that is read is hidden in the file", False),
    "rowNumber": ("Line of the row, as a spreadsheet shows it, from 1", 17),
    "cells": ("Its cells, as a person sees them", ["Anna", "Meier"]),
    "format": ("Kind of the file", "xlsx"),
    "sheets": ("Sheets of the workbook", ["Registrations"]),
    "layout": ("How the file is read", {"sheet": "Registrations", "headerLine": 1}),
    "sheet": ("Sheet that is read; null: the first one", "Registrations"),
    "encoding": ("Encoding of a text file; null: it is found out", "utf-8"),
    "delimiter": ("What separates cells of a text file; null: it is found out", ";"),
    "headerLine": ("Line of the headers, from 1; null: it is found out", 3),
    "noHeader": ("There is no header row: columns are called by their letters", False),
    "rows": ("The first rows, from the headers on", []),
    "displayName": ("As people call it", "Senior (18+)"),
    "outcome": ("What became of the row", "ERROR"),
    "message": ("Why, in words; null where there is nothing to say", "Email is missing"),
    "problems": ("What is wrong with the row, cell by cell", []),
    "corrections": ("Cells of the row that were corrected in the review", []),
    "column": ("Header, or name, of the column", "Email"),
    "value": ("What stands in the cell; null: nothing", "anna(at)example.org"),
    "table": ("Table of the row", "events"),
    "record": ("What the row is, as people call it", "Event participant"),
    "before": ("Value that is there; null: none", "Anna"),
    "after": ("Value that it would get; null: none", "Anne"),
    "total": ("All of them", 150),
    "created": ("Rows that are new", 100),
    "updated": ("Rows that changed what was there", 40),
    "skipped": ("Rows with nothing to change", 7),
    "error": ("Rows that did not go in", 1),
    "parked": ("Rows that wait for the meaning of a value", 2),
    "differences": ("What a dry run would change in rows that are there; the first 100", []),
    "kind": ("What was decided about", "column"),
    "subject": ("Header, or field and value", "EVENT_CATEGORY_NAME: Oldies"),
    "decision": ("What was decided", "Masters (40+)"),
    "by": ("Who decided", "anna@example.org"),
    "at": ("When", "2026-01-03T10:02:00Z"),
    "confidence": ("How sure docflow was of its own choice; null: it had none", 0.95),
    "deleted": ("Rows that were deleted", 100),
    "restored": ("Rows that got their values back", 40),
    "leftAlone": ("Rows that were changed since, or that others refer to", 2),
    "requestedAt": ("When it was asked for", "2026-01-05T09:00:00Z"),
    "conflicts": ("The first 200 rows that were left alone", []),
    "required": ("It has to be given", True),
    "aliases": ("Other headers that mean it", ["Vorname", "given name"]),
    "examples": ("Cells that are right", ["Anna", "Jean-Luc"]),
    "resolver": ("Rows that its cells refer to; null: none", "countries"),
    "creates": ("A missing row may be made", True),
    "context": ("What the rows belong to; null: the organisation alone", None),
    "fields": ("Its fields", []),
    "header": ("The header, as it stands in files", "Alterskl."),
    "decidedBy": ("Who decided it last; null where it was not noted", "anna@example.org"),
    "decidedAt": ("When it was decided last", "2026-01-03T10:02:00Z"),
    "question": ("Kind of a question about a person; null: none", "BIRTHDATE"),
    "count": ("How many there are", 12),
    "firstId": ("Number of the first of them", 4),
    "reset": ("The decision is taken back; the value is open again", False),
    "forAll": ("The answer holds for every open question of this kind", False),
    "confirm": ("The match is right", True),
    "ignore": ("It is left out, or counts as empty", True),
    "to": ("Who takes over", "ben@example.org"),
    "notify": ("Mail address for reminders; null: none", "ben@example.org"),
}


def describe(schema: dict[str, Any]) -> None:
    """Add description and example to each property of a schema.

    Raises:
        KeyError: A property is not described here.
    """
    for name, property_ in schema.get("properties", {}).items():
        words, example = PROPERTIES[name]
        property_.setdefault("description", words)
        property_.setdefault("examples", [example])


DESCRIBED: Final = ConfigDict(json_schema_extra=describe)
"""Configuration of models whose properties are described here."""


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
