"""Imports as people read them, rows out again, and what is no longer kept."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from pydantic import TypeAdapter
from sqlalchemy import func, select, true

from activities.imports.status_store import counts_of
from adapters.database.engine import Database
from adapters.database.models.base import DOMAIN
from adapters.database.models.imports import FINAL, HAS_PROBLEMS, import_tasks, rejected_messages
from adapters.database.records import SqlOldRows, load_problems
from workflows.imports.messages import DocumentType, Strategy
from workflows.imports.runs import Correction, Counts, ImportState
from workflows.imports.types import TableSpec
from workflows.shared.contracts import BlobRef, Problem, built_when_used

_CORRECTIONS: Final = TypeAdapter(tuple[Correction, ...], config=built_when_used())


@dataclass(frozen=True, slots=True)
class ImportTaskRow:
    """The status row of one import; moments are UTC."""

    project_id: str
    task_id: str
    document_type: DocumentType
    state: ImportState
    strategy: Strategy | None
    path: str | None
    """`local` or `remote`."""
    guard: str | None
    counts: Counts
    problem_count: int
    problems: tuple[Problem, ...]
    """The first 100."""
    report: BlobRef | None
    source_name: str | None
    source_size: int | None
    """Bytes."""
    source_sha256: str | None
    filename: str | None
    workflow_id: str
    reason: str | None
    note: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    updated_at: datetime
    corrections: tuple[Correction, ...] = ()
    """What people have changed of the message, the newest last."""
    problems_removed_at: datetime | None = None
    """When problems and report were removed because their time was over; None: they were not."""


class SqlImportTasks:
    """Status rows, for people; every method raises `Unavailable` without the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, project_id: str, task_id: str) -> ImportTaskRow | None:
        """One import."""
        tasks = import_tasks
        query = select(tasks).where(tasks.c.project_id == project_id, tasks.c.task_id == task_id)
        async with self._database.reading() as connection:
            row = (await connection.execute(query)).one_or_none()
        return None if row is None else _row(row)


def _row(row: Any) -> ImportTaskRow:
    return ImportTaskRow(
        project_id=row.project_id,
        task_id=row.task_id,
        document_type=DocumentType(row.document_type),
        state=ImportState(row.state),
        strategy=None if row.strategy is None else Strategy(row.strategy),
        path=row.path,
        guard=row.guard,
        counts=counts_of(row),
        problem_count=row.problem_count,
        problems=load_problems(row.problems),
        report=None if row.report is None else BlobRef.model_validate_json(row.report),
        source_name=row.source_name,
        source_size=row.source_size,
        source_sha256=row.source_sha256,
        filename=row.filename,
        workflow_id=row.workflow_id,
        reason=row.reason,
        note=row.note,
        problems_removed_at=row.problems_removed_at,
        corrections=_CORRECTIONS.validate_json(row.corrections or "[]"),
        created_at=row.created_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        updated_at=row.updated_at,
    )


PAGE: Final = 5_000
"""Rows that are in memory at once."""


class SqlImportedRows:
    """Reads imported tables; every method raises `Unavailable` without the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(
        self, spec: TableSpec, scope: Mapping[str, str]
    ) -> AsyncGenerator[Sequence[tuple[Any, ...]]]:
        """Rows by natural key, as they are at one moment.

        Args:
            spec: The table.
            scope: Values of the leading columns of its key.

        Yields:
            Pages of values in the order of the fields of `spec`.
        """
        table = DOMAIN[spec.table]
        query = (
            select(*(table.c[field.name] for field in spec.fields))
            .where(*(table.c[name] == value for name, value in scope.items()))
            .order_by(*(table.c[name] for name in spec.key))
            .execution_options(yield_per=PAGE)
        )
        async with self._database.streaming() as connection:
            found = await connection.stream(query)
            async for page in found.partitions(PAGE):
                yield [tuple(row) for row in page]


_ENDED: Final = import_tasks.c.state.in_([state.value for state in FINAL])


def old_problems(database: Database) -> SqlOldRows:
    """Problems and reports of imports that have ended; the status rows stay."""
    tasks = import_tasks
    return SqlOldRows(
        database,
        tasks,
        tasks.c.finished_at,
        HAS_PROBLEMS & _ENDED,
        blob=tasks.c.report,
        emptied={"problems": "[]", "report": None, "problems_removed_at": func.now()},
    )


def old_imports(database: Database) -> SqlOldRows:
    """Status rows of imports that have ended, with their reports."""
    tasks = import_tasks
    return SqlOldRows(database, tasks, tasks.c.finished_at, _ENDED, blob=tasks.c.report)


def old_resubmitted(database: Database) -> SqlOldRows:
    """Rejected messages that were sent again."""
    return SqlOldRows(database, rejected_messages, rejected_messages.c.resubmitted_at, true())


def old_rejected(database: Database) -> SqlOldRows:
    """Rejected messages that were never sent again."""
    messages = rejected_messages
    return SqlOldRows(
        database, messages, messages.c.received_at, messages.c.resubmitted_at.is_(None)
    )
