"""What an import run decides, does and reports."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from pydantic import Field, StringConstraints

from workflows.imports.messages import ImportMessage, Key, TypeName
from workflows.shared import contracts
from workflows.shared.cells import Cell, RejectedRow
from workflows.shared.contracts import BlobRef, Contract, Digest, Origin, Problem
from workflows.shared.dependencies import Dependency

TASK_QUEUE: Final = "imports"
"""Where runs are started and workers of this pipeline look for work."""

PROBLEMS_IN_RESULT: Final = 5
"""How many problems travel through history; the rest are in the report."""
PROBLEMS_IN_STATUS: Final = 100
"""How many problems the status row keeps."""
REASON_CHARACTERS: Final = 2000
CORRECTIONS: Final = 8
"""How many corrections of its message an import keeps, the newest."""
NOTE_CHARACTERS: Final = 1300

Reason = Annotated[str, StringConstraints(max_length=REASON_CHARACTERS)]
"""Why an import ended or waits, for people."""
Name = Annotated[str, StringConstraints(max_length=64)]
"""A table, a field or a step."""


class ImportState(StrEnum):
    """Where one import stands; the last five are final."""

    RUNNING = "running"
    PARKED = "parked"
    COMPLETED = "completed"
    SKIPPED = "skipped"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TERMINATED = "terminated"
    """Its run was ended from outside; what it held is free, and its task may run again."""


class Handler(StrEnum):
    """The activity that does the work of a document type."""

    LOAD_ROWS = "imports.load_rows"
    LOAD_SCHEDULE = "imports.load_schedule"
    LIST_SCHEDULE_PROJECTS = "imports.list_schedule_projects"
    STORE_UPLOAD = "imports.store_upload"
    CHANGE_ACTIVITIES = "imports.change_activities"
    DELETE_SERVICE = "imports.delete_service"


class TypeInfo(Contract):
    """What docflow knows about one document type; a row of the registry, kept in the run."""

    document_type: TypeName
    handler: Handler
    table: Name | None = None
    """Table the rows go to, or that a delete empties."""
    needs_blob: bool = True
    """The run fetches `blob_name` and passes it to the handler."""
    own_download: bool = False
    """The handler fetches its blob itself, when it is its turn."""
    guard: Name | None = None
    """Field of the message that names the work: a second task with the same value is skipped."""
    type_digest: Digest | None = None
    """The version of a declared type; its own types a release knows itself."""


class ImportPlan(Contract):
    """Decided once, before the work, and kept in the run."""

    facts: TypeInfo
    path: Literal["local", "remote"]
    """`local`: short steps in the workflow's own worker; `remote`: heartbeating activities."""
    source: BlobRef | None = None
    """The file as it was when the run began."""
    delete_source: bool = False
    """Remove `source` when the import has completed."""


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


class HandlerInput(Contract):
    """What a handler is given."""

    message: ImportMessage
    plan: ImportPlan


class Choice(Contract):
    """One of the answers to a question."""

    value: str = Field(min_length=1, max_length=255)
    """What the field of the answer then holds."""
    meaning: str = Field(max_length=60)
    """For people."""


class Question(Contract):
    """What a person has to decide before a document goes in."""

    field: Name
    """Field of the message that the answer changes."""
    choices: tuple[Choice, ...] = Field(max_length=4)


class HandlerOutcome(Contract):
    """What a handler did."""

    counts: Counts = Counts()
    problems: tuple[Problem, ...] = Field(default=(), max_length=PROBLEMS_IN_RESULT)
    """The first few."""
    problem_count: int = 0
    report: BlobRef | None = None
    """Spreadsheet of the rejected rows with what is wrong with each."""
    note: str | None = Field(default=None, max_length=NOTE_CHARACTERS)
    """What the person who reads the result has to know beside the counts: what was left out."""
    held_back: str | None = Field(default=None, max_length=500)
    """Why the import is not completed although its document was read: a person has to decide."""
    question: Question | None = None
    """What exactly is to be decided, where the answers are known."""
    waits: Reason | None = None
    """Another task has to end first: why nothing was done yet."""
    unfinished: bool = False
    """The step is to be continued as a remote one; nothing else is said then."""


class Preparation(Contract):
    """A plan; or why there is nothing to do, or not yet."""

    plan: ImportPlan | None = None
    skip: Reason | None = None
    state: ImportState = ImportState.SKIPPED
    """State of the earlier import when there is nothing to do."""
    waits: Reason | None = None
    """Another task that is running has the work: why this one waits for its end."""
    refused: Reason | None = None
    """Another message has the task: why this one, which is recorded as rejected, is not used."""
    digest: Digest | None = None
    """Of the message that has the task, where this one is refused."""
    done: bool = False
    """This very run has done the work that is planned, and recorded its end."""
    outcome: HandlerOutcome | None = None
    """What it did, as recorded, where this step did all of it; None, and it is done: only the
    record knows."""
    unfinished: bool = False
    """The step is to be continued as a remote one; nothing else is said then."""


