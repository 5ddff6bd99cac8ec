"""Everything that people do in the review of an import."""

import asyncio
import uuid as uuids
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from adapters.database.spreadsheets.records import Page
from adapters.database.spreadsheets.store import SqlSpreadsheetStore
from adapters.database.spreadsheets.views import SpreadsheetRow, SqlSpreadsheetViews
from contracts.spreadsheets import ColumnMapping, Confirmation, MappingsAnswer
from contracts.spreadsheets.reviews import (
    REVIEW,
    Operation,
    SetCells,
)
from domain.spreadsheets.missing import missing_fields
from domain.spreadsheets.remarks import remarks_on
from domain.spreadsheets.review import (
    PROBLEMS,
    RememberedEdit,
    ReviewedRow,
    ReviewState,
    StoredOperation,
)
from workers.services.errors import Conflict, Refused
from workers.services.identity import Identity
from workers.services.spreadsheets.choices import Choices
from workers.services.spreadsheets.queries import ReportFile, SpreadsheetQueries
from workers.services.spreadsheets.review_changes import (
    NAMED,
    ChangeOutcome,
    ReviewChanges,
    has_stopped,
)
from workers.services.spreadsheets.review_files import write_export
from workers.services.spreadsheets.review_rows import ReviewRows, RowFilter
from workers.services.spreadsheets.review_uploads import Corrections, corrections_of
from workers.services.spreadsheets.runs import SpreadsheetRuns
from workers.services.spreadsheets.statuses import LARGEST_PAGE
from workers.services.spreadsheets.upload_form import Upload, problems_of


@dataclass(frozen=True, slots=True)
class ReviewColumn:
    """A column of a review.

    Attributes:
        column: The column.
        title: What people call its field; None: it fills none.
        problems: Cells that something is wrong with.
        made: An operation has made it.
    """

    column: ColumnMapping
    title: str | None
    problems: int
    made: bool


@dataclass(frozen=True, slots=True)
class ReviewOverview:
    """A review as a whole.

    Attributes:
        state: Its figures, and whether corrections are accepted.
        columns: By place.
        row_problems: Problems of rows as a whole.
        missing: Required fields without a column.
        dry_run: Nothing is written unless it is asked for.
        check_failure: Why all rows could not be checked, or why the import has stopped at it; None:
            they are checked, or are being checked.
    """

    state: ReviewState
    columns: Sequence[ReviewColumn]
    row_problems: int
    missing: Sequence[str]
    dry_run: bool
    check_failure: str | None

    @property
    def is_cut(self) -> bool:
        """Whether rows further down may have problems that are not stored."""
        return self.row_problems + sum(each.problems for each in self.columns) >= PROBLEMS


