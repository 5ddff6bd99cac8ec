"""The `ImportStore` on SQLite and PostgreSQL."""

import hashlib
import json
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

from sqlalchemy import delete
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.bulk.dialects import bulk_of
from adapters.database.bulk.protocol import RowBatch, Stamp
from adapters.database.engine import Database
from adapters.database.imports import (
    answers,
    leftovers,
    registers,
    schedule_loads,
    schedule_names,
    schedules,
    staging,
    status,
    whole_imports,
)
from adapters.database.imports import progress as loads
from adapters.database.imports.progress import Load
from adapters.database.imports.upserts import batch_of, needs_table_alone, write_batch
from adapters.database.models.every import DOMAIN, STAGED
from adapters.database.models.schedules import schedule_activities
from adapters.database.storable import unstorable
from adapters.ports import EarlierImport, HeldBy, OpenRow, ScheduleClaim, WholeImport
from contracts.blobs import BlobRef
from contracts.imports import (
    BulkMessage,
    Closing,
    Counts,
    HandlerOutcome,
    ImportMessage,
    ImportPlan,
    Problem,
    Strategy,
)
from domain.imports.chunks import LoadMark, RowChunk, TaskKey
from domain.imports.schedule_items import ScheduleProject
from domain.tabular.rows import RejectedRow


