"""What one operation of a review changes, and what is wrong with the cells afterwards."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from typing import Final

from temporalio.exceptions import ApplicationError

from activities.spreadsheets.staged_reader import HEAD_ROWS, Plan
from activities.spreadsheets.staged_rows import rows_of
from activities.threads import WorkerThread
from adapters.ports.spreadsheet_reviews import SpreadsheetReviews
from contracts.errors import INVALID_DECISION
from contracts.spreadsheets.reviews import (
    EXAMPLES,
    Constant,
    Exclude,
    Join,
    ReviewEffect,
    ReviewExample,
    ReviewOperation,
    Split,
    UndoOperation,
)
from domain.spreadsheets.edits import Comparison, Edits, same
from domain.spreadsheets.operations import active, changed_columns, changed_rows
from domain.spreadsheets.review import PROBLEMS, RowProblem, problems_of
from domain.spreadsheets.validation import RowValidator, SourceRow
from domain.tabular.rows import Cell
from domain.tabular.values import readable

_HEAD_BLOCKS: Final = 5
"""Blocks of the first rows, which settle how columns are written."""
_SHOWN: Final = 200
_NAMED: Final = 5
_CHUNK: Final = 5_000


@dataclass
class FoundChange:
    """What an operation changes.

    Attributes:
        effect: In figures.
        examples: Some of the cells.
        replaced: Rows and columns whose problems go; None: all.
        problems: Those in their place.
    """

    effect: ReviewEffect = field(default_factory=ReviewEffect)
    examples: list[ReviewExample] = field(default_factory=list[ReviewExample])
    replaced: tuple[Collection[int] | None, Collection[int] | None] = (None, None)
    problems: list[RowProblem] = field(default_factory=list[RowProblem])


class ReviewChanging:
    """Finds out what an operation changes.

    Args:
        reviews: Tables.
        uuid: The import.
        plan: How rows are understood afterwards; its columns are `numbered`.
        new: The operation, with the version that it makes.
        operations: Those that were applied, by version.
        before: Corrections without it.
        after: Corrections with it.

    Raises:
        ApplicationError: `InvalidDecision`: it cannot be applied.
    """

    def __init__(
        self,
        reviews: SpreadsheetReviews,
        uuid: str,
        plan: Plan,
        new: ReviewOperation,
        operations: Sequence[ReviewOperation],
        before: Edits,
        after: Edits,
    ) -> None:
        _refuse(new, operations, plan)
        self._reviews, self._uuid, self._plan = reviews, uuid, plan
        self.before, self.after = before, after
        self._comparison = Comparison(before, after)
        self._rows = changed_rows(new.operation, operations)
        columns = changed_columns(new.operation, operations, before.made)
        self._whole_rows = columns is None
        if columns is None:
            columns = {column.id for column in after.columns}
        earlier = {column.id: column.target for column in before.columns}
        now = {column.id: column.target for column in after.columns}
        moved = {id for id in earlier.keys() | now.keys() if earlier.get(id) != now.get(id)}
        self._columns = sorted({*columns, *moved})
        self._found = FoundChange()
        self._changed_rows = self._changed_cells = 0
        self._seen: set[int] = set()

    async def find(self) -> FoundChange:
        """Go through the rows that it can change."""
        head_blocks = await self._reviews.first_blocks(self._uuid, _HEAD_BLOCKS)
        head = list(islice(self._plan.edited(chain(*map(rows_of, head_blocks))), HEAD_ROWS))
        async with WorkerThread() as thread:
            hours = await self._hours(thread)
            validator = self._plan.validator(None, head, None, hours=hours)
            if self._rows is not None:
                blocks = await self._reviews.blocks_with(self._uuid, self._rows)
                await thread.run(partial(self._look, validator, blocks))
            else:
                async for blocks in self._reviews.blocks(self._uuid):
                    await thread.run(partial(self._look, validator, blocks))
        if self._rows is not None and (unknown := self._rows - self._seen):
            named = ", ".join(map(str, sorted(unknown)[:_NAMED]))
            raise refused(f"there is no row {named} in this import; nothing was changed")
        return await self._finish()

    async def _hours(self, thread: WorkerThread) -> Mapping[str, int] | None:
        """What the times of changed columns write out in all rows; None: the first ones tell.

        A change of some rows leaves that to the check of all rows, which follows it.
        """
        if self._rows is not None or not any(
            place + 1 in self._columns for place in self._plan.times.values()
        ):
            return None
        found: dict[str, int] = {}
        async for blocks in self._reviews.blocks(self._uuid):
            rows = chain(*map(rows_of, blocks))
            some = await thread.run(partial(self._plan.hours, rows))
            found |= {name: max(hours, found.get(name, hours)) for name, hours in some.items()}
        return found

    async def _finish(self) -> FoundChange:
        found = self._found
        columns = None if self._whole_rows else self._columns
        before = await self._reviews.problems_in(self._uuid, self._rows, columns)
        found.replaced = (self._rows, columns)
        found.effect = ReviewEffect(
            rows=self._changed_rows,
            cells=self._changed_cells,
            problems_before=before,
            problems_after=len(found.problems),
        )
        reasons = {(each.line, each.column): each.reason for each in found.problems}
        found.examples = [
            each.model_copy(update={"problem": reasons.get((each.row, each.column))})
            for each in found.examples
        ]
        return found

    def _look(self, validator: RowValidator, blocks: Sequence[bytes]) -> None:
        rows: Iterable[SourceRow] = chain(*map(rows_of, blocks))
        if self._rows is not None:
            wanted = self._rows
            rows = (row for row in rows if row.line in wanted)
        rows = iter(rows)
        while some := list(islice(rows, _CHUNK)):
            if self._rows is not None:
                self._seen.update(row.line for row in some)
            self._compare(validator, some)

    def _compare(self, validator: RowValidator, rows: Sequence[SourceRow]) -> None:
        places = [id - 1 for id in self._columns]
        kept: list[SourceRow] = []
        excluded = self.after.excluded
        for row in rows:
            before, after = self._comparison.cells(row.line, row.cells)
            if row.line not in excluded:
                kept.append(SourceRow(row.line, row.offset, after))
            if self._whole_rows:
                was, now = (row.line in each.excluded for each in (self.before, self.after))
                self._changed_rows += was is not now
                continue
            if before is not after:
                self._note(row.line, places, before, after)
        if len(self._found.problems) < PROBLEMS:
            self._found.problems += problems_of(validator.check_cells(kept, places))

    def _note(
        self, line: int, places: Sequence[int], before: Sequence[Cell], after: Sequence[Cell]
    ) -> None:
        differ: list[int] = []
        width = min(len(before), len(after))
        for i in places:
            was = before[i] if i < width else _at(before, i)
            now = after[i] if i < width else _at(after, i)
            # Most cells are the very same object: nothing has touched them.
            if was is not now and not same(was, now):
                differ.append(i)
        if not differ:
            return
        self._changed_rows += 1
        self._changed_cells += len(differ)
        examples = self._found.examples
        if len(examples) == EXAMPLES:
            return
        for i in differ[: EXAMPLES - len(examples)]:
            shown = [readable(_at(cells, i), _SHOWN) or None for cells in (before, after)]
            examples.append(ReviewExample(row=line, column=i + 1, before=shown[0], after=shown[1]))


def _at(cells: Sequence[Cell], place: int) -> Cell:
    return cells[place] if place < len(cells) else None


def refused(message: str) -> ApplicationError:
    """A refusal of an operation."""
    return ApplicationError(message, type=INVALID_DECISION, non_retryable=True)


def _refuse(new: ReviewOperation, operations: Sequence[ReviewOperation], plan: Plan) -> None:
    """Refuse what names a field or a change that there is not."""
    known = {each.name for each in plan.fields}
    match new.operation:
        case UndoOperation(version=version):
            if version not in {each.version for each in active(operations)} | _undos(operations):
                raise refused(f"there is no change {version} that could be taken back")
        case Split(fields=fields):
            wanted = set(fields)
            if wanted - known:
                raise refused(f"there is no field {', '.join(sorted(wanted - known))}")
        case Join(field=name) | Constant(field=str(name)):
            if name not in known:
                raise refused(f"there is no field {name}")
        case Exclude():
            pass
        case _:
            pass


def _undos(operations: Sequence[ReviewOperation]) -> set[int]:
    """Versions of the undos that count themselves."""
    undone: set[int] = set()
    kept: set[int] = set()
    for each in reversed(operations):
        if isinstance(each.operation, UndoOperation) and each.version not in undone:
            undone.add(each.operation.version)
            kept.add(each.version)
    return kept
