"""From the service's answers to what goes over the wire."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

from activities.spreadsheets.records import (
    CellsView,
    ColumnsView,
    ResultRow,
    SpreadsheetRow,
    SummaryView,
    UndoConflict,
    UndoView,
)
from activities.spreadsheets.review_rules import ReviewedRow
from activities.spreadsheets.types.base import SheetType
from workers.spreadsheets import schemas
from workers.spreadsheets.queries import ShownRow
from workers.spreadsheets.review_schemas import CorrectionView
from workers.spreadsheets.service import pace_of
from workers.spreadsheets.upload_form import LayoutBody
from workflows.shared.cells import readable
from workflows.spreadsheets.fields import Preview
from workflows.spreadsheets.mappings import (
    Alternative,
    DecisionRecord,
    MappingsAnswer,
    SpreadsheetState,
)
from workflows.spreadsheets.runs import UndoPreview

_SHOWN: Final = 200
"""Characters of a corrected cell."""


def import_view(
    row: SpreadsheetRow,
    columns: ColumnsView | None = None,
    cells: CellsView | None = None,
    context_name: str | None = None,
) -> schemas.ImportView:
    """The status of an import; what is not given does not appear."""
    mappings: dict[str, object] = {}
    if context_name is not None:
        mappings["context_name"] = context_name
    if columns is not None:
        mappings["column_mappings"] = column_views(columns)
    if cells is not None:
        mappings["cell_mappings"] = cell_views(cells)
    counts = row.counts
    pace = pace_of(row, datetime.now(UTC))
    return schemas.ImportView(
        identifier=row.uuid,
        import_type=row.import_type,
        status=row.state,
        original_filename=row.filename,
        organisation_id=row.organisation_id,
        context_id=row.context_id,
        total_rows=row.total,
        processed_rows=counts.done,
        success_count=counts.done - counts.error,
        error_count=counts.error,
        parked_rows=row.parked,
        open_values=row.values_open,
        progress_percent=_percent(row),
        step=row.step,
        reason=row.reason,
        created_by=row.by,
        assignee=row.assignee,
        waiting_since=row.waiting_since,
        created_at=row.created_at,
        updated_at=row.updated_at,
        finished_at=row.finished_at,
        purged_at=row.purged_at,
        auto_start=row.auto_start,
        dry_run=row.dry_run,
        has_report=row.report is not None,
        rows_per_second=None if pace is None else round(pace.rows_per_second, 1),
        seconds_left=None if pace is None else pace.seconds_left,
        undo_status=row.undo_state,
        version=row.version,
        **mappings,  # pyright: ignore[reportArgumentType]
    )


def _percent(row: SpreadsheetRow) -> int:
    if row.state is SpreadsheetState.COMPLETED:
        return 100
    return min(99, 100 * row.counts.done // row.total) if row.total else 0


def column_views(view: ColumnsView) -> list[schemas.ColumnMappingView]:
    """Columns, by place."""
    return [
        schemas.ColumnMappingView(
            id=column.id,
            column_index=column.index,
            source_header=column.header,
            target_field=column.target,
            status=schemas.wire_status(column.status),
            confidence_score=column.confidence,
            reason=column.why,
            alternatives=_alternatives(column.alternatives),
            samples=list(column.samples),
            blanks=list(column.blanks),
        )
        for column in view.columns
    ]


def cell_views(view: CellsView) -> list[schemas.CellMappingView]:
    """Values of a page."""
    return [
        schemas.CellMappingView(
            id=cell.id,
            target_field=cell.field,
            source_value=cell.value,
            status=schemas.wire_status(cell.status),
            target_entity_id=cell.target_id,
            target_name=cell.target_name,
            create=cell.create,
            confidence_score=cell.confidence,
            alternatives=_alternatives(cell.alternatives),
            row_count=cell.rows,
            question=cell.question,
            reason=cell.reason,
        )
        for cell in view.items
    ]


def _alternatives(alternatives: Sequence[Alternative]) -> list[schemas.AlternativeView]:
    return [
        schemas.AlternativeView(name=each.name, score=each.score, id=each.id, reason=each.why)
        for each in alternatives
    ]


def answer_view(uuid: str, answer: MappingsAnswer) -> schemas.AnswerView:
    """What an accepted answer has led to."""
    return schemas.AnswerView(
        identifier=uuid,
        status=answer.state,
        version=answer.version,
        missing_fields=list(answer.missing_fields),
        open_values=answer.cells.open,
        left_out_columns=list(answer.left_out_columns),
        left_out_sheets=list(answer.left_out_sheets),
        left_out_lines=list(answer.left_out_lines),
        skipped_rows=answer.skipped_rows,
        hidden_rows=answer.hidden.rows,
        hidden_lines=answer.hidden.lines,
        hidden_columns=list(answer.hidden_columns),
        hidden_sheet=answer.hidden.sheet,
        first_open_values=[
            schemas.OpenValueView(
                id=value.id,
                target_field=value.field,
                source_value=value.value,
                row_count=value.rows,
            )
            for value in answer.cells.first_open
        ],
    )


def preview_view(row: SpreadsheetRow, preview: Preview) -> schemas.PreviewView:
    """The top of the file, and how it is read."""
    layout = row.layout
    return schemas.PreviewView(
        format=preview.format,
        sheets=list(preview.sheets),
        layout=LayoutBody(
            sheet=layout.sheet,
            encoding=layout.encoding,
            delimiter=layout.delimiter,
            header_line=layout.header_line,
            no_header=layout.no_header,
        ),
        rows=[
            schemas.PreviewRowView(row_number=line, cells=list(cells))
            for line, cells in preview.rows
        ],
    )


def result_views(
    rows: Sequence[ResultRow],
    headers: Mapping[int, str] = MappingProxyType({}),
    changed: Mapping[int, ReviewedRow] = MappingProxyType({}),
    shown: Mapping[int, ShownRow] = MappingProxyType({}),
) -> list[schemas.ResultView]:
    """Outcomes of rows; a row's number is its id.

    Args:
        rows: The outcomes.
        headers: Id of each column to its header.
        changed: Rows that were corrected in the review.
        shown: Rows as they were imported, as far as they are kept.
    """
    return [
        schemas.ResultView(
            id=row.line,
            row_number=row.line,
            name=(shown[row.line].name or None) if row.line in shown else None,
            outcome=row.outcome,
            message=row.message,
            problems=[
                schemas.ProblemView(column=each.column, value=each.value, reason=each.reason)
                for each in row.problems
            ],
            cells=[
                schemas.ResultCellView(column=each.column, target_field=each.field, value=each.text)
                for each in (shown[row.line].cells if row.line in shown else ())
            ],
            corrections=[
                CorrectionView(
                    column=headers.get(each.column, ""),
                    before=readable(each.before, _SHOWN) or None,
                    after=readable(each.after, _SHOWN) or None,
                    by=each.by,
                    at=each.at,
                )
                for each in (changed[row.line].corrections if row.line in changed else ())
            ],
        )
        for row in rows
    ]


def summary_view(view: SummaryView) -> schemas.SummaryView:
    """Rows per outcome."""
    counts = view.counts
    return schemas.SummaryView(
        total=counts.done + view.parked,
        created=counts.created,
        updated=counts.updated,
        skipped=counts.skipped,
        error=counts.error,
        parked=view.parked,
        differences=[
            schemas.DifferenceView(
                row_number=each.line,
                table=each.table,
                column=each.column,
                record=each.record,
                title=each.title,
                before=each.before,
                after=each.after,
            )
            for each in view.differences
        ],
    )


def decision_views(records: Sequence[DecisionRecord]) -> list[schemas.DecisionView]:
    """Lines of the trail."""
    return [
        schemas.DecisionView(
            kind=each.kind,
            subject=each.subject,
            decision=each.decision,
            by=each.by,
            at=each.at,
            confidence=each.confidence,
            alternatives=_alternatives(each.alternatives),
        )
        for each in records
    ]


def undo_view(view: UndoView, conflicts: Sequence[UndoConflict]) -> schemas.UndoView:
    """How far an undo has come."""
    return schemas.UndoView(
        status=view.state,
        deleted=view.counts.deleted,
        restored=view.counts.restored,
        left_alone=view.counts.left_alone,
        requested_at=view.requested_at,
        finished_at=view.finished_at,
        conflicts=[
            schemas.UndoConflictView(
                row_number=each.line, table=each.table, record=each.record, reason=each.reason
            )
            for each in conflicts
        ],
    )


def undo_preview_view(
    found: UndoPreview, conflicts: Sequence[UndoConflict]
) -> schemas.UndoPreviewView:
    """What an undo would do."""
    counts = found.counts
    return schemas.UndoPreviewView(
        deleted=counts.deleted,
        restored=counts.restored,
        left_alone=counts.left_alone,
        conflicts=[
            schemas.UndoConflictView(
                row_number=each.line, table=each.table, record=each.record, reason=each.reason
            )
            for each in conflicts
        ],
    )


def type_view(kind: SheetType) -> schemas.ImportTypeView:
    """What can be imported."""
    return schemas.ImportTypeView(
        name=kind.name,
        title=kind.title,
        context=schemas.ContextView(
            table=kind.context.table, title=kind.context.title, required=kind.context.required
        )
        if kind.context
        else None,
        fields=[
            schemas.FieldDescription(
                name=field.name,
                title=field.title,
                required=field.required,
                aliases=list(field.aliases),
                examples=list(field.examples),
                resolver=field.resolver,
                creates=field.creates,
            )
            for field in kind.fields
        ],
    )
