"""Rows of a review as a spreadsheet that can be corrected and uploaded again."""

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from activities.spreadsheets.reports import titles_of
from activities.spreadsheets.staged_rows import rows_of
from activities.threads import from_thread
from adapters.database.spreadsheets.review_views import SqlReviewViews
from adapters.ports import SpreadsheetReviews
from contracts.problems import Problem
from domain.spreadsheets.edits import Edits
from domain.spreadsheets.review import ReviewedRow
from domain.tabular.rows import RejectedRow
from domain.tabular.values import storable
from workers.services.spreadsheets.review_rows import ReviewRows, RowFilter

_AT_ONCE: Final = 1_000


def row_id_header(uuid: str, version: int) -> str:
    """Header of the column of row numbers: it names the import, and the version of its rows."""
    return f"row (do not change; import {uuid[:8]}, version {version})"


async def write_export(
    path: Path,
    reviews: SpreadsheetReviews,
    views: SqlReviewViews,
    rows: ReviewRows,
    uuid: str,
    version: int,
    edits: Edits,
    wanted: RowFilter,
) -> None:
    """Write rows as they are at a version, with what is wrong and their numbers.

    Memory stays bounded.
    """
    from adapters.files.tables.report import XlsxReportWriter

    titles = titles_of(edits.columns)
    headers = {column.id: column.header for column in edits.columns}
    stopped = threading.Event()
    pages = from_thread(_pages(reviews, views, rows, uuid, edits, wanted), stopped)

    def write() -> None:
        XlsxReportWriter().write(
            path,
            [row_id_header(uuid, version), *titles],
            (_row(each, headers) for each in pages),
            comments=True,
        )

    try:
        await asyncio.to_thread(write)
    finally:
        stopped.set()


async def _pages(
    reviews: SpreadsheetReviews,
    views: SqlReviewViews,
    rows: ReviewRows,
    uuid: str,
    edits: Edits,
    wanted: RowFilter,
) -> AsyncIterator[Sequence[ReviewedRow]]:
    if wanted is RowFilter.ALL:
        async for blocks in reviews.blocks(uuid):
            lines = [row.line for block in blocks for row in rows_of(block)]
            for i in range(0, len(lines), _AT_ONCE):
                yield await _some(rows, uuid, edits, lines[i : i + _AT_ONCE])
        return
    lines = await views.all_problem_lines(uuid)
    if wanted is RowFilter.EXCLUDED:
        lines = sorted(edits.excluded)
    for i in range(0, len(lines), _AT_ONCE):
        yield await _some(rows, uuid, edits, lines[i : i + _AT_ONCE])


async def _some(
    rows: ReviewRows, uuid: str, edits: Edits, lines: Sequence[int]
) -> Sequence[ReviewedRow]:
    found = await rows.some(uuid, edits, lines)
    return [found[line] for line in lines if line in found]


def _row(row: ReviewedRow, headers: Mapping[int, str]) -> RejectedRow:
    problems = [
        Problem(line=row.line, column=headers.get(each.column), reason=each.reason)
        for each in row.problems
    ]
    if row.excluded is not None:
        problems.append(Problem(line=row.line, reason=f"left out by {row.excluded}"))
    return RejectedRow(row.line, [row.line, *storable(row.cells)], problems)
