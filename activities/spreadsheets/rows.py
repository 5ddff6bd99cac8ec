"""Writes the rows of a spreadsheet, reports those that did not go in, and takes them back."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from heapq import merge
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Final

from temporalio import activity

from activities.shared.accepted_files import Accepted, AcceptedFiles
from activities.shared.failures import (
    Heartbeater,
    WorkerThread,
    day_of_step,
    from_thread,
    translate_failures,
)
from activities.spreadsheets.analysis import (
    fields_of,
    load_context,
    load_plan,
    sheet_type_of,
    with_candidates,
)
from activities.spreadsheets.replacing import replaces
from activities.spreadsheets.sheet_types import SheetTypes
from activities.spreadsheets.staging import (
    CHUNK_ROWS,
    Plan,
    ReadRows,
    SheetReader,
    StagedRows,
    fetched_rows,
)
from activities.spreadsheets.store import SqlSpreadsheetStore
from activities.spreadsheets.value_mapping import scope_of
from adapters.files.tables.workbooks import XlsxReportWriter
from adapters.ports.blobs import Blobs
from adapters.signed_webhook import SignedWebhook
from workflows.shared.cells import RejectedRow, storable
from workflows.shared.contracts import BlobRef, Contract, Problem
from workflows.shared.errors import UndoRefused
from workflows.shared.fields import FieldSpec
from workflows.spreadsheets.edits import Edits
from workflows.spreadsheets.fields import ParkedRow, SheetMark
from workflows.spreadsheets.mappings import ColumnMapping
from workflows.spreadsheets.people import KnownPerson
from workflows.spreadsheets.runs import (
    FailedUndo,
    HandOverInput,
    ProcessCursor,
    Processed,
    ProcessInput,
    ReportInput,
    SpreadsheetInput,
    UndoInput,
    UndoResult,
    workflow_id,
)

PARKED_PAGE: Final = 5_000


class SpreadsheetRows:
    """Rows of a spreadsheet into their tables.

    Args:
        store: Tables.
        blobs: Where staged rows are.
        types: The import types there are.
        scratch: Folder for temporary files.
        chunk_rows: Rows of one transaction.
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

    @activity.defn(name="spreadsheets.process")
    @translate_failures
    async def process(self, work: ProcessInput) -> Processed:
        """Go through the rows once: write the good ones, report the others, park those that wait.

        Rows and progress mark share a transaction: a second run continues behind the last chunk
        that was written, and ends with the same rows and the same figures. Rows that went in
        before are passed over for their natural keys, so that duplicates are still found.

        Raises:
            ApplicationError: See `activities.shared.failures`.
        """
        uuid = work.order.uuid
        async with Heartbeater() as heart:
            mark = await self._store.mark(uuid)
            if mark.round > work.round or (mark.round == work.round and mark.finished):
                return await self._end(work, None)
            if mark.round < work.round:
                mark = SheetMark(round=work.round)
            plan = await self._plan(work)
            async with fetched_rows(self._blobs, work.staged, self._scratch) as path:
                await self._write(work, path, plan, mark, heart)
            return await self._end(work, plan)

    async def _end(self, work: ProcessInput, plan: Plan | None) -> Processed:
        uuid = work.order.uuid
        processed = await self._store.end_round(uuid, work.round)
        kind = await sheet_type_of(self._types, work.order)
        if replaces(kind.declared) and not processed.parked:
            note = await self._store.remove_absent(
                uuid, work.order.scope, dry_run=work.order.dry_run
            )
            processed = processed.model_copy(update={"note": note})
        if kind.declared is not None and kind.target is not None and not work.order.dry_run:
            if kind.target.file is None:
                await self._store.forget_steps(uuid, kind.declared)
            else:
                processed = processed.model_copy(update={"hands_over": True})
        if not processed.cells.open:
            return processed
        plan = plan or await self._plan(work)
        cells = with_candidates(processed.cells, plan.fields, plan.context)
        return processed.model_copy(update={"cells": cells})

    async def _plan(self, work: ProcessInput) -> Plan:
        order = work.order
        fields = await fields_of(self._store, self._types, order)
        # Made first, so that another spelling of a new name finds it.
        made = await self._make_entities(order, fields)
        titles = {each.name: each.title for each in fields}
        operations = await self._store.reviews.operations(order.uuid)
        edits = Edits(work.columns, operations, titles)
        return await load_plan(
            self._store, self._types, order, edits, day_of_step(), made=made, counting=work.counting
        )

    async def _make_entities(
        self, order: SpreadsheetInput, fields: Sequence[FieldSpec]
    ) -> Mapping[int, int]:
        """Make what people asked for, but for a dry run; mapping to the row found or made."""
        made: dict[int, int] = {}
        if order.dry_run:
            return made
        bare = await load_context(self._store, self._types, order, day_of_step(), only=())
        referred = (await sheet_type_of(self._types, order)).referred
        scopes = {
            each.name: scope_of(each, bare, referred)
            for each in fields
            if each.resolver is not None
        }
        async for page in self._store.mappings(order.uuid):
            for mapping in page:
                if mapping.create and mapping.target_id is None and mapping.field in scopes:
                    scope = scopes[mapping.field]
                    made[mapping.id] = (await self._store.create_entity(scope, mapping.value)).id
        return made

    async def _write(
        self, work: ProcessInput, path: Path, plan: Plan, mark: SheetMark, heart: Heartbeater
    ) -> None:
        uuid, total = work.order.uuid, work.staged.total
        stopped = threading.Event()
        parked = from_thread(self._parked(uuid, mark.offset), stopped) if work.round else None
        reading = SheetReader(path, plan, mark, parked, self._chunk_rows, work.staged.width)
        async with WorkerThread() as thread:
            try:
                await thread.run(reading.open)
                while (before := await thread.run(reading.pass_over)) is not None:
                    known = await self._known(work.order, before)
                    await thread.run(partial(reading.passed, before, known))
                rows = await thread.run(reading.read)
                while rows is not None:
                    # Looked up when the rows before are in: they may be about the same people.
                    known = await self._known(work.order, rows)
                    chunk = await thread.run(partial(reading.chunk, rows, known))
                    ahead = thread.start(reading.read)
                    mark = await self._store.write(uuid, chunk, dry_run=work.order.dry_run)
                    heart.beat(ProcessCursor(rows=mark.cursor, total=total))
                    rows = await asyncio.shield(ahead)
                    # A cancellation is taken here, between two uses of the database.
                    await asyncio.sleep(0)
            finally:
                stopped.set()
                await thread.run(reading.close)

    async def _known(self, order: SpreadsheetInput, rows: ReadRows) -> Sequence[KnownPerson]:
        if rows.query is None:
            return ()
        return await self._store.people(order.organisation_id, rows.query)

    async def _parked(self, uuid: str, after: int) -> AsyncIterator[Sequence[ParkedRow]]:
        while page := await self._store.parked(uuid, after, PARKED_PAGE):
            yield page
            after = page[-1].line


