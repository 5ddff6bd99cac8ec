"""Rows that are added to those that are there: which keys are known, and which numbers are free."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import and_, exists, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.bulk import engine as bulk
from adapters.database.bulk.rows import RowBatch
from adapters.database.models.base import key_of
from workflows.shared.sections import SEQUENCE


async def known_keys(connection: AsyncConnection, batch: RowBatch) -> set[int]:
    """Places of the rows whose key is in the table already."""
    if not batch.rows:
        return set()
    table, key = batch.table, key_of(batch.table)
    sent = bulk.keys(table, key, batch.keys())
    there = exists().where(and_(*(table.c[name] == sent.columns[name] for name in key)))
    query = select(sent.place).select_from(sent.source).where(there)
    return set((await connection.execute(query, sent.parameters)).scalars())


def is_numbered(batch: RowBatch) -> bool:
    """Whether rows of one key are told apart by their number."""
    return key_of(batch.table)[-1] == SEQUENCE


async def renumbered(connection: AsyncConnection, batch: RowBatch, known: set[int]) -> RowBatch:
    """Give rows of known keys the numbers after the highest of the same prefix, in file order."""
    if not known:
        return batch
    prefix = key_of(batch.table)[:-1]
    prefixes: Sequence[Any] = batch.keys(prefix)
    numbers: list[int] = batch.column(SEQUENCE)
    highest = await _highest(connection, batch, sorted({prefixes[n] for n in known}))
    for place, number in enumerate(numbers):
        if place not in known and prefixes[place] in highest:
            highest[prefixes[place]] = max(highest[prefixes[place]], number)
    for place in sorted(known):
        highest[prefixes[place]] += 1
        numbers[place] = highest[prefixes[place]]
    return batch.with_column(SEQUENCE, numbers)


async def _highest(
    connection: AsyncConnection,
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
