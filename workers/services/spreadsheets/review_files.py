"""Rows of a review as a spreadsheet, and a corrected one on its way back."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import datetime, time
from pathlib import Path
from typing import Final

from activities.spreadsheets.reports import titles_of
from activities.spreadsheets.staged_rows import rows_of
from activities.threads import from_thread
from adapters.database.spreadsheets.review_views import SqlReviewViews
from adapters.ports import SpreadsheetReviews, UnreadableDocument
from contracts.problems import Problem
from contracts.spreadsheets.reviews import CELLS, CellValue
from domain.spreadsheets.edits import Edits
from domain.spreadsheets.review import ReviewedRow
from domain.tabular.rows import Cell, RejectedRow
from domain.tabular.values import cell_text, storable
from workers.services.errors import Refused
from workers.services.spreadsheets.review_rows import ReviewRows, RowFilter

ROW_ID: Final = "row (do not change)"
"""Header of the column that says which row of the import it is."""
_AT_ONCE: Final = 1_000
_LONGEST: Final = 2_000


async def write_export(
    path: Path,
    reviews: SpreadsheetReviews,
    views: SqlReviewViews,
    rows: ReviewRows,
    uuid: str,
    edits: Edits,
    wanted: RowFilter,
) -> None:
    """Write rows as they are now, with what is wrong and their numbers; memory stays bounded."""
    from adapters.files.tables.report import XlsxReportWriter

    titles = titles_of(edits.columns)
    headers = {column.id: column.header for column in edits.columns}
    stopped = threading.Event()
    pages = from_thread(_pages(reviews, views, rows, uuid, edits, wanted), stopped)

    def write() -> None:
        XlsxReportWriter().write(
            path, [ROW_ID, *titles], (_row(each, headers) for each in pages), comments=True
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


async def corrected_cells(
    path: Path, filename: str, reviews: SpreadsheetReviews, uuid: str, edits: Edits
) -> list[CellValue]:
    """The cells of a corrected export that are not as they are in the review.

    Rows and columns that were removed from it stay as they are.

    Raises:
        Refused: It is no export of this import, or too much differs.
    """
    sent = await asyncio.to_thread(_read, path, filename, edits)
    cells: list[CellValue] = []
    known: set[int] = set()
    for block in await reviews.blocks_with(uuid, sent):
        for row in rows_of(block):
            if row.line in sent:
                known.add(row.line)
                cells += _differing(row.line, edits.cells(row.line, row.cells), sent[row.line])
    if unknown := sent.keys() - known:
        named = ", ".join(map(str, sorted(unknown)[:5]))
        raise Refused(f"there is no row {named} in this import; was the column {ROW_ID!r} changed?")
    if len(cells) > CELLS:
        raise Refused(f"{len(cells):,} cells differ; at most {CELLS:,} are taken at once")
    return cells


def _read(path: Path, filename: str, edits: Edits) -> dict[int, dict[int, Cell]]:
    """Number of each row to the cells that the file has for it, by id of their columns."""
    from adapters.files.documents import FileDocuments

    try:
        with FileDocuments().open_table(path, filename=filename) as table:
            rows = table.rows()
            first = next(rows, None)
            header = [] if first is None else first[1]
            place, columns = _columns(header, edits)
            return dict(_numbered(rows, place, columns))
    except UnreadableDocument as error:
        raise Refused(f"the file cannot be read: {error}") from error


def _columns(header: Sequence[Cell], edits: Edits) -> tuple[int, dict[int, int]]:
    """Place of the numbers of rows, and of each column by id."""
    titles = [cell_text(cell).strip() for cell in header]
    if ROW_ID not in titles:
        raise Refused(f"the file has no column {ROW_ID!r}; correct an export of this review")
    place = titles.index(ROW_ID)
    found: dict[int, int] = {}
    taken = {place}
    for column in edits.columns:
        wanted = column.header.strip()
        here = next((i for i, each in enumerate(titles) if each == wanted and i not in taken), None)
        if here is not None and wanted:
            taken.add(here)
            found[column.id] = here
    return place, found


def _numbered(
    rows: Iterator[tuple[int, list[Cell]]], place: int, columns: Mapping[int, int]
) -> Iterator[tuple[int, dict[int, Cell]]]:
    for line, cells in rows:
        number = cells[place] if place < len(cells) else None
        try:
            row = int(cell_text(number))
        except ValueError:
            raise Refused(f"line {line} has no row number in {ROW_ID!r}") from None
        yield row, {id: cells[i] if i < len(cells) else None for id, i in columns.items()}


def _differing(line: int, now: Sequence[Cell], sent: Mapping[int, Cell]) -> Iterator[CellValue]:
    for id, cell in sent.items():
        before = now[id - 1] if id <= len(now) else None
        text = _text(cell)
        if text != _text(before):
            yield CellValue(row=line, column=id, value=text[:_LONGEST] or None)


def _text(cell: Cell) -> str:
    """A cell as text: a day as a spreadsheet writes it, with or without its midnight."""
    if isinstance(cell, datetime) and cell.time() == time():
        return cell.date().isoformat()
    return cell_text(cell).strip()
