"""The review of rows before anything is written, and what one operation of it changes."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Final

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.shared.failures import Heartbeater, WorkerThread, day_of_step, translate_failures
from activities.spreadsheets.analysis import fields_of, load_plan
from activities.spreadsheets.review_rules import PROBLEMS, RowProblem, numbered, problems_of
from activities.spreadsheets.review_store import SqlReviewStore
from activities.spreadsheets.sheet_types import SheetTypes
from activities.spreadsheets.shown_columns import ShownColumns
from activities.spreadsheets.staging import (
    CHUNK_ROWS,
    HEAD_ROWS,
    Plan,
    ReadRows,
    SheetReader,
    fetched_rows,
    rows_of,
)
from activities.spreadsheets.store import SqlSpreadsheetStore
from activities.spreadsheets.validation import RowValidator, SourceRow
from adapters.ports.blobs import Blobs
from workflows.shared.cells import Cell, readable
from workflows.shared.contracts import Contract
from workflows.shared.errors import INVALID_DECISION, RuleViolation
from workflows.shared.fields import FieldSpec
from workflows.spreadsheets.decisions import missing_fields
from workflows.spreadsheets.edits import Comparison, Edits, same
from workflows.spreadsheets.fields import SheetMark, facts_of
from workflows.spreadsheets.mappings import ColumnMapping, DecisionRecord, ReviewCounts
from workflows.spreadsheets.people import KnownPerson
from workflows.spreadsheets.reviews import (
    EXAMPLES,
    ChangeReview,
    CheckNote,
    CloseReview,
    Constant,
    Exclude,
    Join,
    Move,
    ReviewChanged,
    ReviewEffect,
    ReviewExample,
    ReviewInput,
    ReviewOperation,
    Split,
    UndoOperation,
    active_operations,
    changed_columns,
    changed_rows,
    described,
)
from workflows.spreadsheets.runs import SpreadsheetInput

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
        reviews: SqlReviewStore,
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
            shown = await self._shown(thread)
            validator = self._plan.validator(None, head, None, shown=shown)
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

    async def _shown(self, thread: WorkerThread) -> ShownColumns | None:
        """What changed columns of times and numbers show in all rows; None: the first ones tell.

        A change of some rows leaves that to the check of all rows, which follows it.
        """
        shown = self._plan.columns_to_show()
        places = shown.places(has_signs=True)
        if self._rows is not None or not any(place + 1 in self._columns for place in places):
            return None
        async for blocks in self._reviews.blocks(self._uuid):
            rows = chain(*map(rows_of, blocks))
            await thread.run(partial(self._plan.show, shown, rows))
        return shown

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
            if version not in {each.version for each in active_operations(operations)} | _undos(
                operations
            ):
                raise refused(f"there is no change {version} that could be taken back")
        case Split(fields=fields):
            wanted = set(fields)
            if wanted - known:
                raise refused(f"there is no field {', '.join(sorted(wanted - known))}")
        case Join(field=name) | Move(field=name) | Constant(field=str(name)):
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


BLOCK_ROWS: Final = 200
"""Rows that are stored together: a page of rows with problems reads one block for each."""
_BLOCKS_AT_ONCE: Final = 50


class RowsReviewed(Contract):
    """Heartbeat of the steps that go through all rows."""

    rows: int


class SpreadsheetReview:
    """Reviews rows.

    Args:
        store: Tables.
        blobs: Where staged rows are.
        types: The import types there are.
        scratch: Folder for temporary files.
        chunk_rows: Rows that are checked together.
    """

    def __init__(
        self,
        store: SqlSpreadsheetStore,
        blobs: Blobs,
        types: SheetTypes,
        scratch: Path,
        chunk_rows: int = CHUNK_ROWS,
    ) -> None:
        self._store = store
        self._blobs = blobs
        self._types = types
        self._scratch = scratch
        self._chunk_rows = chunk_rows

    @activity.defn(name="spreadsheets.open_review")
    @translate_failures
    async def open_review(self, work: ReviewInput) -> ReviewCounts:
        """Store the rows where a page of them can be read, and check all of them.

        A second run begins anew unless the review is open and checked already; what was corrected
        stays.

        Raises:
            ApplicationError: See `activities.shared.failures`.
        """
        uuid, reviews = work.order.uuid, self._store.reviews
        state = await reviews.state(uuid)
        if state is not None and state.counts.checked >= 0:
            return state.counts
        async with (
            Heartbeater() as heart,
            fetched_rows(self._blobs, work.staged, self._scratch) as path,
        ):
            await self._store_rows(uuid, path, heart)
            out = len(Edits(work.columns, await reviews.operations(uuid)).excluded)
            await reviews.open(uuid, ReviewCounts(rows=work.staged.total, excluded=out))
            return await self._check(work, path, heart)

    @activity.defn(name="spreadsheets.check_review")
    @translate_failures
    async def check_review(self, work: ReviewInput) -> ReviewCounts:
        """Check all rows against each other and against people, as they are at a version.

        Nothing is written when there is a later version by then.

        Raises:
            ApplicationError: See `activities.shared.failures`.
        """
        async with (
            Heartbeater() as heart,
            fetched_rows(self._blobs, work.staged, self._scratch) as path,
        ):
            return await self._check(work, path, heart)

    @activity.defn(name="spreadsheets.change_review")
    @translate_failures
    async def change_review(self, work: ChangeReview) -> ReviewChanged:
        """Apply a stored operation, or find out what it would change.

        The cells of the columns that it changes are checked anew. A second run changes nothing.

        Raises:
            ApplicationError: `InvalidDecision` when it cannot be applied; see
                `activities.shared.failures` for the others.
        """
        uuid, reviews = work.order.uuid, self._store.reviews
        pending = await reviews.operation(uuid, work.operation)
        state = await reviews.state(uuid)
        if pending is None and state is not None and not state.is_open:
            raise refused("the review has ended meanwhile; this change was not applied")
        if pending is None or state is None:
            raise refused(f"there is no change {work.operation} in this import")
        if pending.operation.version:
            return ReviewChanged(version=pending.operation.version, counts=state.counts)
        async with Heartbeater():
            new = pending.operation.model_copy(update={"version": work.version})
            changing = await self._changing(work, new)
            found = await changing.find()
            if work.preview:
                await reviews.note(uuid, work.operation, found.effect, found.examples)
                return ReviewChanged(
                    version=work.version - 1, effect=found.effect, counts=state.counts
                )
            headers = {column.id: column.header for column in changing.after.columns}
            subject, decision = described(new.operation, headers)
            counts = await reviews.apply(
                uuid,
                work.operation,
                DecisionRecord(
                    kind="correction",
                    subject=subject[:200],
                    decision=decision[:200],
                    by=work.by,
                    at=work.at,
                ),
                work.version,
                found.effect,
                found.examples,
                found.replaced,
                found.problems,
                len(changing.after.excluded),
            )
        if counts is None:
            raise refused("the review has ended meanwhile; this change was not applied")
        return ReviewChanged(version=work.version, effect=found.effect, counts=counts)

    @activity.defn(name="spreadsheets.note_check")
    @translate_failures
    async def note_check(self, work: CheckNote) -> None:
        """Store that the check of all rows at a version has failed, or is under way again."""
        await self._store.reviews.note_check(work)

    @activity.defn(name="spreadsheets.close_review")
    @translate_failures
    async def close_review(self, work: CloseReview) -> None:
        """Accept no further corrections; a second run changes nothing.

        Raises:
            ApplicationError: `InvalidDecision` while a required field has no column.
        """
        fields = await fields_of(self._store, self._types, work.order)
        edits = await self._edits(work.order, work.columns, fields)
        missing = missing_fields(edits.columns, [facts_of(each) for each in fields])
        if missing:
            raise refused(f"required fields have no column yet: {', '.join(missing)}")
        headers = [(column.id, column.header) for column in work.columns]
        operations = await self._store.reviews.operations(work.order.uuid)
        await self._store.reviews.close(work, headers, active_operations(operations))

    async def _store_rows(self, uuid: str, path: Path, heart: Heartbeater) -> None:
        async with WorkerThread() as thread:
            with path.open("rb") as file:
                first, rows = True, 0
                while blocks := await thread.run(
                    lambda: [
                        block
                        for _ in range(_BLOCKS_AT_ONCE)
                        if (block := list(islice(file, BLOCK_ROWS)))
                    ]
                ):
                    stored = [(_line(block[0]), b"".join(block)) for block in blocks]
                    await self._store.reviews.add_blocks(uuid, stored, first=first)
                    first, rows = False, rows + sum(map(len, blocks))
                    heart.beat(RowsReviewed(rows=rows))

    async def _check(self, work: ReviewInput, path: Path, heart: Heartbeater) -> ReviewCounts:
        order, reviews = work.order, self._store.reviews
        fields = await fields_of(self._store, self._types, order)
        edits = await self._edits(order, work.columns, fields)
        plan = await load_plan(self._store, self._types, order, edits, day_of_step())
        plan = replace(plan, columns=numbered(plan.columns))
        problems = await self._problems(work, path, plan, heart)
        counts = await reviews.replace_problems(order.uuid, work.version, problems)
        state = await reviews.state(order.uuid)
        return counts or (state.counts if state else ReviewCounts())

    async def _problems(
        self, work: ReviewInput, path: Path, plan: Plan, heart: Heartbeater
    ) -> Sequence[RowProblem]:
        order = work.order
        rows_at_once, width = self._chunk_rows, work.staged.width
        reading = SheetReader(path, plan, SheetMark(), None, rows_at_once, width)
        problems: list[RowProblem] = []
        declared = plan.sheet_type.declared
        ids = {str(column.target): str(column.id) for column in plan.columns}
        async with WorkerThread() as thread:
            try:
                await thread.run(reading.open)
                while (rows := await thread.run(reading.read)) is not None:
                    known: Sequence[KnownPerson] = ()
                    if rows.query is not None:
                        known = await self._store.people(order.organisation_id, rows.query)
                    settled = await thread.run(partial(reading.settle, rows, known))
                    if declared is not None:
                        (target,) = settled.targets
                        found = await self._store.broken_rows(declared, target, settled.lines)
                        rows.checked.note([p for each in found.values() for p in each], ids)
                    if len(problems) < PROBLEMS:
                        problems += await thread.run(partial(_problems_of, rows))
                    heart.beat(RowsReviewed(rows=rows.cursor))
            finally:
                await thread.run(reading.close)
        return problems

    async def _edits(
        self,
        order: SpreadsheetInput,
        columns: Sequence[ColumnMapping],
        fields: Sequence[FieldSpec],
        *more: ReviewOperation,
    ) -> Edits:
        operations = await self._store.reviews.operations(order.uuid)
        titles = {each.name: each.title for each in fields}
        return Edits(columns, [*operations, *more], titles)

    async def _changing(self, work: ChangeReview, new: ReviewOperation) -> ReviewChanging:
        fields = await fields_of(self._store, self._types, work.order)
        operations = await self._store.reviews.operations(work.order.uuid)
        before = await self._edits(work.order, work.columns, fields)
        try:
            after = await self._edits(work.order, work.columns, fields, new)
        except RuleViolation as error:
            raise ApplicationError(str(error), type=INVALID_DECISION, non_retryable=True) from error
        plan = await load_plan(self._store, self._types, work.order, after, day_of_step())
        plan = replace(plan, columns=numbered(plan.columns))
        return ReviewChanging(
            self._store.reviews, work.order.uuid, plan, new, operations, before, after
        )


def _problems_of(rows: ReadRows) -> list[RowProblem]:
    return list(problems_of(rows.checked))


def _line(staged: bytes) -> int:
    return int(staged[1 : staged.find(b",")].rstrip(b"]\n"))
