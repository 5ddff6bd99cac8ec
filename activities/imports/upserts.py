"""How a batch of rows meets the rows that are there, by strategy."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Table,
    Text,
    and_,
    bindparam,
    cast,
    column,
    delete,
    exists,
    func,
    literal_column,
    or_,
    select,
    table,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from activities.imports.status_store import Load, add_rejects
from adapters.database.bulk import engine as bulk
from adapters.database.bulk.appending import is_numbered, known_keys, renumbered
from adapters.database.bulk.rows import RowBatch, Stamp
from adapters.database.errors import unstorable, writing_typed
from adapters.database.foreign_rows import Refused
from adapters.database.models.base import WIDENED, known_as
from adapters.database.models.every import DOMAIN, STAGED, data_of, key_of
from adapters.database.models.imports import (
    PEOPLES_COLUMNS,
    import_answers,
    schedule_activities,
)
from adapters.database.records import dump_cells, load_cells
from adapters.types.hooks import hook_of
from adapters.types.references import Referred
from adapters.types.tables import as_found, declared_in
from workflows.imports.messages import Strategy
from workflows.imports.runs import Counts, RowChunk, TaskKey
from workflows.shared.cells import Cell, RejectedRow
from workflows.shared.contracts import Problem
from workflows.shared.sections import SEQUENCE


async def remember(
    connection: AsyncConnection,
    key: TaskKey,
    document_type: str,
    question: str,
    answer: str,
    now: datetime,
) -> None:
    """Keep an answer for a project and type; the newest counts."""
    values = {"answer": answer, "task_id": key.task_id, "answered_at": now}
    names = {"project_id": key.project_id, "document_type": document_type, "question": question}
    await connection.execute(
        insert(import_answers)
        .values(**names, **values)
        .on_conflict_do_update(index_elements=list(names), set_=values)
    )


async def remembered(
    connection: AsyncConnection, project_id: str, document_type: str, question: str
) -> str | None:
    """The answer to a question; None: none was given."""
    columns = import_answers.c
    query = select(columns.answer).where(
        columns.project_id == project_id,
        columns.document_type == document_type,
        columns.question == question,
    )
    return (await connection.execute(query)).scalar_one_or_none()


async def zero_led_lengths(
    connection: AsyncConnection,
    key: TaskKey,
    table: str,
    scope: Mapping[str, Any],
    names: Sequence[str],
) -> Sequence[int]:
    """Lengths of the first code where one begins with a zero, but for rows of the task itself."""
    if not names:
        return ()
    found = DOMAIN[table]
    query = (
        select(func.length(found.c[names[0]]))
        .where(_within(found, scope), zero_led(found, names), found.c.source_task != key.task_id)
        .distinct()
    )
    return sorted((await connection.execute(query)).scalars())


def zero_led(table: Table, names: Sequence[str]) -> ColumnElement[bool]:
    """Whether some code of a row begins with a zero."""
    # Not a parameter: with one, a generic plan reads all rows of the scope instead of the index.
    beginning = literal_column("'0%'", Text)
    return or_(*(table.c[name].like(beginning) for name in names))


async def known(
    connection: AsyncConnection,
    key: TaskKey,
    table: str,
    scope: Mapping[str, Any],
    names: Sequence[str],
    firsts: Sequence[str],
) -> Mapping[tuple[str, ...], bool]:
    """Codes of a scope by their first one, and whether the task itself has written each."""
    if not names:
        return {}
    found = DOMAIN[table]
    query = select(*(found.c[name] for name in names), found.c.source_task).where(
        _within(found, scope), bulk.among(found.c[names[0]], firsts)
    )
    rows = await connection.execute(query.distinct())
    return {tuple(row[:-1]): row[-1] == key.task_id for row in rows}


async def referred(
    connection: AsyncConnection,
    referred: Referred,
    scope: Mapping[str, Any],
    values: Sequence[str],
) -> Mapping[str, Sequence[str]]:
    """The keys that some values mean, by value; several if several rows are called so."""
    if not values:
        return {}
    found: FromClause
    if referred.table is not None:
        found = DOMAIN[referred.table]
    else:
        named = dict.fromkeys((referred.key, referred.label, *referred.scope))
        found = table(str(referred.name), *map(column, named), schema=referred.schema)
    key, label = (cast(found.c[name], Text) for name in (referred.key, referred.label))
    among = [bulk.among(each, values) for each in (key, label)]
    bounds = [cast(found.c[name], Text) == scope[name] for name in referred.scope]
    query = select(key, label).where(*bounds, or_(*among), key.is_not(None)).distinct()
    rows = (await connection.execute(query.order_by(key))).all()
    keys: dict[str, list[str]] = {}
    for own, name in rows:
        keys.setdefault(name, []).append(own)
    wanted = frozenset(values)
    return keys | {own: [own] for own, _ in rows if own in wanted}


async def give_sections(
    connection: AsyncConnection,
    table: str,
    scope: Mapping[str, Any],
    sections: Mapping[str, str],
) -> None:
    """Give stored lines without a section theirs, if their item stands there once."""
    lines, others = DOMAIN[table], DOMAIN[table].alias()
    item, section = bindparam("item", type_=Text), bindparam("within", type_=Text)
    code = next(name for name in key_of(lines) if name not in (*scope, "section"))
    has_numbers = SEQUENCE in lines.c
    is_other = [others.c[SEQUENCE] != lines.c[SEQUENCE]] if has_numbers else []
    several = exists().where(
        _within(others, scope),
        others.c[code] == item,
        or_(
            others.c.section == section, *(and_(others.c.section == "", each) for each in is_other)
        ),
    )
    given = (
        update(lines)
        .where(_within(lines, scope), lines.c[code] == item, lines.c.section == "", ~several)
        .values({"section": section, **({SEQUENCE: 1} if has_numbers else {})})
    )
    await connection.execute(
        given, [{"item": item, "within": section} for item, section in sections.items()]
    )


def _within(table: FromClause, scope: Mapping[str, Any]) -> ColumnElement[bool]:
    return and_(true(), *(table.c[name] == value for name, value in scope.items()))


_SCOPE: Final = frozenset({"project_id", "service_id"})
_REASON: Final = 500
_NOT_OF_FILES: Final = frozenset({*PEOPLES_COLUMNS, "missing_since"})


@dataclass(frozen=True)
class Written:
    """Outcome of a batch.

    Attributes:
        counts: Rows by what happened to them; `rejected` are those of `refused`.
        refused: What is wrong with each row that did not go in, by its place in the chunk.
    """

    counts: Counts
    refused: dict[int, Problem]


def needs_table_alone(batch: RowBatch, strategy: Strategy) -> bool:
    """Whether the outcome rests on reading first what others must not change meanwhile."""
    reads_first = strategy in (Strategy.APPEND, Strategy.UPDATE_ONLY)
    return reads_first or hook_of(batch.table) is not None


async def write_batch(
    connection: AsyncConnection,
    batch: RowBatch,
    strategy: Strategy,
    stamp: Stamp,
) -> Written:
    """Write a batch by natural key; `replace` acts as `merge` here.

    Rows that no database can hold are refused whatever the strategy.
    """
    refused = {batch.origin[place]: problem for place, problem in unstorable(batch).items()}
    total = len(batch)
    if refused:
        batch = batch.take([n for n in range(total) if batch.origin[n] not in refused])
    unchanged = 0
    if strategy in (Strategy.APPEND, Strategy.UPDATE_ONLY) or (
        strategy is Strategy.CREATE_ONLY and hook_of(batch.table) is not None
    ):
        known = await known_keys(connection, batch)
        if strategy is Strategy.CREATE_ONLY:
            unchanged = len(known)
            batch = batch.take([n for n in range(len(batch)) if n not in known])
        elif strategy is Strategy.APPEND and is_numbered(batch):
            batch = await renumbered(connection, batch, known)
        else:
            batch, turned_away = _turn_away(batch, known, strategy)
            refused |= turned_away
    counts = await _put(connection, batch, strategy, stamp)
    rejected = Counts(rejected=len(refused), unchanged=unchanged)
    return Written(counts.plus(rejected), refused)


async def _put(
    connection: AsyncConnection,
    batch: RowBatch,
    strategy: Strategy,
    stamp: Stamp,
) -> Counts:
    if not batch.rows:
        return Counts()
    beside = 0
    if (hook := hook_of(batch.table)) is not None:
        batch, changed = await hook.before(connection, batch, False)
        if changed:
            _, beside = await bulk.merge(connection, changed, stamp)
    with writing_typed():
        if strategy is Strategy.CREATE_ONLY:
            created, updated = await bulk.insert_new(connection, batch, stamp), 0
        else:
            created, updated = await bulk.merge(connection, batch, stamp)
    unchanged = len(batch) - created - updated
    return Counts(created=created, updated=updated + beside, unchanged=unchanged)


def _turn_away(
    batch: RowBatch, known: set[int], strategy: Strategy
) -> tuple[RowBatch, dict[int, Problem]]:
    wanted = strategy is Strategy.UPDATE_ONLY
    names = [name for name in key_of(batch.table) if name not in _SCOPE]
    keys = batch.keys(names)
    keep: list[int] = []
    refused: dict[int, Problem] = {}
    for place in range(len(batch)):
        if (place in known) is wanted:
            keep.append(place)
            continue
        key = ", ".join(f"{name} {value}" for name, value in zip(names, keys[place], strict=True))
        reason = (
            f"there is no row of {key} to update; strategy 'update_only' creates none"
            if wanted
            else f"there is a row of {key} already; strategy 'append' changes none"
        )
        refused[batch.origin[place]] = Problem(line=batch.lines[place], reason=reason[:_REASON])
    return batch.take(keep), refused


def batch_of(chunk: RowChunk) -> RowBatch:
    """The chunk's rows, once its columns are known to be those of its table.

    Raises:
        ValueError: They are not: a mistake of the caller, never of a document.
    """
    table = DOMAIN[chunk.table]
    columns = set(chunk.columns)
    unknown = columns - set(data_of(table))
    if table is schedule_activities:
        unknown |= columns & _NOT_OF_FILES
    if unknown:
        raise ValueError(f"columns {sorted(unknown)} of {chunk.table} cannot be imported")
    missing = set(key_of(table)) - columns
    if missing:
        raise ValueError(f"key columns {sorted(missing)} of {chunk.table} are missing")
    return RowBatch(table, chunk.columns, chunk.rows, chunk.lines, range(len(chunk.rows)))


_PAGE: Final = 5_000


@dataclass(frozen=True)
class Swapped:
    """What a swap did: counts, and how many problems the rows have that it refused."""

    counts: Counts
    problems: int = 0


async def stage_batch(
    connection: AsyncConnection,
    load: Load,
    batch: RowBatch,
    cells: Sequence[Sequence[Cell]],
) -> dict[str, str]:
    """Put rows aside; what to remember about it in the load's row."""
    if load.staged_columns and load.staged_columns != batch.columns:
        raise ValueError("every chunk of a load has the same columns")
    twin = STAGED[known_as(batch.table)]
    if declared_in(batch.table) is not None:
        twin = await as_found(connection, twin)
    values = bulk.stored(twin, batch.columns, batch.rows) if WIDENED in twin.info else batch.rows
    rows = [
        (load.id, line, dump_cells(cells[origin]) if cells else None, *row)
        for row, line, origin in zip(values, batch.lines, batch.origin, strict=True)
    ]
    columns = ("load_id", "source_line", "cells", *batch.columns)
    await bulk.fill(connection, twin, columns, rows)
    return {"aside": twin.fullname, "staged_columns": json.dumps(batch.columns)}


