"""Tables of reviews of spreadsheets."""

from collections.abc import AsyncIterator, Collection, Sequence
from typing import Protocol

from contracts.spreadsheets import DecisionRecord, ReviewCounts
from contracts.spreadsheets.reviews import (
    CheckNote,
    CloseReview,
    DecideRows,
    ReviewEffect,
    ReviewExample,
    ReviewOperation,
)
from domain.spreadsheets.review import ReviewState, RowProblem, StoredOperation


class SpreadsheetReviews(Protocol):
    """Reviews: rows, problems and corrections. Every method is one transaction and may run
    twice."""

    async def state(self, uuid: str) -> ReviewState | None:
        """The review of an import; None: there is none."""
        ...

    async def add_blocks(
        self, uuid: str, blocks: Sequence[tuple[int, bytes]], *, first: bool
    ) -> None:
        """Store rows: line of the first of a block, and its bytes; `first` removes earlier ones."""
        ...

    def blocks(self, uuid: str) -> AsyncIterator[Sequence[bytes]]:
        """Every block in the order of the file, some at a time."""
        ...

    async def first_blocks(self, uuid: str, count: int) -> Sequence[bytes]:
        """The first blocks of the file."""
        ...

    async def blocks_with(self, uuid: str, lines: Collection[int]) -> Sequence[bytes]:
        """The blocks that some rows may be in."""
        ...

    async def open(self, uuid: str, counts: ReviewCounts) -> None:
        """Accept corrections from now on."""
        ...

    async def operations(self, uuid: str) -> Sequence[ReviewOperation]:
        """The operations that were applied, by version, behind the rows that docflow skips."""
        ...

    async def decide_rows(self, work: DecideRows) -> None:
        """Keep rows, or leave them out, before columns are confirmed; at most once a version."""
        ...

    async def operation(self, uuid: str, id: int) -> StoredOperation | None:
        """One operation; None: there is none of this id in this import."""
        ...

    async def note(
        self, uuid: str, id: int, effect: ReviewEffect, examples: Sequence[ReviewExample]
    ) -> None:
        """Store what an operation would change."""
        ...

    async def apply(
        self,
        uuid: str,
        id: int,
        line: DecisionRecord,
        version: int,
        effect: ReviewEffect,
        examples: Sequence[ReviewExample],
        replaced: tuple[Collection[int] | None, Collection[int] | None],
        problems: Sequence[RowProblem],
        excluded: int,
    ) -> ReviewCounts | None:
        """Give an operation its version, and replace the problems of some rows and columns.

        None: the review has been closed meanwhile; nothing is changed.
        """
        ...

    async def replace_problems(
        self, uuid: str, version: int, problems: Sequence[RowProblem]
    ) -> ReviewCounts | None:
        """Write all that is wrong at a version; None: there is a later one."""
        ...

    async def note_check(self, note: CheckNote) -> None:
        """Store why all rows could not be checked at a version; one that is not the newest is
        left out."""
        ...

    async def problems_in(
        self, uuid: str, lines: Collection[int] | None, columns: Collection[int] | None
    ) -> int:
        """How many problems some rows have in some columns; None: any."""
        ...

    async def close(
        self,
        work: CloseReview,
        columns: Sequence[tuple[int, str]],
        edits: Sequence[ReviewOperation],
    ) -> None:
        """Accept no further corrections, and remember those of whole columns."""
        ...
