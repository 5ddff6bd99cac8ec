"""Messages of the import queue, and the keys of what they import.

Messages of the import queue.

Wire format: one JSON object per message, discriminated by `document_type`.
"""

import unicodedata
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, Self, TypeVar, cast, get_args
from urllib.parse import quote, unquote

from pydantic import (
    AfterValidator,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    TypeAdapter,
    field_validator,
    model_validator,
)

from workflows.shared.contracts import (
    BlobName,
    Contract,
    Digest,
    built_when_used,
    names_of_fields,
    unknown_fields,
)

_PLAIN: Final = "._:@+-"
"""What an id may hold beside letters and digits and stands in a workflow id as it is."""
_ENCODED_CHARACTERS: Final = 384


def encoded(key: str) -> str:
    """An identifier as it stands in workflow ids and blob names: one segment, never read wrongly.

    ASCII letters, digits and `. _ : @ + -` stay as they are, other characters become `%XX`.
    """
    return quote(key, safe=_PLAIN).replace("~", "%7E")


def _check_encoded(key: str) -> str:
    if len(encoded(key)) > _ENCODED_CHARACTERS:
        raise ValueError(
            f"is longer than {_ENCODED_CHARACTERS} characters when it is encoded for a workflow id"
        )
    return key


Key = Annotated[
    str,
    StringConstraints(max_length=128, pattern=r"^[^\W_][\w.:@+ /\\#&(),'%!~*\[\]-]{0,127}$"),
    AfterValidator(_check_encoded),
]
"""An identifier chosen by a caller; `encoded`, it becomes part of workflow ids and blob names."""


def scope_value(text: str) -> str:
    """A value of a scope in one form: without blanks around it, and composed.

    Two senders who mean the same site must not fill two parts of a table.
    """
    return unicodedata.normalize("NFC", text.strip())


def workflow_id(project_id: str, task_id: str) -> str:
    """The business key: one task is one workflow, however often it is delivered."""
    return f"import/{encoded(project_id)}/{encoded(task_id)}"


def key_in(workflow_id: str) -> tuple[str, str]:
    """Project and task of an import, as its message has them.

    Args:
        workflow_id: As `workflow_id` makes it.
    """
    _, project_id, task_id = workflow_id.split("/")
    return unquote(project_id), unquote(task_id)


FilterValue = str | int | float | bool | None
Column = Literal[
    "name",
    "status",
    "area",
    "discipline",
    "responsible",
    "notes",
    "type",
    "wbs_code",
    "calendar",
    "constraint_type",
    "level_1",
    "level_2",
    "level_3",
    "level_4",
    "level_5",
    "level_6",
    "level_7",
    "level_8",
    "level_9",
    "level_10",
]

LEVELS: Final = 10
"""Levels that an activity can be grouped by."""
COLUMNS: Final[tuple[str, ...]] = get_args(Column)
"""Activity columns that `schedule_fill_column` may set."""
FILTERS: Final = (
    "schedule_id",
    "primavera_project_id",
    "task_code",
    *COLUMNS,
)
"""Activity columns that a bulk operation may select by."""


class LevelPayload(Contract):
    """Which level a bulk operation is about."""

    level: int = Field(ge=1, le=LEVELS)


class FillLevelPayload(LevelPayload):
    """The level and what to write into it."""

    value: str = Field(min_length=1, max_length=255)


class FillColumnPayload(Contract):
    """The column and what to write into it; null clears it."""

    column: Column
    value: str | None = Field(max_length=4000)


MESSAGE_BYTES: Final = 256 * 1024
"""Bytes of a message; also what a standard Service Bus queue takes at most."""

FileName = Annotated[str, StringConstraints(min_length=1, max_length=255)]

Encoding = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,31}$")]


class DocumentType(StrEnum):
    """The 14 import and 2 delete types."""

    MTO = "mto"
    ESTIMATION_MASTER = "estimation_master"
    SCHEDULE_EXTRACTION = "schedule_extraction"
    SCHEDULE_PROJECT_EXTRACTION = "schedule_project_extraction"
    SCHEDULE_UPLOAD = "schedule_upload"
    SCHEDULE_DELETE_ALL = "schedule_delete_all"
    SCHEDULE_FILL_LEVEL = "schedule_fill_level"
    SCHEDULE_CLEAR_LEVEL = "schedule_clear_level"
    SCHEDULE_FILL_COLUMN = "schedule_fill_column"
    EQUIPMENT = "equipment"
    MATERIAL = "material"
    CREW = "crew"
    CREW_MEMBER = "crew_member"
    CREW_TRADE = "crew_trade"
    ESTIMATION_MASTER_DELETE = "estimation_master_delete"
    MTO_DELETE = "mto_delete"