class Correction(Contract):
    """What a person has changed of the message of a parked import."""

    by: str | None = Field(default=None, max_length=200)
    at: str = Field(max_length=40)
    """ISO 8601, UTC."""
    changes: str = Field(max_length=300)
    """Fields with their new values, as `sheet: Rev B; filename: list.xlsx`."""


class Closing(Contract):
    """How an import ends, or why it waits, for its status row."""

    message: ImportMessage
    plan: ImportPlan | None = None
    state: ImportState
    reason: Reason | None = None
    outcome: HandlerOutcome | None = None
    """None: the counts of the progress mark."""
    digest: Digest | None = None
    """Of the message that started the run, for a row that is made only now."""
    corrections: tuple[Correction, ...] = Field(default=(), max_length=CORRECTIONS)
    """What people have changed of the message since, the newest last."""


class ImportInput(Contract):
    """Input of the workflow."""

    message: ImportMessage
    park_for_seconds: int = Field(default=14 * 24 * 3600, ge=1)
    """How long a parked run waits for a person before it fails by itself."""
    notices: bool = False
    """People are sent notices; an order of a release that had none asks for none."""
    origin: Origin | None = None
    """Of the message that started the run, also when a person has corrected it since; None: a
    release that kept none, or a person, started the run."""


class ImportResult(Contract):
    """Result of the workflow."""

    task_id: Key
    project_id: Key
    document_type: TypeName
    state: ImportState
    counts: Counts = Counts()
    problem_count: int = 0
    problems: tuple[Problem, ...] = Field(default=(), max_length=PROBLEMS_IN_RESULT)
    report: BlobRef | None = None
    path: Literal["local", "remote"] | None = None
    reason: Reason | None = None
    note: str | None = Field(default=None, max_length=NOTE_CHARACTERS)
    """What the outcome says beside the counts, where `reason` says why the import ended."""
    earlier: ImportState | None = None
    """State of the import of the same work for which this one was skipped."""


Changed = (
    Annotated[str, StringConstraints(max_length=1024)]
    | bool
    | tuple[Annotated[str, StringConstraints(max_length=255)] | int, ...]
    | dict[
        Annotated[str, StringConstraints(max_length=255)],
        Annotated[str, StringConstraints(max_length=255)],
    ]
)
"""A value that a person gives a field of the message."""


class Retry(contracts.Retry):
    """Answer to a parked run: try again from the failed step, optionally with another message."""

    message: ImportMessage | None = None
    """Same task, project and document type; other fields corrected."""
    changes: dict[Name, Changed] = Field(default_factory=dict[str, Changed], max_length=32)
    """Fields of the message that get another value, as `sheet`, `map`, `schedule_id` or
    `blob_name`; the rest of it stays."""


class ImportStatus(Contract):
    """Result of the `status` query."""

    state: ImportState
    step: Name
    reason: Reason | None = None
    next_steps: str | None = Field(default=None, max_length=100)
    waiting_since: str | None = Field(default=None, max_length=40)
    """ISO 8601, UTC."""
    plan: ImportPlan | None = None
    outcome: HandlerOutcome | None = None
    waiting_for: Dependency | None = None
    """What docflow itself needs and does not answer; the run continues when it does."""


@dataclass(frozen=True, slots=True)
class TaskKey:
    """Names one import."""

    project_id: str
    task_id: str


@dataclass(frozen=True, slots=True)
class RowChunk:
    """Some rows of one table, valid and unique by natural key within the file so far."""

    table: str
    columns: tuple[str, ...]
    """Natural key and every column that the file has."""
    rows: Sequence[tuple[Any, ...]]
    """Python values in the order of `columns`."""
    lines: Sequence[int]
    """Line number of each row."""
    cells: Sequence[Sequence[Cell]]
    """Each row as read, for the report, should the store refuse it; empty where none is made."""
    rejected: Sequence[RejectedRow]
    """Rows of this stretch that did not get this far."""
    cursor: int
    """Rows of the source consumed when this chunk is in."""
    header: tuple[str, ...] = ()
    """Header that the load begins under with this chunk; empty: the one it has."""


@dataclass(frozen=True, slots=True)
class LoadMark:
    """How far a load has come; written with each chunk, in its transaction."""

    cursor: int = 0
    counts: Counts = field(default_factory=Counts)
    problem_count: int = 0
    header: tuple[str, ...] = ()
    finished: bool = False
