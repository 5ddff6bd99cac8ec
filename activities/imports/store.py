"""The tables of imports."""

import hashlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any, Final
from uuid import uuid4

from pydantic_core import to_json
from sqlalchemy import (
    delete,
    insert,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from activities.imports import schedule_store, status_store, upserts
from activities.imports.ports import EarlierImport, HeldBy, ScheduleClaim, WholeImport
from activities.imports.status_store import Load
from activities.imports.tables import TableTypes
from activities.imports.upserts import batch_of, needs_table_alone, write_batch
from activities.imports.whole_imports import complete
from adapters.database.bulk import engine as bulk
from adapters.database.bulk.rows import RowBatch, Stamp
from adapters.database.engine import Database
from adapters.database.errors import unstorable
from adapters.database.foreign import ForeignDatabases, Step
from adapters.database.foreign_rows import Refused, Written, pack_images
from adapters.database.models.every import DOMAIN, STAGED
from adapters.database.models.imports import (
    schedule_activities,
)
from adapters.database.models.types import target_images
from adapters.ports.errors import PortError
from adapters.ports.records import OpenRow
from adapters.types.references import Referred, key_meant
from adapters.types.standing import rows_here, rows_there
from adapters.types.tables import as_found, target_of
from adapters.types.targets import TargetTables
from workflows.imports.messages import BulkMessage, ImportMessage, Strategy, workflow_id
from workflows.imports.runs import (
    Closing,
    Counts,
    HandlerOutcome,
    ImportPlan,
    LoadMark,
    RowChunk,
    TaskKey,
)
from workflows.imports.schedules import ScheduleProject
from workflows.shared.cells import RejectedRow
from workflows.shared.contracts import BlobRef, Problem
from workflows.shared.declared_types import DeclaredType
from workflows.shared.row_rules import StoredRow


class SqlImportStore:
    """Tables of the imports pipeline.

    Every method is one transaction and may run twice. What a task does in a single call
    (registering, bulk operations, deletes) it does once: a second call of the same task returns
    the counts of the first.

    Every method raises `Unavailable` when the database is unavailable or busy, and writes nothing.

    Attributes:
        types: The types of tables that messages may be about.

    Args:
        database: Where the tables are.
        types: As the attribute; those that the database declares when absent.
        targets: Tables of teams; when absent, only docflow's own database may have them.
    """

    def __init__(
        self,
        database: Database,
        types: TableTypes | None = None,
        targets: TargetTables | None = None,
    ) -> None:
        self._database = database
        self.types = types or TableTypes(database)
        self._targets = targets or TargetTables(ForeignDatabases(database))

    async def begin(
        self,
        message: ImportMessage,
        plan: ImportPlan,
        workflow_id: str,
        guard: str | None,
        digest: str | None = None,
        run_id: str | None = None,
    ) -> EarlierImport | None:
        """Open the status row, or return an earlier import that makes this one unnecessary.

        Args:
            message: The message.
            plan: The decisions of this run.
            workflow_id: Who does it.
            guard: Value that names the work (idempotency key, extraction id); no two tasks of
                a project and document type may complete it.
            digest: Of the message that started the run; kept in the row.
            run_id: Of the run in Temporal; kept in the row.

        Returns:
            None when the import is open. Otherwise the import that has the work: this task itself,
            in a final state, or another one with this guard, which may be running or parked.
        """
        async with self._database.transaction() as connection:
            return await status_store.begin(
                connection, message, plan, workflow_id, guard, digest, run_id, _now()
            )

    async def complete(self, whole: WholeImport) -> HandlerOutcome | None:
        """Write all rows of an import that has not begun, and a status row that is completed.

        Returns:
            The outcome as recorded. None, and nothing is written: the import takes the usual
            steps, because it has begun or another task has its guard, the store refuses a row, or
            codes differ from known ones in leading zeros only and no person has said what they are.
        """
        return await complete(self._database, whole)

    async def close(self, closing: Closing, workflow_id: str) -> HandlerOutcome:
        """Write state, reason, counts and first problems into the status row.

        A row in a final state stays as it is. Without `closing.outcome` the counts are those of
        the progress mark.

        Returns:
            The outcome as recorded.
        """
        async with self._database.transaction() as connection:
            return await status_store.close(connection, closing, workflow_id, _now())

    async def open_rows(self, before: datetime, after: str, limit: int) -> Sequence[OpenRow]:
        """Rows that are running or parked and have not changed since, by workflow id."""
        async with self._database.reading() as connection:
            return await status_store.open_rows(connection, before, after, limit)

    async def terminate(
        self, id: str, reason: str, unchanged_since: datetime | None = None
    ) -> bool:
        """Close a row as terminated, with its mark, rejects and staged rows; its guard is free."""
        async with self._database.transaction() as connection:
            return await status_store.terminate(connection, id, reason, unchanged_since)

    async def mark(self, key: TaskKey) -> LoadMark:
        """How far the load has come; a closed import's mark is finished."""
        async with self._database.reading() as connection:
            return await status_store.read_mark(connection, key)

    async def restart(self, key: TaskKey, header: Sequence[str]) -> None:
        """Forget mark, rejects, staged rows and seen keys; nothing when the import is closed."""
        async with self._opened(key) as (connection, load):
            if load is not None:
                await status_store.restart(connection, load, header)

    async def write(self, key: TaskKey, chunk: RowChunk, strategy: Strategy) -> LoadMark:
        """Write one chunk into its table by natural key, with rejects and progress mark.

        A chunk at or before the mark's cursor is left alone.
        """
        if strategy is Strategy.REPLACE:
            raise ValueError("strategy 'replace' is staged and swapped, not written by chunks")
        if (declared := target_of(chunk.table)) is not None:
            return await self._write_there(declared, key, chunk, strategy)
        batch, stamp = batch_of(chunk), Stamp(key.task_id, _now())
        async with self._opened(
            key, table=chunk.table, alone=needs_table_alone(batch, strategy), now=stamp.now
        ) as (connection, load):
            if load is None or chunk.cursor <= load.mark.cursor:
                return _left_alone(load)
            written = await write_batch(connection, batch, strategy, stamp)
            aside = load.aside
            if chunk.table in schedule_store.SEEN_TABLES:
                stored = [n for n in range(len(batch)) if n not in written.refused]
                aside = await schedule_store.remember_seen(connection, load, batch.take(stored))
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
            kept = await upserts.stage_batch(connection, load, batch, chunk.cells)
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
        """Bring the staged rows in, all at once, and finish the load.

        Args:
            key: The task.
            table: Target table.
            scope: Column values that bound what `replace` may remove.
            strategy: `replace` removes what the file does not hold (rows with a validity are
                closed as of `as_of` instead); the others act as in `write`.
            as_of: Day of the import.
        """
        if (declared := target_of(table)) is not None:
            return await self._swap_there(declared, key, table, scope, strategy)
        stamp = Stamp(key.task_id, _now())
        async with self._opened(key, table=table, alone=True, now=stamp.now) as (connection, load):
            if load is None or load.mark.finished:
                return _left_alone(load)
            done = await upserts.swap_in(connection, load, table, scope, strategy, as_of, stamp)
            await status_store.drop_staged_rows(connection, load)
            mark = status_store.advanced(load.mark, load.mark.cursor, done.counts, done.problems)
            return await status_store.save_mark(
                connection, load, replace(mark, finished=True), aside=None
            )

    async def _write_there(
        self, declared: DeclaredType, key: TaskKey, chunk: RowChunk, strategy: Strategy
    ) -> LoadMark:
        """Write one chunk into a table of its team, and then its mark.

        The load stays locked meanwhile: of two attempts one waits, and sees what the other did.
        """
        batch = batch_of(chunk)
        places = {line: place for place, line in enumerate(batch.lines)}
        async with self._opened_there(declared, key) as (connection, load):
            if load is None or chunk.cursor <= load.mark.cursor:
                return _left_alone(load)
            refused = unstorable(batch)
            good = batch.take([n for n in range(len(batch)) if n not in refused])
            content = to_json([batch.columns, list(good.lines), list(good.rows)])
            step = Step(str(load.token), str(load.mark.cursor), content)

            async def pages() -> AsyncIterator[tuple[Sequence[Any], Sequence[int]]]:
                if good.rows:
                    yield good.rows, good.lines

            written = await self._targets.write(
                declared, step, batch.columns, pages(), strategy.value, {}
            )
            for each in written.refused:
                place = places[each.place]
                value = _refused_value(each, batch, place)
                refused[place] = upserts.problem_of(each, value)
            await _note(connection, key, declared, step, written)
            counts = _counts(written, len(refused))
            return await self._advance(connection, load, chunk, counts, refused)

    async def _swap_there(
        self,
        declared: DeclaredType,
        key: TaskKey,
        table: str,
        scope: Mapping[str, Any],
        strategy: Strategy,
    ) -> LoadMark:
        """Bring the staged rows into a table of their team, and then finish the load."""
        async with self._opened_there(declared, key) as (connection, load):
            if load is None or load.mark.finished:
                return _left_alone(load)
            opened, columns = load, load.staged_columns

            async def pages() -> AsyncIterator[tuple[Sequence[Any], Sequence[int]]]:
                if columns:
                    async for batch, _ in upserts.staged_pages(connection, opened, table):
                        yield batch.rows, batch.lines

            # The staged rows are the same at every attempt.
            step = Step(str(load.token), "all")
            written = await self._targets.write(
                declared, step, columns, pages(), strategy.value, scope
            )
            await upserts.refuse_staged(connection, load, table, written.refused)
            await _note(connection, key, declared, step, written)
            await _end_work(connection, load)
            await status_store.drop_staged_rows(connection, load)
            problems = len(written.refused)
            counts = _counts(written, problems)
            mark = status_store.advanced(load.mark, load.mark.cursor, counts, problems)
            mark = await status_store.save_mark(
                connection, load, replace(mark, finished=True), aside=None
            )
        await self._forget_there(declared, load)
        return mark

    @asynccontextmanager
    async def _opened_there(
        self, declared: DeclaredType, key: TaskKey
    ) -> AsyncGenerator[tuple[AsyncConnection, Load | None]]:
        """A transaction that holds the task's load, whose work has a name for other databases.

        If a person has corrected the message, the work is another one.
        """
        async with self._targets.turns:
            async with self._opened(key) as (connection, load):
                if load is None:
                    yield connection, None
                    return
                identity = "".join(load.mark.header[:1])[:_IDENTITY]
                if (load.token or "").startswith(f"{identity}/"):
                    yield connection, load
                    return
                work = f"{identity}/{uuid4().hex}"
                await status_store.save_mark(connection, load, load.mark, token=work)
                await _note(connection, key, declared, Step(work, ""))
            async with self._opened(key) as opened:
                yield opened

    async def _forget_there(self, declared: DeclaredType, load: Load) -> None:
        """Remove what their side table remembers of a load that is finished.

        A row that stays there is of no use, and does no harm.
        """
        if load.token is not None:
            with suppress(PortError):
                await self._targets.forget(declared, load.token)

    async def staged(
        self, key: TaskKey, table: str
    ) -> AsyncGenerator[tuple[Sequence[str], Sequence[tuple[Any, ...]]]]:
        """Staged rows of a load in the order of the file: pages of columns and their values."""
        async with self._opened(key) as (_, load):
            pass
        if load is None or not load.staged_columns:
            return
        async with self._database.reading() as connection:
            async for batch, _ in upserts.staged_pages(connection, load, table):
                yield batch.columns, batch.rows

    async def hand_over(self, key: TaskKey, count: int) -> LoadMark:
        """Finish a load whose staged rows went into a file, so many; they go."""
        async with self._opened(key) as (connection, load):
            if load is None or load.mark.finished:
                return _left_alone(load)
            await status_store.drop_staged_rows(connection, load)
            counts = Counts(created=count)
            mark = status_store.advanced(load.mark, load.mark.cursor, counts, 0)
            return await status_store.save_mark(
                connection, load, replace(mark, finished=True), aside=None
            )

    async def remember(self, key: TaskKey, document_type: str, question: str, answer: str) -> None:
        """Keep what a person answered for a project and type; the newest answer counts."""
        async with self._database.transaction() as connection:
            await upserts.remember(connection, key, document_type, question, answer, _now())

    async def remembered(self, project_id: str, document_type: str, question: str) -> str | None:
        """The answer to a question; None: none was given."""
        async with self._database.reading() as connection:
            return await upserts.remembered(connection, project_id, document_type, question)

    async def zero_led_lengths(
        self, key: TaskKey, table: str, scope: Mapping[str, Any], names: Sequence[str]
    ) -> Sequence[int]:
        """Where some code begins with a zero, how long the first one is: each length once.

        Args:
            key: The task; rows that it has written itself are left out.
            table: Where to look.
            scope: Column values that bound it.
            names: Columns of the codes.
        """
        async with self._database.reading() as connection:
            return await upserts.zero_led_lengths(connection, key, table, scope, names)

    async def known_codes(
        self,
        key: TaskKey,
        table: str,
        scope: Mapping[str, Any],
        names: Sequence[str],
        firsts: Sequence[str],
    ) -> Mapping[tuple[str, ...], bool]:
        """Codes of a scope, as `names` has them, of which the first is one of `firsts`.

        Returns:
            Each with whether the task itself has written it.
        """
        if (declared := target_of(table)) is not None:
            found = await self._targets.known(declared, scope, names, firsts)
            return {tuple(map(str, codes)): False for codes in found}
        async with self._database.reading() as connection:
            return await upserts.known(connection, key, table, scope, names, firsts)

    async def stored_rows(
        self,
        declared: DeclaredType,
        table: str,
        keys: Sequence[tuple[Any, ...]],
        names: Sequence[str],
    ) -> Sequence[StoredRow | None]:
        """The stored row of each natural key, None if there is none.

        Args:
            declared: The type.
            table: Where its rows are.
            keys: Natural keys, at least one.
            names: Fields to read.
        """
        if declared.target is not None:
            return await rows_there(self._targets, declared, keys, names)
        async with self._database.reading() as connection:
            found = await as_found(connection, DOMAIN[table])
            return await rows_here(connection, declared, found, keys, names)

    async def give_sections(
        self, key: TaskKey, table: str, scope: Mapping[str, Any], sections: Mapping[str, str]
    ) -> None:
        """Give stored lines without a section theirs, if their item stands there once.

        Args:
            key: The task.
            table: Where they are.
            scope: Column values that bound them.
            sections: By item code.
        """
        async with self._opened(key, table=table, alone=True) as (connection, _):
            await upserts.give_sections(connection, table, scope, sections)

    async def referred(
        self, referred: Referred, scope: Mapping[str, Any], values: Sequence[str]
    ) -> Mapping[str, Sequence[str]]:
        """The keys that some values mean: themselves, what a row is called, or how else it is
        written.

        A name that several rows have means all of their keys.
        """
        meant = {each: key_meant(referred, each) for each in values}
        found = await self._referred(referred, scope, list({*values, *meant.values()}))
        also = {each: found[key] for each, key in meant.items() if key in found}
        return also | {each: found[each] for each in values if each in found}

    async def _referred(
        self, referred: Referred, scope: Mapping[str, Any], values: Sequence[str]
    ) -> Mapping[str, Sequence[str]]:
        declared = None if referred.table is None else target_of(referred.table)
        if declared is not None and declared.target is not None:
            if declared.target.file is not None:
                # Rows of the document itself; no others are kept.
                return {}
            found = await self._targets.known(declared, scope, (referred.key,), values)
            return {str(value): (str(value),) for (value,) in found}
        async with self._database.reading() as connection:
            return await upserts.referred(connection, referred, scope, values)

    async def make_referred(
        self,
        key: TaskKey,
        referred: Referred,
        scope: Mapping[str, Any],
        values: Sequence[tuple[Any, int]],
    ) -> None:
        """Make rows of a declared type that hold a key alone; those that are there stay.

        Args:
            key: The import that needs them.
            referred: The type.
            scope: Values of the columns that bound it.
            values: Each key, and the line of the file that needs it.
        """
        assert referred.table is not None
        given = tuple(scope[name] for name in referred.scope)
        batch = RowBatch(
            DOMAIN[referred.table],
            (*referred.scope, referred.key),
            [(*given, value) for value, _ in values],
            [line for _, line in values],
            range(len(values)),
        )
        async with self._database.transaction() as connection:
            await bulk.insert_new(connection, batch, Stamp(key.task_id, _now()))

    async def finish(self, key: TaskKey, table: str | None = None) -> LoadMark:
        """Mark a load that was written chunk by chunk as finished; `table` is where it went."""
        async with self._opened(key) as (connection, load):
            if load is None:
                return _left_alone(load)
            mark = replace(load.mark, finished=True)
            await _end_work(connection, load)
            await status_store.save_mark(connection, load, mark)
        declared = None if table is None else target_of(table)
        if declared is not None:
            await self._forget_there(declared, load)
        return mark

    def rejects(self, key: TaskKey) -> AsyncIterator[Sequence[RejectedRow]]:
        """Rejected rows by line, in pages of at most 1,000; no transaction is held open."""
        return status_store.read_rejects(self._database, key)

    async def retire(self, key: TaskKey, schedule_id: str) -> Counts:
        """Bring a schedule in line with what the task's file did not hold.

        Activities that are missing from the file are flagged, never deleted; those that are
        back lose their flag. Relationships, assignments, codes and UDF values that the file
        does not hold any more are deleted. Returns `flagged` (newly) and `deleted`.
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
            counts = await schedule_store.retire_unseen(
                connection, load, key.project_id, schedule_id, stamp
            )
            await status_store.save_mark(
                connection, load, load.mark, retired=counts.model_dump_json(), aside=None
            )
            return counts

    async def schedule_names(self, project_id: str) -> Mapping[str, str]:
        """Short names and ids of a project's schedules, to their ids."""
        async with self._database.reading() as connection:
            return await schedule_store.names_of(connection, project_id)

    async def schedules_holding(
        self, project_id: str, task_codes: Sequence[str]
    ) -> Mapping[str, int]:
        """How many of these codes each schedule of a project holds, by its id."""
        async with self._database.reading() as connection:
            return await schedule_store.holding(connection, project_id, task_codes)

    async def begin_schedule(
        self, key: TaskKey, header: Sequence[str], claim: ScheduleClaim
    ) -> LoadMark | HeldBy | None:
        """Begin to load a schedule, or continue, and remember its short name.

        Args:
            key: The task.
            header: Distinguishes this work from that of a message which a person has corrected;
                ends with the id of the schedule.
            claim: The schedule.

        Returns:
            The mark of an earlier attempt at this very work, or a fresh one, whose header has one
            more part, the data date that another task has left (ISO 8601, or empty); or who has to
            end first; or None: there are other names by now, so that it is to be identified again.
        """
        stamp = Stamp(key.task_id, _now())
        async with self._opened(key, now=stamp.now) as (connection, load):
            if load is None:
                return _left_alone(load)
            return await schedule_store.begin_schedule_load(
                connection, key, load, header, claim, stamp
            )

    async def record_schedule_projects(
        self, key: TaskKey, source: BlobRef, projects: Sequence[ScheduleProject]
    ) -> Counts:
        """Register which projects and data dates a file holds."""
        return await self._register(key, schedule_store.file_projects(key, source, projects))

    async def register_upload(
        self, key: TaskKey, blob: BlobRef, original_filename: str | None
    ) -> Counts:
        """Register a stored schedule file with hash, size and original name."""
        return await self._register(key, schedule_store.upload(key, blob, original_filename))

    async def change_activities(self, message: BulkMessage) -> Counts | HeldBy:
        """Apply a bulk operation to the selected activities of the message's project.

        Returns:
            What it did; or which load of a schedule has to end first, and nothing was done.
        """
        key = TaskKey(message.project_id, message.task_id)

        async def change(connection: AsyncConnection) -> Counts:
            await schedule_store.refuse_beside(connection, key)
            return await schedule_store.change_activities(connection, message, _now())

        try:
            return await self._once(
                key, schedule_activities.name, message.model_dump_json(), change
            )
        except schedule_store.Held as error:
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
                return (await status_store.read_mark(connection, key)).counts
            if load.mark.finished and list(load.mark.header) == header:
                return load.mark.counts
            counts = await act(connection)
            mark = LoadMark(counts=counts, finished=True)
            await status_store.save_mark(connection, load, mark, header=json.dumps(header))
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
            turn = None if table is None else bulk.turn_name(table, key.project_id)
            load = await status_store.open_load(
                connection, key, now or _now(), turn=turn, alone=alone
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
        await status_store.add_rejects(connection, load, rejected)
        if chunk.header:
            more["header"] = json.dumps(chunk.header)
        counts = counts.plus(Counts(rejected=len(chunk.rejected)))
        problems = sum(len(row.problems) for row in rejected)
        mark = status_store.advanced(load.mark, chunk.cursor, counts, problems)
        return await status_store.save_mark(connection, load, mark, **more)

    async def _register(self, key: TaskKey, batch: RowBatch) -> Counts:
        async def register(connection: AsyncConnection) -> Counts:
            stamp = Stamp(key.task_id, _now())
            done = await write_batch(connection, batch, Strategy.MERGE, stamp)
            return done.counts

        return await self._once(key, batch.table.name, repr(batch.rows), register)


_IDENTITY: Final = 16


def _counts(written: Written, rejected: int) -> Counts:
    return Counts(
        created=written.created,
        updated=written.updated,
        unchanged=written.unchanged,
        deleted=written.deleted,
        rejected=rejected,
    )


def _refused_value(refused: Refused, batch: RowBatch, place: int) -> Any:
    if refused.column not in batch.columns:
        return None
    return batch.rows[place][batch.columns.index(refused.column)]


async def _note(
    connection: AsyncConnection,
    key: TaskKey,
    declared: DeclaredType,
    step: Step,
    written: Written | None = None,
) -> None:
    """Note what a step has changed in a table of a team; or that its work begins there."""
    values = {
        "run": workflow_id(key.project_id, key.task_id),
        "digest": declared.digest,
        "work": step.run,
        "step": step.name or None,
        "created_at": _now(),
    }
    for block in [pack_images(())] if written is None else written.every_block():
        await connection.execute(insert(target_images).values({**values, "images": block}))


async def _end_work(connection: AsyncConnection, load: Load) -> None:
    """Note that docflow knows every step of the work of a load."""
    if load.token is not None:
        is_begun = target_images.c.work == load.token, target_images.c.step.is_(None)
        await connection.execute(delete(target_images).where(*is_begun))


def _now() -> datetime:
    return datetime.now(UTC)


def _left_alone(load: Load | None) -> LoadMark:
    """The mark when there is nothing to do; a closed import has nothing more to come."""
    return LoadMark(finished=True) if load is None else load.mark
