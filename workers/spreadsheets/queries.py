"""What can be read of spreadsheet imports: status, results, choices."""

import asyncio
import errno
import uuid as uuids
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from activities.spreadsheets.analysis import fields_of, load_context, sheet_type_of
from activities.spreadsheets.entities import CANDIDATES
from activities.spreadsheets.records import (
    AvailableContext,
    CellsView,
    ColumnsView,
    DecisionView,
    Difference,
    FieldView,
    Page,
    QuestionGroup,
    ResultCell,
    ResultRow,
    SpreadsheetRow,
    SummaryView,
    UndoConflict,
)
from activities.spreadsheets.sheet_types import SheetTypes
from activities.spreadsheets.staging import rows_of, staged_name
from activities.spreadsheets.store import SqlSpreadsheetStore
from activities.spreadsheets.types.base import SheetType
from activities.spreadsheets.types.people import EMAIL, FIRST_NAME, LAST_NAME
from activities.spreadsheets.validation import SourceRow
from activities.spreadsheets.value_mapping import resolver_of
from activities.spreadsheets.value_store import EVERY_VALUE, ValueFilter
from activities.spreadsheets.views import SqlSpreadsheetViews
from adapters.ports.blobs import Blobs
from adapters.ports.errors import BlobNotFound
from workers.shared.services.errors import (
    Gone,
    NotFound,
    Refused,
    ServiceUnavailable,
    WrongState,
    no_role,
)
from workers.shared.services.identity import (
    MAPPER,
    VIEWER,
    Identity,
    require_import,
    require_role,
)
from workers.shared.services.lists import watched
from workers.spreadsheets.statuses import LARGEST_PAGE, SpreadsheetStatuses
from workflows.shared.cells import readable
from workflows.shared.errors import RuleViolation
from workflows.shared.fields import FieldSpec
from workflows.spreadsheets.decisions import column_title, column_titles, record_title, shown_value
from workflows.spreadsheets.edits import Edits
from workflows.spreadsheets.fields import Entity, Preview
from workflows.spreadsheets.mappings import (
    DECISIONS,
    FINAL,
    CellDecision,
    CellMapping,
    CellRule,
    ColumnDecision,
    MappingStatus,
    Outcome,
    UndoState,
)
from workflows.spreadsheets.names import SAME_BIB
from workflows.spreadsheets.people import PERSON
from workflows.spreadsheets.runs import status_label


