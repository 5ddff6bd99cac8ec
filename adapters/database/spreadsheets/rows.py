"""One chunk of rows on its way into the target tables, in one transaction with its mark."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from operator import itemgetter
from typing import Any, Final

from sqlalchemy import bindparam, delete, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.bulk.protocol import BulkEngine
from adapters.database.codec import clean, dump_problems
from adapters.database.models.people import PERSON_LOOKUPS
from adapters.database.models.spreadsheets import (
    COUNTS,
    spreadsheet_differences,
    spreadsheet_journal,
    spreadsheet_parked,
    spreadsheet_results,
)
from adapters.database.spreadsheets import before_images, values
from adapters.database.spreadsheets.before_images import TableImages
from adapters.database.spreadsheets.checks import find_faults
from adapters.database.spreadsheets.locked_import import (
    LockedImport,
    acquire_organisation_lock,
    counted_values,
    lock_known,
    save,
)
from adapters.database.spreadsheets.targets import Met, incoming_rows, meet
from contracts.problems import Problem
from contracts.spreadsheets import Outcome, RowCounts
from domain.spreadsheets.records import SheetChunk, SheetMark

DIFFERENCES: Final = 100
"""Differences to rows that were there before that are kept for people."""
UP_TO_DATE: Final = "already up to date"
_MESSAGE: Final = 500
_SHOWN: Final = 200


async def write_chunk(
    connection: AsyncConnection, bulk: BulkEngine, uuid: str, chunk: SheetChunk, *, dry_run: bool
) -> SheetMark:
    """Write a chunk; one at or before the mark, or of an import that has ended, is left alone."""
    opened = await lock_known(connection, uuid)
    mark = opened.mark
    if opened.ended or opened.purged or not _is_next(chunk, mark):
        return mark
    if not dry_run:
        await acquire_organisation_lock(connection, bulk, opened.row.organisation_id)
    await bulk.expect_lookups(connection)
    faults = await find_faults(connection, bulk, chunk)
    done = await _write_targets(connection, bulk, chunk, faults, dry_run=dry_run)
    await _keep_differences(connection, opened, done.images)
    if not dry_run:
        await _keep_images(connection, bulk, opened, chunk, done.images)
    counts = await _keep_results(connection, bulk, opened, chunk, faults, done)
    parked = await _park(connection, bulk, opened, chunk)
    more: dict[str, Any] = {"parked": parked}
    if chunk.found:
        count = "add" if chunk.round == 0 else "keep"
        await values.add_values(connection, bulk, opened, chunk.found, count=count)
        more |= await counted_values(connection, opened)
    return await _advance(connection, opened, chunk, counts, more)


def _is_next(chunk: SheetChunk, mark: SheetMark) -> bool:
    """Whether this is the chunk that the mark waits for.

    Raises:
        ValueError: Chunks between the two are missing: a mistake of the caller.
    """
    if chunk.round < mark.round or (chunk.round == mark.round and chunk.number < mark.chunk):
        return False
    if chunk.round == mark.round and mark.finished:
        return False
    expected = mark.chunk if chunk.round == mark.round else 0
    if chunk.number > expected or (chunk.round > mark.round and not mark.finished):
        raise ValueError(
            f"chunk {chunk.number} of round {chunk.round} comes before chunk {mark.chunk} "
            f"of round {mark.round} is written"
        )
    return True


@dataclass
class _Done:
    """What a chunk has done: places of its source rows by their outcome."""

    created: set[int] = field(default_factory=set[int])
    touched: set[int] = field(default_factory=set[int])
    images: list[TableImages] = field(default_factory=list[TableImages])


async def _write_targets(
    connection: AsyncConnection,
    bulk: BulkEngine,
    chunk: SheetChunk,
    faults: Mapping[int, Any],
    *,
    dry_run: bool,
) -> _Done:
    done = _Done()
    ids: dict[str, dict[int, int | None]] = {}
    fresh: dict[str, set[int | None]] = {}
    for target in chunk.targets:
        incoming = incoming_rows(bulk, target, faults, ids)
        met = Met(TableImages(target.table, incoming.columns))
        if incoming.rows:
            new = {name: fresh[table] for name, table in target.references.items()}
            met = await meet(connection, bulk, incoming, chunk.lines, new, dry_run=dry_run)
            done.images.append(met.images)
        ids.setdefault(target.table, {}).update(met.ids)
        fresh.setdefault(target.table, set()).update(met.ids[origin] for origin in met.created)
        done.touched |= met.created | met.changed
        if target.table == chunk.main:
            done.created |= met.created
    return done


async def _keep_images(
    connection: AsyncConnection,
    bulk: BulkEngine,
    opened: LockedImport,
    chunk: SheetChunk,
    changed: Sequence[TableImages],
) -> None:
    kept = [each for each in changed if each.created or each.updated]
    if not kept:
        return
    packed = await asyncio.to_thread(before_images.pack, kept)
    columns = ("import_id", "round", "chunk", "images", "undone")
    row = (opened.id, chunk.round, chunk.number, packed, False)
    await bulk.insert(connection, spreadsheet_journal, columns, [row])


async def _keep_differences(
    connection: AsyncConnection, opened: LockedImport, changed: Sequence[TableImages]
) -> None:
    """Keep the first differences to rows that are there."""
    if not any(each.updated for each in changed):
        return
    mine = spreadsheet_differences.c.import_id == opened.id
    count = select(func.count()).select_from(spreadsheet_differences).where(mine)
    kept = (await connection.execute(count)).scalar_one()
    if kept >= DIFFERENCES:
        return
    found = (
        (row.line, each.table, each.columns[column], before, after)
        for each in changed
        for row in each.updated
        for column, before, after in zip(row.columns, row.before, row.after, strict=True)
        if each.columns[column] not in PERSON_LOOKUPS
    )
    rows = [
        {
            "import_id": opened.id,
            "place": place,
            "line": line,
            "table_name": table,
            "column_name": column,
            "before": _shown(before),
            "after": _shown(after),
        }
        for place, (line, table, column, before, after) in enumerate(
            islice(found, DIFFERENCES - kept), start=kept
        )
    ]
    if rows:
        await connection.execute(spreadsheet_differences.insert(), rows)


def _shown(value: Any) -> str | None:
    return None if value is None else str(value)[:_SHOWN]


async def _keep_results(
    connection: AsyncConnection,
    bulk: BulkEngine,
    opened: LockedImport,
    chunk: SheetChunk,
    faults: Mapping[int, Sequence[Problem]],
    done: _Done,
) -> RowCounts:
    """An outcome for every row of the chunk that does not wait; how many there are of each."""
    created, updated, skipped, error = (outcome.value for outcome in Outcome)
    rows: list[tuple[Any, ...]] = []
    for place, line in enumerate(chunk.lines):
        if place in done.created:
            rows.append((opened.id, line, created, None, None))
        elif place in faults:
            rows.append((opened.id, line, error, *_row_error(faults[place])))
        elif place in done.touched:
            rows.append((opened.id, line, updated, None, None))
        else:
            rows.append((opened.id, line, skipped, UP_TO_DATE, None))
    rows += [(opened.id, line, error, *_row_error(problems)) for line, problems in chunk.errors]
    rows += [
        (opened.id, line, skipped, clean(reason)[:_MESSAGE], None) for line, reason in chunk.skipped
    ]
    rows.sort(key=itemgetter(1))
    columns = ("import_id", "line", "outcome", "message", "problems")
    if rows:
        await bulk.insert(connection, spreadsheet_results, columns, rows)
    outcomes = [row[2] for row in rows]
    return RowCounts(**{name: outcomes.count(name.upper()) for name in COUNTS})


def _row_error(problems: Sequence[Problem]) -> tuple[str, str]:
    """What is wrong with a row as a sentence, and as it stands in the report."""
    cleaned = [
        problem.model_copy(
            update={
                name: clean(text)
                for name in ("column", "value", "reason")
                if (text := getattr(problem, name)) is not None
            }
        )
        for problem in problems
    ]
    parts = [
        problem.reason if problem.column is None else f"{problem.column}: {problem.reason}"
        for problem in cleaned
    ]
    return "; ".join(parts)[:_MESSAGE], dump_problems(cleaned)


async def _park(
    connection: AsyncConnection, bulk: BulkEngine, opened: LockedImport, chunk: SheetChunk
) -> int:
    """Put rows aside that wait for a value, take out those that waited; how many wait now."""
    parked = spreadsheet_parked
    mine = parked.c.import_id == opened.id
    if chunk.round == 0:
        rows = [
            (opened.id, row.line, row.offset, _kept(row.person), _kept(row.person_key))
            for row in sorted(chunk.parked, key=lambda row: row.line)
        ]
        if rows:
            columns = ("import_id", "line", "offset", "person", "person_key")
            await bulk.insert(connection, parked, columns, rows)
        return opened.row.parked + len(rows)
    handled = [*chunk.lines, *(line for line, _ in (*chunk.errors, *chunk.skipped))]
    if handled:
        gone = delete(parked).where(mine, parked.c.line == bindparam("handled"))
        await connection.execute(gone, [{"handled": line} for line in handled])
    return (
        await connection.execute(select(func.count()).select_from(parked).where(mine))
    ).scalar_one()


def _kept(text: str | None) -> str | None:
    return None if text is None else clean(text)


async def _advance(
    connection: AsyncConnection,
    opened: LockedImport,
    chunk: SheetChunk,
    counts: RowCounts,
    more: Mapping[str, Any],
) -> SheetMark:
    before = opened.mark.counts
    total = RowCounts(**{name: getattr(before, name) + getattr(counts, name) for name in COUNTS})
    mark = SheetMark(
        round=chunk.round,
        chunk=chunk.number + 1,
        cursor=chunk.cursor,
        offset=chunk.offset,
        counts=total,
    )
    await save(
        connection,
        opened,
        {
            "mark_round": mark.round,
            "mark_chunk": mark.chunk,
            "mark_cursor": mark.cursor,
            "mark_offset": mark.offset,
            "round_ended": False,
            **total.model_dump(),
            **more,
        },
    )
    return mark