class SpreadsheetFiles:
    """Hands accepted rows over, if their type says so.

    Args:
        store: Tables.
        blobs: Where files are.
        types: The import types there are.
        scratch: Folder for temporary files.
        receivers: Who is notified of files, by name.
    """

    def __init__(
        self,
        store: SqlSpreadsheetStore,
        blobs: Blobs,
        types: SheetTypes,
        scratch: Path,
        receivers: Mapping[str, SignedWebhook],
    ) -> None:
        self._store = store
        self._blobs = blobs
        self._types = types
        self._files = AcceptedFiles(blobs, scratch, receivers)

    @activity.defn(name="spreadsheets.hand_over")
    @translate_failures
    async def hand_over(self, work: HandOverInput) -> BlobRef:
        """Write the accepted rows into a file, and tell who loads them.

        A second run writes the same bytes to the same place, and sends the same message.

        Returns:
            The file.

        Raises:
            ApplicationError: See `activities.shared.failures`.
        """
        order = work.order
        kind = await sheet_type_of(self._types, order)
        assert kind.declared is not None
        accepted = Accepted(
            run=workflow_id(order.uuid),
            place=f"accepted/spreadsheets/{order.uuid}",
            declared=kind.declared,
            fields=kind.fields,
            scope=order.scope,
            identity=order.uuid,
            about={"organisation_id": order.organisation_id, "filename": order.filename},
        )
        if await self._store.is_handed_over(order.uuid):
            return await self._blobs.stat(accepted.name)
        async with Heartbeater():
            file, count = await self._files.write(accepted, self._store.accepted(order.uuid))
            counts = {"accepted": count, "rejected": work.counts.error}
            await self._files.tell(accepted, file, counts, work.report)
            await self._store.forget_accepted(order.uuid, datetime.now(UTC))
        return file


_Errors = Iterator[tuple[int, Sequence[Problem]]]


def report_name(uuid: str) -> str:
    """Where the report of an import stands in the blob store."""
    return f"spreadsheets/{uuid}/report.xlsx"


