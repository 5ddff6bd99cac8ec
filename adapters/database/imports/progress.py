"""The progress mark of a load, what was rejected on the way, and who may advance it.

Every write first opens its load: that locks the mark until the transaction ends, so that of two
attempts at the same task (the older may be a worker that was thought dead) one waits, and then
sees what the other has done. The load of a closed import cannot be opened any more.
"""

import json
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Executable,
    Integer,
    Select,
    Text,
    bindparam,
    delete,
    false,
    func,
    literal,
    literal_column,
    select,
    true,
    tuple_,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.bulk.protocol import BulkEngine, advisory_lock_key
from adapters.database.codec import dump_cells, dump_problems, load_cells, load_problems
from adapters.database.engine import Database
from adapters.database.models.base import UtcDateTime, metadata
from adapters.database.models.imports import (
    COUNTS,
    FINAL,
    import_progress,
    import_rejects,
    import_tasks,
)
from contracts.imports import Counts, Problem
from domain.imports.chunks import LoadMark, TaskKey
from domain.tabular.rows import RejectedRow

REJECTS_PAGE: Final = 1_000


@dataclass(frozen=True)
class Load:
    """An open load, locked until the transaction ends.

    Attributes:
        id: What its staged rows, rejects and seen keys are filed under.
        mark: How far it has come.
        retired: What bringing the schedule in line has done, once it has.
        aside: Table that keeps rows under `id` until the load is done: a staging twin, or the
            keys that a schedule has held.
        staged_columns: Columns that the staged rows have.
    """

    id: int
    mark: LoadMark
    retired: Counts | None = None
    aside: str | None = None
    staged_columns: tuple[str, ...] = ()


def turn_name(table: str, project_id: str) -> str:
    """What writers of a project's rows in one table take turns on."""
    return f"{table}/{project_id}"


async def open_load(
    connection: AsyncConnection,
    bulk: BulkEngine,
    key: TaskKey,
    now: datetime,
    *,
    turn: str | None = None,
    alone: bool = False,
) -> Load | None:
    """Lock the load of a task, made when there is none; None when the import is closed.

    Args:
        connection: In a transaction.
        bulk: Of this database.
        key: The task.
        now: Time of the transaction.
        turn: What to wait one's turn for as well, in the same round trip.
        alone: Whether it is locked exclusively.
    """
    statement = _opening(bulk, turn is not None, alone)
    parameters: dict[str, Any] = {"project": key.project_id, "task": key.task_id, "now": now}
    if turn is not None:
        parameters["turn"] = advisory_lock_key(turn)
    row = (await connection.execute(statement, parameters)).one_or_none()
    return None if row is None else load_of(row)


@lru_cache
def _opening(bulk: BulkEngine, takes_turn: bool, alone: bool) -> Executable:
    progress, tasks = import_progress, import_tasks
    project, task_id = bindparam("project", type_=Text), bindparam("task", type_=Text)
    now = bindparam("now", type_=UtcDateTime)
    # FOR SHARE makes this wait for a close under way, and then see the state it left.
    task = (
        select(tasks.c.state)
        .where(tasks.c.project_id == project, tasks.c.task_id == task_id)
        .with_for_update(read=True)
        .subquery("task")
    )
    always = select(literal_column("1", Integer).label("one")).subquery("always")
    zeros = (literal_column("0", Integer) for _ in ("cursor", *COUNTS, "problem_count"))
    fresh = (
        select(project, task_id, *zeros, literal("[]"), false(), now)
        .select_from(always.outerjoin(task, true()))
        .where(func.coalesce(task.c.state, "").not_in([state.value for state in FINAL]))
    )
    names = ("project_id", "task_id", "cursor", *COUNTS, "problem_count", "header", "finished")
    turn = bulk.turn(alone=alone) if takes_turn else None
    return (
        bulk.insert_statement(progress)
        .from_select([*names, "updated_at"], fresh, include_defaults=False)
        .on_conflict_do_update(index_elements=["project_id", "task_id"], set_={"updated_at": now})
        .returning(*progress.c, *(() if turn is None else (turn,)))
    )


def load_of(row: Any) -> Load:
    """A load from its row of `import_progress`."""
    return Load(
        id=row.id,
        mark=LoadMark(
            cursor=row.cursor,
            counts=counts_of(row),
            problem_count=row.problem_count,
            header=tuple(json.loads(row.header)),
            finished=row.finished,
        ),
        retired=None if row.retired is None else Counts.model_validate_json(row.retired),
        aside=row.aside,
        staged_columns=tuple(json.loads(row.staged_columns or "[]")),
    )


def counts_of(row: Any) -> Counts:
    """Counts from a row that has a column for each."""
    return Counts(**{name: getattr(row, name) for name in COUNTS})


async def read_mark(connection: AsyncConnection, key: TaskKey) -> LoadMark:
    """The mark of a task; that of a closed import is finished and has the recorded counts."""
    parameters = {"project": key.project_id, "task": key.task_id}
    row = (await connection.execute(_progress_of_task(), parameters)).one_or_none()
    if row is not None:
        return load_of(row).mark
    closed = (await connection.execute(_closed_task(), parameters)).one_or_none()
    if closed is None:
        return LoadMark()
    return LoadMark(counts=counts_of(closed), problem_count=closed.problem_count, finished=True)