class SpreadsheetReviewService:
    """Reviews of imports; a refusal is a `ServiceError`.

    Each method is given who asks, as those of `SpreadsheetService` are.
    """

    def __init__(
        self,
        queries: SpreadsheetQueries,
        store: SqlSpreadsheetStore,
        views: SqlSpreadsheetViews,
        runs: SpreadsheetRuns,
        choices: Choices,
        scratch: Path,
    ) -> None:
        self._queries, self._views, self._runs = queries, views, runs
        self._reviews, self._choices, self._scratch = store.reviews, choices, scratch
        self._rows = ReviewRows(store.reviews, views.reviews)
        self._changes = ReviewChanges(queries, store.reviews, views, runs, choices)
        self.explained = self._changes.explained

    async def overview(self, who: Identity, uuid: str) -> ReviewOverview:
        """Figures and columns.

        Raises:
            WrongState: The import has no review, or has not come to it.
        """
        row = await self._queries.kept(who, uuid)
        state = await self._changes.state(row)
        edits = await self._changes.edits(row)
        fields = await self._choices.fields(row)
        titles = {each.name: each.title for each in fields}
        counts = await self._views.reviews.problem_counts(uuid)
        made = {id for ids in edits.made.values() for id in ids}
        return ReviewOverview(
            state,
            [
                ReviewColumn(
                    each,
                    titles.get(each.target) if each.target else None,
                    counts.get(each.id, 0),
                    each.id in made,
                )
                for each in edits.columns
            ],
            counts.get(0, 0),
            list(missing_fields(edits.columns, fields)),
            row.dry_run,
            row.reason if has_stopped(row) else state.check_failure,
        )

    async def check_has_failed(self, row: SpreadsheetRow) -> bool:
        """Whether all rows of a review could not be checked, and nothing checks them now."""
        if row.step != REVIEW or has_stopped(row):
            return False
        state = await self._reviews.state(row.uuid)
        return state is not None and state.check_failure is not None

    async def rows(
        self,
        who: Identity,
        uuid: str,
        *,
        wanted: RowFilter = RowFilter.ALL,
        column: int | None = None,
        page: int = 0,
        size: int = 50,
    ) -> tuple[ReviewState, Sequence[ColumnMapping], Page[ReviewedRow]]:
        """The columns and a page of rows, those with problems first.

        Raises:
            WrongState: The import has no review, or has not come to it.
        """
        row = await self._queries.kept(who, uuid)
        state = await self._changes.state(row)
        edits = await self._changes.edits(row)
        found = await self._rows.page(
            uuid, edits, state.counts, wanted, column, page, min(size, LARGEST_PAGE)
        )
        declared = {each.name: each for each in await self._choices.declared(row)}
        fields = {
            each.id: declared[each.target] for each in edits.columns if each.target in declared
        }
        rows = [replace(each, remarks=remarks_on(fields, each.cells)) for each in found.items]
        return state, edits.columns, replace(found, items=rows)

    async def corrections(
        self, row: SpreadsheetRow, lines: Sequence[int]
    ) -> tuple[dict[int, str], dict[int, ReviewedRow]]:
        """Header of each column, and the rows among these that a review has changed."""
        if not lines or await self._reviews.state(row.uuid) is None:
            return {}, {}
        edits = await self._changes.edits(row)
        if not edits:
            return {}, {}
        found = await self._rows.some(row.uuid, edits, lines)
        changed = {line: each for line, each in found.items() if each.corrections}
        return {column.id: column.header for column in edits.columns}, changed

    async def operations(
        self, who: Identity, uuid: str, *, page: int = 0, size: int = 50
    ) -> tuple[dict[int, str], Page[StoredOperation]]:
        """Header of each column, and the operations, the newest first."""
        row = await self._queries.kept(who, uuid)
        await self._changes.state(row)
        edits = await self._changes.edits(row)
        found = await self._views.reviews.operations(uuid, page=page, size=min(size, LARGEST_PAGE))
        return {column.id: column.header for column in edits.columns}, found

    async def remembered(self, who: Identity, uuid: str) -> Sequence[RememberedEdit]:
        """What was done to columns of these headers in earlier imports, to be done again."""
        row = await self._queries.kept(who, uuid)
        await self._changes.state(row)
        columns = (await self._views.columns(uuid)).columns
        headers = [(each.id, each.header) for each in columns]
        found = await self._reviews.remembered(row.organisation_id, row.import_type, headers)
        done = [each.operation for each in await self._reviews.operations(uuid)]
        return [each for each in found if each.operation.operation not in done]

    async def preview(self, who: Identity, uuid: str, operation: Operation) -> ChangeOutcome:
        """Find out what an operation would change; nothing is changed.

        Raises:
            WrongState: The rows are not being reviewed.
            Refused: It cannot be applied.
        """
        return await self._changes.send(who, uuid, operation, None, preview=True)

    async def change(
        self,
        who: Identity,
        uuid: str,
        operation: Operation,
        expected_version: int | None = None,
        *,
        key: str | None = None,
    ) -> ChangeOutcome:
        """Apply an operation to the rows.

        Args:
            who: Who requests it.
            uuid: The import.
            operation: What is to be changed.
            expected_version: Of the rows that it is based on.
            key: Idempotency key: a second request with it is answered as the first one, and changes
                nothing more.

        Raises:
            Conflict: Another person has changed them since; the message says who and what.
            WrongState: The rows are not being reviewed.
            Refused: It cannot be applied.
        """
        return await self._changes.send(who, uuid, operation, expected_version, key=key)

    async def import_now(
        self, who: Identity, uuid: str, expected_version: int | None = None
    ) -> MappingsAnswer:
        """Confirm the rows and write them, those of a dry run too.

        Raises:
            Conflict: Another person has changed them since; the message says who and what.
            WrongState: The rows are not being reviewed.
            Refused: A required field has no column.
        """
        row = await self._queries.writable(who, uuid)
        answer = Confirmation(by=who.subject, expected_version=expected_version, import_now=True)
        try:
            return await self._runs.update(row, "confirm_cell_mappings", answer)
        except Conflict as conflict:
            raise await self._changes.explained(row, conflict, expected_version) from conflict

    async def export(self, who: Identity, uuid: str, wanted: RowFilter) -> ReportFile:
        """The rows as a spreadsheet with their numbers, to be corrected and sent back.

        Raises:
            WrongState: The import has no review, or has not come to it.
        """
        row = await self._queries.kept(who, uuid)
        version = (await self._changes.state(row)).version
        edits = await self._changes.edits(row, version)
        path = self._scratch / f"review-{uuids.uuid4().hex}.xlsx"
        await write_export(
            path, self._reviews, self._views.reviews, self._rows, uuid, version, edits, wanted
        )
        stem = row.filename.rsplit(".", 1)[0] or "import"
        return ReportFile(path, f"{stem}-review.xlsx")

    async def upload(
        self, who: Identity, uuid: str, upload: Upload, expected_version: int | None = None
    ) -> ChangeOutcome | None:
        """Take a corrected export in: cells that were corrected in it are set; None: none was.

        An export of an earlier version sets what was corrected in it, and nothing else.

        Raises:
            Conflict: Another person has changed the rows since `expected_version`, or the same
                cells since the export; the message says who and what.
            WrongState: The rows are not being reviewed.
            Refused: It is not an export of this import, or too much differs.
        """
        row = await self._queries.writable(who, uuid)
        version = (await self._changes.state(row)).version
        edits = await self._changes.edits(row, version)
        path = self._scratch / f"corrected-{uuids.uuid4().hex}"
        try:
            await upload.open()
            with path.open("wb") as file:
                async for piece in upload.file():
                    file.write(piece)
            await upload.finish()
            found = await corrections_of(
                path,
                upload.filename,
                self._reviews,
                uuid,
                edits,
                version,
                lambda version: self._changes.edits(row, version),
            )
        finally:
            await asyncio.to_thread(path.unlink, missing_ok=True)
        if found.conflicts:
            raise _in_conflict(found, version)
        if not found.cells:
            return None
        try:
            operation = SetCells(cells=tuple(found.cells))
        except ValidationError as error:
            raise Refused(problems_of(error)) from None
        # What was compared is what has to be there still when the cells are set.
        expected = version if expected_version is None else expected_version
        return await self._changes.send(who, uuid, operation, expected)


def _in_conflict(found: Corrections, version: int) -> Conflict:
    more = len(found.conflicts) - NAMED
    others = f" (and {more} more)" if more > 0 else ""
    return Conflict(
        f"cells of the file were changed here, too, since it was exported at version "
        f"{found.version}: {'; '.join(found.conflicts[:NAMED])}{others}; nothing of the file was "
        "taken: export the rows again, or give these cells their new values in the file",
        version,
    )


__all__ = ["ChangeOutcome", "ReviewColumn", "ReviewOverview", "SpreadsheetReviewService"]