class Choices:
    """Fields for columns, candidates for values."""

    def __init__(self, store: SqlSpreadsheetStore, types: SheetTypes) -> None:
        self._store = store
        self._types = types

    async def types(self) -> Sequence[SheetType]:
        """The types of new imports, by name."""
        return await self._types.every()

    async def later(self, row: SpreadsheetRow) -> SheetType | None:
        """The version of its type that is in force, if an import keeps another one."""
        if row.type_digest is None:
            return None
        newest = next((it for it in await self.types() if it.name == row.import_type), None)
        if newest is None or newest.declared is None:
            return None
        return None if newest.declared.digest == row.type_digest else newest

    async def refuse_later_fields(
        self, row: SpreadsheetRow, decisions: Iterable[ColumnDecision]
    ) -> None:
        """See that decisions about columns choose no field that its type has only by now.

        Raises:
            Refused: One does.
        """
        later = await self.later(row)
        if later is None:
            return
        new = {each.name for each in later.fields} - {it.name for it in await self.declared(row)}
        for each in decisions:
            if each.target in new:
                raise Refused(
                    f"column {each.id}: this import keeps the version of the type "
                    f"{row.import_type} that it began with, which has no field {each.target}. To "
                    "use the newest version, cancel this import and upload the file again"
                )

    async def fields(self, row: SpreadsheetRow) -> Sequence[FieldView]:
        """The fields that columns of an import may fill, custom lists included.

        Raises:
            WrongState: The installation does not know the type any more.
        """
        return [FieldView.model_validate(each) for each in await self.declared(row)]

    async def values(self, uuid: str, ids: Sequence[int]) -> Sequence[CellMapping]:
        """Some values of an import, and what they mean; unknown ids are left out."""
        return await self._store.cell_mapping(uuid, ids)

    async def permit(self, who: Identity, row: SpreadsheetRow) -> None:
        """See that a person may import rows as an upload does.

        Raises:
            Forbidden: The person lacks a role.
        """
        types = await self._types.written_by(row.import_type, row.type_digest)
        require_import(who, row.organisation_id, types)

    async def permit_creating(
        self,
        who: Identity,
        row: SpreadsheetRow,
        decisions: Iterable[CellDecision],
        rules: Iterable[CellRule],
    ) -> None:
        """See that a person may create the rows that decisions about values ask for.

        Raises:
            Forbidden: The person lacks a role.
        """
        fields = {each.field for each in rules if each.create}
        if ids := [each.id for each in decisions if each.create]:
            fields |= {each.field for each in await self.values(row.uuid, ids)}
        if not fields:
            return
        referred = (await self._kind(row)).referred
        resolvers = [
            it.resolver for it in await self.declared(row) if it.name in fields and it.resolver
        ]
        made = [referred[each].declared for each in resolvers if each in referred]
        require_import(who, row.organisation_id, filter(None, made))

    async def find(self, row: SpreadsheetRow, field: str, query: str) -> Sequence[Entity]:
        """Candidates for the values of a field, the likeliest first.

        Raises:
            WrongState: The installation does not know the type any more.
            Refused: There is no such field, or its values refer to nothing.
        """
        kind = await self._kind(row)
        if field == PERSON.name and kind.is_about_people:
            return await self._store.search_people(row.organisation_id, query, CANDIDATES)
        if field == SAME_BIB.name:
            # Who keeps a bib stands beside each question.
            return ()
        found = next((each for each in await self.declared(row) if each.name == field), None)
        if found is None:
            raise Refused(f"this import has no field {field}")
        if found.resolver is None:
            raise Refused(f"values of {found.title} refer to nothing")
        today = datetime.now(UTC).date()
        context = await load_context(self._store, self._types, row, today, only={field})
        # A long list takes a while to go through.
        return await asyncio.to_thread(resolver_of(found.resolver).candidates, context, query)

    async def in_words(
        self, row: SpreadsheetRow, differences: Sequence[Difference]
    ) -> Sequence[Difference]:
        """Differences with what people call their rows, columns and values."""
        try:
            kind = await self._kind(row)
            fields = column_titles(await self.declared(row))
        except WrongState:
            kind, fields = None, column_titles(())

        def one(each: Difference) -> Difference:
            is_own = kind is not None and kind.declared is not None
            table = kind.main if kind and is_own else each.table
            field = fields.get((table, each.column))
            return each.model_copy(
                update={
                    "record": kind.title if kind and is_own else record_title(each.table),
                    "title": column_title(each.column) if field is None else field.title,
                    "before": shown_value(field, each.before),
                    "after": shown_value(field, each.after),
                }
            )

        return [one(each) for each in differences]

    async def declared(self, row: SpreadsheetRow) -> Sequence[FieldSpec]:
        await self._kind(row)
        return await fields_of(self._store, self._types, row)

    async def _kind(self, row: SpreadsheetRow) -> SheetType:
        try:
            return await sheet_type_of(self._types, row)
        except RuleViolation as error:
            said = f"imports of type {row.import_type} are not known here any more"
            raise WrongState(said) from error


@dataclass(frozen=True, slots=True)
class ReportFile:
    """An error report on the local disk; the caller deletes it."""

    path: Path
    filename: str


