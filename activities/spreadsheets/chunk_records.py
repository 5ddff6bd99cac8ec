"""What a chunk leaves beside the tables that it fills: results, differences, waiting rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from operator import itemgetter
from typing import Any, Final

from sqlalchemy import bindparam, delete, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from activities.spreadsheets.import_rows import (
    LockedImport,
    target_table,
)
from activities.spreadsheets.row_images import (
    TableImages,
)
from adapters.database.bulk import engine as bulk
from adapters.database.models.spreadsheets import (
    COUNTS,
    PERSON_LOOKUPS,
    spreadsheet_differences,
    spreadsheet_parked,
    spreadsheet_results,
)
from adapters.database.records import clean, dump_problems
from workflows.shared.contracts import Problem
from workflows.spreadsheets.fields import SheetChunk
from workflows.spreadsheets.mappings import Outcome
from workflows.spreadsheets.runs import RowCounts

DIFFERENCES: Final = 100
"""Differences to rows that were there before that are kept for people."""
UP_TO_DATE: Final = "already up to date"
KEPT: Final = "not changed: the row is there already, and this type only adds rows"
_MESSAGE: Final = 500
_SHOWN: Final = 200


@dataclass
class Done:
    """What a chunk has done: places of its source rows by their outcome."""

    created: set[int] = field(default_factory=set[int])
    touched: set[int] = field(default_factory=set[int])
    kept: set[int] = field(default_factory=set[int])
    images: list[TableImages] = field(default_factory=list[TableImages])


async def keep_differences(
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
            "table_name": target_table(table).name,
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


async def keep_results(
    connection: AsyncConnection,
    opened: LockedImport,
    chunk: SheetChunk,
    faults: Mapping[int, Sequence[Problem]],
    done: Done,
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
            message = KEPT if place in done.kept else UP_TO_DATE
            rows.append((opened.id, line, skipped, message, None))
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


async def park(connection: AsyncConnection, opened: LockedImport, chunk: SheetChunk) -> int:
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
