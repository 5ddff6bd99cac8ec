"""Spreadsheets in the database."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from datetime import datetime
from functools import partial
from typing import Any, Final

from sqlalchemy import delete, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from activities.shared.accepted_files import Pages
from activities.spreadsheets import (
    elsewhere,
    entity_store,
    import_rows,
    memory_store,
    people_store,
    replacing,
    retention_store,
    review_store,
    row_store,
    undo_store,
    value_store,
    views,
)
from activities.spreadsheets.entities import EntityScope
from activities.spreadsheets.import_rows import (
    LockedImport,
    counted_values,
    counts_of,
    is_elsewhere,
    lock_known,
    mark_of,
    save,
    tables_now,
    target_table,
)
from activities.spreadsheets.records import UndoPreview
from activities.spreadsheets.review_store import SqlReviewStore
from activities.spreadsheets.standing_rules import broken_rows
from adapters.database.engine import Database
from adapters.database.foreign import ForeignDatabases
from adapters.database.models.spreadsheets import (
    spreadsheet_files,
    spreadsheet_imports,
    spreadsheet_journal,
    spreadsheet_uploads,
)
from adapters.database.records import clean
from adapters.ports.errors import PortError
from adapters.ports.records import OpenRow
from adapters.types.targets import TargetTables
from workflows.shared.contracts import BlobRef, Problem
from workflows.shared.declared_types import DeclaredType
from workflows.spreadsheets.fields import (
    CustomList,
    Entity,
    FoundValue,
    ParkedRow,
    Preview,
    RememberedValue,
    SheetChunk,
    SheetMark,
    SkippedRow,
    TargetRows,
)
from workflows.spreadsheets.mappings import FINAL, CellMapping, CellSummary, SpreadsheetState
from workflows.spreadsheets.people import KnownPerson, PeopleQuery
from workflows.spreadsheets.runs import (
    Analysis,
    DecideCells,
    ExpiredPage,
    FailedUndo,
    Processed,
    RetentionInput,
    RowCounts,
    SaveColumns,
    SpreadsheetInput,
    SpreadsheetResult,
    StatusRecord,
    UndoInput,
    UndoResult,
)

_ENDS: Final = frozenset(FINAL)


async def open_import(
    connection: AsyncConnection, order: SpreadsheetInput, run: str, now: datetime
) -> None:
    """Make the status row unless it is there, and forget the note of the upload."""
    by = clean(order.by)
    await connection.execute(
        insert(spreadsheet_imports)
        .values(
            uuid=order.uuid,
            workflow_id=run,
            organisation_id=order.organisation_id,
            import_type=order.import_type,
            context_id=order.context_id,
            type_digest=order.type_digest,
            scope={**order.scope},
            source=order.source.model_dump_json(),
            filename=clean(order.filename),
            by=by,
            notify=None if order.notify is None else clean(order.notify),
            auto_start=order.auto_start,
            dry_run=order.dry_run,
            fingerprint=None if order.fingerprint is None else clean(order.fingerprint),
            remembers=order.remembers,
            link=None if order.link is None else clean(order.link),
            state=SpreadsheetState.UPLOADED.value,
            state_since=now,
            assignee=by,
            layout=order.layout.model_dump_json(),
            created_at=now,
            updated_at=now,
        )
        .on_conflict_do_nothing(index_elements=["uuid"])
    )
    await connection.execute(
        delete(spreadsheet_uploads).where(spreadsheet_uploads.c.blob_name == order.source.name)
    )


async def record_status(connection: AsyncConnection, record: StatusRecord) -> None:
    """Write one transition; nothing when a later one is written already, or the end.

    One of the same number counts: a worker that died before Temporal knew of its record is followed
    by one whose run went another way.
    """
    opened = await lock_known(connection, record.uuid)
    if not opened.ended and record.sequence >= opened.row.sequence:
        await _write(connection, opened, record)


async def finish(
    connection: AsyncConnection, result: SpreadsheetResult, record: StatusRecord
) -> RowCounts:
    """Write the end of an import, once; the counts of the progress mark."""
    opened = await lock_known(connection, record.uuid)
    if opened.ended:
        return counts_of(opened.row)
    more: dict[str, Any] = {}
    if not opened.purged:
        report = None if result.report is None else result.report.model_dump_json()
        reason = result.reason if result.reason is not None else record.reason
        more = {"report": report, "reason": None if reason is None else clean(reason)}
    await _write(connection, opened, record, **more)
    return counts_of(opened.row)


async def _write(
    connection: AsyncConnection,
    opened: LockedImport,
    record: StatusRecord,
    **more: Any,
) -> None:
    row = opened.row
    ends = record.state in _ENDS
    values: dict[str, Any] = {
        "sequence": max(row.sequence, record.sequence),
        "state": record.state.value,
        "step": clean(record.step),
        "version": max(row.version, record.version),
        "waiting_since": record.waiting_since,
        **await counted_values(connection, opened),
    }
    if record.state is not opened.state:
        values["state_since"] = record.at
    if ends:
        values["finished_at"] = row.finished_at or record.at
    if not opened.purged:
        values["reason"] = None if record.reason is None else clean(record.reason)
        if record.assignee is not None:
            values["assignee"] = clean(record.assignee)
        await import_rows.add(connection, row.workflow_id, record.trail)
    if record.trail:
        values["decided_at"] = import_rows.latest(record.trail)
    await save(connection, opened, values | more)


async def save_total(connection: AsyncConnection, uuid: str, total: int) -> None:
    """Rows of the file, as far as they are counted."""
    opened = await lock_known(connection, uuid)
    if opened.row.total != total:
        await save(connection, opened, {"total": total})


async def save_file(connection: AsyncConnection, uuid: str, blob: BlobRef) -> None:
    """Note a blob that was made for an import, so that it goes when the import is purged."""
    opened = await lock_known(connection, uuid)
    adding = insert(spreadsheet_files).values(
        import_id=opened.id, name=blob.name, blob=blob.model_dump_json()
    )
    await connection.execute(
        adding.on_conflict_do_update(
            index_elements=["import_id", "name"], set_={"blob": adding.excluded.blob}
        )
    )


async def end_round(connection: AsyncConnection, uuid: str, round: int) -> Processed:
    """Mark a round as ended; figures of all rounds."""
    opened = await lock_known(connection, uuid)
    row = opened.row
    if round > row.mark_round or (round == row.mark_round and not row.round_ended):
        values_: dict[str, Any] = {"round_ended": True}
        if round > row.mark_round:
            values_ |= {"mark_round": round, "mark_chunk": 0, "mark_cursor": 0, "mark_offset": 0}
        await save(connection, opened, values_)
    return Processed(
        counts=counts_of(row),
        parked=row.parked,
        cells=await value_store.summary(connection, opened.id),
    )


class SqlSpreadsheetStore:
    """Tables of the spreadsheets pipeline. Every method is one transaction and may run twice.

    Every method raises `Unavailable` when the database is down or busy; nothing is written then.
    Methods that change an import raise `LookupError` when it was never opened. An import that was
    purged, or that has ended, accepts no further rows and values.

    Args:
        database: Where they are.
        targets: Tables of teams; when absent, only docflow's own database may have them.
    """

    def __init__(self, database: Database, targets: TargetTables | None = None) -> None:
        self._database = database
        self._targets = targets or TargetTables(ForeignDatabases(database))
        self.memory = memory_store.SqlSpreadsheetMemory(database)
        """What was learnt of people's decisions."""
        self.reviews: SqlReviewStore = SqlReviewStore(database)
        """Reviews of rows before they are written."""

    async def open(self, order: SpreadsheetInput, workflow_id: str, now: datetime) -> None:
        """Make the status row (UPLOADED), and forget the note of the upload."""
        async with self._database.transaction() as connection:
            await open_import(connection, order, workflow_id, now)

    async def record(self, record: StatusRecord) -> None:
        """Write one transition into the status row, with its trail.

        Nothing changes when the stored sequence is higher, or the import has ended.
        """
        async with self._database.transaction() as connection:
            await record_status(connection, record)

    async def finish(self, result: SpreadsheetResult, record: StatusRecord) -> RowCounts:
        """As `record`, with report and final state, whatever the stored sequence; the counts as
        the progress mark has them. An import that has ended stays as it is."""
        async with self._database.transaction() as connection:
            return await finish(connection, result, record)

    async def open_rows(self, before: datetime, after: str, limit: int) -> Sequence[OpenRow]:
        """Imports that have not ended and undos under way that have not changed since."""
        async with self._database.reading() as connection:
            return await retention_store.open_rows(connection, before, after, limit)

    async def terminate(
        self, id: str, reason: str, unchanged_since: datetime | None = None
    ) -> bool:
        """Close an import, or an undo, as terminated."""
        async with self._database.transaction() as connection:
            return await retention_store.terminate(connection, id, reason, unchanged_since)

    async def save_analysis(
        self, order: SpreadsheetInput, analysis: Analysis, preview: Preview, version: int
    ) -> None:
        """Replace columns and preview, unless a later version is written already."""
        async with self._database.transaction() as connection:
            await memory_store.save_analysis(connection, order.uuid, analysis, preview, version)

    async def save_total(self, uuid: str, total: int) -> None:
        """Rows of the file, as far as they are counted."""
        async with self._database.transaction() as connection:
            await save_total(connection, uuid, total)

    async def save_hidden_rows(self, uuid: str, rows: int, lines: str) -> None:
        """Put into the preview how many rows of the whole file are hidden, and the first lines."""
        async with self._database.transaction() as connection:
            await memory_store.save_hidden_rows(connection, uuid, rows, lines)

    async def save_skipped_rows(self, uuid: str, rows: Sequence[SkippedRow]) -> None:
        """Put into the preview which rows of the whole file are no people, or may be none."""
        async with self._database.transaction() as connection:
            await memory_store.save_skipped_rows(connection, uuid, rows)

    async def save_file(self, uuid: str, blob: BlobRef) -> None:
        """Note a blob that was made for an import; `files_of` names it from then on."""
        async with self._database.transaction() as connection:
            await save_file(connection, uuid, blob)

    async def save_columns(self, save: SaveColumns) -> None:
        """Write column mappings with their trail; remember people's decisions if asked to."""
        async with self._database.transaction() as connection:
            await memory_store.save_columns(connection, save)

    async def remembered_columns(
        self, organisation_id: int, import_type: str, headers: Sequence[str]
    ) -> Mapping[str, str | None]:
        """Header, as it is asked for, to field, of those that people decided before; None for
        columns that they left out."""
        async with self._database.reading() as connection:
            return await memory_store.columns_of(connection, organisation_id, import_type, headers)

    async def custom_lists(self, organisation_id: int) -> Sequence[CustomList]:
        """The organisation's custom lists."""
        async with self._database.reading() as connection:
            return await entity_store.read_custom_lists(connection, organisation_id)

    async def context_exists(self, table: str, id: int, organisation_id: int) -> bool:
        """Whether an event, period or race is the organisation's."""
        async with self._database.reading() as connection:
            return await entity_store.context_exists(connection, table, id, organisation_id)

    async def make_context(
        self, table: str, organisation_id: int, values: Mapping[str, Any]
    ) -> int:
        """Find or make what imports can belong to; its id.

        Raises:
            RuleViolation: It belongs to an event that is not the organisation's.
        """
        async with self._database.transaction() as connection:
            return await entity_store.make_context(connection, table, organisation_id, values)

    async def entities(self, scope: EntityScope) -> Sequence[Entity]:
        """Everything that cells may refer to, by name; at most 100,000."""
        async with self._database.reading() as connection:
            return await entity_store.read_entities(connection, scope, self._targets)

    async def remembered_values(
        self, organisation_id: int, import_type: str, field: str
    ) -> Mapping[str, RememberedValue]:
        """Key of each value that people decided about before, and what they chose."""
        async with self._database.reading() as connection:
            return await memory_store.values_of(connection, organisation_id, import_type, field)

    async def save_values(self, uuid: str, values: Sequence[FoundValue]) -> None:
        """Add distinct values; one that is there keeps its decision and gets this count."""
        async with self._database.transaction() as connection:
            await value_store.save_values(connection, uuid, values)

    async def cell_summary(self, uuid: str) -> CellSummary:
        """Figures and the first open values."""
        async with self._database.reading() as connection:
            return await value_store.summary(connection, await _id_of(connection, uuid))

    async def cell_mapping(self, uuid: str, ids: Sequence[int]) -> Sequence[CellMapping]:
        """Some mappings of this import by id; ids of other imports are left out."""
        async with self._database.reading() as connection:
            return await value_store.some_mappings(connection, await _id_of(connection, uuid), ids)

    async def index_people(self, organisation_id: int) -> None:
        """Make people findable that another program wrote, or an earlier release."""
        more = True
        while more:
            async with self._database.transaction() as connection:
                more = await people_store.index_some(connection, organisation_id)

    async def people(self, organisation_id: int, query: PeopleQuery) -> Sequence[KnownPerson]:
        """The organisation's people whom rows may be about, by id."""
        async with self._database.reading() as connection:
            return await people_store.find_people(connection, organisation_id, query)

    async def people_by_id(self, organisation_id: int, ids: Sequence[int]) -> Sequence[KnownPerson]:
        """Some of the organisation's people; ids of others are left out."""
        async with self._database.reading() as connection:
            return await people_store.people_by_id(connection, organisation_id, ids)

    async def search_people(self, organisation_id: int, query: str, limit: int) -> Sequence[Entity]:
        """People to choose from, by a part of their name or mail address."""
        async with self._database.reading() as connection:
            return await people_store.search_people(connection, organisation_id, query, limit)

    async def remembered_people(self, organisation_id: int) -> Mapping[str, Mapping[int, bool]]:
        """What people answered before, by digest of the question: id of a person, and whether
        it is the same."""
        async with self._database.reading() as connection:
            return await people_store.remembered(connection, organisation_id)

    async def decide_cells(
        self,
        decide: DecideCells,
        targets: Mapping[int, Entity],
        rule_targets: Sequence[Entity | None] = (),
    ) -> CellSummary:
        """Take checked decisions and rules with their trail, all or none.

        Args:
            decide: The decisions; a version that was written before changes nothing.
            targets: Entity chosen for each mapping id with `target_id` or `create` resolved.
            rule_targets: Entity chosen by each rule; None where it names none.
        """
        async with self._database.transaction() as connection:
            return await value_store.decide(connection, decide, targets, rule_targets)

    def mappings(self, uuid: str) -> AsyncIterator[Sequence[CellMapping]]:
        """Every cell mapping, in pages of at most 1,000."""
        return value_store.all_mappings(self._database, uuid)

    async def create_entity(self, scope: EntityScope, name: str) -> Entity:
        """Find or make a candidate of this name."""
        async with self._database.transaction() as connection:
            return await entity_store.create_entity(connection, scope, name)

    async def mark(self, uuid: str) -> SheetMark:
        """How far the rows have come."""
        query = select(spreadsheet_imports).where(spreadsheet_imports.c.uuid == uuid)
        async with self._database.reading() as connection:
            row = (await connection.execute(query)).one_or_none()
        return SheetMark() if row is None else mark_of(row)

    async def write(self, uuid: str, chunk: SheetChunk, *, dry_run: bool) -> SheetMark:
        """Write one chunk: targets by natural key, results, before-images, parked rows, found
        values and the progress mark.

        A chunk at or before the mark is left alone. Under `dry_run` the outcomes are found out,
        recorded with a summary of the differences, and no target table changes.
        """
        async with AsyncExitStack() as stack:
            if any(is_elsewhere(target_table(target.table)) for target in chunk.targets):
                await stack.enter_async_context(self._targets.turns)
            connection = await stack.enter_async_context(self._database.transaction())
            return await row_store.write_chunk(
                connection, uuid, chunk, self._targets, dry_run=dry_run
            )

    async def broken_rows(
        self, declared: DeclaredType, rows: TargetRows, lines: Sequence[int]
    ) -> Mapping[int, Sequence[Problem]]:
        """What is wrong with rows as they would be stored, by their place in the chunk."""
        async with self._database.reading() as connection:
            now = await tables_now(connection, declared)
            return await broken_rows(connection, self._targets, declared, rows, lines, now)

    async def remove_absent(
        self, uuid: str, scope: Mapping[str, str], *, dry_run: bool
    ) -> str | None:
        """Remove the stored rows that the file lacks, with before-images; a sentence about it.

        Nothing is removed if the type of the import does not replace rows.
        """
        async with self._targets.turns, self._database.transaction() as connection:
            return await replacing.remove_absent(
                *(connection, uuid, scope, self._targets), dry_run=dry_run
            )

    async def forget_steps(self, uuid: str, declared: DeclaredType) -> None:
        """Remove what a table of a team remembers of an import, once docflow has it."""
        await self._forget(declared, elsewhere.run_name(uuid))

    async def _forget(self, declared: DeclaredType, run: str) -> None:
        """A row that stays there is of no use, and does no harm."""
        with suppress(PortError):
            await self._targets.forget(declared, run)

    def accepted(self, uuid: str) -> Pages:
        """Rows that were put aside for a file, in the order in which they were accepted."""
        return elsewhere.accepted_rows(self._database, uuid)

    async def is_handed_over(self, uuid: str) -> bool:
        """Whether the rows that were put aside are gone, because a file has them."""
        query = select(spreadsheet_imports.c.journal_purged_at)
        async with self._database.reading() as connection:
            found = await connection.execute(query.where(spreadsheet_imports.c.uuid == uuid))
            return found.scalar_one_or_none() is not None

    async def forget_accepted(self, uuid: str, now: datetime) -> None:
        """Remove the rows that were put aside: a file has them."""
        async with self._database.transaction() as connection:
            opened = await lock_known(connection, uuid)
            mine = spreadsheet_journal.c.import_id == opened.id
            await connection.execute(delete(spreadsheet_journal).where(mine))
            await save(connection, opened, {"journal_purged_at": now})

    async def parked(self, uuid: str, after: int, limit: int) -> Sequence[ParkedRow]:
        """Parked rows by line, above line `after`."""
        async with self._database.reading() as connection:
            return await views.read_parked(connection, uuid, after, limit)

    async def end_round(self, uuid: str, round: int) -> Processed:
        """Mark a round as ended; figures of all rounds, rows and values that wait."""
        async with self._database.transaction() as connection:
            return await end_round(connection, uuid, round)

    def errors(self, uuid: str) -> AsyncIterator[Sequence[tuple[int, Sequence[Problem]]]]:
        """Rows with outcome ERROR by line, in pages of at most 1,000."""
        return views.read_errors(self._database, uuid)

    async def begin_undo(self, order: UndoInput) -> str | None:
        """Mark an import as being undone; None, or why it cannot be.

        An order that was carried out already is not refused: its attempt may have died since.
        """
        async with self._database.transaction() as connection:
            return await undo_store.begin_undo(connection, order)

    async def preview_undo(self, uuid: str, lines: Collection[int] = ()) -> UndoPreview:
        """What an undo would do now, and the first rows that it would leave alone and why.

        Args:
            uuid: The import.
            lines: Rows of the file that would be taken back; none: all of them.
        """
        found = UndoPreview()
        with suppress(_RolledBack):
            async with self._database.transaction() as connection:
                found = await undo_store.preview(connection, uuid, frozenset(lines))
                raise _RolledBack
        return found

    async def undo_chunk(self, order: UndoInput) -> bool:
        """Take back the newest chunk that is not taken back yet; False: there is none."""
        async with self._targets.turns, self._database.transaction() as connection:
            return await undo_store.undo_chunk(connection, order, self._targets)

    async def settle(self, uuid: str) -> None:
        """Take back what went into a table of a team and was never noted, because a worker died.

        Nothing happens if docflow's own tables have the rows, or the import has not ended.
        """
        async with self._targets.turns, self._database.transaction() as connection:
            opened = await lock_known(connection, uuid)
            declared = await elsewhere.type_elsewhere(connection, opened)
            if declared is None or declared.target is None or not opened.ended:
                return
            if declared.target.table is not None and not opened.row.dry_run:
                run, mark = elsewhere.run_name(uuid), opened.mark
                await self._targets.settle(declared, run, partial(elsewhere.is_noted, mark))

    async def end_undo(self, order: UndoInput) -> UndoResult:
        """Mark an import as undone; what was done and what was left alone."""
        async with self._database.transaction() as connection:
            done = await undo_store.end_undo(connection, order)
            opened = await lock_known(connection, order.uuid)
            declared = await elsewhere.type_elsewhere(connection, opened)
        if declared is not None:
            name = elsewhere.undo_name(order.uuid, opened.row.undo_attempts or 1)
            await self._forget(declared, name)
        return done

    async def park_undo(self, order: FailedUndo) -> None:
        """Note why an undo that is under way waits for a person."""
        async with self._database.transaction() as connection:
            await undo_store.park_undo(connection, order)

    async def fail_undo(self, order: FailedUndo) -> None:
        """Mark an undo that is under way as failed, with the reason."""
        async with self._database.transaction() as connection:
            await undo_store.fail_undo(connection, order)

    async def expired(self, order: RetentionInput, now: datetime) -> ExpiredPage:
        """Imports that are due for purging, the oldest first; never one that is PROCESSING."""
        async with self._database.reading() as connection:
            return await retention_store.expired(connection, order, now)

    async def files_of(self, uuid: str) -> Sequence[BlobRef]:
        """Blobs of an import: source, staged rows, report; none while it is PROCESSING."""
        async with self._database.reading() as connection:
            return await retention_store.files_of(connection, uuid)

    async def purge(self, uuid: str, now: datetime) -> bool:
        """Remove results, values, previews, parked rows and names; a trail without personal
        data stays. False when that was done before, or while the import is PROCESSING."""
        async with self._database.transaction() as connection:
            return await retention_store.purge(connection, uuid, now)

    async def purge_journals(self, before: datetime, limit: int) -> int:
        """Remove before-images of imports that ended before; how many imports."""
        async with self._database.transaction() as connection:
            return await retention_store.purge_journals(connection, before, limit)

    async def purge_proposals(self, before: datetime, limit: int) -> int:
        """Remove changes of reviews that were proposed before and never applied; how many."""
        async with self._database.transaction() as connection:
            return await review_store.purge_proposals(connection, before, limit)

    async def stale_uploads(self, before: datetime, limit: int) -> Sequence[tuple[str, str]]:
        """Uuid and blob name of uploads that never became an import."""
        async with self._database.reading() as connection:
            return await retention_store.stale_uploads(connection, before, limit)

    async def forget_upload(self, blob_name: str) -> None:
        """Forget the note of an upload."""
        async with self._database.transaction() as connection:
            await connection.execute(retention_store.forgetting(blob_name))


class _RolledBack(Exception):
    """Ends a transaction of which nothing is to stay."""


async def _id_of(connection: AsyncConnection, uuid: str) -> int | None:
    imports: Any = spreadsheet_imports.c
    query = select(imports.id).where(imports.uuid == uuid)
    return (await connection.execute(query)).scalar_one_or_none()
