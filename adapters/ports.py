"""What activities ask of the world, as protocols; `workers` wires the adapters.

Errors of the ports:

    PortError
      BlobNotFound          there is no blob of that name
      UnreadableDocument    the file is not what it says, damaged, encrypted or hostile
      Unavailable           the world may be well again in a moment
        Throttled           the world asked us to slow down

Adapters translate what their library raises into these, and nothing else is caught on them.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any, Final, Protocol

from contracts.blobs import BlobRef
from contracts.imports import (
    BulkMessage,
    Closing,
    Counts,
    HandlerOutcome,
    ImportMessage,
    ImportPlan,
    ImportState,
    Problem,
    Strategy,
)

Cell = str | int | float | bool | date | datetime | None
"""A cell as a reader hands it over; dates and times are naive, as they stand in the file."""


class PortError(Exception):
    """Any failure that a port promises."""


class BlobNotFound(PortError):
    """There is no blob of that name."""


class UnreadableDocument(PortError):
    """The file is not what it says, damaged, encrypted or hostile; the message says which."""


class Unavailable(PortError):
    """The world may be well again in a moment."""


class Throttled(Unavailable):
    """The world asked us to slow down.

    Attributes:
        retry_after: Seconds that the server asked for, or None.
    """

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Blobs(Protocol):
    """One container of blobs."""

    async def stat(self, name: str) -> BlobRef:
        """Size and etag, without the bytes.

        Raises:
            BlobNotFound: There is no such blob.
        """
        ...

    async def download(
        self, name: str, target: Path, progress: Callable[[int], None] | None = None
    ) -> BlobRef:
        """Stream a blob into a new file; the returned reference carries its sha256.

        Args:
            name: Blob name.
            target: File to write; its folder exists.
            progress: Called with the bytes written so far, at least once per 8 MB.

        Raises:
            BlobNotFound: There is no such blob.
        """
        ...

    async def upload(self, source: Path, name: str, *, overwrite: bool = True) -> BlobRef:
        """Stream a file into a blob; readers see the old bytes or all of the new ones.

        Raises:
            FileExistsError: `overwrite` is false and the blob exists.
        """
        ...

    async def copy(self, source: str, target: str) -> BlobRef:
        """Copy within the container, replacing `target`.

        Raises:
            BlobNotFound: There is no `source`.
        """
        ...

    async def delete(self, name: str, *, etag: str | None = None) -> bool:
        """Delete a blob; False when it was gone already, or is not at `etag` any more."""
        ...


class TableSource(Protocol):
    """One table of a file, read from top to bottom, once."""

    format: str
    """`csv`, `xlsx`, `xls` or `ods`."""
    sheet: str | None
    encoding: str | None

    def rows(self) -> Iterator[tuple[int, list[Cell]]]:
        """Rows that hold anything, each with its line number as the user's program shows it.

        Trailing empty cells are cut; memory stays bounded whatever the file.

        Raises:
            UnreadableDocument: The file turned out damaged or hostile on the way.
        """
        ...


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """A row that did not go in."""

    line: int
    cells: Sequence[Cell]
    """As read."""
    problems: Sequence[Problem]


@dataclass(frozen=True, slots=True)
class ScheduleProject:
    """One project of a schedule file."""

    primavera_project_id: str
    """Its short name, which stays the same from update to update."""
    object_id: str
    name: str | None
    data_date: datetime | None
    planned_start: datetime | None
    finish: datetime | None
    activities: int


ScheduleItem = tuple[int, str, dict[str, Any]] | RejectedRow | Problem
"""What a schedule says, piece by piece.

