"""Rows of a review as a spreadsheet that can be corrected and uploaded again."""

import asyncio
import re
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time
from enum import StrEnum
from itertools import chain, islice
from pathlib import Path
from typing import Final

from activities.shared.failures import from_thread
from activities.spreadsheets.records import Page
from activities.spreadsheets.review import BLOCK_ROWS
from activities.spreadsheets.review_rules import ReviewedRow
from activities.spreadsheets.review_store import SqlReviewStore, SqlReviewViews
from activities.spreadsheets.rows import titles_of
from activities.spreadsheets.staging import rows_of
from activities.spreadsheets.validation import SourceRow
from adapters.ports.documents import Table
from adapters.ports.errors import UnreadableDocument
from workers.shared.services.errors import Refused
from workflows.shared.cells import Cell, RejectedRow, cell_text, storable
from workflows.shared.contracts import Problem
from workflows.spreadsheets.edits import Edits
from workflows.spreadsheets.mappings import ReviewCounts
from workflows.spreadsheets.reviews import CELLS, CellValue


class RowFilter(StrEnum):
    """Which rows of a review."""

    ALL = "ALL"
    """Those with problems first, then the others; both in the order of the file."""
    PROBLEMS = "PROBLEMS"
    EXCLUDED = "EXCLUDED"
    CHANGED = "CHANGED"
    """Those with a cell that does not hold what stands in the file."""


