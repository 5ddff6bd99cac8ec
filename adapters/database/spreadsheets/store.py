"""The `SpreadsheetStore` on SQLite and PostgreSQL."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.bulk.dialects import bulk_of
from adapters.database.engine import Database
from adapters.database.models.spreadsheets import spreadsheet_imports
from adapters.database.spreadsheets import (
    columns,
    entities,
    leftovers,
    memory,
    people,
    results,
    retention,
    review_operations,
    rows,
    status,
    undo,
)
from adapters.database.spreadsheets import values as store_values
from adapters.database.spreadsheets.locked_import import mark_of
from adapters.database.spreadsheets.records import UndoConflict
from adapters.database.spreadsheets.reviews import SqlReviewStore
from adapters.ports import OpenRow
from contracts.blobs import BlobRef
from contracts.problems import Problem
from contracts.spreadsheets import (
    Analysis,
    CellMapping,
    CellSummary,
    DecideCells,
    ExpiredPage,
    Processed,
    RetentionOrder,
    RowCounts,
    SaveColumns,
    SpreadsheetOrder,
    SpreadsheetResult,
    StatusRecord,
    UndoOrder,
    UndoPreview,
    UndoResult,
)
from domain.spreadsheets.people import KnownPerson, PeopleQuery
from domain.spreadsheets.records import (
    CustomList,
    Entity,
    EntityScope,
    FoundValue,
    ParkedRow,
    Preview,
    RememberedValue,
    SheetChunk,
    SheetMark,
    SkippedRow,
)


class SqlSpreadsheetStore:
    """Tables of the spreadsheets pipeline; see `adapters.ports.SpreadsheetStore` for the promises.

    Every method raises `Unavailable` when the database is down or busy; nothing is written then.
    Methods that change an import raise `LookupError` when it was never opened. An import that was
    purged, or that has ended, accepts no further rows and values.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._bulk = bulk_of(database)
        self.memory = memory.SqlSpreadsheetMemory(database)
        """What was learnt of people's decisions."""
        self.reviews: SqlReviewStore = SqlReviewStore(database)
        """Reviews of rows before they are written."""

    async def open(self, order: SpreadsheetOrder, workflow_id: str, now: datetime) -> None:
        """Make the status row (UPLOADED), and forget the note of the upload."""
        async with self._database.transaction() as connection:
            await status.open_import(connection, self._bulk, order, workflow_id, now)

    async def record(self, record: StatusRecord) -> None:
        """Write one transition into the status row, with its trail."""
        async with self._database.transaction() as connection:
            await status.record(connection, self._bulk, record)

    async def finish(self, result: SpreadsheetResult, record: StatusRecord) -> RowCounts:
        """As `record`, with report and final state; the counts as the progress mark has them."""
        async with self._database.transaction() as connection:
            return await status.finish(connection, self._bulk, result, record)

    async def open_rows(self, before: datetime, after: str, limit: int) -> Sequence[OpenRow]:
        """Imports that have not ended and undos under way that have not changed since."""
        async with self._database.reading() as connection:
            return await leftovers.open_rows(connection, before, after, limit)

    async def terminate(
        self, id: str, reason: str, unchanged_since: datetime | None = None
    ) -> bool:
        """Close an import, or an undo, as terminated."""
        async with self._database.transaction() as connection:
            return await leftovers.terminate(connection, id, reason, unchanged_since)

    async def save_analysis(
        self, order: SpreadsheetOrder, analysis: Analysis, preview: Preview, version: int
    ) -> None:
        """Replace columns and preview, unless a later version is written already."""
        async with self._database.transaction() as connection:
            await columns.save_analysis(connection, order.uuid, analysis, preview, version)

    async def save_total(self, uuid: str, total: int) -> None:
        """Rows of the file, as far as they are counted."""
        async with self._database.transaction() as connection:
            await status.save_total(connection, uuid, total)

    async def save_hidden_rows(self, uuid: str, rows: int, lines: str) -> None:
        """Put into the preview how many rows of the whole file are hidden, and the first lines."""
        async with self._database.transaction() as connection:
            await columns.save_hidden_rows(connection, uuid, rows, lines)

    async def save_skipped_rows(self, uuid: str, rows: Sequence[SkippedRow]) -> None:
        """Put into the preview which rows of the whole file are no people, or may be none."""
        async with self._database.transaction() as connection:
            await columns.save_skipped_rows(connection, uuid, rows)

    async def save_file(self, uuid: str, blob: BlobRef) -> None:
        """Note a blob that was made for an import; `files_of` names it from then on."""
        async with self._database.transaction() as connection:
            await status.save_file(connection, self._bulk, uuid, blob)

    async def save_columns(self, save: SaveColumns) -> None:
        """Write column mappings with their trail; remember people's decisions if asked to."""
        async with self._database.transaction() as connection:
            await columns.save_columns(connection, self._bulk, save)

    async def remembered_columns(
        self, organisation_id: int, import_type: str, headers: Sequence[str]
    ) -> Mapping[str, str | None]:
        """Header, as it is asked for, to field, of those that people decided before; None for
        columns that they left out."""
        async with self._database.reading() as connection:
            return await memory.columns_of(connection, organisation_id, import_type, headers)

    async def custom_lists(self, organisation_id: int) -> Sequence[CustomList]:
        """The organisation's custom lists."""
        async with self._database.reading() as connection:
            return await entities.read_custom_lists(connection, organisation_id)

    async def context_exists(self, table: str, id: int, organisation_id: int) -> bool:
        """Whether an event, period or race is the organisation's."""
        async with self._database.reading() as connection:
            return await entities.context_exists(connection, table, id, organisation_id)

    async def entities(self, scope: EntityScope) -> Sequence[Entity]:
        """Everything that cells may refer to, by name; at most 100,000."""
        async with self._database.reading() as connection:
            return await entities.read_entities(connection, scope)

    async def remembered_values(
        self, organisation_id: int, import_type: str, field: str
    ) -> Mapping[str, RememberedValue]:
        """Key of each value that people decided about before, and what they chose."""
        async with self._database.reading() as connection:
            return await memory.values_of(connection, organisation_id, import_type, field)

    async def save_values(self, uuid: str, values: Sequence[FoundValue]) -> None:
        """Add distinct values; one that is there keeps its decision and gets this count."""
        async with self._database.transaction() as connection:
            await store_values.save_values(connection, self._bulk, uuid, values)

    async def cell_summary(self, uuid: str) -> CellSummary:
        """Figures and the first open values."""
        async with self._database.reading() as connection:
            return await store_values.summary(connection, await _id_of(connection, uuid))

    async def cell_mapping(self, uuid: str, ids: Sequence[int]) -> Sequence[CellMapping]:
        """Some mappings of this import by id; ids of other imports are left out."""
        async with self._database.reading() as connection:
            return await store_values.some_mappings(connection, await _id_of(connection, uuid), ids)

    async def index_people(self, organisation_id: int) -> None:
        """Make people findable that another program wrote, or an earlier release."""
        more = True
        while more:
            async with self._database.transaction() as connection:
                more = await people.index_some(connection, organisation_id)

    async def people(self, organisation_id: int, query: PeopleQuery) -> Sequence[KnownPerson]:
        """The organisation's people whom rows may be about, by id."""
        async with self._database.reading() as connection:
            return await people.find_people(connection, self._bulk, organisation_id, query)

    async def people_by_id(self, organisation_id: int, ids: Sequence[int]) -> Sequence[KnownPerson]:
        """Some of the organisation's people; ids of others are left out."""
        async with self._database.reading() as connection:
            return await people.people_by_id(connection, self._bulk, organisation_id, ids)

    async def search_people(self, organisation_id: int, query: str, limit: int) -> Sequence[Entity]:
        """People to choose from, by a part of their name or mail address."""
        async with self._database.reading() as connection:
            return await people.search_people(connection, organisation_id, query, limit)

    async def remembered_people(self, organisation_id: int) -> Mapping[str, Mapping[int, bool]]:
        """What people answered before, by digest of the question."""
        async with self._database.reading() as connection:
            return await people.remembered(connection, organisation_id)

    async def decide_cells(
        self,
        decide: DecideCells,
        targets: Mapping[int, Entity],
        rule_targets: Sequence[Entity | None] = (),
    ) -> CellSummary:
        """Take checked decisions with their trail, all or none."""
        async with self._database.transaction() as connection:
            return await store_values.decide(connection, self._bulk, decide, targets, rule_targets)

    def mappings(self, uuid: str) -> AsyncIterator[Sequence[CellMapping]]:
        """Every cell mapping, in pages of at most 1,000."""
        return store_values.all_mappings(self._database, uuid)

    async def create_entity(self, scope: EntityScope, name: str) -> Entity:
        """Find or make a candidate of this name."""
        async with self._database.transaction() as connection:
            return await entities.create_entity(connection, self._bulk, scope, name)

    async def mark(self, uuid: str) -> SheetMark:
        """How far the rows have come."""
        query = select(spreadsheet_imports).where(spreadsheet_imports.c.uuid == uuid)
        async with self._database.reading() as connection:
            row = (await connection.execute(query)).one_or_none()
        return SheetMark() if row is None else mark_of(row)

    async def write(self, uuid: str, chunk: SheetChunk, *, dry_run: bool) -> SheetMark:
        """Write one chunk with its progress mark; one at or before the mark is left alone."""
        async with self._database.transaction() as connection:
            return await rows.write_chunk(connection, self._bulk, uuid, chunk, dry_run=dry_run)

    async def parked(self, uuid: str, after: int, limit: int) -> Sequence[ParkedRow]:
        """Parked rows by line, above line `after`."""
        async with self._database.reading() as connection:
            return await results.read_parked(connection, uuid, after, limit)

    async def end_round(self, uuid: str, round: int) -> Processed:
        """Mark a round as ended; figures of all rounds, rows and values that wait."""
        async with self._database.transaction() as connection:
            return await status.end_round(connection, uuid, round)

    def errors(self, uuid: str) -> AsyncIterator[Sequence[tuple[int, Sequence[Problem]]]]:
        """Rows with outcome ERROR by line, in pages of at most 1,000."""
        return results.read_errors(self._database, uuid)

    async def begin_undo(self, order: UndoOrder) -> str | None:
        """Mark an import as being undone; None, or why it cannot be."""
        async with self._database.transaction() as connection:
            return await undo.begin_undo(connection, self._bulk, order)

    async def preview_undo(self, uuid: str) -> tuple[UndoPreview, Sequence[UndoConflict]]:
        """What an undo would do now, and the first rows that it would leave alone and why."""
        found = UndoPreview(uuid=uuid)
        conflicts: Sequence[UndoConflict] = ()
        with suppress(_RolledBack):
            async with self._database.transaction() as connection:
                found, left = await undo.preview(connection, self._bulk, uuid)
                conflicts = [UndoConflict(*conflict) for conflict in left]
                raise _RolledBack
        return found, conflicts

    async def undo_chunk(self, uuid: str) -> bool:
        """Take back the newest chunk that is not taken back yet; False: there is none."""
        async with self._database.transaction() as connection:
            return await undo.undo_chunk(connection, self._bulk, uuid)

    async def end_undo(self, uuid: str) -> UndoResult:
        """Mark an import as undone; what was done and what was left alone."""
        async with self._database.transaction() as connection:
            return await undo.end_undo(connection, uuid)

    async def expired(self, order: RetentionOrder, now: datetime) -> ExpiredPage:
        """Imports that are due for purging, the oldest first; never one that is PROCESSING."""
        async with self._database.reading() as connection:
            return await retention.expired(connection, order, now)

    async def files_of(self, uuid: str) -> Sequence[BlobRef]:
        """Blobs of an import: source, staged rows, report."""
        async with self._database.reading() as connection:
            return await retention.files_of(connection, uuid)

    async def purge(self, uuid: str, now: datetime) -> bool:
        """Remove results, values, previews, parked rows and names; a trail without personal
        data stays. False when that was done before, or while the import is PROCESSING."""
        async with self._database.transaction() as connection:
            return await retention.purge(connection, uuid, now)

    async def purge_journals(self, before: datetime, limit: int) -> int:
        """Remove before-images of imports that ended before; how many imports."""
        async with self._database.transaction() as connection:
            return await retention.purge_journals(connection, before, limit)

    async def purge_proposals(self, before: datetime, limit: int) -> int:
        """Remove changes of reviews that were proposed before and never applied; how many."""
        async with self._database.transaction() as connection:
            return await review_operations.purge_proposals(connection, before, limit)

    async def stale_uploads(self, before: datetime, limit: int) -> Sequence[tuple[str, str]]:
        """Uuid and blob name of uploads that never became an import."""
        async with self._database.reading() as connection:
            return await retention.stale_uploads(connection, before, limit)

    async def forget_upload(self, blob_name: str) -> None:
        """Forget the note of an upload."""
        async with self._database.transaction() as connection:
            await connection.execute(retention.forgetting(blob_name))


class _RolledBack(Exception):
    """Ends a transaction of which nothing is to stay."""


async def _id_of(connection: AsyncConnection, uuid: str) -> int | None:
    imports: Any = spreadsheet_imports.c
    query = select(imports.id).where(imports.uuid == uuid)
    return (await connection.execute(query)).scalar_one_or_none()