class Strategy(StrEnum):
    """How rows of a document meet rows that are already there, by natural key.

    type         as the type of the document declares it
    merge        new keys are created, known keys get the values of the file's columns
    replace      as merge, and rows of the scope that the file does not hold go away, all at once
    append       only adds; needs an idempotency key; a known key is a rejected row, or, where
                 the key ends in a sequence, the next number
    update_only  known keys are updated, an unknown key is a rejected row
    create_only  unknown keys are created, known keys stay as they are (counted unchanged)
    """

    TYPE = "type"
    MERGE = "merge"
    REPLACE = "replace"
    APPEND = "append"
    UPDATE_ONLY = "update_only"
    CREATE_ONLY = "create_only"


UNKNOWN_FIELDS: Final = 20
"""How many unknown fields of a message are named."""
_NAME_CHARACTERS: Final = 64


class Message(Contract):
    """What every message carries."""

    task_id: Key
    project_id: Key
    unknown_fields: tuple[Annotated[str, Field(max_length=_NAME_CHARACTERS + 1)], ...] = Field(
        default=(), max_length=UNKNOWN_FIELDS
    )
    """Fields that the sender filled and docflow does not use; the result names them."""

    @property
    def workflow_id(self) -> str:
        """Id of the workflow that does the work."""
        return workflow_id(self.project_id, self.task_id)


class FileMessage(Message):
    """A message whose work starts from a file in the blob store."""

    blob_name: BlobName
    filename: FileName | None = None
    """The name the user knows; its extension is a hint, never trusted."""
    encoding: Encoding | None = None
    """Text encoding or code page; found out when absent."""

    @property
    def document_name(self) -> str:
        """What the user calls the file; the last part of its blob's name when that is not said."""
        return self.filename or self.blob_name.rpartition("/")[2]


HeaderName = Annotated[str, StringConstraints(min_length=1, max_length=255)]


LineName = Annotated[
    str, StringConstraints(pattern=r"^(?:[^!]{1,255}!)?[1-9][0-9]{0,8}$", max_length=265)
]


class TableMessage(FileMessage):
    """A message whose file is a table of rows."""

    strategy: Strategy = Strategy.MERGE
    idempotency_key: Key | None = None
    all_or_nothing: bool = False
    """One bad row and nothing of the file goes in."""
    sheet: str | None = Field(default=None, min_length=1, max_length=255)
    """Sheet of a workbook; every visible one that fits the type when absent."""
    map: dict[HeaderName, HeaderName] = Field(default_factory=dict, max_length=100)
    """Header of the file to the field it means, before all other names; `-`: not used."""
    date_order: Literal["dmy", "mdy"] | None = None
    """Order of day and month where numbers leave it open; found out when absent."""
    decimal: Literal[".", ","] | None = None
    """Decimal mark of numbers that are written as text; found out when absent."""
    leading_zeros: Literal["same", "distinct"] | None = None
    """Whether a known code and one of the file that differ only in leading zeros are the same;
    remembered for the project and document type."""
    left_out: Literal["type", "note", "ask", "keep"] = "note"
    """What happens to rows that are no data (totals, page footers, repeated headers, headings):
    they are left out and noted, a person is asked first, or they are kept like any other row;
    `type`: as the type of the document declares it."""
    keep_lines: tuple[LineName, ...] = Field(default=(), max_length=1_000)
    """Lines to keep although they would be left out: `7`, or `Sheet!7` in a workbook; a text
    lists them with commas."""
    max_rejected_share: float = Field(default=1.0, gt=0, le=1, allow_inf_nan=False)
    """An import of which so large a share of the rows is rejected, or a larger one, parks."""

    @field_validator("keep_lines", mode="before")
    @classmethod
    def _split_lines(cls, value: Any) -> Any:
        if isinstance(value, str):
            return [part.strip() for part in value.split(",")]
        if isinstance(value, list | tuple):
            lines = cast("Sequence[Any]", value)
            return [str(line) if type(line) is int else line for line in lines]
        return value

    @model_validator(mode="after")
    def _append_is_keyed(self) -> Self:
        if self.strategy is Strategy.APPEND and self.idempotency_key is None:
            raise ValueError("strategy 'append' needs an idempotency_key")
        return self


