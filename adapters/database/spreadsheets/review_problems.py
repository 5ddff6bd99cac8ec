"""What is wrong with the rows of a review, and its rows in figures."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.bulk.protocol import BulkEngine
from adapters.database.codec import clean
from adapters.database.models.spreadsheet_reviews import (
    spreadsheet_review_problems,
    spreadsheet_reviews,
)
from adapters.database.spreadsheets.locked_import import LockedImport
from adapters.database.spreadsheets.review_conditions import concerned, id_of
from contracts.spreadsheets import ReviewCounts
from domain.spreadsheets.review import PROBLEMS, RowProblem

_AT_ONCE: Final = 10_000
_COLUMNS: Final = ("import_id", "line", "column_id", "value", "reason")


async def replace(
    connection: AsyncConnection,
    bulk: BulkEngine,
    opened: LockedImport,
    replaced: tuple[Collection[int] | None, Collection[int] | None],
    problems: Sequence[RowProblem],
) -> None:
    """Write what is wrong in the place of the problems of some rows and columns; None: all."""
    table = spreadsheet_review_problems
    for conditions in concerned(opened.id, *replaced):
        await connection.execute(delete(table).where(*conditions))
    # Most cells of a column have the same reason.
    reasons = {reason: clean(reason) for reason in {each.reason for each in problems}}
    rows = [
        (opened.id, each.line, each.column, _text(each.value), reasons[each.reason])
        for each in problems[:PROBLEMS]
    ]
    for i in range(0, len(rows), _AT_ONCE):
        await bulk.insert(connection, table, _COLUMNS, rows[i : i + _AT_ONCE])


async def number(
    connection: AsyncConnection,
    uuid: str,
    lines: Collection[int] | None,
    columns: Collection[int] | None,
) -> int:
    """How many problems some rows have in some columns; None: any."""
    total = 0
    for each in concerned(id_of(uuid), lines, columns):
        query = select(func.count()).select_from(spreadsheet_review_problems).where(*each)
        total += (await connection.execute(query)).scalar_one()
    return total


async def count(
    connection: AsyncConnection, opened: LockedImport, more: Mapping[str, Any]
) -> ReviewCounts:
    """Count the rows with a problem, and change more of the review with that."""
    problems, reviews = spreadsheet_review_problems, spreadsheet_reviews
    # COUNT(DISTINCT) sorts; a subquery is read off the index.
    lines = select(problems.c.line).where(problems.c.import_id == opened.id).distinct()
    query = select(func.count()).select_from(lines.subquery())
    wrong = (await connection.execute(query)).scalar_one()
    await connection.execute(
        update(reviews).where(reviews.c.import_id == opened.id).values(wrong=wrong, **more)
    )
    return counts_of(await review_of(connection, opened))


async def review_of(connection: AsyncConnection, opened: LockedImport) -> Any:
    """The row of the review of an import."""
    reviews = spreadsheet_reviews
    query = select(reviews).where(reviews.c.import_id == opened.id)
    return (await connection.execute(query)).one()


def counts_of(row: Any) -> ReviewCounts:
    """The figures of a review."""
    return ReviewCounts(rows=row.rows, wrong=row.wrong, excluded=row.excluded, checked=row.checked)


def _text(text: str | None) -> str | None:
    return None if text is None else clean(text)
