"""Everything that people do in the review of an import."""

import asyncio
import uuid as uuids
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from activities.spreadsheets.records import Page, ResultRow, RowCorrection, SpreadsheetRow
from activities.spreadsheets.review_rules import (
    ChangeEffect,
    RememberedOperation,
    ReviewCell,
    ReviewColumn,
    ReviewedRow,
    ReviewOperationView,
    ReviewOverview,
    ReviewRow,
    ReviewState,
    StoredOperation,
)
from activities.spreadsheets.review_store import SqlReviewStore
from activities.spreadsheets.store import SqlSpreadsheetStore
from activities.spreadsheets.views import SqlSpreadsheetViews
from workers.shared.services.errors import Conflict, Refused, TemporalUnavailable, WrongState
from workers.shared.services.identity import Identity
from workers.spreadsheets.queries import Choices, ReportFile, SpreadsheetQueries
from workers.spreadsheets.review_files import (
    Corrections,
    ReviewRows,
    RowFilter,
    corrections_of,
    write_export,
)
from workers.spreadsheets.runs import SpreadsheetRuns
from workers.spreadsheets.statuses import LARGEST_PAGE
from workers.spreadsheets.upload_form import Upload, refused_if_invalid
from workflows.shared.cells import readable
from workflows.spreadsheets.decisions import missing_fields
from workflows.spreadsheets.edits import Edits
from workflows.spreadsheets.mappings import FINAL, MappingsAnswer, ReviewCounts
from workflows.spreadsheets.names import remarks_on
from workflows.spreadsheets.reviews import (
    REVIEW,
    Operation,
    ReviewChange,
    ReviewChanged,
    ReviewOperation,
    SetCells,
    described,
    undone_versions,
)
from workflows.spreadsheets.runs import Confirmation, status_label

NAMED: Final = 3
"""Changes of others that a refusal names."""
_SHOWN: Final = 200
"""Characters of a corrected cell."""
_CELL: Final = 500
"""Characters of a cell."""