class SpreadsheetQueries(SpreadsheetStatuses):
    """Everything that changes nothing.

    Each method is given who asks. An import of an organisation that is not theirs does not exist
    for them (`NotFound`), and of one that was purged only status and trail are left (`Gone`).
    """

    def __init__(
        self, views: SqlSpreadsheetViews, blobs: Blobs, choices: Choices, scratch: Path
    ) -> None:
        super().__init__(views)
        self._views = views
        self._blobs = blobs
        self._choices = choices
        self.scratch = scratch

    async def contexts(self, who: Identity) -> Sequence[AvailableContext]:
        """Events, membership periods and races that imports of theirs can belong to."""
        if not who.may_read:
            raise no_role()
        return await self._views.contexts(who.where(VIEWER))

    async def with_contexts(
        self, who: Identity, rows: Sequence[SpreadsheetRow]
    ) -> Sequence[SpreadsheetRow]:
        """Imports with the name of their event, period or race, as far as they have one."""
        names = await self.context_names(who, rows)
        return [
            row.model_copy(update={"context_name": names[row.uuid]}) if row.uuid in names else row
            for row in rows
        ]

    async def context_names(
        self, who: Identity, rows: Sequence[SpreadsheetRow]
    ) -> Mapping[str, str]:
        """Name of the event, period or race of imports, by uuid; of those that have one."""
        tables = {
            each.name: each.context.table for each in await self.types() if each.context is not None
        }
        wanted = {
            row.uuid: (tables[row.import_type], row.context_id)
            for row in rows
            if row.context_id is not None and row.import_type in tables
        }
        names = await self._views.context_names(who.where(VIEWER), set(wanted.values()))
        return {uuid: names[each] for uuid, each in wanted.items() if each in names}

    async def columns(self, who: Identity, uuid: str) -> ColumnsView:
        """Column mappings with sample values, and their version."""
        await self.kept(who, uuid)
        return await self._views.columns(uuid)

    async def preview(self, who: Identity, uuid: str) -> Preview | None:
        """The first rows of the file; None while it is still being analysed."""
        await self.kept(who, uuid)
        return await self._views.preview(uuid)

    async def cells(
        self,
        who: Identity,
        uuid: str,
        wanted: ValueFilter = EVERY_VALUE,
        *,
        page: int = 0,
        size: int = 50,
    ) -> CellsView:
        """A page of the distinct values and what they mean, and the version of the mappings."""
        await self.kept(who, uuid)
        return await self._views.cells(uuid, wanted, page=page, size=min(size, LARGEST_PAGE))

    async def cell_counts(self, who: Identity, uuid: str, wanted: ValueFilter) -> Mapping[str, int]:
        """How many values match, by field, in the order in which they were found."""
        await self.kept(who, uuid)
        return await self._views.cell_counts(uuid, wanted)

    async def questions(self, who: Identity, uuid: str) -> Sequence[QuestionGroup]:
        """Open questions about people, by kind: all of a kind can have the same answer."""
        await self.kept(who, uuid)
        return await self._views.questions(uuid)

    async def cells_by_id(
        self, who: Identity, uuid: str, ids: Sequence[int]
    ) -> Sequence[CellMapping]:
        """Some distinct values and what they mean, at most as many as an update decides."""
        await self.kept(who, uuid)
        return await self._choices.values(uuid, ids[:DECISIONS])

    async def candidates(
        self, who: Identity, uuid: str, field: str, query: str = ""
    ) -> Sequence[Entity]:
        """What a value of a field may mean, the likeliest first; at most 50.

        Raises:
            Refused: The field refers to nothing.
        """
        row = await self.kept(who, uuid)
        return await self._choices.find(row, field, query)

    async def results(
        self,
        who: Identity,
        uuid: str,
        *,
        outcome: Outcome | None = None,
        page: int = 0,
        size: int = 50,
    ) -> Page[ResultRow]:
        """Outcome of the rows, by line."""
        await self.kept(who, uuid)
        return await self._views.results(
            uuid, outcome=outcome, page=page, size=min(size, LARGEST_PAGE)
        )

    async def summary(self, who: Identity, uuid: str) -> SummaryView:
        """Rows per outcome, rows that wait, and what was changed in rows that were there."""
        row = await self.kept(who, uuid)
        found = await self._views.summary(uuid)
        if not found.differences:
            return found
        differences = await self._choices.in_words(row, found.differences)
        return found.model_copy(update={"differences": differences})

    async def report(self, who: Identity, uuid: str) -> ReportFile:
        """Fetch the error report: the user's rows that did not go in, with comments.

        Raises:
            NotFound: There is none, as every row went in.
            WrongState: The import has not ended yet.
            ServiceUnavailable: There is no room for it here at the moment.
        """
        row = await self.kept(who, uuid)
        if row.report is None:
            if row.state not in FINAL:
                said = status_label(row.state)
                raise WrongState(f"the report is written at the end; the import {said}")
            raise NotFound("there is no error report: no row was refused")
        path = self.scratch / f"report-{uuids.uuid4().hex}.xlsx"
        try:
            await self._blobs.download(row.report.name, path)
        except BlobNotFound as error:
            raise Gone("the error report has been removed after its retention") from error
        except OSError as error:
            path.unlink(missing_ok=True)
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise ServiceUnavailable("the scratch disk is full; try again later") from error
        stem = row.filename.rsplit(".", 1)[0] or "import"
        return ReportFile(path, f"{stem}-errors.xlsx")

    async def decisions(
        self, who: Identity, uuid: str, *, page: int = 0, size: int = 50
    ) -> Page[DecisionView]:
        """Who decided what, the newest first."""
        await self.get(who, uuid)
        return await self._views.decisions(uuid, page=page, size=min(size, LARGEST_PAGE))

    async def fields(self, who: Identity, uuid: str) -> Sequence[FieldView]:
        """The fields that columns of this import may fill, custom lists included."""
        return await self._choices.fields(await self.kept(who, uuid))

    async def types(self) -> Sequence[SheetType]:
        """The import types, by name."""
        return await self._choices.types()

    async def is_superseded(self, row: SpreadsheetRow) -> bool:
        """Whether an import keeps another version of its type than that in force."""
        return await self._choices.later(row) is not None

    def events(
        self,
        who: Identity,
        uuid: str,
        last_seen: int | None = None,
        stopping: Callable[[], bool] = lambda: False,
    ) -> AsyncGenerator[SpreadsheetRow | None]:
        """The status whenever it changes, until the import has ended.

        Args:
            who: Who asks.
            uuid: The import.
            last_seen: Revision that the asker has; None: begin with the status as it is.
            stopping: Whether the process is about to end.
        """
        return watched(
            lambda: self.get(who, uuid),
            lambda row: row.revision,
            settled,
            last_seen=last_seen,
            stopping=stopping,
            look=lambda: self._views.changed(uuid),
        )

    async def undo_conflicts(
        self, who: Identity, uuid: str, *, page: int = 0, size: int = 50
    ) -> Page[UndoConflict]:
        """Records that an undo left alone, and why."""
        await self.get(who, uuid)
        return await self._views.undo_conflicts(uuid, page=page, size=min(size, LARGEST_PAGE))

    async def writable(self, who: Identity, uuid: str) -> SpreadsheetRow:
        """The import, if its rows and mappings are still kept, for a caller who may change it."""
        await self.kept(who, uuid)
        return await self.changeable(who, uuid)

    async def changeable(self, who: Identity, uuid: str) -> SpreadsheetRow:
        """The import, for a caller who may upload its file as well.

        Raises:
            Forbidden: The caller may not.
        """
        row = await self.get(who, uuid)
        require_role(who, MAPPER, row.organisation_id)
        await self._choices.permit(who, row)
        return row

    async def kept(self, who: Identity, uuid: str) -> SpreadsheetRow:
        """The import, if its rows and mappings are still kept."""
        row = await self.get(who, uuid)
        if row.purged_at is not None:
            raise Gone("this import has been removed after its retention; only its trail is kept")
        return row


