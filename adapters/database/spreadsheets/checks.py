"""Rows that no database would take, found before they fail a whole chunk."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Text
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.bulk.protocol import BulkEngine, RowBatch
from adapters.database.spreadsheets.target_tables import parents_of, target_table
from adapters.database.storable import unstorable
from contracts.problems import Problem
from domain.spreadsheets.plain_words import column_title
from domain.spreadsheets.records import SheetChunk, TargetRows

_KEY_BYTES: Final = 2_000
"""An index entry of PostgreSQL holds 2,704 bytes."""


async def find_faults(
    connection: AsyncConnection, bulk: BulkEngine, chunk: SheetChunk
) -> dict[int, tuple[Problem, ...]]:
    """What is wrong with rows of a chunk, by their place in it.

    Rows that others' rows refer to are locked, so that none of them vanishes before the end of
    the transaction.
    """
    faults: dict[int, tuple[Problem, ...]] = {}
    for target in chunk.targets:
        if not target.rows:
            continue
        for place, problem in _unstorable(chunk, target).items():
            faults.setdefault(target.origin[place], (_in_words(problem),))
        for place, problem in (await _dangling(connection, bulk, chunk, target)).items():
            faults.setdefault(target.origin[place], (_in_words(problem),))
    return faults


def _in_words(problem: Problem) -> Problem:
    """People know fields, not columns of tables."""
    if problem.column is None:
        return problem
    return problem.model_copy(update={"column": column_title(problem.column)})


def _unstorable(chunk: SheetChunk, target: TargetRows) -> Mapping[int, Problem]:
    table = target_table(target.table)
    lines = [chunk.lines[place] for place in target.origin]
    batch = RowBatch(table, target.columns, target.rows, lines, target.origin)
    return unstorable(batch) | _bad_required(batch)


def _bad_required(batch: RowBatch) -> dict[int, Problem]:
    """Values that must not be absent, and keys that are longer than an index holds."""
    found: dict[int, Problem] = {}
    for name in batch.columns:
        column = batch.table.c[name]
        if column.nullable:
            continue
        values = batch.column(name)
        if None in values:
            for place, value in enumerate(values):
                if value is None:
                    found[place] = Problem(
                        line=batch.lines[place], column=name, reason="is missing; fill it in"
                    )
        if isinstance(column.type, Text):
            longest = max((len(value) for value in values if value is not None), default=0)
            if longest * 4 > _KEY_BYTES:
                found |= _long_keys(batch, name, values)
    return found


def _long_keys(batch: RowBatch, name: str, values: Sequence[Any]) -> dict[int, Problem]:
    reason = f"the key of this row is longer than {_KEY_BYTES:,} bytes; shorten it"
    return {
        place: Problem(line=batch.lines[place], column=name, reason=reason)
        for place, value in enumerate(values)
        if value is not None and len(value.encode("utf-8", "replace")) > _KEY_BYTES
    }


async def _dangling(
    connection: AsyncConnection, bulk: BulkEngine, chunk: SheetChunk, target: TargetRows
) -> dict[int, Problem]:
    """Rows that refer to one which was deleted meanwhile."""
    found: dict[int, Problem] = {}
    for name, parent in parents_of(target.table).items():
        if name not in target.columns:
            continue
        column = target.columns.index(name)
        values = [row[column] for row in target.rows]
        wanted = {value for value in values if value is not None}
        # Beyond 64 bits there is nothing to look up; such a row is known to be unstorable.
        asked = sorted(value for value in wanted if abs(value) < 1 << 63)
        there = await bulk.existing(connection, parent, asked) if asked else set[int]()
        if wanted <= there:
            continue
        for place, value in enumerate(values):
            if value is not None and value not in there:
                found[place] = Problem(
                    line=chunk.lines[target.origin[place]],
                    column=name,
                    value=str(value)[:200],
                    reason=f"refers to a row of {parent.name.replace('_', ' ')} that is not "
                    "there any more; map the value again",
                )
    return found
