"""Writes the rows of a spreadsheet."""

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import Final

from temporalio import activity

from activities.failures import translate_failures
from activities.heartbeat import Heartbeater
from activities.spreadsheets.contexts import (
    fields_of,
    load_context,
    with_candidates,
)
from activities.spreadsheets.plans import load_plan
from activities.spreadsheets.staged_reader import CHUNK_ROWS, Plan, ReadRows, SheetReader
from activities.spreadsheets.staging import fetched_rows
from activities.threads import WorkerThread, from_thread
from adapters.ports import Blobs, SpreadsheetStore
from contracts.spreadsheets import (
    ProcessCursor,
    Processed,
    ProcessInput,
    SpreadsheetOrder,
)
from domain.spreadsheets.edits import Edits
from domain.spreadsheets.fields import SheetField
from domain.spreadsheets.people import KnownPerson
from domain.spreadsheets.records import ParkedRow, SheetMark
from domain.spreadsheets.resolution import scope_of
from domain.spreadsheets.sheet_types import SheetTypes

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

    @activity.defn(name="spreadsheets.process")
    @translate_failures
    async def process(self, work: ProcessInput) -> Processed:
        """Go through the rows once: write the good ones, report the others, park those that wait.

        Rows and progress mark share a transaction: a second run continues behind the last chunk
        that was written, and ends with the same rows and the same figures. Rows that went in
        before are passed over for their natural keys, so that duplicates are still found.

        Raises:
            ApplicationError: See `activities.failures`.
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
        processed = await self._store.end_round(work.order.uuid, work.round)
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
            self._store, self._types, order, edits, _today(), made=made, counting=work.counting
        )

    async def _make_entities(
        self, order: SpreadsheetOrder, fields: Sequence[SheetField]
    ) -> Mapping[int, int]:
        """Make what people asked for, but for a dry run; mapping to the row found or made."""
        made: dict[int, int] = {}
        if order.dry_run:
            return made
        bare = await load_context(self._store, self._types, order, _today(), only=())
        scopes = {each.name: scope_of(each, bare) for each in fields if each.resolver is not None}
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
        reading = SheetReader(path, plan, mark, parked, self._chunk_rows)
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

    async def _known(self, order: SpreadsheetOrder, rows: ReadRows) -> Sequence[KnownPerson]:
        if rows.query is None:
            return ()
        return await self._store.people(order.organisation_id, rows.query)

    async def _parked(self, uuid: str, after: int) -> AsyncIterator[Sequence[ParkedRow]]:
        while page := await self._store.parked(uuid, after, PARKED_PAGE):
            yield page
            after = page[-1].line


def _today() -> date:
    # When the step was first scheduled: the same day at every attempt.
    return activity.info().scheduled_time.date()