async def swap_in(
    connection: AsyncConnection,
    load: Load,
    table_name: str,
    scope: Mapping[str, Any],
    strategy: Strategy,
    as_of: date,
    stamp: Stamp,
) -> Swapped:
    """Take the staged rows in, by strategy."""
    table = DOMAIN[table_name]
    hook, gone = hook_of(table), Counts()
    if strategy in (Strategy.MERGE, Strategy.REPLACE):
        await bulk.expect_many(connection)
    if strategy is Strategy.REPLACE:
        if hook is not None:
            gone = Counts(updated=await hook.absent(connection, load.id, scope, as_of, stamp))
        else:
            gone = Counts(deleted=await _delete_absent(connection, load, table_name, scope))
    if not load.staged_columns:
        return Swapped(gone)
    if strategy in (Strategy.MERGE, Strategy.REPLACE) and hook is None:
        created, updated = await bulk.merge_staged(
            connection, table, load.id, load.staged_columns, stamp
        )
        unchanged = await _staged_count(connection, load, table_name) - created - updated
        return Swapped(gone.plus(Counts(created=created, updated=updated, unchanged=unchanged)))
    swapped = await _write_pages(connection, load, table_name, strategy, stamp)
    return Swapped(gone.plus(swapped.counts), swapped.problems)


