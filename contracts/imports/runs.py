"""What an import run decides, does and reports."""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from contracts.base import Contract
from contracts.blobs import BlobRef
from contracts.imports.messages import DocumentType, ImportMessage, Strategy


class ImportState(StrEnum):
    """Where one import stands; the last four are final."""

    RUNNING = "running"
    PARKED = "parked"
    COMPLETED = "completed"
    SKIPPED = "skipped"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Handler(StrEnum):
    """The activity that does the work of a document type."""

    LOAD_ROWS = "imports.load_rows"
    LOAD_SCHEDULE = "imports.load_schedule"
    LIST_SCHEDULE_PROJECTS = "imports.list_schedule_projects"
    STORE_UPLOAD = "imports.store_upload"
    CHANGE_ACTIVITIES = "imports.change_activities"
    DELETE_SERVICE = "imports.delete_service"


class TypeFacts(Contract):
    """What docflow knows about one document type; a row of the registry, kept in the run."""

    document_type: DocumentType
    handler: Handler
    table: str | None = None
    """Table the rows go to, or that a delete empties."""
    needs_blob: bool = True
    """The run fetches `blob_name` and hands it to the handler."""
    own_download: bool = False
    """The handler fetches its blob itself, when it is its turn."""
    bulk: bool = False
    delete: bool = False
    takes: tuple[str, ...] = ()
    """Fields of the message that the handler is given, beyond task and project."""
    natural_key: tuple[str, ...] = ()
    strategies: tuple[Strategy, ...] = ()
    guard: str | None = None
    """Field of the message that names the work: a second task with the same value is skipped."""


class ImportPlan(Contract):
    """Decided once, before the work, and kept in the run."""

    facts: TypeFacts
    path: Literal["local", "remote"]
    """`local`: short steps in the workflow's own worker; `remote`: heartbeating activities."""
    source: BlobRef | None = None
    """The file as it was when the run began."""
    delete_source: bool = False
    """Remove `source` when the import has completed."""


class Preparation(Contract):
    """Either a plan, or why there is nothing to do."""

    plan: ImportPlan | None = None
    skip: str | None = None
    state: ImportState = ImportState.SKIPPED
    """State of the earlier import when there is nothing to do."""


class Counts(Contract):
    """What happened to the rows of one import."""

    created: int = 0
    updated: int = 0
    unchanged: int = 0
    rejected: int = 0
    deleted: int = 0
    flagged: int = 0
    """Activities that the newest schedule no longer holds."""

    def plus(self, other: "Counts") -> "Counts":
        """The sum, field by field."""
        return Counts(
            **{name: getattr(self, name) + getattr(other, name) for name in Counts.model_fields}
        )

    @property
    def written(self) -> int:
        """Rows that the import changed."""
        return self.created + self.updated + self.deleted + self.flagged


class Problem(Contract):
    """One thing that is wrong with one row."""

    line: int | None = None
    """Row number as the user's program shows it, from 1; None: the whole document."""
    column: str | None = None
    """Header as it stands in the document, or the field's name."""
    value: str | None = Field(default=None, max_length=200)
    reason: str = Field(max_length=500)


PROBLEMS_IN_RESULT = 5
"""How many problems travel through history; the rest are in the report."""
PROBLEMS_IN_STATUS = 100
"""How many problems the status row keeps."""


class HandlerInput(Contract):
    """What a handler is given."""

    message: ImportMessage
    plan: ImportPlan


class HandlerOutcome(Contract):
    """What a handler did."""

    counts: Counts = Counts()
    problems: tuple[Problem, ...] = Field(default=(), max_length=PROBLEMS_IN_RESULT)
    """The first few."""
    problem_count: int = 0
    report: BlobRef | None = None
    """Spreadsheet of the rejected rows with what is wrong with each."""
    note: str | None = Field(default=None, max_length=500)
    """One sentence for the person who reads the result."""


class Closing(Contract):
    """How an import ends, or why it waits, for its status row."""

    message: ImportMessage
    plan: ImportPlan | None = None
    state: ImportState
    reason: str | None = Field(default=None, max_length=2000)
    outcome: HandlerOutcome | None = None
    """None: counts are what the progress mark says."""


class ImportOrder(Contract):
    """Input of the workflow."""

    message: ImportMessage
    park_for_seconds: int = Field(default=14 * 24 * 3600, ge=1)
    """How long a parked run waits for a person before it fails by itself."""


class ImportResult(Contract):
    """Result of the workflow."""

    task_id: str
    project_id: str
    document_type: DocumentType
    state: ImportState
    counts: Counts = Counts()
    problem_count: int = 0
    problems: tuple[Problem, ...] = ()
    report: BlobRef | None = None
    path: Literal["local", "remote"] | None = None
    reason: str | None = None


class Retry(Contract):
    """Answer to a parked run: try again from the failed step, optionally with another message."""

    message: ImportMessage | None = None
    """Same task, project and document type; other fields corrected."""
    by: str | None = Field(default=None, max_length=200)


class Answer(Contract):
    """Answer to a parked run (`skip`, `fail`), or the wish to stop (`cancel`)."""

    reason: str | None = Field(default=None, max_length=500)
    by: str | None = Field(default=None, max_length=200)


class ImportStatus(Contract):
    """Result of the `status` query."""

    state: ImportState
    step: str
    reason: str | None = None
    next_steps: str | None = None
    waiting_since: str | None = None
    """ISO 8601, UTC."""
    plan: ImportPlan | None = None
    outcome: HandlerOutcome | None = None