def settled(row: SpreadsheetRow) -> bool:
    """Whether nothing more will happen to an import by itself."""
    return row.state in FINAL and row.undo_state is not UndoState.RUNNING


_SHOWN: Final = 200
"""Characters of a cell."""


class ResultRows:
    """Reads some rows of an import.

    Args:
        store: Tables, rows of reviews.
        views: Tables, columns.
        blobs: Where staged rows are.
        choices: Titles of fields.
    """

    def __init__(
        self,
        store: SqlSpreadsheetStore,
        views: SqlSpreadsheetViews,
        blobs: Blobs,
        choices: Choices,
    ) -> None:
        self._reviews, self._views, self._blobs = store.reviews, views, blobs
        self._choices = choices

    async def with_cells(
        self, row: SpreadsheetRow, results: Sequence[ResultRow]
    ) -> Sequence[ResultRow]:
        """Results with their names and cells; as they are if the rows are no longer kept."""
        if not results:
            return results
        wanted = frozenset(each.line for each in results)
        is_reviewed = await self._reviews.state(row.uuid) is not None
        found = await (self._reviewed if is_reviewed else self._staged)(row, wanted)
        if not found:
            return results
        operations = await self._reviews.operations(row.uuid) if is_reviewed else ()
        titles = {each.name: each.title for each in await self._choices.fields(row)}
        columns = (await self._views.columns(row.uuid)).mappings
        edits = Edits(columns, operations, titles)
        shown = {
            each.line: _shown(
                each._replace(cells=edits.cells(each.line, each.cells)), edits, titles
            )
            for each in found
        }
        return [each.model_copy(update=shown.get(each.line, {})) for each in results]

    async def _reviewed(self, row: SpreadsheetRow, wanted: Collection[int]) -> Sequence[SourceRow]:
        blocks = await self._reviews.blocks_with(row.uuid, sorted(wanted))
        return [each for block in blocks for each in rows_of(block) if each.line in wanted]

    async def _staged(self, row: SpreadsheetRow, wanted: Collection[int]) -> Sequence[SourceRow]:
        """Stream the staged rows up to the last that is wanted; memory stays bounded."""
        found: list[SourceRow] = []
        first, last = min(wanted), max(wanted)
        rest = b""
        try:
            async with aclosing(self._blobs.read(staged_name(row.uuid, row.layout))) as pieces:
                async for piece in pieces:
                    end = piece.rfind(b"\n") + 1
                    if not end:
                        rest += piece
                        continue
                    block, rest = rest + piece[:end], piece[end:]
                    reached = _last_line(block)
                    if reached < first:
                        continue
                    found += await asyncio.to_thread(_picked, block, wanted)
                    if reached >= last:
                        break
        except BlobNotFound:
            return ()
        return found


def _picked(block: bytes, wanted: Collection[int]) -> Sequence[SourceRow]:
    return [row for row in rows_of(block) if row.line in wanted]


def _last_line(block: bytes) -> int:
    begins = block.rfind(b"\n", 0, len(block) - 1) + 1
    return next(iter(rows_of(block[begins:]))).line


def _shown(row: SourceRow, edits: Edits, titles: Mapping[str, str]) -> dict[str, Any]:
    """Name and cells of a row as it was imported, corrections of the review included."""
    cells: dict[str, ResultCell] = {}
    for column in edits.columns:
        if column.target is None or column.status is MappingStatus.IGNORED:
            continue
        cell = row.cells[column.index] if column.index < len(row.cells) else None
        if text := readable(cell, _SHOWN):
            title = titles.get(column.target, column.header)
            cells[column.target] = ResultCell(
                column=column.header, field=column.target, title=title, value=text
            )
    named = [cells[each].value for each in (FIRST_NAME, LAST_NAME) if each in cells]
    if not named:
        rest = [cells[EMAIL]] if EMAIL in cells else list(cells.values())
        named = [each.value for each in rest[:1]]
    return {"name": " ".join(named), "cells": list(cells.values())}
