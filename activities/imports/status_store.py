"""The progress of loads, and the status rows of imports.

The progress mark of a load, what was rejected on the way, and who may advance it.

Every write first opens its load: that locks the mark until the transaction ends, so that of two
attempts at the same task (the older may be a worker that was thought dead) one waits, and then
sees what the other has done. The load of a closed import cannot be opened any more.
"""

import json
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Executable,
    Integer,
    Select,
    Text,
    and_,
    bindparam,
    column,
    delete,
    false,
    func,
    literal,
    literal_column,
    select,
    table,
    true,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from activities.imports.ports import EarlierImport, WholeImport
from adapters.database.bulk import engine as bulk
from adapters.database.bulk.engine import acquire_advisory_lock, advisory_lock_key
from adapters.database.engine import Database
from adapters.database.models.base import UtcDateTime
from adapters.database.models.imports import (
    COUNTS,
    FINAL,
    HOLDING,
    import_progress,
    import_rejects,
    import_tasks,
)
from adapters.database.records import (
    clean,
    dump_cells,
    dump_problems,
    literals,
    load_cells,
    load_problems,
)
from adapters.ports.records import OpenRow
from workflows.imports.findings import naming_unused_fields
from workflows.imports.messages import ImportMessage, key_in
from workflows.imports.runs import (
    PROBLEMS_IN_RESULT,
    PROBLEMS_IN_STATUS,
    Closing,
    Counts,
    HandlerOutcome,
    ImportPlan,
    ImportState,
    LoadMark,
    TaskKey,
)
from workflows.shared.cells import RejectedRow
from workflows.shared.contracts import BlobRef, Problem

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
        token: Names it in other databases, whose rows it writes; None: it has written none.
    """

    id: int
    mark: LoadMark
    retired: Counts | None = None
    aside: str | None = None
    staged_columns: tuple[str, ...] = ()
    token: str | None = None


async def open_load(
    connection: AsyncConnection,
    key: TaskKey,
    now: datetime,
    *,
    turn: str | None = None,
    alone: bool = False,
) -> Load | None:
    """Lock the load of a task, made when there is none; None when the import is closed.

    Args:
        connection: In a transaction.
        key: The task.
        now: Time of the transaction.
        turn: What to wait one's turn for as well, in the same round trip.
        alone: Whether it is locked exclusively.
    """
    statement = _opening(turn is not None, alone)
    parameters: dict[str, Any] = {"project": key.project_id, "task": key.task_id, "now": now}
    if turn is not None:
        parameters["turn"] = advisory_lock_key(turn)
    row = (await connection.execute(statement, parameters)).one_or_none()
    return None if row is None else load_of(row)


@lru_cache
def _opening(takes_turn: bool, alone: bool) -> Executable:
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
        insert(progress)
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
        token=row.token,
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


async def add_rejects(connection: AsyncConnection, load: Load, rows: Iterable[RejectedRow]) -> None:
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
    await drop_staged_rows(connection, load)


async def drop_staged_rows(connection: AsyncConnection, load: Load) -> None:
    """Drop the staged rows or seen keys of a load."""
    if load.aside is not None:
        schema, _, name = load.aside.rpartition(".")
        aside = table(name, column("load_id"), schema=schema or None)
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


_FINAL: Final = frozenset(FINAL)


async def begin(
    connection: AsyncConnection,
    message: ImportMessage,
    plan: ImportPlan,
    workflow_id: str,
    guard: str | None,
    digest: str | None,
    run_id: str | None,
    now: datetime,
) -> EarlierImport | None:
    """Open the status row, or return the import that makes this one unnecessary.

    Among tasks of a project and document type the first to open holds the guard, until it is
    skipped, cancelled or terminated. Another one gets that task's state, whatever it is, so also
    `running` or `parked`, and opens nothing; but a row that was terminated is open again, without
    the guard, so that the end of its new run is recorded. A row keeps the digest of the message
    that began it last: the run of an earlier one is over.
    """
    if guard is not None:
        await lock_guard(connection, message, guard)
        holder = await _holder(connection, message, guard)
        if holder is not None:
            await _reopen_terminated(connection, message, digest, now)
            return holder
    values = _status(message, plan, workflow_id) | {
        "guard": guard,
        "digest": digest,
        "run_id": run_id,
        "state": ImportState.RUNNING.value,
        "started_at": now,
        "updated_at": now,
    }
    opened = await connection.execute(_opening_values(), {"created_at": now, **values})
    if opened.one_or_none() is not None:
        return None
    row = (await connection.execute(_state(), _own(message))).one()
    state = ImportState(row.state)
    if state in _FINAL and state is not ImportState.TERMINATED:
        by_this_run = run_id is not None and row.run_id == run_id
        return EarlierImport(state, message.task_id, row.digest, by_this_run)
    values |= {"reason": None, "finished_at": None, "problems_removed_at": None}
    await connection.execute(_updating(tuple(values)), _own(message) | values)
    return None


async def lock_guard(connection: AsyncConnection, message: ImportMessage, guard: str) -> None:
    """Take turns with other tasks of this guard until the transaction ends."""
    name = f"guard/{message.project_id}/{message.document_type}/{guard}"
    await acquire_advisory_lock(connection, name)


async def record_completed(
    connection: AsyncConnection,
    whole: WholeImport,
    outcome: HandlerOutcome,
    now: datetime,
) -> bool:
    """Insert the status row of an import that is done; False: the task or its guard is known."""
    values = {
        **_status(whole.message, whole.plan, whole.workflow_id),
        **_outcome_values(outcome, ()),
        "guard": whole.guard,
        "digest": whole.digest,
        "run_id": whole.run_id,
        "state": ImportState.COMPLETED.value,
        **dict.fromkeys(("created_at", "started_at", "finished_at", "updated_at"), now),
    }
    return bool(await bulk.fetch(connection, _recording(), values))


async def _reopen_terminated(
    connection: AsyncConnection, message: ImportMessage, digest: str | None, now: datetime
) -> None:
    """Nothing is written for a row in a final state, and this one is that of an earlier run."""
    await connection.execute(
        update(import_tasks)
        .where(_is_own(), import_tasks.c.state == ImportState.TERMINATED.value)
        .values(
            guard=None,
            digest=digest,
            state=ImportState.RUNNING.value,
            reason=None,
            finished_at=None,
            problems_removed_at=None,
            updated_at=now,
        ),
        _own(message),
    )


def _own(message: ImportMessage) -> dict[str, str]:
    return {"own_project": message.project_id, "own_task": message.task_id}


def _is_own() -> ColumnElement[bool]:
    return and_(
        import_tasks.c.project_id == bindparam("own_project"),
        import_tasks.c.task_id == bindparam("own_task"),
    )


@lru_cache
def _opening_values() -> Executable:
    return (
        insert(import_tasks)
        .on_conflict_do_nothing(index_elements=["project_id", "task_id"])
        .returning(import_tasks.c.task_id)
    )


@lru_cache
def _recording() -> Executable:
    # Whatever it conflicts with: the task's row, or that of the task with its guard.
    return insert(import_tasks).on_conflict_do_nothing().returning(import_tasks.c.task_id)


@lru_cache
def _locking() -> Executable:
    """Locks the status row, made when it is not there yet, and reads it."""
    return (
        insert(import_tasks)
        .on_conflict_do_update(
            index_elements=["project_id", "task_id"],
            set_={"workflow_id": import_tasks.c.workflow_id},
        )
        .returning(*import_tasks.c)
    )


@lru_cache
def _state() -> Executable:
    tasks = import_tasks.c
    return select(tasks.state, tasks.digest, tasks.run_id).where(_is_own()).with_for_update()


@lru_cache
def _updating(names: tuple[str, ...]) -> Executable:
    return update(import_tasks).where(_is_own()).values({name: bindparam(name) for name in names})


async def _holder(
    connection: AsyncConnection, message: ImportMessage, guard: str
) -> EarlierImport | None:
    """The other task that has this guard."""
    tasks = import_tasks
    row = (
        await connection.execute(
            select(tasks.c.state, tasks.c.task_id, tasks.c.digest).where(
                tasks.c.project_id == message.project_id,
                tasks.c.document_type == str(message.document_type),
                tasks.c.guard == guard,
                tasks.c.state.in_([state.value for state in HOLDING]),
                tasks.c.task_id != message.task_id,
            )
        )
    ).one_or_none()
    if row is None:
        return None
    return EarlierImport(ImportState(row.state), row.task_id, row.digest)


def _status(message: ImportMessage, plan: ImportPlan | None, workflow_id: str) -> dict[str, Any]:
    strategy = getattr(message, "strategy", None)
    filename = getattr(message, "filename", None) or getattr(message, "original_filename", None)
    source = plan.source if plan is not None else None
    return {
        "project_id": message.project_id,
        "task_id": message.task_id,
        "document_type": str(message.document_type),
        "strategy": None if strategy is None else strategy.value,
        "filename": None if filename is None else clean(filename),
        "workflow_id": workflow_id,
        **({} if plan is None else {"path": plan.path}),
        **(
            {}
            if source is None
            else {
                "source_name": source.name,
                "source_size": source.size,
                "source_sha256": source.sha256,
            }
        ),
    }


async def close(
    connection: AsyncConnection,
    closing: Closing,
    workflow_id: str,
    now: datetime,
) -> HandlerOutcome:
    """Record how an import ends or why it waits; what was kept for a final one goes.

    The row's problems are those of the outcome, which need not belong to a rejected row, and
    the first ones of the rejected rows: together at most `PROBLEMS_IN_STATUS`, by line. Its
    problem count is the outcome's, or the progress mark's when there is no outcome. Its note
    names the fields of the message that are not used, whatever the state.
    """
    message = closing.message
    row = (
        await connection.execute(
            _locking(),
            {
                "state": ImportState.RUNNING.value,
                "digest": closing.digest,
                "created_at": now,
                "updated_at": now,
                **_status(message, closing.plan, workflow_id),
            },
        )
    ).one()
    state = ImportState(row.state)
    if state in _FINAL:
        # Also when the same end comes again: what was kept for the import is gone, and an attempt
        # that was late knows less than the row.
        return _recorded(row)
    load = await lock_existing(connection, TaskKey(message.project_id, message.task_id))
    problems: tuple[Problem, ...] = ()
    if load is not None:
        problems = await first_problems(connection, load, PROBLEMS_IN_STATUS)
    outcome = closing.outcome
    if outcome is None:
        outcome = HandlerOutcome(
            counts=Counts() if load is None else load.mark.counts.plus(load.retired or Counts()),
            problem_count=0 if load is None else load.mark.problem_count,
            problems=problems[:PROBLEMS_IN_RESULT],
        )
    outcome = naming_unused_fields(message, outcome)
    final = closing.state in _FINAL
    values = {
        "state": closing.state.value,
        "reason": None if closing.reason is None else clean(closing.reason),
        "finished_at": row.finished_at or (now if final else None),
        "updated_at": now,
        **_corrections(closing),
        **_outcome_values(outcome, _together(outcome.problems, problems)),
    }
    await connection.execute(_updating(tuple(values)), _own(message) | values)
    if final and load is not None:
        await end_load(connection, load)
    return outcome


def _corrections(closing: Closing) -> dict[str, str]:
    """What people have changed of the message, where that is anything."""
    if not closing.corrections:
        return {}
    return {"corrections": json.dumps([each.model_dump() for each in closing.corrections])}


def _together(reported: tuple[Problem, ...], known: tuple[Problem, ...]) -> tuple[Problem, ...]:
    """Each problem once, by line; those reported are not crowded out by those known."""
    distinct = list(dict.fromkeys((*reported, *known)))[:PROBLEMS_IN_STATUS]
    return tuple(sorted(distinct, key=lambda problem: problem.line or 0))


def _outcome_values(outcome: HandlerOutcome, problems: tuple[Problem, ...]) -> dict[str, Any]:
    return {
        **outcome.counts.model_dump(),
        "problem_count": outcome.problem_count,
        "problems": dump_problems(problems),
        "report": None if outcome.report is None else outcome.report.model_dump_json(),
        "note": None if outcome.note is None else clean(outcome.note),
    }


def _recorded(row: Any) -> HandlerOutcome:
    return HandlerOutcome(
        counts=counts_of(row),
        problem_count=row.problem_count,
        problems=load_problems(row.problems)[:PROBLEMS_IN_RESULT],
        report=None if row.report is None else BlobRef.model_validate_json(row.report),
        note=row.note,
    )


_OPEN: Final = (ImportState.RUNNING.value, ImportState.PARKED.value)


async def open_rows(
    connection: AsyncConnection, before: datetime, after: str, limit: int
) -> Sequence[OpenRow]:
    """Rows that are running or parked and have not changed since, by workflow id."""
    tasks = import_tasks
    rows = await connection.execute(
        select(tasks.c.workflow_id, tasks.c.updated_at)
        .where(
            # In the text of the statement: the index covers states that are not `completed`.
            tasks.c.state.in_(literals(_OPEN)),
            tasks.c.updated_at <= before,
            tasks.c.workflow_id > after,
        )
        .order_by(tasks.c.workflow_id)
        .limit(limit)
    )
    return [OpenRow(row.workflow_id, row.updated_at) for row in rows]


async def terminate(
    connection: AsyncConnection, workflow_id: str, reason: str, unchanged_since: datetime | None
) -> bool:
    """Close a row as terminated; mark, rejects, staged rows and guard are free."""
    project_id, task_id = key_in(workflow_id)
    key, tasks = TaskKey(project_id, task_id), import_tasks
    own = and_(tasks.c.project_id == project_id, tasks.c.task_id == task_id)
    query = select(tasks.c.state, tasks.c.updated_at).where(own).with_for_update()
    row = (await connection.execute(query)).one_or_none()
    if row is None or row.state not in _OPEN or unchanged_since not in (None, row.updated_at):
        return False
    now = datetime.now(UTC)
    load = await lock_existing(connection, key)
    counts: dict[str, Any] = {}
    if load is not None:
        counts = {
            **load.mark.counts.plus(load.retired or Counts()).model_dump(),
            "problem_count": load.mark.problem_count,
        }
        await end_load(connection, load)
    await connection.execute(
        update(tasks)
        .where(own)
        .values(
            state=ImportState.TERMINATED.value,
            reason=clean(reason),
            finished_at=now,
            updated_at=now,
            **counts,
        )
    )
    return True