class ReviewRows:
    """Pages of rows.

    Args:
        reviews: Tables, rows and operations.
        views: Tables, problems.
    """

    def __init__(self, reviews: SqlReviewStore, views: SqlReviewViews) -> None:
        self._reviews, self._views = reviews, views

    async def page(
        self,
        uuid: str,
        edits: Edits,
        counts: ReviewCounts,
        wanted: RowFilter,
        column: int | None,
        page: int,
        size: int,
    ) -> Page[ReviewedRow]:
        """A page of rows as they are now.

        Args:
            uuid: The import.
            edits: Its corrections.
            counts: Its rows in figures.
            wanted: Which rows.
            column: Of `PROBLEMS`: only rows with a problem in this column.
            page: From 0.
            size: Rows of a page.
        """
        first = page * size
        if wanted in (RowFilter.EXCLUDED, RowFilter.CHANGED):
            known = await self.lines(uuid, edits, wanted)
            return await self._page(uuid, edits, known[first : first + size], len(known))
        total = counts.rows
        if wanted is RowFilter.PROBLEMS:
            total = counts.wrong
            if column is not None:
                total = await self._views.problem_count(uuid, column)
        lines: Sequence[int] = ()
        if first < counts.wrong:
            lines = await self._views.problem_lines(uuid, column=column, page=page, size=size)
        if wanted is RowFilter.ALL and len(lines) < size:
            begin = max(0, first - counts.wrong)
            fine = await self._fine_lines(uuid, begin, size - len(lines))
            lines = [*lines, *fine]
        return await self._page(uuid, edits, lines, total)

    async def lines(
        self, uuid: str, edits: Edits, wanted: RowFilter, column: int | None = None
    ) -> Sequence[int]:
        """Numbers of all rows that a filter leaves, in the order of the file; not of `ALL`.

        Args:
            uuid: The import.
            edits: Its corrections.
            wanted: Which rows.
            column: Of `PROBLEMS`: only rows with a problem in this column.
        """
        match wanted:
            case RowFilter.EXCLUDED:
                return sorted(edits.excluded)
            case RowFilter.CHANGED:
                return await self._changed_lines(uuid, edits)
            case _:
                return await self._views.all_problem_lines(uuid, column)

    async def _changed_lines(self, uuid: str, edits: Edits) -> Sequence[int]:
        def changed(blocks: Sequence[bytes]) -> list[int]:
            rows = chain(*map(rows_of, blocks))
            return [
                row.line
                for row in rows
                if edits.may_change(row.line) and edits.corrections(row.line, row.cells)
            ]

        if not edits.steps:
            return ()
        if edits.edited_rows is not None:
            return await asyncio.to_thread(
                changed, await self._reviews.blocks_with(uuid, edits.edited_rows)
            )
        found: list[int] = []
        async for blocks in self._reviews.blocks(uuid):
            found += await asyncio.to_thread(changed, blocks)
        return found

    async def at(self, uuid: str, edits: Edits, first: int, size: int) -> Sequence[ReviewedRow]:
        """Some rows in the order of the file, from the one at this place on."""
        starts = await self._views.starts(uuid)
        blocks = starts[first // BLOCK_ROWS : (first + size - 1) // BLOCK_ROWS + 1]
        rows = chain(*map(rows_of, await self._reviews.blocks_with(uuid, blocks)))
        begin = first % BLOCK_ROWS
        return await self._reviewed(uuid, edits, list(islice(rows, begin, begin + size)))

    async def some(
        self, uuid: str, edits: Edits, lines: Sequence[int]
    ) -> Mapping[int, ReviewedRow]:
        """Rows by their numbers; those that there are not are left out."""
        wanted = set(lines)
        blocks = await self._reviews.blocks_with(uuid, wanted)
        rows = [row for block in blocks for row in rows_of(block) if row.line in wanted]
        return {row.line: row for row in await self._reviewed(uuid, edits, rows)}

    async def _reviewed(
        self, uuid: str, edits: Edits, rows: Sequence[SourceRow]
    ) -> Sequence[ReviewedRow]:
        problems = await self._views.problems(uuid, [row.line for row in rows])
        return [
            ReviewedRow(
                row.line,
                edits.cells(row.line, row.cells),
                problems.get(row.line, ()),
                edits.corrections(row.line, row.cells),
                _who_excluded(edits, row.line),
            )
            for row in rows
        ]

    async def _page(
        self, uuid: str, edits: Edits, lines: Sequence[int], total: int
    ) -> Page[ReviewedRow]:
        found = await self.some(uuid, edits, lines)
        return Page([found[line] for line in lines if line in found], total)

    async def _fine_lines(self, uuid: str, begin: int, count: int) -> Sequence[int]:
        """Rows without a problem, from the one at this place among them on."""
        wrong = await self._views.all_problem_lines(uuid)
        starts = await self._views.starts(uuid)
        taken = 0
        lines: list[int] = []
        for number, start in enumerate(starts):
            is_last = number + 1 == len(starts)
            if not is_last:
                ends = starts[number + 1]
                fine = BLOCK_ROWS - (bisect_left(wrong, ends) - bisect_left(wrong, start))
                if taken + fine <= begin:
                    taken += fine
                    continue
            for line in await self._fine_in(uuid, start, wrong):
                if taken >= begin:
                    lines.append(line)
                taken += 1
                if len(lines) == count:
                    return lines
        return lines

    async def _fine_in(self, uuid: str, start: int, wrong: Sequence[int]) -> Iterator[int]:
        [block] = await self._reviews.blocks_with(uuid, [start])
        found = [row.line for row in rows_of(block)]
        place = bisect_left(wrong, start)
        known = set(wrong[place : place + BLOCK_ROWS])
        return (line for line in found if line not in known)


def _who_excluded(edits: Edits, line: int) -> str | None:
    reason = edits.reasons.get(line)
    by = edits.excluded.get(line)
    return by if reason is None else f"{by}: {reason}"


_AT_ONCE: Final = 1_000


def row_id_header(uuid: str, version: int) -> str:
    """Header of the column of row numbers: it names the import, and the version of its rows."""
    return f"row (do not change; import {uuid[:8]}, version {version})"


async def write_export(
    path: Path,
    reviews: SqlReviewStore,
    rows: ReviewRows,
    uuid: str,
    version: int,
    edits: Edits,
    wanted: RowFilter,
) -> None:
    """Write rows as they are at a version, with what is wrong and their numbers.

    Memory stays bounded.
    """
    from adapters.files.tables.workbooks import XlsxReportWriter

    titles = titles_of(edits.columns)
    headers = {column.id: column.header for column in edits.columns}
    stopped = threading.Event()
    pages = from_thread(_pages(reviews, rows, uuid, edits, wanted), stopped)

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
    reviews: SqlReviewStore,
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
    lines = await rows.lines(uuid, edits, wanted)
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


_ROW_ID: Final = re.compile(
    r"row \(do not change; import ([0-9a-f]{8}), version ([0-9]{1,15})\)", re.ASCII
)
_LONGEST: Final = 2_000
"""Characters of a cell that an operation sets."""
_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class Corrections:
    """What a corrected export changes.

    Attributes:
        version: Of the rows that the export was made of.
        cells: To be set; cells that hold the same by now are left out.
        conflicts: Cells that were changed in the file and, to something else, in the review.
    """

    version: int
    cells: Sequence[CellValue]
    conflicts: Sequence[str]


@dataclass(frozen=True, slots=True)
class _Sent:
    version: int
    base: Edits
    rows: Mapping[int, Mapping[int, Cell]]
    """Number of each row to the cells that the file has for it, by id of their columns."""


async def corrections_of(
    path: Path,
    filename: str,
    reviews: SqlReviewStore,
    uuid: str,
    now: Edits,
    version: int,
    edits_at: Callable[[int], Awaitable[Edits]],
) -> Corrections:
    """Find the cells that a person has corrected in an export.

    A cell counts as corrected if it differs from what the export held, so that an old export
    never brings back what was changed since. Rows and columns that were removed stay as they are.

    Args:
        path: The file.
        filename: Its name, as it was uploaded.
        reviews: Tables.
        uuid: The import.
        now: Its corrections.
        version: Of its rows.
        edits_at: Its corrections at an earlier version.

    Raises:
        Refused: It is not an export of this import, is not clear, or differs in too much.
    """
    header = await asyncio.to_thread(_header, path, filename)
    place, exported = _exported(header, uuid)
    if exported > version:
        raise Refused(f"this import has no version {exported} yet; was the header changed?")
    base = await edits_at(exported)
    columns, nameless = _columns(header, place, base)
    rows = await asyncio.to_thread(_read, path, filename, place, columns, nameless)
    return await _compare(reviews, uuid, now, _Sent(exported, base, rows))


async def _compare(reviews: SqlReviewStore, uuid: str, now: Edits, sent: _Sent) -> Corrections:
    cells: list[CellValue] = []
    conflicts: list[str] = []
    known: set[int] = set()
    for block in await reviews.blocks_with(uuid, sent.rows):
        for row in rows_of(block):
            if row.line in sent.rows:
                known.add(row.line)
                _differing(row, now, sent, cells, conflicts)
    if unknown := sent.rows.keys() - known:
        named = ", ".join(map(str, sorted(unknown)[:_NAMED]))
        raise Refused(f"there is no row {named} in this import; were row numbers changed?")
    if len(cells) > CELLS:
        raise Refused(f"{len(cells):,} cells differ; at most {CELLS:,} are taken at once")
    return Corrections(sent.version, cells, conflicts)


def _differing(
    row: SourceRow, now: Edits, sent: _Sent, cells: list[CellValue], conflicts: list[str]
) -> None:
    """Compare three ways: as exported, as sent, and as it is now."""
    exported = _texts(sent.base.cells(row.line, row.cells))
    current = _texts(now.cells(row.line, row.cells))
    present = {column.id: column.header for column in now.columns}
    for id, cell in sent.rows[row.line].items():
        text, before = _text(cell), _at(exported, id)
        if text == before or _is_cut(text, before):
            continue
        header = sent.base.column(id).header
        if id not in present:
            conflicts.append(f"row {row.line}, {header}: the column was taken back")
            continue
        after = _at(current, id)
        if text == after:
            continue
        if after != before:
            by = {each.column: each.by for each in now.corrections(row.line, row.cells)}
            who = f" by {by[id]}" if id in by else ""
            conflicts.append(f"row {row.line}, {header}: changed{who}")
            continue
        if len(text) > _LONGEST:
            raise Refused(
                f"row {row.line}, {header}: {len(text):,} characters; "
                f"a cell is corrected with at most {_LONGEST:,}"
            )
        cells.append(CellValue(row=row.line, column=id, value=text or None))


def _texts(cells: Sequence[Cell]) -> Sequence[str]:
    return [_text(cell) for cell in storable(cells)]


def _at(texts: Sequence[str], id: int) -> str:
    return texts[id - 1] if id <= len(texts) else ""


def _is_cut(text: str, exported: str) -> bool:
    """Whether a text is only what a spreadsheet can hold of a longer one."""
    from adapters.files.tables.workbooks import fitting

    return len(text) > _LONGEST and text == fitting(exported)


def _header(path: Path, filename: str) -> Sequence[str]:
    from adapters.files.documents import FileDocuments

    documents = FileDocuments()
    try:
        with documents.open_table(path, filename=filename) as table:
            header = _first(table)
        with documents.open_workbook(path, filename=filename) as book:
            exported = [sheet.name for sheet in book.sheets if _has_numbers(book.table(sheet.name))]
    except UnreadableDocument as error:
        raise Refused(f"the file cannot be read: {error}") from error
    if len(exported) > 1:
        named = ", ".join(map(repr, exported[:_NAMED]))
        raise Refused(
            f"rows of the review stand on several sheets, {named}; upload each as a file of its own"
        )
    return header


def _first(table: Table) -> Sequence[str]:
    first = next(table.rows(), None)
    return [] if first is None else [cell_text(cell).strip() for cell in first[1]]


def _has_numbers(table: Table) -> bool:
    return any(_ROW_ID.fullmatch(title) for title in _first(table))


def _exported(header: Sequence[str], uuid: str) -> tuple[int, int]:
    """Place of the numbers of rows, and the version that they are of."""
    for place, title in enumerate(header):
        if parts := _ROW_ID.fullmatch(title):
            if parts[1] != uuid[:8]:
                raise Refused(f"the file is an export of another import, {parts[1]}…")
            return place, int(parts[2])
    raise Refused(
        "the file has no column 'row (do not change …)' with import and version in its header; "
        "correct an export of this review and leave that column as it is"
    )


def _columns(
    header: Sequence[str], place: int, base: Edits
) -> tuple[Mapping[int, int], Sequence[int]]:
    """Place of each column by id, and the places that have no header.

    Raises:
        Refused: It is not clear which columns are meant.
    """
    titles = [title.strip() for title in titles_of(base.columns)]
    following = [*header[place + 1 :], *[""] * len(titles)]
    if following[: len(titles)] == titles and not any(following[len(titles) :]):
        return {each.id: place + 1 + each.index for each in base.columns}, []
    from adapters.files.tables.workbooks import WHAT_IS_WRONG

    places: dict[str, list[int]] = {}
    for i, title in enumerate(header):
        if i != place and title != WHAT_IS_WRONG:
            places.setdefault(title, []).append(i)
    nameless = places.pop("", [])
    exported = Counter(titles)
    if unknown := [title for title in places if title not in exported]:
        named = ", ".join(map(repr, unknown[:_NAMED]))
        raise Refused(f"the export had no column {named}; leave the headers as they are")
    for title, found in places.items():
        if len(found) != exported[title]:
            raise Refused(
                f"the export had {exported[title]} columns {title!r}, the file has {len(found)}; "
                "it is not clear which is which"
            )
    left = {title: iter(found) for title, found in places.items()}
    columns = {
        each.id: next(left[title])
        for each in base.columns
        if (title := each.header.strip()) in left
    }
    return columns, nameless


def _read(
    path: Path, filename: str, place: int, columns: Mapping[int, int], nameless: Sequence[int]
) -> Mapping[int, Mapping[int, Cell]]:
    from adapters.files.documents import FileDocuments

    found: dict[int, Mapping[int, Cell]] = {}
    try:
        with FileDocuments().open_table(path, filename=filename) as table:
            rows = table.rows()
            next(rows, None)
            for number, cells in _numbered(rows, place, columns, nameless):
                if number in found:
                    raise Refused(f"row {number} stands in the file twice; remove one of the two")
                found[number] = cells
    except UnreadableDocument as error:
        raise Refused(f"the file cannot be read: {error}") from error
    return found


def _numbered(
    rows: Iterator[tuple[int, list[Cell]]],
    place: int,
    columns: Mapping[int, int],
    nameless: Sequence[int],
) -> Iterator[tuple[int, Mapping[int, Cell]]]:
    for line, cells in rows:
        if not any(_text(cell) for cell in cells):
            continue
        number = cells[place] if place < len(cells) else None
        try:
            row = int(cell_text(number))
        except ValueError:
            raise Refused(f"line {line} has no row number") from None
        for i in nameless:
            if i < len(cells) and _text(cells[i]):
                raise Refused(f"line {line}: column {i + 1} of the file has no header")
        yield row, {id: cells[i] if i < len(cells) else None for id, i in columns.items()}


def _text(cell: Cell) -> str:
    """A cell as text: a day as a spreadsheet writes it, with or without its midnight."""
    if isinstance(cell, datetime) and cell.time() == time():
        return cell.date().isoformat()
    return cell_text(cell).strip()
