"""What goes over the wire: camelCase names, and UNRESOLVED where contracts say UNMATCHED."""

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from pydantic.alias_generators import to_camel

from contracts.spreadsheets import (
    COLUMNS,
    DECISIONS,
    CellDecision,
    ColumnDecision,
    EntityId,
    FieldName,
    Layout,
    MappingsAnswer,
    MappingStatus,
    Outcome,
    Person,
    SpreadsheetState,
    TypeName,
    UndoState,
)

UNRESOLVED = "UNRESOLVED"


class Wire(BaseModel):
    """Read strictly: a field that nobody knows is a mistake worth telling."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        serialize_by_alias=True,
        extra="forbid",
        frozen=True,
    )


def problems_of(error: ValidationError) -> str:
    """What is wrong with some input, in a sentence that repeats none of it."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[:5]
    return "; ".join(
        f"{'.'.join(map(str, each['loc'])) or 'body'}: {_plain(each['msg'])}" for each in first
    )


def _plain(message: str) -> str:
    return message.removeprefix("Value error, ")


def _blank_is_absent(value: object) -> object:
    return None if value == "" else value


def _tab(value: object) -> object:
    return "\t" if value in ("tab", "\\t") else _blank_is_absent(value)


_ENCODING = r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,31}$"
_Absent = BeforeValidator(_blank_is_absent)


class LayoutBody(Wire):
    """How a file is read; what is absent is found out."""

    sheet: Annotated[Annotated[str, Field(max_length=100)] | None, _Absent] = None
    encoding: Annotated[Annotated[str, Field(pattern=_ENCODING)] | None, _Absent] = None
    delimiter: Annotated[
        Annotated[str, Field(min_length=1, max_length=1)] | None, BeforeValidator(_tab)
    ] = None
    header_line: Annotated[Annotated[int, Field(ge=1, le=1_048_576)] | None, _Absent] = None

    def layout(self) -> Layout:
        """As runs know it."""
        return Layout(
            sheet=self.sheet,
            encoding=self.encoding,
            delimiter=self.delimiter,
            header_line=self.header_line,
        )


class UploadFields(LayoutBody):
    """Fields of an upload beside its file; every one of them is text there."""

    import_type: TypeName
    context_id: Annotated[EntityId | None, _Absent] = None
    organisation_id: Annotated[EntityId | None, _Absent] = None
    auto_start: Annotated[bool, BeforeValidator(lambda value: value or False)] = False
    dry_run: Annotated[bool, BeforeValidator(lambda value: value or False)] = False


class ColumnDecisionBody(Wire):
    """What a person says about one column: exactly one of targetField, confirm and ignore."""

    id: int = Field(ge=1, le=COLUMNS)
    target_field: FieldName | None = None
    confirm: bool = False
    ignore: bool = False

    @model_validator(mode="after")
    def _one_of_three(self) -> Self:
        if sum((self.target_field is not None, self.confirm, self.ignore)) != 1:
            raise ValueError("say exactly one of targetField, confirm and ignore")
        return self

    def decision(self) -> ColumnDecision:
        """As runs know it."""
        return ColumnDecision(
            id=self.id, target=self.target_field, confirm=self.confirm, ignore=self.ignore
        )


class CellDecisionBody(Wire):
    """What a person says about one value: exactly one of the four."""

    id: int = Field(ge=1, le=2**53)
    target_entity_id: EntityId | None = None
    confirm: bool = False
    ignore: bool = False
    create: bool = False

    @model_validator(mode="after")
    def _one_of_four(self) -> Self:
        said = (self.target_entity_id is not None, self.confirm, self.ignore, self.create)
        if sum(said) != 1:
            raise ValueError("say exactly one of targetEntityId, confirm, ignore and create")
        return self

    def decision(self) -> CellDecision:
        """As runs know it."""
        return CellDecision(
            id=self.id,
            target_id=self.target_entity_id,
            confirm=self.confirm,
            ignore=self.ignore,
            create=self.create,
        )


ColumnDecisionsBody = Annotated[list[ColumnDecisionBody], Field(min_length=1, max_length=COLUMNS)]
CellDecisionsBody = Annotated[list[CellDecisionBody], Field(min_length=1, max_length=DECISIONS)]


class AssigneeBody(Wire):
    """Somebody else to wait for."""

    to: Person = Field(min_length=1)
    notify: Annotated[str, Field(max_length=320, pattern=r"^[^@\s]+@[^@\s]+$")] | None = None
    """Mail address."""


class ColumnMappingView(Wire):
    """One column, and what it means."""

    id: int
    column_index: int
    source_header: str
    target_field: str | None
    status: str
    confidence_score: float
    alternatives: list["AlternativeView"]
    samples: list[str]


class AlternativeView(Wire):
    """What a column or a value might mean as well."""

    name: str
    score: float
    id: int | None = None


class CellMappingView(Wire):
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


class ImportView(Wire):
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


class OpenValueView(Wire):
    """A value that nobody has said anything about yet."""

    id: int
    target_field: str
    source_value: str
    row_count: int


class AnswerView(Wire):
    """What has become of an answer."""

    identifier: str
    status: SpreadsheetState
    version: int
    missing_fields: list[str]
    open_values: int
    first_open_values: list[OpenValueView]


class PreviewRowView(Wire):
    """A row as a person sees it."""

    row_number: int
    cells: list[str]


class PreviewView(Wire):
    """The top of the file."""

    format: str
    sheets: list[str]
    layout: LayoutBody
    rows: list[PreviewRowView]


class CandidateView(Wire):
    """Something a value may mean."""

    id: int
    display_name: str


class ResultView(Wire):
    """What became of a row."""

    id: int
    row_number: int
    outcome: Outcome
    message: str | None


class DifferenceView(Wire):
    """What a dry run would change."""

    row_number: int
    table: str
    column: str
    before: str | None
    after: str | None


class SummaryView(Wire):
    """Rows per outcome."""

    total: int
    created: int
    updated: int
    skipped: int
    error: int
    parked: int
    differences: list[DifferenceView]


class DecisionView(Wire):
    """Who decided what, and what else there was to choose from."""

    kind: str
    subject: str
    decision: str
    by: str
    at: datetime
    confidence: float | None
    alternatives: list[AlternativeView]


class UndoConflictView(Wire):
    """A record that an undo left alone."""

    row_number: int
    table: str
    reason: str


class UndoView(Wire):
    """How far an undo has come."""

    status: UndoState
    deleted: int
    restored: int
    left_alone: int
    requested_at: datetime | None
    finished_at: datetime | None
    conflicts: list[UndoConflictView]
    """The first of those that were left alone."""


class ContextView(Wire):
    """What the rows of a type belong to."""

    table: str
    title: str
    required: bool


class FieldDescription(Wire):
    """A field of an import type."""

    name: str
    title: str
    required: bool
    aliases: list[str]
    examples: list[str]
    resolver: str | None
    creates: bool


class ImportTypeView(Wire):
    """What can be imported."""

    name: str
    title: str
    context: ContextView | None
    fields: list[FieldDescription]


class InboxView(Wire):
    """A run that waits for a person."""

    workflow_id: str
    pipeline: str
    document_type: str
    state: str
    waiting_since: datetime
    waiting_for: str | None
    organisation_id: int | None
    project_id: str | None
    filename: str | None
    identifier: str | None
    """Of a spreadsheet import."""


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
