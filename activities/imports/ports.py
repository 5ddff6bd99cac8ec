"""Tables of the imports pipeline."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Protocol

from workflows.imports.messages import AnyTableMessage, BulkMessage, ImportMessage, Strategy
from workflows.imports.runs import (
    Closing,
    Counts,
    HandlerOutcome,
    ImportPlan,
    ImportState,
    LoadMark,
    RowChunk,
    TaskKey,
)
from workflows.imports.schedules import ScheduleProject
from workflows.shared.cells import RejectedRow
from workflows.shared.contracts import BlobRef


@dataclass(frozen=True, slots=True)
class EarlierImport:
    """The import that has the work of another one."""

    state: ImportState
    task_id: str
    digest: str | None = None
    """Of the message that began it; None: a release that kept none began it."""
    by_this_run: bool = False
    """The run that asks has done it: a worker died before Temporal knew."""


@dataclass(frozen=True, slots=True)
class WholeImport:
    """A table import that one transaction writes and records as completed.

    Attributes:
        message: The message.
        plan: The decisions of the run.
        workflow_id: Who does it.
        guard: See `ImportStore.begin`, and so the next two.
        digest: Of the message that started the run.
        run_id: Of the run in Temporal.
        chunk: All rows of the document; none of them was rejected.
        note: Of the outcome.
    """

    message: AnyTableMessage
    plan: ImportPlan
    workflow_id: str
    guard: str | None
    digest: str | None
    run_id: str | None
    chunk: RowChunk
    note: str | None = None


@dataclass(frozen=True, slots=True)
class ScheduleClaim:
    """The schedule that a file is about."""

    short_name: str
    """As the file has it."""
    schedule_id: str
    known: Mapping[str, str]
    """The names of the project's schedules, to their ids, by which it was found."""


@dataclass(frozen=True, slots=True)
class HeldBy:
    """Another task that is loading what this one is about."""

    task_id: str


class ImportStore(Protocol):
    """Tables of the imports pipeline.

    Every method is one transaction and may run twice. What a task does in a single call
    (registering, bulk operations, deletes) it does once: a second call of the same task returns the
    counts of the first.
    """

    async def begin(
        self,
        message: ImportMessage,
        plan: ImportPlan,
        workflow_id: str,
        guard: str | None,
        digest: str | None = None,
        run_id: str | None = None,
    ) -> EarlierImport | None:
        """Open the status row, or return an earlier import that makes this one unnecessary.

        Args:
            message: The message.
            plan: The decisions of this run.
            workflow_id: Who does it.
            guard: Value that names the work (idempotency key, extraction id); no two tasks of
                a project and document type may complete it.
            digest: Of the message that started the run; kept in the row.
            run_id: Of the run in Temporal; kept in the row.

        Returns:
            None when the import is open. Otherwise the import that has the work: this task itself,
            in a final state, or another one with this guard, which may be running or parked.
        """
        ...

    async def complete(self, whole: WholeImport) -> HandlerOutcome | None:
        """Write all rows of an import that has not begun, and a status row that is completed.

        Returns:
            The outcome as recorded. None, and nothing is written: the import takes the usual
            steps, because it has begun or another task has its guard, the store refuses a row, or
            codes differ from known ones in leading zeros only and no person has said what they are.
        """
        ...

    async def close(self, closing: Closing, workflow_id: str) -> HandlerOutcome:
        """Write state, reason, counts and first problems into the status row.

        A row in a final state stays as it is. Without `closing.outcome` the counts are those of
        the progress mark.

        Returns:
            The outcome as recorded.
        """
        ...

    async def terminate(
        self, id: str, reason: str, unchanged_since: datetime | None = None
    ) -> bool:
        """Close the row of a run that is over; see `OpenRows`."""
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
        """Stage one chunk, with rejects and progress mark; its rows are not visible yet."""
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

    async def remember(self, key: TaskKey, document_type: str, question: str, answer: str) -> None:
        """Keep what a person answered for a project and type; the newest answer counts."""
        ...

    async def remembered(self, project_id: str, document_type: str, question: str) -> str | None:
        """The answer to a question; None: none was given."""
        ...

    async def zero_led_lengths(
        self, key: TaskKey, table: str, scope: Mapping[str, Any], names: Sequence[str]
    ) -> Sequence[int]:
        """Where some code begins with a zero, how long the first one is: each length once.

        Args:
            key: The task; rows that it has written itself are left out.
            table: Where to look.
            scope: Column values that bound it.
            names: Columns of the codes.
        """
        ...

    async def known_codes(
        self,
        key: TaskKey,
        table: str,
        scope: Mapping[str, Any],
        names: Sequence[str],
        firsts: Sequence[str],
    ) -> Mapping[tuple[str, ...], bool]:
        """Codes of a scope, as `names` has them, of which the first is one of `firsts`.

        Returns:
            Each with whether the task itself has written it.
        """
        ...

    async def give_sections(
        self, key: TaskKey, table: str, scope: Mapping[str, Any], sections: Mapping[str, str]
    ) -> None:
        """Give stored lines without a section theirs, if their item stands there once.

        Args:
            key: The task.
            table: Where they are.
            scope: Column values that bound them.
            sections: By item code.
        """
        ...

    async def finish(self, key: TaskKey) -> LoadMark:
        """Mark a load that was written chunk by chunk as finished."""
        ...

    def rejects(self, key: TaskKey) -> AsyncIterator[Sequence[RejectedRow]]:
        """Rejected rows by line, in pages of at most 1,000; no transaction is held open."""
        ...

    async def retire(self, key: TaskKey, schedule_id: str) -> Counts:
        """Bring a schedule in line with what the task's file did not hold.

        Activities that are missing from the file are flagged, never deleted; those that are
        back lose their flag. Relationships, assignments, codes and UDF values that the file
        does not hold any more are deleted. Returns `flagged` (newly) and `deleted`.
        """
        ...

    async def schedule_names(self, project_id: str) -> Mapping[str, str]:
        """Short names under which a project's schedules are known, to their ids."""
        ...

    async def schedules_holding(
        self, project_id: str, task_codes: Sequence[str]
    ) -> Mapping[str, int]:
        """How many of these codes each schedule of a project holds, by its id."""
        ...

    async def begin_schedule(
        self, key: TaskKey, header: Sequence[str], claim: ScheduleClaim
    ) -> LoadMark | HeldBy | None:
        """Begin to load a schedule, or continue, and remember its short name.

        Args:
            key: The task.
            header: Distinguishes this work from that of a message which a person has corrected;
                ends with the id of the schedule.
            claim: The schedule.

        Returns:
            The mark of an earlier attempt at this very work, or a fresh one, whose header has one
            more part, the data date that another task has left (ISO 8601, or empty); or who has to
            end first; or None: there are other names by now, so that it is to be identified again.
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

    async def change_activities(self, message: BulkMessage) -> Counts | HeldBy:
        """Apply a bulk operation to the selected activities of the message's project.

        Returns:
            What it did; or which load of a schedule has to end first, and nothing was done.
        """
        ...

    async def delete_service(self, key: TaskKey, table: str, service_id: str) -> Counts:
        """Delete a service's rows."""
        ...
