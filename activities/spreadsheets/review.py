"""The review of rows before anything is written: opened, checked, changed, closed."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.failures import translate_failures
from activities.heartbeat import Heartbeater
from activities.spreadsheets.contexts import fields_of
from activities.spreadsheets.plans import load_plan
from activities.spreadsheets.review_changes import ReviewChanging, refused
from activities.spreadsheets.staged_reader import CHUNK_ROWS, Plan, ReadRows, SheetReader
from activities.spreadsheets.staging import fetched_rows
from activities.threads import WorkerThread
from adapters.ports import Blobs, SpreadsheetStore
from contracts.base import Contract
from contracts.errors import INVALID_DECISION
from contracts.spreadsheets import ColumnMapping, DecisionRecord, ReviewCounts, SpreadsheetOrder
from contracts.spreadsheets.reviews import (
    ChangeReview,
    CheckNote,
    CloseReview,
    ReviewChanged,
    ReviewInput,
    ReviewOperation,
)
from domain.errors import RuleViolation
from domain.spreadsheets.edits import Edits
from domain.spreadsheets.fields import SheetField
from domain.spreadsheets.missing import missing_fields
from domain.spreadsheets.operations import active, described
from domain.spreadsheets.people import KnownPerson
from domain.spreadsheets.records import SheetMark
from domain.spreadsheets.review import PROBLEMS, RowProblem, numbered, problems_of
from domain.spreadsheets.sheet_types import SheetTypes

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
        store: SpreadsheetStore,
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
            ApplicationError: See `activities.failures`.
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
            ApplicationError: See `activities.failures`.
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
                `activities.failures` for the others.
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
        missing = missing_fields(edits.columns, [each.facts for each in fields])
        if missing:
            raise refused(f"required fields have no column yet: {', '.join(missing)}")
        headers = [(column.id, column.header) for column in work.columns]
        operations = await self._store.reviews.operations(work.order.uuid)
        await self._store.reviews.close(work, headers, active(operations))

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
        plan = await load_plan(self._store, self._types, order, edits, _today())
        plan = replace(plan, columns=numbered(plan.columns))
        problems = await self._problems(order, path, plan, heart)
        counts = await reviews.replace_problems(order.uuid, work.version, problems)
        state = await reviews.state(order.uuid)
        return counts or (state.counts if state else ReviewCounts())

    async def _problems(
        self, order: SpreadsheetOrder, path: Path, plan: Plan, heart: Heartbeater
    ) -> Sequence[RowProblem]:
        reading = SheetReader(path, plan, SheetMark(), None, self._chunk_rows)
        problems: list[RowProblem] = []
        async with WorkerThread() as thread:
            try:
                await thread.run(reading.open)
                while (rows := await thread.run(reading.read)) is not None:
                    known: Sequence[KnownPerson] = ()
                    if rows.query is not None:
                        known = await self._store.people(order.organisation_id, rows.query)
                    await thread.run(partial(reading.settle, rows, known))
                    if len(problems) < PROBLEMS:
                        problems += await thread.run(partial(_problems_of, rows))
                    heart.beat(RowsReviewed(rows=rows.cursor))
            finally:
                await thread.run(reading.close)
        return problems

    async def _edits(
        self,
        order: SpreadsheetOrder,
        columns: Sequence[ColumnMapping],
        fields: Sequence[SheetField],
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
        plan = await load_plan(self._store, self._types, work.order, after, _today())
        plan = replace(plan, columns=numbered(plan.columns))
        return ReviewChanging(
            self._store.reviews, work.order.uuid, plan, new, operations, before, after
        )


def _problems_of(rows: ReadRows) -> list[RowProblem]:
    return list(problems_of(rows.checked))


def _line(staged: bytes) -> int:
    return int(staged[1 : staged.find(b",")].rstrip(b"]\n"))


def _today() -> date:
    # When the step was first scheduled: the same day at every attempt.
    return activity.info().scheduled_time.date()
