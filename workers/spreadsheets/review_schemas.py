"""The JSON of reviews."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from pydantic import ConfigDict

from activities.spreadsheets.review_rules import RememberedEdit, ReviewedRow, StoredOperation
from workers.shared.services.bodies import Body
from workers.spreadsheets.reviews import ChangeOutcome, ReviewOverview
from workflows.shared.cells import readable
from workflows.spreadsheets.edits import Correction
from workflows.spreadsheets.reviews import Operation, described

_SHOWN: Final = 500
"""Characters of a cell."""
_PROPERTIES: Final[Mapping[str, tuple[str, Any]]] = {
    "organisationId": ("Organisation that remembers it", 1),
    "importType": ("What the rows are", "EVENT_PARTICIPANT"),
    "key": ("Names it when it is to be forgotten", "6b86b273" * 8),
    "decidedBy": ("Who confirmed it in a review", "anna@example.org"),
    "decidedAt": ("When", "2026-01-03T10:00:01Z"),
    "version": ("Of the mappings and their corrections: the value of the ETag", 7),
    "isOpen": ("Corrections are accepted", True),
    "isChecked": ("All rows were checked against each other and people at this version", True),
    "checkFailure": (
        "Why all rows could not be checked at this version: POST …/retry checks them again; null: "
        "they are, or they are being checked",
        None,
    ),
    "rowCount": ("Rows of the file", 150),
    "wrongRows": ("Rows with a problem", 3),
    "excludedRows": ("Rows that are left out", 1),
    "rowProblems": ("Problems of rows as a whole, as duplicates", 1),
    "moreProblems": (
        "Only the first 200,000 problems are known: rows further down may have some as well",
        False,
    ),
    "missingFields": ("Required fields without a column", ["FIRST_NAME"]),
    "dryRun": ("Nothing is written unless it is imported from the review", False),
    "columns": ("The columns, by place", []),
    "columnId": ("Number of the column; null: the row as a whole", 3),
    "header": ("The header, as it stands in the file", "E-Mail"),
    "targetField": ("Field that the column fills; null: none", "EMAIL"),
    "title": ("What people call the field; null: the column fills none", "Email"),
    "problemCount": ("Cells of the column with a problem", 3),
    "made": ("A change has made the column", False),
    "rowNumber": ("Line of the row, as a spreadsheet shows it, from 1", 17),
    "excludedBy": ("Who left the row out; null: it is imported", None),
    "cells": ("The cells, by place", []),
    "problems": ("What is wrong with the row as a whole, in words", ["duplicate of row 4"]),
    "value": ("What stands in the cell; null: nothing", "anna(at)example.org"),
    "problem": ("What is wrong with the cell, in words; null: nothing", "is not a mail address"),
    "remark": (
        "What to look at in the cell, which is imported as it stands; null: nothing",
        "is a name with digits",
    ),
    "original": ("What stands in the file, where the cell was corrected; else null", "anna@"),
    "correctedBy": ("Who corrected the cell last; null: it was not corrected", "ben@example.org"),
    "correctedAt": ("When; null: it was not corrected", "2026-01-03T10:02:00Z"),
    "subject": ("What the change is about, in words", "row 17, E-Mail"),
    "decision": ("What it does, in words", "corrected"),
    "operation": ("The change, as it can be requested", {"kind": "EXCLUDE", "rows": [4]}),
    "by": ("Who made it", "ben@example.org"),
    "at": ("When", "2026-01-03T10:02:00Z"),
    "undoneBy": ("Version of the change that takes it back; null: it counts", None),
    "changedRows": ("Rows that it changes", 12),
    "changedCells": ("Cells that it changes", 12),
    "problemsBefore": ("Problems of the changed columns before", 12),
    "problemsAfter": ("Problems of the changed columns afterwards", 0),
    "examples": ("Some of the changed cells; at most 5", []),
    "before": ("What the cell holds before; null: nothing", "3/4/2026"),
    "after": ("What it holds afterwards; null: nothing", "2026-04-03"),
    "column": ("Header of the column", "Date of birth"),
    "headers": ("Headers of the columns that it is about", ["Date of birth"]),
    "fileHeaders": ("All headers of its files, in short, where it is about no column", []),
    "why": ("Why it is suggested", "done in an earlier file to Date of birth"),
}


def _describe(schema: dict[str, Any]) -> None:
    for name, property_ in schema.get("properties", {}).items():
        words, example = _PROPERTIES[name]
        property_.setdefault("description", words)
        property_.setdefault("examples", [example])


class ReviewPart(Body):
    """What is answered; its properties are described above."""

    model_config = ConfigDict(json_schema_extra=_describe)


class ReviewColumnView(ReviewPart):
    """A column of a review."""

    column_id: int
    header: str
    target_field: str | None
    title: str | None
    problem_count: int
    made: bool


class ReviewView(ReviewPart):
    """A review as a whole."""

    version: int
    is_open: bool
    is_checked: bool
    check_failure: str | None
    row_count: int
    wrong_rows: int
    excluded_rows: int
    row_problems: int
    more_problems: bool
    missing_fields: list[str]
    dry_run: bool
    columns: list[ReviewColumnView]


class ReviewCellView(ReviewPart):
    """A cell of a row."""

    column_id: int
    value: str | None
    problem: str | None
    remark: str | None
    original: str | None
    corrected_by: str | None
    corrected_at: datetime | None


class ReviewRowView(ReviewPart):
    """A row as it is now."""

    row_number: int
    excluded_by: str | None
    problems: list[str]
    cells: list[ReviewCellView]


class CorrectionView(ReviewPart):
    """A cell that was corrected."""

    column: str
    before: str | None
    after: str | None
    by: str
    at: datetime


class ReviewExampleView(ReviewPart):
    """A cell before and after a change."""

    row_number: int
    column_id: int
    before: str | None
    after: str | None
    problem: str | None


class ReviewEffectView(ReviewPart):
    """What a change does, or would do."""

    version: int
    changed_rows: int
    changed_cells: int
    problems_before: int
    problems_after: int
    wrong_rows: int
    examples: list[ReviewExampleView]


class ReviewOperationView(ReviewPart):
    """A change of the list."""

    version: int
    subject: str
    decision: str
    operation: Operation
    by: str
    at: datetime
    changed_rows: int
    changed_cells: int
    undone_by: int | None


class RememberedOperationView(ReviewPart):
    """A change to an earlier file, as it can be requested for this one."""

    headers: list[str]
    why: str
    subject: str
    decision: str
    operation: Operation
    by: str
    at: datetime


class LearntOperationView(ReviewPart):
    """A change of whole columns that reviews suggest; `key` names it when it is to be forgotten."""

    organisation_id: int
    import_type: str
    key: str
    headers: list[str]
    file_headers: list[str]
    subject: str
    decision: str
    operation: Operation
    decided_by: str
    decided_at: datetime


def review_view(found: ReviewOverview) -> ReviewView:
    """A review as a whole."""
    state, counts = found.state, found.state.counts
    return ReviewView(
        version=state.version,
        is_open=state.is_open,
        is_checked=counts.checked >= state.version
        or not (state.is_open or found.check_failure is not None),
        check_failure=found.check_failure,
        row_count=counts.rows,
        wrong_rows=counts.wrong,
        excluded_rows=counts.excluded,
        row_problems=found.row_problems,
        more_problems=found.is_cut,
        missing_fields=list(found.missing),
        dry_run=found.dry_run,
        columns=[
            ReviewColumnView(
                column_id=each.column.id,
                header=each.column.header,
                target_field=each.column.target,
                title=each.title,
                problem_count=each.problems,
                made=each.made,
            )
            for each in found.columns
        ],
    )


def row_views(rows: Sequence[ReviewedRow], columns: Sequence[int]) -> list[ReviewRowView]:
    """Rows with the cells of these columns."""
    return [_row_view(row, columns) for row in rows]


def _row_view(row: ReviewedRow, columns: Sequence[int]) -> ReviewRowView:
    problems = {each.column: each.reason for each in row.problems}
    corrections = {each.column: each for each in row.corrections}
    return ReviewRowView(
        row_number=row.line,
        excluded_by=row.excluded,
        problems=[each.reason for each in row.problems if each.column not in columns],
        cells=[_cell_view(id, row, problems.get(id), corrections.get(id)) for id in columns],
    )


def _cell_view(
    id: int, row: ReviewedRow, problem: str | None, corrected: Correction | None
) -> ReviewCellView:
    cell = row.cells[id - 1] if id <= len(row.cells) else None
    return ReviewCellView(
        column_id=id,
        value=readable(cell, _SHOWN) or None,
        problem=problem,
        remark=row.remarks.get(id),
        original=None if corrected is None else readable(corrected.before, _SHOWN) or None,
        corrected_by=None if corrected is None else corrected.by,
        corrected_at=None if corrected is None else corrected.at,
    )


def effect_view(found: ChangeOutcome) -> ReviewEffectView:
    """What a change does."""
    effect = found.changed.effect
    return ReviewEffectView(
        version=found.changed.version,
        changed_rows=effect.rows,
        changed_cells=effect.cells,
        problems_before=effect.problems_before,
        problems_after=effect.problems_after,
        wrong_rows=found.changed.counts.wrong,
        examples=[
            ReviewExampleView(
                row_number=each.row,
                column_id=each.column,
                before=each.before,
                after=each.after,
                problem=each.problem,
            )
            for each in found.stored.examples
        ],
    )


def operation_views(
    found: Sequence[StoredOperation], headers: Mapping[int, str]
) -> list[ReviewOperationView]:
    """Changes, as people read them."""
    views: list[ReviewOperationView] = []
    for each in found:
        operation = each.operation
        subject, decision = described(operation.operation, headers)
        views.append(
            ReviewOperationView(
                version=operation.version,
                subject=subject,
                decision=decision,
                operation=operation.operation,
                by=operation.by,
                at=operation.at,
                changed_rows=each.effect.rows,
                changed_cells=each.effect.cells,
                undone_by=each.undone_by,
            )
        )
    return views


def remembered_views(
    found: Sequence[RememberedEdit], headers: Mapping[int, str]
) -> list[RememberedOperationView]:
    """Changes to earlier files."""
    views: list[RememberedOperationView] = []
    for each in found:
        subject, decision = described(each.operation.operation, headers)
        views.append(
            RememberedOperationView(
                headers=list(each.headers),
                why=each.why,
                subject=subject,
                decision=decision,
                operation=each.operation.operation,
                by=each.by,
                at=each.at,
            )
        )
    return views