class ReviewChanges:
    """Sends changes to the runs of imports, and reads what reviews are made of."""

    def __init__(
        self,
        queries: SpreadsheetQueries,
        reviews: SqlReviewStore,
        views: SqlSpreadsheetViews,
        runs: SpreadsheetRuns,
        choices: Choices,
    ) -> None:
        self._queries, self._reviews, self._views = queries, reviews, views
        self._runs, self._choices = runs, choices

    async def send(
        self,
        who: Identity,
        uuid: str,
        operation: Operation,
        expected_version: int | None,
        *,
        preview: bool = False,
        key: str | None = None,
    ) -> ChangeEffect:
        """Have the run apply an operation, or find out what it would change.

        Raises:
            Conflict: Another person has changed the rows since; the message says who and what.
            WrongState: The rows are not being reviewed.
            Refused: It cannot be applied, or the key stands for another change.
            TemporalUnavailable: Whether it is applied is not known.
        """
        row = await self._queries.writable(who, uuid)
        state = await self.state(row)
        proposed = ReviewOperation(
            id=0, version=0, operation=operation, by=who.subject, at=datetime.now(UTC)
        )
        if key is None:
            self._refuse_closed(row, state)
        id = await self._reviews.propose(uuid, proposed, key)
        if id is None:
            raise Refused("this Idempotency-Key was used for another change; take a new one")
        if key is not None and (known := await self._applied(uuid, id)) is not None:
            return _effect(known.operation.version, state.counts, known)
        change = ReviewChange(
            by=who.subject, expected_version=expected_version, operation=id, preview=preview
        )
        try:
            self._refuse_closed(row, state)
            changed = await self._runs.update(row, "change_review", change, ReviewChanged)
            stored = await self._reviews.operation(uuid, id)
        except (Conflict, Refused, WrongState) as error:
            # The first request of this key may have reached the run meanwhile.
            if (known := await self._applied(uuid, id)) is not None:
                return _effect(known.operation.version, state.counts, known)
            await self._reviews.forget(id)
            if isinstance(error, Conflict):
                raise await self.explained(row, error, expected_version) from error
            raise
        except TemporalUnavailable as error:
            if preview:
                await self._reviews.forget(id)
                raise
            if key is None:
                more = "look at the list of changes before you request it again"
            else:
                more = "request it again as it was: it is made once"
            raise TemporalUnavailable(
                f"{error}; whether the change was made is not known yet: {more}"
            ) from error
        if preview:
            await self._reviews.forget(id)
        assert stored is not None
        return _effect(changed.version, changed.counts, stored)

    async def _applied(self, uuid: str, id: int) -> StoredOperation | None:
        """An operation that counts; None: it was not applied.

        Raises:
            Refused: It was taken back since.
        """
        stored = await self._reviews.operation(uuid, id)
        if stored is None or not stored.operation.version:
            return None
        version = stored.operation.version
        if version in undone_versions(await self._reviews.operations(uuid)):
            raise Refused(
                f"this change was made, as version {version}, and taken back since; request it "
                "as a new one to make it again"
            )
        return stored

    @staticmethod
    def _refuse_closed(row: SpreadsheetRow, state: ReviewState) -> None:
        if has_stopped(row):
            raise WrongState(f"the import has stopped, {row.step}: {row.reason}; retry that first")
        if not state.is_open:
            raise WrongState("the rows are not being reviewed any more")

    async def explained(
        self, row: SpreadsheetRow, conflict: Conflict, expected: int | None
    ) -> Conflict:
        """A conflict that says who changed what since."""
        state = await self._reviews.state(row.uuid)
        if state is None or expected is None:
            return conflict
        edits = await self.edits(row)
        headers = {column.id: column.header for column in edits.columns}
        later = [
            each for each in await self._reviews.operations(row.uuid) if each.version > expected
        ]
        if not later:
            return Conflict(str(conflict), state.version)
        named = [
            f"{each.by} at {each.at:%H:%M} UTC: {' '.join(described(each.operation, headers))}"
            for each in later[-NAMED:]
        ]
        more = f" (and {len(later) - NAMED} changes before)" if len(later) > NAMED else ""
        return Conflict(
            f"the rows were changed since version {expected}: {'; '.join(named)}{more}; "
            "look at them again",
            state.version,
        )

    async def state(self, row: SpreadsheetRow) -> ReviewState:
        """The review of an import.

        Raises:
            WrongState: There is none, or not yet.
        """
        state = await self._reviews.state(row.uuid)
        if state is None:
            raise WrongState(
                "the rows of this import are not reviewed, or not yet; "
                f"it {status_label(row.state)}"
            )
        # Rows are stored before they are checked; a step that failed in between has to be repeated.
        return replace(state, is_open=False) if has_stopped(row) else state

    async def edits(self, row: SpreadsheetRow, version: int | None = None) -> Edits:
        """The corrections as they are, or as they were at a version."""
        columns = (await self._views.columns(row.uuid)).mappings
        titles = {each.name: each.title for each in await self._choices.fields(row)}
        operations = await self._reviews.operations(row.uuid)
        counted = [each for each in operations if version is None or each.version <= version]
        return Edits(columns, counted, titles)


def _effect(version: int, counts: ReviewCounts, stored: StoredOperation) -> ChangeEffect:
    """What an operation has changed, or would change."""
    effect = stored.effect
    return ChangeEffect(
        version=version,
        changed_rows=effect.rows,
        changed_cells=effect.cells,
        problems_before=effect.problems_before,
        problems_after=effect.problems_after,
        wrong_rows=counts.wrong,
        examples=stored.examples,
    )


def has_stopped(row: SpreadsheetRow) -> bool:
    """Whether a step has failed and waits to be tried again."""
    return row.state not in FINAL and row.waiting_since is not None and bool(row.reason)


def _in_words(operation: ReviewOperation, headers: Mapping[int, str]) -> dict[str, Any]:
    subject, decision = described(operation.operation, headers)
    return {
        "operation": operation.operation,
        "by": operation.by,
        "at": operation.at,
        "subject": subject,
        "decision": decision,
    }


