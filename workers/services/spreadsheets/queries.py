"""What can be read of spreadsheet imports."""

import errno
import uuid as uuids
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from adapters.database.spreadsheets.views import (
    EVERY_VALUE,
    AvailableContext,
    CellsView,
    ColumnsView,
    Page,
    QuestionGroup,
    ResultRow,
    SpreadsheetRow,
    SqlSpreadsheetViews,
    SummaryView,
    UndoConflict,
    ValueFilter,
)
from adapters.ports import BlobNotFound, Blobs
from contracts.spreadsheets import (
    DECISIONS,
    FINAL,
    CellMapping,
    DecisionRecord,
    Outcome,
    UndoState,
)
from domain.spreadsheets.records import Entity, Preview
from domain.spreadsheets.standing import standing
from domain.spreadsheets.types.base import SheetType
from workers.services.errors import (
    Forbidden,
    Gone,
    NotFound,
    ServiceUnavailable,
    WrongState,
    no_role,
)
from workers.services.identity import Identity
from workers.services.progress_stream import watched
from workers.services.spreadsheets.choices import Choices, FieldView
from workers.services.spreadsheets.statuses import LARGEST_PAGE, SpreadsheetStatuses


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
        return await self._views.contexts(who.organisations)

    async def context_names(
        self, who: Identity, rows: Sequence[SpreadsheetRow]
    ) -> Mapping[str, str]:
        """Name of the event, period or race of imports, by uuid; of those that have one."""
        tables = {
            each.name: each.context.table for each in self.types() if each.context is not None
        }
        wanted = {
            row.uuid: (tables[row.import_type], row.context_id)
            for row in rows
            if row.context_id is not None and row.import_type in tables
        }
        names = await self._views.context_names(who.organisations, set(wanted.values()))
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
        return replace(found, differences=await self._choices.in_words(row, found.differences))

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
                said = standing(row.state)
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
    ) -> Page[DecisionRecord]:
        """Who decided what, the newest first."""
        await self.get(who, uuid)
        return await self._views.decisions(uuid, page=page, size=min(size, LARGEST_PAGE))

    async def fields(self, who: Identity, uuid: str) -> Sequence[FieldView]:
        """The fields that columns of this import may fill, custom lists included."""
        return await self._choices.fields(await self.kept(who, uuid))

    def types(self) -> Sequence[SheetType]:
        """The import types, by name."""
        return self._choices.types()

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
        """The import, for a caller who may change it."""
        row = await self.kept(who, uuid)
        if not who.may_write:
            raise Forbidden("your roles allow reading only; ask for the role importer")
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
