"""Everything that people do with spreadsheet imports, whatever page or program they do it through.

Everything that people do with spreadsheet imports, whatever page or program they do it through.

Nothing is kept between calls: what an import is like stands in the database, and what people
decide goes to its run as an update. Any number of gateways behind a balancer behave as one.
"""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeVar

from temporalio.client import Client

from activities.spreadsheets.records import (
    AvailableContext,
    Page,
    ResultRow,
    SpreadsheetRow,
    UndoPreview,
)
from activities.spreadsheets.sheet_types import SheetTypes
from activities.spreadsheets.store import SqlSpreadsheetStore
from activities.spreadsheets.views import SqlSpreadsheetViews
from adapters.ports.blobs import Blobs
from workers.shared.services.errors import Conflict, Forbidden, Refused, WrongState
from workers.shared.services.identity import Identity
from workers.shared.services.quotas import Quotas
from workers.spreadsheets.memory import SpreadsheetMemory, SpreadsheetValueFiles
from workers.spreadsheets.queries import Choices, ResultRows, SpreadsheetQueries
from workers.spreadsheets.reviews import SpreadsheetReviewService
from workers.spreadsheets.runs import SpreadsheetRuns
from workers.spreadsheets.settings import EXPORTS_READ_AT_ONCE, SpreadsheetSettings
from workers.spreadsheets.upload_form import (
    Naming,
    NewContext,
    Upload,
    UploadFields,
    refused_if_invalid,
)
from workers.spreadsheets.uploads import SpreadsheetUploads, Uploaded
from workflows.shared.contracts import Contract
from workflows.shared.errors import RuleViolation
from workflows.spreadsheets.edits import Edits
from workflows.spreadsheets.fields import Entity, SkippedRow
from workflows.spreadsheets.mappings import (
    FINAL,
    CellDecision,
    CellDecisions,
    CellRule,
    ColumnDecision,
    ColumnDecisions,
    Layout,
    LayoutChange,
    MappingsAnswer,
    Outcome,
    SpreadsheetState,
    UndoState,
)
from workflows.spreadsheets.reviews import CheckAgain, Exclude, RowDecisions, active_operations
from workflows.spreadsheets.runs import (
    Answer,
    Confirmation,
    Reassignment,
    UndoInput,
    status_label,
)

Order = TypeVar("Order", bound=Contract)
_PEOPLE: Final = 50