async def refuse_staged(
    connection: AsyncConnection, load: Load, table_name: str, refused: Sequence[Refused]
) -> None:
    """Keep staged rows for the report that a table of a team did not take.

    Args:
        connection: In a transaction.
        load: Whose rows.
        table_name: What `STAGED` has them under.
        refused: What is wrong with the row of each line.
    """
    staged, wanted = STAGED[table_name], {each.place: each for each in refused}
    lines = sorted(wanted)
    for first in range(0, len(lines), _PAGE):
        some = staged.c.source_line.in_(lines[first : first + _PAGE])
        query = select(staged).where(staged.c.load_id == load.id, some)
        rows = [
            (row, wanted[row.source_line])
            for row in await connection.execute(query.order_by(staged.c.source_line))
        ]
        rejected = [
            RejectedRow(
                row.source_line,
                load_cells(row.cells or "[]"),
                (problem_of(each, getattr(row, each.column or "", None)),),
            )
            for row, each in rows
        ]
        await add_rejects(connection, load, rejected)


def problem_of(refused: Refused, value: Any) -> Problem:
    """What a table of a team says about a row, and a value of it."""
    shown = None if value is None else str(value)[:200]
    return Problem(
        line=refused.place, column=refused.column, value=shown, reason=refused.reason[:_REASON]
    )