class SqlImportStore:
    """Tables of the imports pipeline; see `adapters.ports.ImportStore` for the promises.

    Every method raises `Unavailable` when the database is unavailable or busy, and writes nothing.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._bulk = bulk_of(database)

    async def begin(
        self,
        message: ImportMessage,
        plan: ImportPlan,
        workflow_id: str,
        guard: str | None,
        digest: str | None = None,
        run_id: str | None = None,
    ) -> EarlierImport | None:
        """Open the status row, or return an import that makes this one unnecessary.

        The guard belongs to the first task that opens with it, until that one is skipped, cancelled
        or terminated. A task that is in a final state gets that; a terminated one begins again.
        """
        async with self._database.transaction() as connection:
            return await status.begin(
                connection, self._bulk, message, plan, workflow_id, guard, digest, run_id, _now()
            )

    async def complete(self, whole: WholeImport) -> HandlerOutcome | None:
        """Write rows and a completed status row at once; None: it takes the usual steps."""
        return await whole_imports.complete(self._database, self._bulk, whole)

    async def close(self, closing: Closing, workflow_id: str) -> HandlerOutcome:
        """Write the end of an import, or why it waits; a final state is never overwritten.

        With a final state the progress mark, the rejects and staged rows of the task go.
        """
        async with self._database.transaction() as connection:
            return await status.close(connection, self._bulk, closing, workflow_id, _now())

    async def open_rows(self, before: datetime, after: str, limit: int) -> Sequence[OpenRow]:
        """Rows that are running or parked and have not changed since, by workflow id."""
        async with self._database.reading() as connection:
            return await leftovers.open_rows(connection, before, after, limit)

    async def terminate(
        self, id: str, reason: str, unchanged_since: datetime | None = None
    ) -> bool:
        """Close a row as terminated, with its mark, rejects and staged rows; its guard is free."""
        async with self._database.transaction() as connection:
            return await leftovers.terminate(connection, id, reason, unchanged_since)

    async def mark(self, key: TaskKey) -> LoadMark:
        """How far the load has come; a closed import's mark is finished."""
        async with self._database.reading() as connection:
            return await loads.read_mark(connection, key)

    async def restart(self, key: TaskKey, header: Sequence[str]) -> None:
        """Forget mark, rejects, staged rows and seen keys; nothing when the import is closed."""
        async with self._opened(key) as (connection, load):
            if load is not None:
                await loads.restart(connection, load, header)

    async def write(self, key: TaskKey, chunk: RowChunk, strategy: Strategy) -> LoadMark:
        """Write one chunk; `replace`, which needs the whole file, is for `swap` alone."""
        if strategy is Strategy.REPLACE:
            raise ValueError("strategy 'replace' is staged and swapped, not written by chunks")
        batch, stamp = batch_of(chunk), Stamp(key.task_id, _now())
        async with self._opened(
            key, table=chunk.table, alone=needs_table_alone(batch, strategy), now=stamp.now
        ) as (connection, load):
            if load is None or chunk.cursor <= load.mark.cursor:
                return _left_alone(load)
            written = await write_batch(connection, self._bulk, batch, strategy, stamp)
            aside = load.aside
            if chunk.table in schedules.SEEN_TABLES:
                stored = [n for n in range(len(batch)) if n not in written.refused]
                aside = await schedules.remember_seen(
                    connection, self._bulk, load, batch.take(stored)
                )
            return await self._advance(
                connection, load, chunk, written.counts, written.refused, aside=aside
            )

    async def stage(self, key: TaskKey, chunk: RowChunk) -> LoadMark:
        """Put one chunk aside; rows that no database can hold are refused now."""
        if chunk.table not in STAGED:
            raise ValueError(f"rows of {chunk.table} cannot be staged")
        batch = batch_of(chunk)
        async with self._opened(key) as (connection, load):
            if load is None or chunk.cursor <= load.mark.cursor:
                return _left_alone(load)
            refused = unstorable(batch)
            batch = batch.take([n for n in range(len(batch)) if n not in refused])
            kept = await staging.stage_batch(connection, self._bulk, load, batch, chunk.cells)
            counts = Counts(rejected=len(refused))
            return await self._advance(connection, load, chunk, counts, refused, **kept)

    async def swap(
        self,
        key: TaskKey,
        table: str,
        scope: Mapping[str, Any],
        strategy: Strategy,
        as_of: date,
    ) -> LoadMark:
        """Bring the staged rows in and finish the load.

        Under `replace`, crew members that are absent from the file are closed and count as
        updated.
        """
        stamp = Stamp(key.task_id, _now())
        async with self._opened(key, table=table, alone=True, now=stamp.now) as (connection, load):
            if load is None or load.mark.finished:
                return _left_alone(load)
            done = await staging.swap_in(
                connection, self._bulk, load, table, scope, strategy, as_of, stamp
            )
            await loads.forget_aside(connection, load)
            mark = loads.advanced(load.mark, load.mark.cursor, done.counts, done.problems)
            return await loads.save_mark(connection, load, replace(mark, finished=True), aside=None)

    async def remember(self, key: TaskKey, document_type: str, question: str, answer: str) -> None:
        """Keep an answer for a project and type; the newest counts."""
        async with self._database.transaction() as connection:
            await answers.remember(
                connection, self._bulk, key, document_type, question, answer, _now()
            )

    async def remembered(self, project_id: str, document_type: str, question: str) -> str | None:
        """The answer to a question; None: none was given."""
        async with self._database.reading() as connection:
            return await answers.remembered(connection, project_id, document_type, question)

    async def zero_led_lengths(
        self, key: TaskKey, table: str, scope: Mapping[str, Any], names: Sequence[str]
    ) -> Sequence[int]:
        """Lengths of the first code where one begins with a zero, but for rows of the task."""
        async with self._database.reading() as connection:
            return await answers.zero_led_lengths(connection, key, table, scope, names)

    async def known_codes(
        self,
        key: TaskKey,
        table: str,
        scope: Mapping[str, Any],
        names: Sequence[str],
        firsts: Sequence[str],
    ) -> Mapping[tuple[str, ...], bool]:
        """Codes of a scope by their first one, and whether the task itself has written each."""
        async with self._database.reading() as connection:
            return await answers.known(connection, self._bulk, key, table, scope, names, firsts)

    async def give_sections(
        self, key: TaskKey, table: str, scope: Mapping[str, Any], sections: Mapping[str, str]
    ) -> None:
        """Give stored lines without a section theirs, if their item stands there once."""
        async with self._opened(key, table=table, alone=True) as (connection, _):
            await answers.give_sections(connection, table, scope, sections)

    async def finish(self, key: TaskKey) -> LoadMark:
        """Mark a load that was written chunk by chunk as finished."""
        async with self._opened(key) as (connection, load):
            if load is None:
                return _left_alone(load)
            return await loads.save_mark(connection, load, replace(load.mark, finished=True))

    def rejects(self, key: TaskKey) -> AsyncIterator[Sequence[RejectedRow]]:
        """Rejected rows by line, in pages of at most 1,000."""
        return loads.read_rejects(self._database, key)

    async def retire(self, key: TaskKey, schedule_id: str) -> Counts:
        """Flag and delete what the file did not hold; a second call returns the first's counts.

        The counts are not part of the load's mark.
        """
        stamp = Stamp(key.task_id, _now())
        async with self._opened(key, table=schedule_activities.name, alone=True, now=stamp.now) as (
            connection,
            load,
        ):
            if load is None:
                return Counts()
            if load.retired is not None:
                return load.retired
            counts = await schedules.retire_unseen(
                connection, self._bulk, load, key.project_id, schedule_id, stamp
            )
            await loads.save_mark(
                connection, load, load.mark, retired=counts.model_dump_json(), aside=None
            )
            return counts

    async def schedule_names(self, project_id: str) -> Mapping[str, str]:
        """Short names and ids of a project's schedules, to their ids."""
        async with self._database.reading() as connection:
            return await schedule_names.names_of(connection, project_id)

    async def schedules_holding(
        self, project_id: str, task_codes: Sequence[str]
    ) -> Mapping[str, int]:
        """How many of these codes each schedule of a project holds, by its id."""
        async with self._database.reading() as connection:
            return await schedule_names.holding(connection, self._bulk, project_id, task_codes)

    async def begin_schedule(
        self, key: TaskKey, header: Sequence[str], claim: ScheduleClaim
    ) -> LoadMark | HeldBy | None:
        """Begin a schedule's load, or continue; or who has to end first, or None: look again."""
        stamp = Stamp(key.task_id, _now())
        async with self._opened(key, now=stamp.now) as (connection, load):
            if load is None:
                return _left_alone(load)
            return await schedule_loads.begin(
                connection, self._bulk, key, load, header, claim, stamp
            )

    async def record_schedule_projects(
        self, key: TaskKey, source: BlobRef, projects: Sequence[ScheduleProject]
    ) -> Counts:
        """Register which projects and data dates a file holds."""
        return await self._register(key, registers.file_projects(key, source, projects))

    async def register_upload(
        self, key: TaskKey, blob: BlobRef, original_filename: str | None
    ) -> Counts:
        """Register a stored schedule file with hash, size and original name."""
        return await self._register(key, registers.upload(key, blob, original_filename))

    async def change_activities(self, message: BulkMessage) -> Counts | HeldBy:
        """Apply a bulk operation; `unchanged` are selected rows that had the value already."""
        key = TaskKey(message.project_id, message.task_id)

        async def change(connection: AsyncConnection) -> Counts:
            await schedule_loads.refuse_beside(connection, self._bulk, key)
            return await schedules.change_activities(connection, self._bulk, message, _now())

        try:
            return await self._once(
                key, schedule_activities.name, message.model_dump_json(), change
            )
        except schedule_loads.Held as error:
            return error.by

    async def delete_service(self, key: TaskKey, table: str, service_id: str) -> Counts:
        """Delete a service's rows."""
        target = DOMAIN[table]

        async def remove(connection: AsyncConnection) -> Counts:
            gone = delete(target).where(
                target.c.project_id == key.project_id, target.c.service_id == service_id
            )
            return Counts(deleted=(await connection.execute(gone)).rowcount)

        return await self._once(key, table, service_id, remove)

    async def _once(
        self,
        key: TaskKey,
        table: str,
        work: str,
        act: Callable[[AsyncConnection], Awaitable[Counts]],
    ) -> Counts:
        """Do all the work of a task in one transaction, which its mark remembers.

        A second call finds the mark and returns the first one's counts: the worker may have died
        between the commit and the moment at which Temporal knew of it.

        Args:
            key: The task.
            table: What it changes.
            work: Distinguishes this work from that of a message which a person has corrected.
            act: The work.
        """
        header = [hashlib.sha256(f"{table}\n{work}".encode()).hexdigest()]
        async with self._opened(key, table=table, alone=True) as (connection, load):
            if load is None:
                return (await loads.read_mark(connection, key)).counts
            if load.mark.finished and list(load.mark.header) == header:
                return load.mark.counts
            counts = await act(connection)
            mark = LoadMark(counts=counts, finished=True)
            await loads.save_mark(connection, load, mark, header=json.dumps(header))
            return counts

    @asynccontextmanager
    async def _opened(
        self,
        key: TaskKey,
        *,
        table: str | None = None,
        alone: bool = False,
        now: datetime | None = None,
    ) -> AsyncGenerator[tuple[AsyncConnection, Load | None]]:
        """A transaction that holds the task's load and, for a table, its turn on that."""
        async with self._database.transaction() as connection:
            turn = None if table is None else loads.turn_name(table, key.project_id)
            load = await loads.open_load(
                connection, self._bulk, key, now or _now(), turn=turn, alone=alone
            )
            yield connection, load

    async def _advance(
        self,
        connection: AsyncConnection,
        load: Load,
        chunk: RowChunk,
        counts: Counts,
        refused: Mapping[int, Problem],
        **more: Any,
    ) -> LoadMark:
        rejected = [
            *chunk.rejected,
            *(
                RejectedRow(chunk.lines[n], chunk.cells[n] if chunk.cells else (), (problem,))
                for n, problem in sorted(refused.items())
            ),
        ]
        await loads.add_rejects(connection, self._bulk, load, rejected)
        if chunk.header:
            more["header"] = json.dumps(chunk.header)
        counts = counts.plus(Counts(rejected=len(chunk.rejected)))
        problems = sum(len(row.problems) for row in rejected)
        mark = loads.advanced(load.mark, chunk.cursor, counts, problems)
        return await loads.save_mark(connection, load, mark, **more)

    async def _register(self, key: TaskKey, batch: RowBatch) -> Counts:
        async def register(connection: AsyncConnection) -> Counts:
            stamp = Stamp(key.task_id, _now())
            done = await write_batch(connection, self._bulk, batch, Strategy.MERGE, stamp)
            return done.counts

        return await self._once(key, batch.table.name, repr(batch.rows), register)


def _now() -> datetime:
    return datetime.now(UTC)


def _left_alone(load: Load | None) -> LoadMark:
    """The mark when there is nothing to do; a closed import has nothing more to come."""
    return LoadMark(finished=True) if load is None else load.mark