class SpreadsheetService(SpreadsheetQueries):
    """Every operation on spreadsheet imports; a refusal is a `ServiceError`.

    Each method is given who asks. An import of an organisation that is not theirs does not exist
    for them (`NotFound`). What a person decides may be answered with `TemporalUnavailable`, too.
    """

    def __init__(
        self,
        client: Client,
        views: SqlSpreadsheetViews,
        store: SqlSpreadsheetStore,
        blobs: Blobs,
        types: SheetTypes,
        settings: SpreadsheetSettings,
        scratch: Path,
        quotas: Quotas,
    ) -> None:
        super().__init__(views, blobs, Choices(store, types), scratch)
        self.settings = settings
        self._store = store
        self.memory = SpreadsheetMemory(store, types)
        """What was learnt of people's decisions."""
        self._runs = SpreadsheetRuns(client)
        reading = asyncio.Semaphore(EXPORTS_READ_AT_ONCE)
        self.review = SpreadsheetReviewService(
            self, store, views, self._runs, self._choices, scratch, reading
        )
        """Reviews of rows before they are written."""
        self.result_rows = ResultRows(store, views, blobs, self._choices)
        """The rows behind outcomes."""
        self.value_files = SpreadsheetValueFiles(self, store, types, scratch, reading)
        """Values out as a spreadsheet, and their meanings back in."""
        self._uploads = SpreadsheetUploads(self._runs, views, store, blobs, types, settings, quotas)

    async def create(
        self,
        who: Identity,
        upload: Upload,
        *,
        key: str | None = None,
        naming: Naming = Naming.CAMEL,
    ) -> Uploaded:
        """Stream an uploaded file into the blob store and start its import.

        Answers with COLUMN_MAPPING where the columns are known in half a second, else UPLOADED.

        Args:
            who: Who uploads.
            upload: The form as it arrives.
            key: Idempotency key: a second request with it is answered with the first one's import,
                unless the run of that one was terminated.
            naming: How the form calls its fields.

        Raises:
            Forbidden: The roles do not allow it.
            TooManyRequests: The person uploads too often.
            TooLarge: More bytes than an upload may have.
            UnsupportedFile: The content is not a spreadsheet.
            Refused: A field is missing or wrong, or the key belongs to another upload.
            TemporalUnavailable: Temporal does not take the start.
        """
        if not who.may_write:
            raise Forbidden("your roles allow reading only; ask for the role mapper")
        return await self._uploads.create(who, upload, key, naming)

    async def check_upload(self, who: Identity, fields: UploadFields) -> int:
        """See that somebody may make an upload; the organisation that it would belong to.

        Raises:
            Forbidden: The roles do not allow it.
            Refused: A field is missing or wrong.
        """
        return (await self._uploads.check(who, fields, Naming.SNAKE))[0]

    async def people(self, organisation: int, text: str) -> Sequence[Entity]:
        """People of an organisation, by parts of their name or mail address; at most 50."""
        return await self._store.search_people(organisation, text, _PEOPLE)

    async def make_context(self, who: Identity, wanted: NewContext) -> AvailableContext:
        """Make what imports can belong to, unless it is there.

        Raises:
            Forbidden: The roles do not allow it.
            Refused: The organisation or the event is not theirs.
        """
        organisation = self._uploads.organisation(who, wanted.organisation_id)
        try:
            id = await self._store.make_context(wanted.table, organisation, wanted.values)
        except RuleViolation as error:
            raise Refused(str(error)) from error
        return AvailableContext(
            table=wanted.table, id=id, name=wanted.name, organisation_id=organisation
        )

    async def result_page(
        self, who: Identity, uuid: str, outcome: Outcome | None, page: int, size: int
    ) -> Page[ResultRow]:
        """Outcome of the rows by line, with their cells as far as they are kept."""
        found = await self.results(who, uuid, outcome=outcome, page=page, size=size)
        row = await self.get(who, uuid)
        items = await self.result_rows.with_cells(row, found.items)
        return replace(found, items=await self.review.with_corrections(row, items))

    async def update_columns(
        self,
        who: Identity,
        uuid: str,
        decisions: Sequence[ColumnDecision],
        expected_version: int | None = None,
    ) -> MappingsAnswer:
        """Take decisions about columns, all or none; what is open afterwards is in the answer.

        Raises:
            Conflict: The mappings are not at the expected version any more.
            WrongState: Columns are not being mapped.
            Refused: A decision cannot be applied; none was saved.
        """
        row = await self.writable(who, uuid)
        await self._choices.refuse_later_fields(row, decisions)
        order = ColumnDecisions(
            by=who.subject, expected_version=expected_version, decisions=tuple(decisions)
        )
        return await self._answer(row, "update_column_mappings", order)

    async def confirm_columns(
        self,
        who: Identity,
        uuid: str,
        expected_version: int | None = None,
        *,
        incomplete: bool = False,
    ) -> MappingsAnswer:
        """Confirm all column mappings; values are collected next.

        With `incomplete` the columns of required fields are made in the review.

        Raises:
            StillOpen: Required fields have no column; nothing has changed.
            Conflict: The mappings are not at the expected version any more.
            WrongState: Columns are not being mapped.
            Refused: There is no row below the headers.
        """
        row = await self._with_rows(await self.writable(who, uuid))
        order = Confirmation(
            by=who.subject, expected_version=expected_version, incomplete=incomplete
        )
        return await self._answer(row, "confirm_column_mappings", order)

    async def change_layout(
        self, who: Identity, uuid: str, layout: Layout, expected_version: int | None = None
    ) -> MappingsAnswer:
        """Read the file in another way: sheet, header line, encoding, delimiter.

        Raises:
            Conflict: The mappings are not at the expected version any more.
            WrongState: Columns are not being mapped.
            Refused: The file cannot be read in that way.
        """
        row = await self.writable(who, uuid)
        order = LayoutChange(by=who.subject, expected_version=expected_version, layout=layout)
        return await self._answer(row, "change_layout", order)

    async def decide_rows(
        self,
        who: Identity,
        uuid: str,
        rows: Sequence[int],
        expected_version: int | None = None,
        *,
        keep: bool,
    ) -> MappingsAnswer:
        """Keep rows that look like no people, or leave rows out.

        Raises:
            Conflict: The mappings are not at the expected version any more.
            WrongState: Columns are not being mapped.
        """
        row = await self.writable(who, uuid)
        order = RowDecisions(
            by=who.subject, expected_version=expected_version, rows=tuple(rows), keep=keep
        )
        return await self._answer(row, "decide_rows", order)

    async def skipped_rows(self, who: Identity, uuid: str) -> Sequence[SkippedRow]:
        """Rows that are no people, or may be none, as people have decided about them."""
        preview = await self.preview(who, uuid)
        operations = await self._store.reviews.operations(uuid)
        excluding = [
            each for each in active_operations(operations) if isinstance(each.operation, Exclude)
        ]
        excluded = Edits((), excluding).excluded
        return [
            row._replace(is_skipped=row.line in excluded)
            for row in (preview.skipped if preview else ())
            if row.cells
        ]

    async def update_cells(
        self,
        who: Identity,
        uuid: str,
        decisions: Sequence[CellDecision],
        expected_version: int | None = None,
        *,
        rules: Sequence[CellRule] = (),
    ) -> MappingsAnswer:
        """Take decisions and rules about values, all or none; what is open afterwards is answered.

        Raises:
            Conflict: The mappings are not at the expected version any more.
            WrongState: Values are not being mapped.
            Forbidden: The caller may not create a row that a decision asks for.
            Refused: A decision cannot be applied; none was saved.
        """
        row = await self.writable(who, uuid)
        await self._choices.permit_creating(who, row, decisions, rules)
        order = CellDecisions(
            by=who.subject,
            expected_version=expected_version,
            decisions=tuple(decisions),
            rules=tuple(rules),
        )
        return await self._answer(row, "update_cell_mappings", order)

    async def confirm_cells(
        self, who: Identity, uuid: str, expected_version: int | None = None
    ) -> MappingsAnswer:
        """Confirm all value mappings; rows are processed next.

        Raises:
            StillOpen: Values have no meaning yet; nothing has changed.
            Conflict: The mappings are not at the expected version any more.
            WrongState: Values are not being mapped.
        """
        row = await self.writable(who, uuid)
        order = Confirmation(by=who.subject, expected_version=expected_version)
        return await self._answer(row, "confirm_cell_mappings", order)

    async def start(
        self, who: Identity, uuid: str, expected_version: int | None = None
    ) -> MappingsAnswer:
        """Confirm whatever matched by itself and process the rows.

        Raises:
            StillOpen: Something required has no mapping; nothing has changed.
            Conflict: The mappings are not at the expected version any more.
            WrongState: Nothing is being mapped.
            Refused: There is no row below the headers.
        """
        row = await self._with_rows(await self.writable(who, uuid))
        order = Confirmation(by=who.subject, expected_version=expected_version)
        return await self._answer(row, "start", order)

    async def cancel(self, who: Identity, uuid: str, reason: str | None = None) -> MappingsAnswer:
        """End an import; rows that are in stay in, and can be undone.

        Raises:
            Refused: The reason is too long.
            WrongState: It has ended already.
        """
        row = await self.writable(who, uuid)
        order = _order(Answer, by=who.subject, reason=reason)
        return await self._answer(row, "cancel", order)

    async def reassign(
        self,
        who: Identity,
        uuid: str,
        to: str,
        notify: str | None = None,
        expected_version: int | None = None,
    ) -> MappingsAnswer:
        """Assign an import to another person.

        Raises:
            Conflict: The mappings are not at the expected version any more.
            Forbidden: The caller has an upload token: mail would go wherever they like.
            Refused: Person or address is empty or too long.
            WrongState: It has ended already.
        """
        if who.upload is not None:
            raise Forbidden("an upload token cannot assign an import to another person")
        row = await self.writable(who, uuid)
        if expected_version not in (None, row.version):
            raise Conflict(f"the mappings are at version {row.version}", row.version)
        order = _order(Reassignment, to=to, notify=notify, by=who.subject)
        return await self._answer(row, "reassign", order)

    async def retry(self, who: Identity, uuid: str, reason: str | None = None) -> None:
        """Try the step again that an import is parked at, or its undo.

        In a review, all rows are checked again.

        Raises:
            NotFound: Its undo has ended meanwhile.
            WrongState: Nothing has failed.
            Refused: Its undo is not parked, or the reason is too long.
        """
        row, answer = await self.get(who, uuid), _order(Answer, by=who.subject, reason=reason)
        if row.undo_state is UndoState.RUNNING:
            await self.changeable(who, uuid)
            await self._runs.retry_undo(uuid, answer)
            return
        row = await self.writable(who, uuid)
        if await self.review.check_has_failed(row):
            await self._answer(row, "check_review", CheckAgain(by=who.subject))
        else:
            await self._answer(row, "retry", answer)

    async def undo(self, who: Identity, uuid: str, lines: Collection[int] = ()) -> None:
        """Begin to take the rows of an import back; see `undo_view` for how far it is.

        Args:
            who: The caller.
            uuid: The import.
            lines: Rows of the file that are taken back; none: all of them.

        Raises:
            Refused: A line is none, or there are too many.
            WrongState: It has not ended, was a dry run, is too old or undone already.
        """
        row = await self.changeable(who, uuid)
        now = datetime.now(UTC)
        within = self.settings.patience.undo_within
        _refuse_undo(row, now, within)
        order = _order(
            UndoInput,
            uuid=uuid,
            organisation_id=row.organisation_id,
            by=who.subject,
            filename=row.filename,
            requested_at=now,
            within=within,
            notices=True,
            lines=tuple(sorted(set(lines))),
        )
        # Noted before it begins: what is needed for it is kept from here on.
        refusal = await self._store.begin_undo(order)
        if refusal is not None:
            raise WrongState(refusal)
        await self._runs.undo(order)

    async def preview_undo(
        self, who: Identity, uuid: str, lines: Collection[int] = ()
    ) -> UndoPreview:
        """What an undo would do now, and the first rows that it would leave alone and why.

        Args:
            who: The caller.
            uuid: The import.
            lines: Rows of the file that would be taken back; none: all of them.

        Raises:
            WrongState: It has not ended, was a dry run, is too old or undone already; or its rows
                are not in docflow's own tables.
        """
        row = await self.changeable(who, uuid)
        _refuse_undo(row, datetime.now(UTC), self.settings.patience.undo_within)
        try:
            return await self._store.preview_undo(uuid, lines)
        except RuleViolation as error:
            raise WrongState(str(error)) from error

    async def _with_rows(self, row: SpreadsheetRow) -> SpreadsheetRow:
        mapping = row.state is SpreadsheetState.COLUMN_MAPPING
        if mapping and (await self._views.columns(row.uuid)).are_empty:
            raise Refused(
                "the sheet holds headers and no rows below them; read another sheet, or upload a"
                " file with rows"
            )
        return row

    async def _answer(self, row: SpreadsheetRow, name: str, order: Contract) -> MappingsAnswer:
        try:
            return await self._runs.update(row, name, order)
        except Conflict as conflict:
            now = await self._views.get(row.uuid, (row.organisation_id,))
            expected = getattr(order, "expected_version", None)
            known = Conflict(str(conflict), now.version if now else None)
            raise await self.review.explained(row, known, expected) from conflict


def _order(kind: type[Order], **fields: object) -> Order:
    """What a run is sent; what its contract does not allow is refused here."""
    with refused_if_invalid():
        return kind.model_validate(fields)


def _refuse_undo(row: SpreadsheetRow, now: datetime, within: int) -> None:
    if row.state not in FINAL or row.finished_at is None:
        said = status_label(row.state)
        raise WrongState(f"only an import that has ended can be undone; it {said}")
    if row.dry_run:
        raise WrongState("a dry run has written nothing that could be undone")
    if row.undo_state is UndoState.UNDONE:
        raise WrongState("the import is undone already")
    if (now - row.finished_at).total_seconds() > within:
        raise WrongState(f"an import can be undone for {within // 86_400} days after its end")
