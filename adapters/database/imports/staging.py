"""Loads that go in all at once: rows wait in a staging twin, then one transaction takes them in."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from sqlalchemy import and_, delete, exists, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.bulk.protocol import BulkEngine, RowBatch, Stamp
from adapters.database.codec import dump_cells, load_cells
from adapters.database.imports.crew_validity import close_absent
from adapters.database.imports.progress import Load, add_rejects
from adapters.database.imports.upserts import write_batch
from adapters.database.models.every import DOMAIN, STAGED, key_of
from adapters.database.models.tables import crew_members
from contracts.imports import Counts, Strategy
from domain.tabular.rows import Cell, RejectedRow

_PAGE: Final = 5_000


@dataclass(frozen=True)
class Swapped:
    """What a swap did: counts, and how many problems the rows have that it refused."""

    counts: Counts
    problems: int = 0


async def stage_batch(
    connection: AsyncConnection,
    bulk: BulkEngine,
    load: Load,
    batch: RowBatch,
    cells: Sequence[Sequence[Cell]],
) -> dict[str, str]:
    """Put rows aside; what to remember about it in the load's row."""
    if load.staged_columns and load.staged_columns != batch.columns:
        raise ValueError("every chunk of a load has the same columns")
    rows = [
        (load.id, line, dump_cells(cells[origin]) if cells else None, *row)
        for row, line, origin in zip(batch.rows, batch.lines, batch.origin, strict=True)
    ]
    columns = ("load_id", "source_line", "cells", *batch.columns)
    twin = STAGED[batch.table.name]
    await bulk.fill(connection, twin, columns, rows)
    return {"aside": twin.name, "staged_columns": json.dumps(batch.columns)}


async def swap_in(
    connection: AsyncConnection,
    bulk: BulkEngine,
    load: Load,
    table_name: str,
    scope: Mapping[str, Any],
    strategy: Strategy,
    as_of: date,
    stamp: Stamp,
) -> Swapped:
    """Take the staged rows in, by strategy."""
    table = DOMAIN[table_name]
    gone = Counts()
    if strategy in (Strategy.MERGE, Strategy.REPLACE):
        await bulk.expect_many(connection)
    if strategy is Strategy.REPLACE:
        if table is crew_members:
            closed = await close_absent(connection, load.id, scope, as_of, stamp)
            gone = Counts(updated=closed)
        else:
            gone = Counts(deleted=await _delete_absent(connection, load, table_name, scope))
    if not load.staged_columns:
        return Swapped(gone)
    if strategy in (Strategy.MERGE, Strategy.REPLACE) and table is not crew_members:
        created, updated = await bulk.merge_staged(
            connection, table, load.id, load.staged_columns, stamp
        )
        unchanged = await _staged_count(connection, load, table_name) - created - updated
        return Swapped(gone.plus(Counts(created=created, updated=updated, unchanged=unchanged)))
    swapped = await _write_pages(connection, bulk, load, table_name, strategy, stamp)
    return Swapped(gone.plus(swapped.counts), swapped.problems)


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
    bulk: BulkEngine,
    load: Load,
    table_name: str,
    strategy: Strategy,
    stamp: Stamp,
) -> Swapped:
    """Write page by page as chunks are written, and keep what is refused."""
    counts, problems = Counts(), 0
    async for batch, cells in _pages(connection, load, table_name):
        written = await write_batch(connection, bulk, batch, strategy, stamp)
        counts = counts.plus(written.counts)
        problems += len(written.refused)
        await add_rejects(
            connection,
            bulk,
            load,
            (
                RejectedRow(batch.lines[place], cells[place], (problem,))
                for place, problem in sorted(written.refused.items())
            ),
        )
    return Swapped(counts, problems)


async def _pages(
    connection: AsyncConnection, load: Load, table_name: str
) -> AsyncIterator[tuple[RowBatch, list[list[Cell]]]]:
    """Staged rows in the order of the file, with their cells as read.

    Crew members come by person, all of one together: one assignment ends another, and counts must
    not depend on where pages end.
    """
    staged, columns = STAGED[table_name], load.staged_columns
    line = staged.c.source_line
    every = select(*(staged.c[name] for name in (*columns, "source_line", "cells"))).where(
        staged.c.load_id == load.id
    )
    by_person = DOMAIN[table_name] is crew_members
    order = (staged.c.employee_no, line) if by_person else (line,)
    place = columns.index("employee_no") if by_person else -2
    following = every
    while True:
        page = following.order_by(*order).limit(_PAGE)
        rows = [tuple(row) for row in await connection.execute(page)]
        if not rows:
            return
        last = rows[-1][place]
        if by_person and len(rows) == _PAGE:
            rest = every.where(order[0] == last, line > rows[-1][-2]).order_by(line)
            rows += [tuple(row) for row in await connection.execute(rest)]
        following = every.where(order[0] > last)
        lines = [row[-2] for row in rows]
        batch = RowBatch(
            DOMAIN[table_name], columns, [row[:-2] for row in rows], lines, range(len(rows))
        )
        yield batch, [load_cells(row[-1] or "[]") for row in rows]
