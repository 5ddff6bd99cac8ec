"""Imports as people read them, rows out again, and what is no longer kept."""

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from datetime import date, datetime, time
from decimal import Decimal
from typing import Annotated, Any, Final, Self

from pydantic import Field
from sqlalchemy import ColumnElement, Table, func, select, true

from adapters.database.engine import Database
from adapters.database.foreign import ForeignDatabases
from adapters.database.models.base import DOMAIN
from adapters.database.models.imports import FINAL, HAS_PROBLEMS, import_tasks, rejected_messages
from adapters.database.models.types import target_images
from adapters.database.records import KeptRows, SqlOldRows, record_of
from adapters.types.store import SqlDeclaredTypes
from adapters.types.tables import register_table, target_of
from adapters.types.targets import TargetTables
from workflows.imports.messages import Strategy
from workflows.imports.runs import Correction, Counts, ImportState, ImportStatus, Question
from workflows.imports.types import TableSpec
from workflows.shared.contracts import BlobRef, PlainRecord, Problem, not_served, served
from workflows.shared.declared_types import OTHER
from workflows.shared.fields import ColumnKind

_TEXTS: Final = ("problems", "report", "corrections")


_PROBLEM: Final = {
    "line": 7,
    "sheet": None,
    "column": "Qty",
    "value": "many",
    "reason": "is no number",
    "mark": None,
}


class ImportTaskRow(PlainRecord):
    """An import: its status row, and what its run reports since; moments are UTC."""

    workflow_id: Annotated[
        str, served("`import/PROJECT/TASK`", "import/P1/T1"), Field(serialization_alias="id")
    ]
    project_id: Annotated[str, not_served()]
    task_id: Annotated[str, not_served()]
    document_type: Annotated[str, served("What was imported", "equipment")]
    state: Annotated[ImportState, served("Where it stands", "parked")]
    step: Annotated[
        str | None, served("What its run does; null: no worker answers", "load_rows")
    ] = None
    reason: Annotated[str | None, served("Why it ended or waits", "the sheet is not named")] = None
    note: Annotated[str | None, served("What was left out", "2 totals were left out")] = None
    earlier: Annotated[
        ImportState | None,
        served("State of the import of the same work for which this one was skipped", None),
    ] = None
    counts: Annotated[Counts, served("Rows by outcome", {"created": 12})]
    problem_count: Annotated[int, served("How many problems there are", 1)]
    problems: Annotated[
        tuple[Problem, ...],
        served("The first 100; a row that was left out is one", [_PROBLEM]),
    ]
    answers: Annotated[Sequence[str], served("What may be answered now", ["retry"])] = ()
    question: Annotated[
        Question | None, served("What exactly is to be decided, if the answers are known", None)
    ] = None
    corrections: Annotated[
        tuple[Correction, ...],
        served("What people have changed of the message, the newest last", []),
    ] = ()
    strategy: Annotated[Strategy | None, not_served()] = None
    path: Annotated[str | None, not_served()] = None
    """`local` or `remote`."""
    guard: Annotated[str | None, not_served()] = None
    report: Annotated[BlobRef | None, not_served()] = None
    source_name: Annotated[str | None, not_served()] = None
    source_size: Annotated[int | None, not_served()] = None
    """Bytes."""
    source_sha256: Annotated[str | None, not_served()] = None
    filename: Annotated[str | None, served("Name of its file", "cranes.csv")] = None
    created_at: Annotated[datetime, not_served()]
    started_at: Annotated[datetime | None, not_served()] = None
    finished_at: Annotated[datetime | None, not_served()] = None
    updated_at: Annotated[datetime, not_served()]
    problems_removed_at: Annotated[datetime | None, not_served()] = None
    """When problems and report were removed because their time was over; None: they were not."""

    def reported(self, status: ImportStatus, answers: Iterable[str]) -> Self:
        """The import as its run says: it knows more, and earlier, than the row.

        Args:
            status: Of the run.
            answers: What it takes while it waits for a person.
        """
        waits, outcome = status.next_steps is not None, status.outcome
        changes = {
            "state": status.state,
            "step": status.step,
            "reason": status.reason,
            "answers": tuple(answers) if waits else (),
            "question": outcome.question if outcome is not None and waits else None,
        }
        return self.model_copy(update=changes)


