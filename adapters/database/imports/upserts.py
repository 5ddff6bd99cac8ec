"""How a batch of rows meets the rows that are there, by strategy."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import and_, exists, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.bulk.protocol import BulkEngine, RowBatch, Stamp
from adapters.database.imports.crew_validity import (
    close_assignments,
    stored_assignments,
    without_overlaps,
)
from adapters.database.models.every import DOMAIN, data_of, key_of
from adapters.database.models.schedules import PEOPLES_COLUMNS, schedule_activities
from adapters.database.models.tables import crew_members
from adapters.database.storable import unstorable
from contracts.imports import Counts, Problem, Strategy
from domain.imports.chunks import RowChunk

SEQUENCE: Final = "sequence"
"""Last part of a key whose other parts may repeat."""
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
    return strategy in (Strategy.APPEND, Strategy.UPDATE_ONLY) or batch.table is crew_members


async def write_batch(
    connection: AsyncConnection,
    bulk: BulkEngine,
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
        strategy is Strategy.CREATE_ONLY and batch.table is crew_members
    ):
        known = await _known(connection, bulk, batch)
        if strategy is Strategy.CREATE_ONLY:
            unchanged = len(known)
            batch = batch.take([n for n in range(len(batch)) if n not in known])
        elif strategy is Strategy.APPEND and key_of(batch.table)[-1] == SEQUENCE:
            batch = await _renumbered(connection, bulk, batch, known)
        else:
            batch, turned_away = _turn_away(batch, known, strategy)
            refused |= turned_away
    counts = await _put(connection, bulk, batch, strategy, stamp)
    rejected = Counts(rejected=len(refused), unchanged=unchanged)
    return Written(counts.plus(rejected), refused)


async def _put(
    connection: AsyncConnection,
    bulk: BulkEngine,
    batch: RowBatch,
    strategy: Strategy,
    stamp: Stamp,
) -> Counts:
    if not batch.rows:
        return Counts()
    closed = 0
    if batch.table is crew_members:
        stored = await stored_assignments(connection, bulk, batch)
        batch, ends = without_overlaps(batch, stored)
        closed = await close_assignments(connection, ends, stamp)
    if strategy is Strategy.CREATE_ONLY:
        created, updated = await bulk.insert_new(connection, batch, stamp), 0
    else:
        created, updated = await bulk.merge(connection, batch, stamp)
    unchanged = len(batch) - created - updated
    return Counts(created=created, updated=updated + closed, unchanged=unchanged)


async def _known(connection: AsyncConnection, bulk: BulkEngine, batch: RowBatch) -> set[int]:
    """Places of the rows whose key is in the table already."""
    if not batch.rows:
        return set()
    table, key = batch.table, key_of(batch.table)
    sent = bulk.keys(table, key, batch.keys())
    there = exists().where(and_(*(table.c[name] == sent.columns[name] for name in key)))
    query = select(sent.place).select_from(sent.source).where(there)
    return set((await connection.execute(query, sent.parameters)).scalars())


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


async def _renumbered(
    connection: AsyncConnection, bulk: BulkEngine, batch: RowBatch, known: set[int]
) -> RowBatch:
    """Give rows of known keys the numbers after the highest of the same prefix, in file order."""
    if not known:
        return batch
    prefix = key_of(batch.table)[:-1]
    prefixes: Sequence[Any] = batch.keys(prefix)
    numbers: list[int] = batch.column(SEQUENCE)
    highest = await _highest(connection, bulk, batch, sorted({prefixes[n] for n in known}))
    for place, number in enumerate(numbers):
        if place not in known and prefixes[place] in highest:
            highest[prefixes[place]] = max(highest[prefixes[place]], number)
    for place in sorted(known):
        highest[prefixes[place]] += 1
        numbers[place] = highest[prefixes[place]]
    return batch.with_column(SEQUENCE, numbers)


async def _highest(
    connection: AsyncConnection,
    bulk: BulkEngine,
    batch: RowBatch,
    prefixes: Sequence[tuple[Any, ...]],
) -> dict[tuple[Any, ...], int]:
    table, names = batch.table, key_of(batch.table)[:-1]
    sent = bulk.keys(table, names, prefixes)
    same = and_(*(table.c[name] == sent.columns[name] for name in names))
    top = select(func.max(table.c[SEQUENCE])).where(same).scalar_subquery()
    rows = await connection.execute(
        select(sent.place, top).select_from(sent.source), sent.parameters
    )
    return {prefixes[place]: number for place, number in rows}


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
