"""The status row of an import: opened once, closed once."""

import json
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import ColumnElement, Executable, and_, bindparam, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.bulk.protocol import BulkEngine, acquire_advisory_lock
from adapters.database.codec import clean, dump_problems, load_problems
from adapters.database.imports.progress import counts_of, end_load, first_problems, lock_existing
from adapters.database.models.imports import FINAL, HOLDING, import_tasks
from adapters.ports import EarlierImport, WholeImport
from contracts.blobs import BlobRef
from contracts.imports import (
    PROBLEMS_IN_RESULT,
    PROBLEMS_IN_STATUS,
    Closing,
    Counts,
    HandlerOutcome,
    ImportMessage,
    ImportPlan,
    ImportState,
    Problem,
)
from domain.imports.chunks import TaskKey
from domain.imports.unused_fields import naming_unused_fields

_FINAL: Final = frozenset(FINAL)


async def begin(
    connection: AsyncConnection,
    bulk: BulkEngine,
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
        await lock_guard(connection, bulk, message, guard)
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
    opened = await connection.execute(_opening(bulk), {"created_at": now, **values})
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


async def lock_guard(
    connection: AsyncConnection, bulk: BulkEngine, message: ImportMessage, guard: str
) -> None:
    """Take turns with other tasks of this guard until the transaction ends."""
    name = f"guard/{message.project_id}/{message.document_type}/{guard}"
    await acquire_advisory_lock(connection, bulk, name)


async def record_completed(
    connection: AsyncConnection,
    bulk: BulkEngine,
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
    return bool(await bulk.fetch(connection, _recording(bulk), values))


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
def _opening(bulk: BulkEngine) -> Executable:
    return (
        bulk.insert_statement(import_tasks)
        .on_conflict_do_nothing(index_elements=["project_id", "task_id"])
        .returning(import_tasks.c.task_id)
    )


@lru_cache
def _recording(bulk: BulkEngine) -> Executable:
    # Whatever it conflicts with: the task's row, or that of the task with its guard.
    return (
        bulk.insert_statement(import_tasks)
        .on_conflict_do_nothing()
        .returning(import_tasks.c.task_id)
    )


@lru_cache
def _locking(bulk: BulkEngine) -> Executable:
    """Locks the status row, made when it is not there yet, and reads it."""
    return (
        bulk.insert_statement(import_tasks)
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
                tasks.c.document_type == message.document_type.value,
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
        "document_type": message.document_type.value,
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
    bulk: BulkEngine,
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
            _locking(bulk),
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
