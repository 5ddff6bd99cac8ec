"""Rows of a review, a page at a time: those with problems first."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

from activities.spreadsheets.review import BLOCK_ROWS
from activities.spreadsheets.staged_rows import rows_of
from adapters.database.spreadsheets.records import Page
from adapters.database.spreadsheets.review_views import SqlReviewViews
from adapters.ports import SpreadsheetReviews
from contracts.spreadsheets import ReviewCounts
from domain.spreadsheets.edits import Edits
from domain.spreadsheets.review import ReviewedRow


class RowFilter(StrEnum):
    """Which rows of a review."""

    ALL = "ALL"
    """Those with problems first, then the others; both in the order of the file."""
    PROBLEMS = "PROBLEMS"
    EXCLUDED = "EXCLUDED"


class ReviewRows:
    """Pages of rows.

    Args:
        reviews: Tables, rows and operations.
        views: Tables, problems.
    """

    def __init__(self, reviews: SpreadsheetReviews, views: SqlReviewViews) -> None:
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
        if wanted is RowFilter.EXCLUDED:
            excluded = sorted(edits.excluded)
            return await self._page(uuid, edits, excluded[first : first + size], len(excluded))
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

    async def some(
        self, uuid: str, edits: Edits, lines: Sequence[int]
    ) -> Mapping[int, ReviewedRow]:
        """Rows by their numbers; those that there are not are left out."""
        problems = await self._views.problems(uuid, lines)
        wanted = set(lines)
        found: dict[int, ReviewedRow] = {}
        for block in await self._reviews.blocks_with(uuid, lines):
            for row in rows_of(block):
                if row.line in wanted:
                    found[row.line] = ReviewedRow(
                        row.line,
                        edits.cells(row.line, row.cells),
                        problems.get(row.line, ()),
                        edits.corrections(row.line, row.cells),
                        _who_excluded(edits, row.line),
                    )
        return found

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