An entity: line, table, and the values of its key and columns. A row that is left out: its cells
are the table, the line, and each value after its name. A value that was emptied or cut, right
behind its entity, which goes in all the same.
"""


class ScheduleSource(Protocol):
    """A Primavera file."""

    format: str
    """`xer` or `pmxml`."""

    def projects(self) -> list[ScheduleProject]:
        """The projects of the file.

        Raises:
            UnreadableDocument: The file is damaged or hostile.
        """
        ...

    def read(self, primavera_project_id: str) -> Iterator[ScheduleItem]:
        """Everything the file says about one project, by short name or object id.

        Yields:
            Entities, references resolved to codes, and in between the rows and values that are
            left out; the same items in the same order at every reading. The first is the
            project. Order of the tables: schedule_projects, schedule_calendars, schedule_wbs,
            schedule_resources, schedule_activities, schedule_relationships,
            schedule_assignments, schedule_activity_codes, schedule_udf_values.

        Raises:
            UnreadableDocument: The file is damaged or hostile, or holds no such project.
        """
        ...


class Documents(Protocol):
    """Reads files of every format docflow knows."""

    def open_table(
        self,
        path: Path,
        *,
        filename: str | None = None,
        sheet: str | None = None,
        encoding: str | None = None,
    ) -> AbstractContextManager[TableSource]:
        """Open a table by what the file holds; the name is a hint.

        Raises:
            UnreadableDocument: No table can be read from it; the message says why.
        """
        ...

    def open_schedule(
        self, path: Path, *, filename: str | None = None, encoding: str | None = None
    ) -> AbstractContextManager[ScheduleSource]:
        """Open an XER or PMXML file by what it holds.

        Raises:
            UnreadableDocument: It is neither, or damaged; the message says which.
        """
        ...


class ReportWriter(Protocol):
    """Writes the spreadsheet of rejected rows."""

    def write(self, target: Path, header: Sequence[str], rows: Iterator[RejectedRow]) -> None:
        """The user's own rows plus a first column that says what is wrong with each.

        Formulas are written as text; memory stays bounded.
        """
        ...


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


class ImportStore(Protocol):
    """Tables of the imports pipeline. Every method is one transaction and may run twice."""

    async def begin(
        self, message: ImportMessage, plan: ImportPlan, workflow_id: str, guard: str | None
    ) -> tuple[ImportState, str] | None:
        """Open the status row, or tell of an earlier import that makes this one needless.

        Args:
            message: The message.
            plan: The decisions of this run.
            workflow_id: Who does it.
            guard: Value that names the work (idempotency key, extraction id); no two tasks of
                a project and document type may complete it.

        Returns:
            None when the import is open. Otherwise state and task id of the import that is
            completed or failed already: this task itself, or another one with this guard.
        """
        ...

    async def close(self, closing: Closing, workflow_id: str) -> HandlerOutcome:
        """Write state, reason, counts and first problems into the status row.

        A row in a final state stays as it is, unless `closing` is of the same state. Without
        `closing.outcome` the counts are those of the progress mark.

        Returns:
            The outcome as recorded.
        """
        ...

    async def mark(self, key: TaskKey) -> LoadMark:
        """How far this task's load has come; the empty mark when it has not begun."""
        ...

    async def restart(self, key: TaskKey, header: Sequence[str]) -> None:
        """Begin a load: forget mark, rejects and staged rows of this task, keep the header."""
        ...

    async def write(self, key: TaskKey, chunk: RowChunk, strategy: Strategy) -> LoadMark:
        """Write one chunk into its table by natural key, with rejects and progress mark.

        A chunk at or before the mark's cursor is left alone.
        """
        ...

    async def stage(self, key: TaskKey, chunk: RowChunk) -> LoadMark:
        """Put one chunk aside, with rejects and progress mark; nobody sees its rows yet."""
        ...

    async def swap(
        self,
        key: TaskKey,
        table: str,
        scope: Mapping[str, Any],
        strategy: Strategy,
        as_of: date,
    ) -> LoadMark:
        """Bring the staged rows in, all at once, and finish the load.

        Args:
            key: The task.
            table: Target table.
            scope: Column values that bound what `replace` may remove.
            strategy: `replace` removes what the file does not hold (rows with a validity are
                closed as of `as_of` instead); the others act as in `write`.
            as_of: Day of the import.
        """
        ...

    async def finish(self, key: TaskKey) -> LoadMark:
        """Mark a load that was written chunk by chunk as finished."""
        ...

    def rejects(self, key: TaskKey) -> AsyncIterator[Sequence[RejectedRow]]:
        """Rejected rows by line, in pages of at most 1,000; no transaction is held open."""
        ...

    async def retire(self, key: TaskKey, primavera_project_id: str) -> Counts:
        """Bring a Primavera project in line with what the task's file did not hold.

        Activities that are missing from the file are flagged, never deleted; those that are
        back lose their flag. Relationships, assignments, codes and UDF values that the file
        does not hold any more are deleted. Returns `flagged` (newly) and `deleted`.
        """
        ...

    async def record_schedule_projects(
        self, key: TaskKey, source: BlobRef, projects: Sequence[ScheduleProject]
    ) -> Counts:
        """Register which projects and data dates a file holds."""
        ...

    async def register_upload(
        self, key: TaskKey, blob: BlobRef, original_filename: str | None
    ) -> Counts:
        """Register a stored schedule file with hash, size and original name."""
        ...

    async def change_activities(self, message: BulkMessage) -> Counts:
        """Apply a bulk operation to the selected activities of the message's project."""
        ...

    async def delete_service(self, table: str, project_id: str, service_id: str) -> int:
        """Delete a service's rows; how many."""
        ...


REJECTED_BODY_BYTES: Final = 64 * 1024
"""Bytes of a rejected body that its record keeps."""


@dataclass(frozen=True, slots=True)
class RejectedMessage:
    """A message that went to the dead letter queue, kept to be looked at and resubmitted."""

    id: int
    queue: str
    message_id: str | None
    reason: str
    description: str
    body: str
    """The raw body, at most `REJECTED_BODY_BYTES` of it."""
    truncated: bool
    received_at: datetime
    resubmitted_at: datetime | None


class RejectedMessages(Protocol):
    """The record of rejected messages."""

    async def record(
        self, queue: str, message_id: str | None, reason: str, description: str, body: bytes
    ) -> None:
        """Keep a message; the same message id of the same queue is kept once."""
        ...

    async def list(self, limit: int = 50) -> Sequence[RejectedMessage]:
        """The newest first."""
        ...

    async def get(self, id: int) -> RejectedMessage | None:
        """One message."""
        ...

    async def mark_resubmitted(self, id: int) -> None:
        """Note that the message was sent again."""
        ...