class SqlImportTasks:
    """Status rows, for people; every method raises `Unavailable` without the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, project_id: str, task_id: str) -> ImportTaskRow | None:
        """One import."""
        tasks = import_tasks
        query = select(tasks).where(tasks.c.project_id == project_id, tasks.c.task_id == task_id)
        async with self._database.reading() as connection:
            row = (await connection.execute(query)).mappings().one_or_none()
        return None if row is None else record_of(ImportTaskRow, row, _TEXTS, counts=dict(row))


PAGE: Final = 5_000
"""Rows that are in memory at once."""


_READ: Final[Mapping[ColumnKind, Callable[[str], Any]]] = {
    ColumnKind.INTEGER: int,
    ColumnKind.DURATION: int,
    ColumnKind.PLACE: int,
    ColumnKind.DECIMAL: Decimal,
    ColumnKind.MONEY: Decimal,
    ColumnKind.DATE: date.fromisoformat,
    ColumnKind.TIME: time.fromisoformat,
    ColumnKind.TIMESTAMP: datetime.fromisoformat,
    ColumnKind.BOOLEAN: "true".__eq__,
}
"""How the text of a value in a table of a team is read."""


def _read(kind: Callable[[str], Any], text: str | None) -> Any:
    return None if text is None else kind(text)


class SqlImportedRows:
    """Reads imported tables; every method raises `Unavailable` without the database.

    Args:
        database: Where docflow's own tables are.
        targets: Tables of teams.
    """

    def __init__(self, database: Database, targets: TargetTables | None = None) -> None:
        self._database = database
        self._targets = targets or TargetTables(ForeignDatabases(database))

    async def scopes(
        self, spec: TableSpec, given: Mapping[str, str], most: int
    ) -> Sequence[Mapping[str, str]]:
        """The values of the scope that rows have, so many at most.

        Args:
            spec: The table.
            given: Values that some names of the scope have.
            most: How many are wanted.
        """
        names = _stored_scope(spec)
        found: dict[tuple[str, ...], None] = {}
        async with aclosing(self._pages(spec, given, names, ())) as pages:
            async for page in pages:
                found |= dict.fromkeys(tuple(map(str, row)) for row in page)
                if len(found) >= most:
                    break
        return [dict(zip(names, row, strict=True)) for row in [*found][:most]]

    async def kept(self, spec: TableSpec, scope: Mapping[str, str]) -> Sequence[str]:
        """The headers of the columns that rows keep beside their fields."""
        table = DOMAIN[spec.table]
        if OTHER not in table.c or target_of(spec.table) is not None:
            return ()
        keys = func.jsonb_object_keys(table.c[OTHER])
        query = select(keys).where(*_within(table, spec, scope)).distinct()
        async with self._database.reading() as connection:
            return sorted((await connection.execute(query)).scalars())

    async def read(
        self,
        spec: TableSpec,
        scope: Mapping[str, str],
        kept: Sequence[str] = (),
        *,
        with_scope: bool = False,
    ) -> AsyncGenerator[Sequence[tuple[Any, ...]]]:
        """Rows by natural key, as they are at one moment.

        Args:
            spec: The table.
            scope: Values of leading columns of its key; those that are absent may be any.
            kept: Headers of columns that rows keep beside their fields.
            with_scope: Begin each row with the values of its scope.

        Yields:
            Pages of values in the order of the fields of `spec`, and then of `kept`.
        """
        names = [*(_stored_scope(spec) if with_scope else ()), *(f.name for f in spec.fields)]
        async with aclosing(self._pages(spec, scope, names, kept)) as pages:
            async for page in pages:
                yield page

    async def _pages(
        self, spec: TableSpec, scope: Mapping[str, str], names: Sequence[str], kept: Sequence[str]
    ) -> AsyncGenerator[Sequence[tuple[Any, ...]]]:
        if not names:
            return
        if (declared := target_of(spec.table)) is not None:
            fields = spec.by_name
            kinds = [_READ.get(fields[n].kind, str) if n in fields else str for n in names]
            async with aclosing(self._targets.read(declared, scope, names)) as found:
                async for texts in found:
                    yield [tuple(map(_read, kinds, row)) for row in texts]
            return
        table = DOMAIN[spec.table]
        columns = [table.c[name] for name in names]
        values = [table.c[OTHER].op("->>")(header) for header in kept]
        order = [table.c[name] for name in spec.natural_key]
        query = select(*columns, *values).where(*_within(table, spec, scope)).order_by(*order)
        if {*names} <= {*spec.scope}:
            query = (
                select(*columns).where(*_within(table, spec, scope)).distinct().order_by(*columns)
            )
        async with self._database.streaming() as connection:
            found = await connection.stream(query.execution_options(yield_per=PAGE))
            async for page in found.partitions(PAGE):
                yield [tuple(row) for row in page]


def _stored_scope(spec: TableSpec) -> Sequence[str]:
    return spec.scope if spec.declared is None else spec.declared.stored_scope


def _within(
    table: Table, spec: TableSpec, scope: Mapping[str, str]
) -> Sequence[ColumnElement[bool]]:
    return [table.c[name] == scope[name] for name in spec.scope if name in scope]


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


def old_images(database: Database) -> SqlOldRows:
    """What imports have changed in tables of teams."""
    return SqlOldRows(database, target_images, target_images.c.created_at, true())


def old_resubmitted(database: Database) -> SqlOldRows:
    """Rejected messages that were sent again."""
    return SqlOldRows(database, rejected_messages, rejected_messages.c.resubmitted_at, true())


def old_rejected(database: Database) -> SqlOldRows:
    """Rejected messages that were never sent again."""
    messages = rejected_messages
    return SqlOldRows(
        database, messages, messages.c.received_at, messages.c.resubmitted_at.is_(None)
    )


async def old_of_types(database: Database) -> Sequence[KeptRows]:
    """The rows of each declared type that keeps them for a time after their last update."""
    found: list[KeptRows] = []
    for declared in (await SqlDeclaredTypes(database).in_force()).values():
        if declared.kept_days is not None:
            table = DOMAIN[register_table(declared)]
            rows = SqlOldRows(database, table, table.c.updated_at, true())
            found.append(KeptRows(f"rows of the type {declared.name}", declared.kept_days, rows))
    return found