async def _staged_count(connection: AsyncConnection, load: Load, table_name: str) -> int:
    staged = STAGED[table_name]
    query = select(func.count()).select_from(staged).where(staged.c.load_id == load.id)
    return (await connection.execute(query)).scalar_one()


async def _delete_absent(
    connection: AsyncConnection, load: Load, table_name: str, scope: Mapping[str, Any]
) -> int:
    table, staged = DOMAIN[table_name], STAGED[table_name]
    held = exists().where(
        staged.c.load_id == load.id,
        and_(*(staged.c[name] == table.c[name] for name in key_of(table))),
    )
    bounds = (table.c[name] == value for name, value in scope.items())
    return (await connection.execute(delete(table).where(*bounds, ~held))).rowcount


async def _write_pages(
    connection: AsyncConnection,
    load: Load,
    table_name: str,
    strategy: Strategy,
    stamp: Stamp,
) -> Swapped:
    """Write page by page as chunks are written, and keep what is refused."""
    counts, problems = Counts(), 0
    async for batch, cells in staged_pages(connection, load, table_name):
        written = await write_batch(connection, batch, strategy, stamp)
        counts = counts.plus(written.counts)
        problems += len(written.refused)
        await add_rejects(
            connection,
            load,
            (
                RejectedRow(batch.lines[place], cells[place], (problem,))
                for place, problem in sorted(written.refused.items())
            ),
        )
    return Swapped(counts, problems)


async def staged_pages(
    connection: AsyncConnection, load: Load, table_name: str
) -> AsyncIterator[tuple[RowBatch, list[list[Cell]]]]:
    """Read staged rows in the order of the file, with their cells as read.

    Rows that a hook looks at together come together: counts must not depend on where pages end.
    """
    staged, columns = STAGED[table_name], load.staged_columns
    line = staged.c.source_line
    # A column may have become a wider one since its type was changed.
    values = (cast(staged.c[name], staged.c[name].type).label(name) for name in columns)
    every = select(*values, line, staged.c.cells).where(staged.c.load_id == load.id)
    hook = hook_of(DOMAIN[table_name])
    order = (line,) if hook is None else (staged.c[hook.together], line)
    place = -2 if hook is None else columns.index(hook.together)
    following = every
    while True:
        page = following.order_by(*order).limit(_PAGE)
        rows = [tuple(row) for row in await connection.execute(page)]
        if not rows:
            return
        last = rows[-1][place]
        if hook is not None and len(rows) == _PAGE:
            rest = every.where(order[0] == last, line > rows[-1][-2]).order_by(line)
            rows += [tuple(row) for row in await connection.execute(rest)]
        following = every.where(order[0] > last)
        lines = [row[-2] for row in rows]
        batch = RowBatch(
            DOMAIN[table_name], columns, [row[:-2] for row in rows], lines, range(len(rows))
        )
        yield batch, [load_cells(row[-1] or "[]") for row in rows]