class SpreadsheetReports:
    """Writes reports.

    Args:
        store: Tables.
        blobs: Where files are.
        reports: Writes the spreadsheet.
        scratch: Folder for temporary files.
    """

    def __init__(
        self, store: SqlSpreadsheetStore, blobs: Blobs, reports: XlsxReportWriter, scratch: Path
    ) -> None:
        self._store = store
        self._blobs = blobs
        self._reports = reports
        self._scratch = scratch

    @activity.defn(name="spreadsheets.write_report")
    @translate_failures
    async def write_report(self, work: ReportInput) -> BlobRef | None:
        """Write every row with outcome ERROR, or that docflow skipped, into a spreadsheet.

        Rows are streamed: memory stays bounded. A second run writes the same rows to the same
        place.

        Returns:
            The report; None when there is no such row.
        """
        uuid = work.order.uuid
        edits = Edits(work.columns, await self._store.reviews.operations(uuid))
        skipped = [
            (line, [Problem(line=line, reason=f"skipped: it {reason}")])
            for line, reason in sorted(edits.reasons.items())
        ]
        pages = self._store.errors(uuid)
        first = await anext(pages, None)
        if first is None and not skipped:
            return None
        async with (
            Heartbeater(),
            fetched_rows(self._blobs, work.staged, self._scratch) as path,
        ):
            target = path.with_name("report.xlsx")
            stopped = threading.Event()
            errors = chain(first or (), from_thread(pages, stopped))
            rows = merge(errors, skipped, key=itemgetter(0))
            async with WorkerThread() as thread:
                try:
                    await thread.run(lambda: self._write(path, target, edits, rows))
                finally:
                    stopped.set()
            # Noted first: a blob without a record would outlive every purge.
            noted = BlobRef(name=report_name(uuid), size=target.stat().st_size)
            await self._store.save_file(uuid, noted)
            return await self._blobs.upload(target, noted.name)

    def _write(self, path: Path, target: Path, edits: Edits, errors: _Errors) -> None:
        with closing(StagedRows(path)) as staged:
            rows = _rejected(staged, edits, errors)
            self._reports.write(target, titles_of(edits.columns), rows, comments=True)


def titles_of(columns: Sequence[ColumnMapping]) -> list[str]:
    """Headers by their places in the file; what was left out of the mapping has none."""
    titles = [""] * (1 + max((column.index for column in columns), default=-1))
    for column in columns:
        titles[column.index] = column.header
    return titles


def _rejected(staged: StagedRows, edits: Edits, errors: _Errors) -> Iterator[RejectedRow]:
    for row, problems in staged.pick(errors):
        cells = edits.cells(row.line, row.cells)
        yield RejectedRow(row.line, storable(cells), problems)


class ChunksUndone(Contract):
    """Heartbeat of `spreadsheets.undo`."""

    chunks: int
    """Of this attempt."""


class SpreadsheetUndoSteps:
    """Undoes imports.

    Args:
        store: Tables.
    """

    def __init__(self, store: SqlSpreadsheetStore) -> None:
        self._store = store

    @activity.defn(name="spreadsheets.undo")
    @translate_failures
    async def undo(self, order: UndoInput) -> UndoResult:
        """Delete the rows that an import has created, restore those that it has changed.

        Newest chunk first, each with its progress mark in one transaction: a second run continues
        behind the last chunk that was taken back, and ends with the same result.

        Raises:
            ApplicationError: `UndoRefused` if the import cannot be undone, with the reason; see
                `activities.shared.failures` for the others.
        """
        async with Heartbeater() as heart:
            refusal = await self._store.begin_undo(order)
            if refusal is not None:
                raise UndoRefused(refusal)
            await self._store.settle(order.uuid)
            chunks = 0
            while await self._store.undo_chunk(order):
                chunks += 1
                heart.beat(ChunksUndone(chunks=chunks))
            return await self._store.end_undo(order)

    @activity.defn(name="spreadsheets.park_undo")
    @translate_failures
    async def park_undo(self, order: FailedUndo) -> None:
        """Note why an undo waits for a person; of one that has ended, nothing is noted."""
        await self._store.park_undo(order)

    @activity.defn(name="spreadsheets.fail_undo")
    @translate_failures
    async def fail_undo(self, order: FailedUndo) -> None:
        """Mark an undo as failed; a second run, or one of an undo that has ended, changes
        nothing.
        """
        await self._store.fail_undo(order)