def _row(row: ReviewedRow, columns: Sequence[int], remarks: Mapping[int, str]) -> ReviewRow:
    problems = {each.column: each.reason for each in row.problems}
    corrections = {each.column: each for each in row.corrections}
    cells: list[ReviewCell] = []
    for id in columns:
        cell = row.cells[id - 1] if id <= len(row.cells) else None
        corrected = corrections.get(id)
        cells.append(
            ReviewCell(
                column=id,
                value=readable(cell, _CELL) or None,
                problem=problems.get(id),
                remark=remarks.get(id),
                original=corrected and (readable(corrected.before, _CELL) or None),
                corrected_by=corrected and corrected.by,
                corrected_at=corrected and corrected.at,
            )
        )
    return ReviewRow(
        line=row.line,
        excluded=row.excluded,
        problems=[each.reason for each in row.problems if each.column not in columns],
        cells=cells,
    )


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
        reading: asyncio.Semaphore,
    ) -> None:
        self._queries, self._views, self._runs = queries, views, runs
        self._reviews, self._choices, self._scratch = store.reviews, choices, scratch
        self._reading = reading
        self._rows = ReviewRows(store.reviews, views.reviews)
        self._changes = ReviewChanges(queries, store.reviews, views, runs, choices)
        self.explained = self._changes.explained

    async def overview(self, who: Identity, uuid: str) -> ReviewOverview:
        """Figures and columns.

        Raises:
            WrongState: The import has no review, or has not come to it.
        """
        row, state, edits = await self._opened(who, uuid)
        fields = await self._choices.fields(row)
        titles = {each.name: each.title for each in fields}
        counts = await self._views.reviews.problem_counts(uuid)
        made = {id for ids in edits.made.values() for id in ids}
        failure = row.reason if has_stopped(row) else state.check_failure
        figures = state.counts
        return ReviewOverview(
            version=state.version,
            is_open=state.is_open,
            is_checked=figures.checked >= state.version
            or not (state.is_open or failure is not None),
            check_failure=failure,
            rows=figures.rows,
            wrong=figures.wrong,
            excluded=figures.excluded,
            row_problems=counts.get(0, 0),
            missing=list(missing_fields(edits.columns, fields)),
            dry_run=row.dry_run,
            columns=[
                ReviewColumn(
                    id=each.id,
                    header=each.header,
                    target=each.target,
                    title=titles.get(each.target) if each.target else None,
                    problems=counts.get(each.id, 0),
                    made=each.id in made,
                )
                for each in edits.columns
            ],
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
    ) -> tuple[int, Page[ReviewRow]]:
        """The version of the review and a page of rows, those with problems first.

        Raises:
            WrongState: The import has no review, or has not come to it.
        """
        row, state, edits = await self._opened(who, uuid)
        found = await self._rows.page(
            uuid, edits, state.counts, wanted, column, page, min(size, LARGEST_PAGE)
        )
        rows = await self._shown(row, edits, found.items)
        return state.version, Page(rows, found.total, found.has_more)

    async def rows_at(
        self, who: Identity, uuid: str, first: int, size: int
    ) -> tuple[int, Sequence[ReviewRow]]:
        """The version of the review and some rows in the order of the file, from a place on.

        Raises:
            WrongState: The import has no review, or has not come to it.
        """
        row, state, edits = await self._opened(who, uuid)
        found = await self._rows.at(uuid, edits, first, min(size, LARGEST_PAGE))
        return state.version, await self._shown(row, edits, found)

    async def some_rows(
        self, who: Identity, uuid: str, lines: Sequence[int]
    ) -> tuple[int, Sequence[ReviewRow]]:
        """The version of the review and rows by their numbers, as far as there are such.

        Raises:
            WrongState: The import has no review, or has not come to it.
        """
        row, state, edits = await self._opened(who, uuid)
        found = await self._rows.some(uuid, edits, lines)
        known = [found[line] for line in lines if line in found]
        return state.version, await self._shown(row, edits, known)

    async def lines(
        self, who: Identity, uuid: str, wanted: RowFilter, column: int | None = None
    ) -> tuple[int, Sequence[int]]:
        """The version of the review and the numbers of all rows that a filter leaves.

        Raises:
            WrongState: The import has no review, or has not come to it.
        """
        _, state, edits = await self._opened(who, uuid)
        return state.version, await self._rows.lines(uuid, edits, wanted, column)

    async def _opened(self, who: Identity, uuid: str) -> tuple[SpreadsheetRow, ReviewState, Edits]:
        row = await self._queries.kept(who, uuid)
        state = await self._changes.state(row)
        return row, state, await self._changes.edits(row)

    async def _shown(
        self, row: SpreadsheetRow, edits: Edits, found: Sequence[ReviewedRow]
    ) -> Sequence[ReviewRow]:
        declared = {each.name: each for each in await self._choices.declared(row)}
        fields = {
            each.id: declared[each.target] for each in edits.columns if each.target in declared
        }
        columns = [each.id for each in edits.columns]
        return [_row(each, columns, remarks_on(fields, each.cells)) for each in found]

    async def with_corrections(
        self, row: SpreadsheetRow, results: Sequence[ResultRow]
    ) -> Sequence[ResultRow]:
        """Results with the cells that a review has corrected."""
        if not results or await self._reviews.state(row.uuid) is None:
            return results
        edits = await self._changes.edits(row)
        if not edits:
            return results
        headers = {column.id: column.header for column in edits.columns}
        found = await self._rows.some(row.uuid, edits, [each.line for each in results])
        return [
            each.model_copy(
                update={
                    "corrections": [
                        RowCorrection(
                            column=headers.get(it.column, ""),
                            before=readable(it.before, _SHOWN) or None,
                            after=readable(it.after, _SHOWN) or None,
                            by=it.by,
                            at=it.at,
                        )
                        for it in (found[each.line].corrections if each.line in found else ())
                    ]
                }
            )
            for each in results
        ]

    async def operations(
        self, who: Identity, uuid: str, *, page: int = 0, size: int = 50
    ) -> Page[ReviewOperationView]:
        """The changes to the rows, the newest first."""
        row = await self._queries.kept(who, uuid)
        await self._changes.state(row)
        headers = await self._headers(row)
        found = await self._views.reviews.operations(uuid, page=page, size=min(size, LARGEST_PAGE))
        return Page(
            [
                ReviewOperationView(
                    version=each.operation.version,
                    changed_rows=each.effect.rows,
                    changed_cells=each.effect.cells,
                    undone_by=each.undone_by,
                    **_in_words(each.operation, headers),
                )
                for each in found.items
            ],
            found.total,
        )

    async def remembered(self, who: Identity, uuid: str) -> Sequence[RememberedOperation]:
        """What was done to columns of these headers in earlier imports, to be done again."""
        row = await self._queries.kept(who, uuid)
        await self._changes.state(row)
        if who.upload is not None:
            return ()
        columns = (await self._views.columns(uuid)).columns
        known = [(each.id, each.header) for each in columns]
        found = await self._reviews.remembered(row.organisation_id, row.import_type, known)
        done = [each.operation for each in await self._reviews.operations(uuid)]
        headers = await self._headers(row)
        return [
            RememberedOperation(
                headers=each.headers,
                why=each.why,
                **_in_words(
                    each.operation.model_copy(update={"by": each.by, "at": each.at}), headers
                ),
            )
            for each in found
            if each.operation.operation not in done
        ]

    async def _headers(self, row: SpreadsheetRow) -> dict[int, str]:
        return {column.id: column.header for column in (await self._changes.edits(row)).columns}

    async def preview(self, who: Identity, uuid: str, operation: Operation) -> ChangeEffect:
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
    ) -> ChangeEffect:
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
        await write_export(path, self._reviews, self._rows, uuid, version, edits, wanted)
        stem = row.filename.rsplit(".", 1)[0] or "import"
        return ReportFile(path, f"{stem}-review.xlsx")

    async def upload(
        self, who: Identity, uuid: str, upload: Upload, expected_version: int | None = None
    ) -> ChangeEffect | None:
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
            async with self._reading:
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
        with refused_if_invalid():
            operation = SetCells(cells=tuple(found.cells))
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
