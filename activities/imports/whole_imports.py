"""An import that is written, and recorded as completed, in one transaction.

It looks once at what the database knows, writes the rows, and inserts the status row last: a task
or a guard that another transaction has taken meanwhile conflicts there, and all is rolled back.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Executable,
    Integer,
    Select,
    Table,
    Text,
    bindparam,
    exists,
    false,
    func,
    literal_column,
    or_,
    select,
    true,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from activities.imports import status_store, upserts
from activities.imports.ports import WholeImport
from activities.imports.upserts import batch_of, needs_table_alone, write_batch
from adapters.database.bulk import engine as bulk
from adapters.database.bulk.engine import advisory_lock_key, turn_name
from adapters.database.bulk.rows import RowBatch, Stamp
from adapters.database.engine import Database
from adapters.database.models.every import DOMAIN
from adapters.database.models.imports import (
    HOLDS,
    import_answers,
    import_tasks,
)
from workflows.imports.findings import naming_unused_fields
from workflows.imports.runs import (
    HandlerOutcome,
    RowChunk,
    TaskKey,
)
from workflows.imports.types import TableSpec, scope_of
from workflows.imports.validation import (
    DISTINCT,
    QUESTION,
    code_fields,
    codes_of,
    may_differ,
    settled,
    spellings,
)
from workflows.shared.errors import InvalidDocument


class _TakesSteps(Exception):
    """Rolls the transaction back."""


@dataclass(frozen=True, slots=True)
class _Known:
    """What the database knows before a row is written.

    Attributes:
        answer: What a person said about codes that differ in leading zeros only.
        lengths: See `workflows.imports.validation.spellings`; none where that is answered.
    """

    answer: str | None
    lengths: frozenset[int]


async def complete(database: Database, whole: WholeImport) -> HandlerOutcome | None:
    """Write rows and status row; None, and nothing is written: the import takes the usual steps."""
    batch = batch_of(whole.chunk)
    try:
        async with database.transaction() as connection:
            return await _completed(connection, whole, batch, datetime.now(UTC))
    except _TakesSteps:
        return None


async def _completed(
    connection: AsyncConnection,
    whole: WholeImport,
    batch: RowBatch,
    now: datetime,
) -> HandlerOutcome:
    message = whole.message
    if whole.guard is not None:
        await status_store.lock_guard(connection, message, whole.guard)
    spec = whole.spec
    alone = needs_table_alone(batch, message.strategy)
    known = await _look(connection, whole, spec, alone)
    chunk = await _settled(connection, whole, spec, known)
    if chunk is not whole.chunk:
        batch = batch_of(chunk)
    stamp = Stamp(message.task_id, now)
    written = await write_batch(connection, batch, message.strategy, stamp)
    if written.refused:
        raise _TakesSteps
    outcome = naming_unused_fields(message, HandlerOutcome(counts=written.counts, note=whole.note))
    if not await status_store.record_completed(connection, whole, outcome, now):
        raise _TakesSteps
    return outcome


async def _look(
    connection: AsyncConnection,
    whole: WholeImport,
    spec: TableSpec,
    alone: bool,
) -> _Known:
    """Wait for the turn on the table, and see what is known, in one round trip."""
    message, scope = whole.message, scope_of(whole.message, spec)
    guarded = whole.guard is not None
    statement = _looking(spec.table, code_fields(spec), tuple(scope), alone, guarded)
    parameters: dict[str, Any] = {
        "project": message.project_id,
        "task": message.task_id,
        "kind": str(message.document_type),
        "turn": advisory_lock_key(turn_name(spec.table, message.project_id)),
        **({"guard": whole.guard} if guarded else {}),
        **{f"scope_{name}": value for name, value in scope.items()},
    }
    rows = await bulk.fetch(connection, statement, parameters)
    taken, answer, *_ = rows[0]
    if taken:
        raise _TakesSteps
    lengths = (length for _, _, length, *_ in rows)
    return _Known(answer, frozenset(length for length in lengths if length is not None))


@lru_cache
def _looking(
    table: str,
    names: tuple[str, ...],
    scope: tuple[str, ...],
    alone: bool,
    guarded: bool,
) -> Executable:
    """One row for each length, at least one; the columns beside it are the same in all."""
    project, task, kind = (bindparam(name, type_=Text) for name in ("project", "task", "kind"))
    tasks, known, found = import_tasks.c, import_answers.c, DOMAIN[table]
    taken = exists().where(tasks.project_id == project, tasks.task_id == task)
    held = exists().where(
        tasks.project_id == project,
        tasks.document_type == kind,
        tasks.guard == bindparam("guard", type_=Text),
        HOLDS,
    )
    answer = (
        select(known.answer)
        .where(
            known.project_id == project,
            known.document_type == kind,
            known.question == QUESTION,
        )
        .scalar_subquery()
    )
    lengths = _zero_led_lengths(found, names, scope, task, answer).subquery("lengths")
    always = select(literal_column("1", Integer).label("one")).subquery("always")
    columns: tuple[Any, ...] = (
        (or_(taken, held) if guarded else taken).label("taken"),
        answer.label("answer"),
        lengths.c.length,
        bulk.turn(alone=alone),
    )
    return select(*columns).select_from(always.outerjoin(lengths, true()))


def _zero_led_lengths(
    found: Table,
    names: Sequence[str],
    scope: Sequence[str],
    task: ColumnElement[str],
    answer: ColumnElement[Any],
) -> Select[Any]:
    """Lengths of first codes where some code begins with a zero; none of a key without codes."""
    if not names:
        return select(literal_column("NULL", Integer).label("length")).where(false())
    return (
        select(func.length(found.c[names[0]]).label("length"))
        .where(
            func.coalesce(answer, "") != DISTINCT,
            *(found.c[name] == bindparam(f"scope_{name}", type_=Text) for name in scope),
            upserts.zero_led(found, names),
            found.c.source_task != task,
        )
        .distinct()
    )


async def _settled(
    connection: AsyncConnection,
    whole: WholeImport,
    spec: TableSpec,
    known: _Known,
) -> RowChunk:
    """The chunk with its codes as they are known."""
    names = code_fields(spec)
    if known.answer == DISTINCT or not names:
        return whole.chunk
    found = codes_of(whole.chunk, names)
    if not may_differ(zip(*found, strict=True), known.lengths):
        return whole.chunk
    codes: Mapping[tuple[str, ...], bool] = await upserts.known(
        connection,
        TaskKey(whole.message.project_id, whole.message.task_id),
        spec.table,
        scope_of(whole.message, spec),
        names,
        spellings(found, known.lengths),
    )
    try:
        return settled(whole.chunk, names, codes, known.answer)
    except InvalidDocument as error:
        raise _TakesSteps from error