@lru_cache
def _progress_of_task() -> Select[Any]:
    return select(import_progress).where(
        import_progress.c.project_id == bindparam("project"),
        import_progress.c.task_id == bindparam("task"),
    )


@lru_cache
def _closed_task() -> Select[Any]:
    return select(import_tasks).where(
        import_tasks.c.project_id == bindparam("project"),
        import_tasks.c.task_id == bindparam("task"),
        import_tasks.c.state.in_([state.value for state in FINAL]),
    )


async def save_mark(
    connection: AsyncConnection, load: Load, mark: LoadMark, **more: Any
) -> LoadMark:
    """Move the mark of an open load; `more` are other columns of `import_progress`."""
    values: dict[str, Any] = {
        "cursor": mark.cursor,
        "problem_count": mark.problem_count,
        "finished": mark.finished,
        **mark.counts.model_dump(),
        **more,
    }
    await connection.execute(_saving(tuple(values)), {"load": load.id, **values})
    return mark


@lru_cache
def _saving(names: tuple[str, ...]) -> Executable:
    return (
        update(import_progress)
        .where(import_progress.c.id == bindparam("load"))
        .values({name: bindparam(name) for name in names})
    )


def advanced(mark: LoadMark, cursor: int, counts: Counts, problems: int) -> LoadMark:
    """The mark after some more rows."""
    return replace(
        mark,
        cursor=cursor,
        counts=mark.counts.plus(counts),
        problem_count=mark.problem_count + problems,
    )


async def restart(connection: AsyncConnection, load: Load, header: Sequence[str]) -> None:
    """Bring an open load back to its beginning, under a header."""
    await forget(connection, load)
    await save_mark(
        connection,
        load,
        LoadMark(),
        header=json.dumps(list(header)),
        retired=None,
        aside=None,
        staged_columns=None,
    )


async def add_rejects(
    connection: AsyncConnection, bulk: BulkEngine, load: Load, rows: Iterable[RejectedRow]
) -> None:
    """Keep rejected rows for the report."""
    values = [
        (load.id, row.line, dump_cells(row.cells), dump_problems(row.problems)) for row in rows
    ]
    if values:
        columns = ("load_id", "line", "cells", "problems")
        await bulk.fill(connection, import_rejects, columns, values)


async def read_rejects(database: Database, key: TaskKey) -> AsyncIterator[Sequence[RejectedRow]]:
    """Rejected rows by line, a page at a time, each read by itself."""
    rejects = import_rejects
    load_id = (
        select(import_progress.c.id)
        .where(
            import_progress.c.project_id == key.project_id,
            import_progress.c.task_id == key.task_id,
        )
        .scalar_subquery()
    )
    after = (-1, -1)
    while True:
        query = (
            select(rejects)
            .where(
                rejects.c.load_id == load_id,
                tuple_(rejects.c.line, rejects.c.id)
                > tuple_(*(bindparam(None, number, BigInteger) for number in after)),
            )
            .order_by(rejects.c.line, rejects.c.id)
            .limit(REJECTS_PAGE)
        )
        async with database.reading() as connection:
            rows = (await connection.execute(query)).all()
        if not rows:
            return
        yield [
            RejectedRow(row.line, load_cells(row.cells), load_problems(row.problems))
            for row in rows
        ]
        after = (rows[-1].line, rows[-1].id)


async def first_problems(
    connection: AsyncConnection, load: Load, limit: int
) -> tuple[Problem, ...]:
    """The first problems of a load, by line."""
    if load.mark.problem_count == 0:
        return ()
    rejects = import_rejects
    rows = await connection.execute(
        select(rejects.c.problems)
        .where(rejects.c.load_id == load.id)
        .order_by(rejects.c.line, rejects.c.id)
        .limit(limit)
    )
    problems = [problem for text in rows.scalars() for problem in load_problems(text)]
    return tuple(problems[:limit])


async def forget(connection: AsyncConnection, load: Load) -> None:
    """Drop the interim data of a load: rejects, staged rows, seen keys."""
    if load.mark.counts.rejected:
        await connection.execute(delete(import_rejects).where(import_rejects.c.load_id == load.id))
    await forget_aside(connection, load)


async def forget_aside(connection: AsyncConnection, load: Load) -> None:
    """Drop the staged rows or seen keys of a load."""
    if load.aside is not None:
        aside = metadata.tables[load.aside]
        await connection.execute(delete(aside).where(aside.c.load_id == load.id))


async def lock_existing(connection: AsyncConnection, key: TaskKey) -> Load | None:
    """Lock the load of a task; None when there is none."""
    parameters = {"project": key.project_id, "task": key.task_id}
    row = (await connection.execute(_progress_for_update(), parameters)).one_or_none()
    return None if row is None else load_of(row)


async def end_load(connection: AsyncConnection, load: Load) -> None:
    """Remove a load with everything that was kept for it."""
    await forget(connection, load)
    await connection.execute(_ending(), {"load": load.id})


@lru_cache
def _progress_for_update() -> Select[Any]:
    return _progress_of_task().with_for_update()


@lru_cache
def _ending() -> Executable:
    return delete(import_progress).where(import_progress.c.id == bindparam("load"))