class MtoMessage(TableMessage):
    """Material take-off lines of one service."""

    document_type: Literal[DocumentType.MTO]
    service_id: Key


class EstimationMasterMessage(TableMessage):
    """Estimate lines of one service."""

    document_type: Literal[DocumentType.ESTIMATION_MASTER]
    service_id: Key
    without_quantities: bool = False
    """Whether the list may have no quantity in any row, as a list of rates."""


class UniversalTableMessage(TableMessage):
    """Equipment, materials, crews, their members and trades of a project."""

    document_type: Literal[
        DocumentType.EQUIPMENT,
        DocumentType.MATERIAL,
        DocumentType.CREW,
        DocumentType.CREW_MEMBER,
        DocumentType.CREW_TRADE,
    ]


TypeName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=40)]
"""Name of a declared type."""


class DeclaredMessage(TableMessage):
    """Rows of a type that a team has declared."""

    document_type: Annotated[
        str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]*$", max_length=40)
    ]
    strategy: Strategy = Strategy.TYPE
    left_out: Literal["type", "note", "ask", "keep"] = "type"
    scope: dict[TypeName, Key] = Field(default_factory=dict, max_length=8)
    """Values of the columns that all rows share, beside `project_id`."""
    type_digest: Annotated[Digest, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = None
    """The version of the type; the one in force when the import begins, if absent."""

    @field_validator("scope", mode="before")
    @classmethod
    def _in_one_form(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        values = cast("dict[str, Any]", given)
        return {
            name: scope_value(str(value)) if type(value) in (str, int) else value
            for name, value in values.items()
        }


AnyTableMessage = MtoMessage | EstimationMasterMessage | UniversalTableMessage | DeclaredMessage
"""A message about a table of rows."""


class ScheduleConfig(Contract):
    """Settings of a schedule file; an unknown one is refused."""

    model_config = ConfigDict(extra="forbid")

    encoding: Encoding | None = None
    """Code page of an XER file; when absent, UTF-8 where all of it is that, else cp1252."""


class ScheduleExtractionMessage(FileMessage):
    """Everything a Primavera file holds about one of its projects."""

    document_type: Literal[DocumentType.SCHEDULE_EXTRACTION]
    extraction_id: Key | None = None
    """Names the work: a second task with the same one is skipped."""
    primavera_project_id: str | None = Field(default=None, min_length=1, max_length=255)
    """The project's short name or object id in the file; the only one of the file when absent.

    It selects within the file alone.
    """
    schedule_id: str | None = Field(default=None, min_length=1, max_length=255)
    """The schedule that is updated, or a new one's id; found by the short name when absent."""
    schedule_config: ScheduleConfig | None = None


class ScheduleProjectExtractionMessage(FileMessage):
    """Which projects and data dates a schedule file holds."""

    document_type: Literal[DocumentType.SCHEDULE_PROJECT_EXTRACTION]
    primavera_project_id: str | None = Field(default=None, min_length=1, max_length=255)
    """Keep to this project; all when absent."""
    schedule_config: ScheduleConfig | None = None


class ScheduleUploadMessage(Message):
    """A file moves from its temporary place to its verified target and is registered.

    With `direct_upload` the file is at its target already, and is verified there.
    """

    document_type: Literal[DocumentType.SCHEDULE_UPLOAD]
    target_blob_name: BlobName
    temp_blob_name: BlobName | None = None
    blob_name: BlobName | None = None
    """Older name of `temp_blob_name`."""
    original_filename: FileName | None = None
    filename: FileName | None = None
    direct_upload: bool = False

    @model_validator(mode="after")
    def _has_a_source(self) -> Self:
        if self.direct_upload:
            return self
        if self.source_blob_name is None:
            raise ValueError("temp_blob_name is required unless direct_upload is true")
        if self.source_blob_name == self.target_blob_name:
            raise ValueError("temp_blob_name and target_blob_name must differ")
        return self

    @property
    def source_blob_name(self) -> str | None:
        """Where the bytes are before the run."""
        return (
            self.target_blob_name if self.direct_upload else self.temp_blob_name or self.blob_name
        )


class BulkMessage(Message):
    """Activities of a project, selected by ids (task codes) and by filters.

    Both given: both must hold. Neither given: every activity of the project. An empty list of ids
    is none that is given.
    """

    operation: str | None = None
    """Repeats the document type in older messages; refused when it differs."""
    activity_ids: (
        tuple[Annotated[str, StringConstraints(min_length=1, max_length=255)], ...] | None
    ) = Field(default=None, max_length=10_000)
    filters: dict[str, FilterValue | tuple[FilterValue, ...]] | None = None
    """Column to a value, or to a list of which one must match; null means 'is empty'."""

    @model_validator(mode="after")
    def _known_filters(self) -> Self:
        unknown = sorted(set(self.filters or {}) - set(FILTERS))
        if unknown:
            raise ValueError(f"unknown filters {unknown}; known are {list(FILTERS)}")
        return self

    @model_validator(mode="after")
    def _operation_agrees(self) -> Self:
        document_type = str(getattr(self, "document_type", ""))
        if self.operation is not None and document_type not in (
            self.operation,
            f"schedule_{self.operation}",
        ):
            raise ValueError(
                f"operation {self.operation!r} does not fit document_type {document_type!r}"
            )
        return self


class ScheduleDeleteAllMessage(BulkMessage):
    """The selected activities go, with their relationships, assignments, codes and UDF values."""

    document_type: Literal[DocumentType.SCHEDULE_DELETE_ALL]


class ScheduleFillLevelMessage(BulkMessage):
    """One grouping level of the selected activities is set."""

    document_type: Literal[DocumentType.SCHEDULE_FILL_LEVEL]
    payload: FillLevelPayload


class ScheduleClearLevelMessage(BulkMessage):
    """One grouping level of the selected activities is emptied."""

    document_type: Literal[DocumentType.SCHEDULE_CLEAR_LEVEL]
    payload: LevelPayload


class ScheduleFillColumnMessage(BulkMessage):
    """One column of the selected activities is set."""

    document_type: Literal[DocumentType.SCHEDULE_FILL_COLUMN]
    payload: FillColumnPayload


class DeleteMessage(Message):
    """The data of one service go."""

    document_type: Literal[DocumentType.ESTIMATION_MASTER_DELETE, DocumentType.MTO_DELETE]
    service_id: Key


OwnMessage = Annotated[
    MtoMessage
    | EstimationMasterMessage
    | UniversalTableMessage
    | ScheduleExtractionMessage
    | ScheduleProjectExtractionMessage
    | ScheduleUploadMessage
    | ScheduleDeleteAllMessage
    | ScheduleFillLevelMessage
    | ScheduleClearLevelMessage
    | ScheduleFillColumnMessage
    | DeleteMessage,
    Field(discriminator="document_type"),
]
"""A message about one of docflow's own types."""

_OWN: Final = frozenset(map(str, DocumentType))


def _whose_type(message: Any) -> str:
    given: Any = (
        cast("dict[str, Any]", message).get("document_type")
        if isinstance(message, dict)
        else getattr(message, "document_type", None)
    )
    return "own" if given is None or str(given) in _OWN else "declared"


ImportMessage = Annotated[
    Annotated[OwnMessage, Tag("own")] | Annotated[DeclaredMessage, Tag("declared")],
    Discriminator(_whose_type),
]
"""Any message of the import queue."""

OWN_MESSAGE: TypeAdapter[OwnMessage] = TypeAdapter(OwnMessage, config=built_when_used())
DECLARED_MESSAGE: TypeAdapter[DeclaredMessage] = TypeAdapter(DeclaredMessage)
IMPORT_MESSAGE: TypeAdapter[ImportMessage] = TypeAdapter(ImportMessage, config=built_when_used())


Checked = TypeVar("Checked", bound=Message)


def checked(text: str | bytes, contract: TypeAdapter[Checked]) -> Checked:
    """Check the JSON of a message, and name in it the fields that docflow does not use.

    Raises:
        ValidationError: It is not one.
    """
    message = contract.validate_json(text)
    unknown = unknown_fields(contract.validate_json(text, extra="allow"))
    names = [name[:_NAME_CHARACTERS] for name in names_of_fields(unknown)]
    if not names:
        return message
    named = (*message.unknown_fields, *names)[:UNKNOWN_FIELDS]
    return message.model_copy(update={"unknown_fields": named})
