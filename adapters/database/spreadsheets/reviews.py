"""Reviews of spreadsheets: rows in blocks, problems by cell, corrections by version."""

from collections.abc import AsyncIterator, Collection, Sequence
from typing import Any, Final

from sqlalchemy import delete, insert, select, update

from adapters.database.bulk.dialects import bulk_of
from adapters.database.codec import clean
from adapters.database.engine import Database
from adapters.database.models.spreadsheet_reviews import (
    spreadsheet_review_blocks,
    spreadsheet_review_operations,
    spreadsheet_reviews,
)
from adapters.database.models.spreadsheets import spreadsheet_imports
from adapters.database.spreadsheets import (
    audit_trail,
    edit_memory,
    review_operations,
    review_problems,
)
from adapters.database.spreadsheets.locked_import import (
    lock_known,
    save,
)
from adapters.database.spreadsheets.records import LearntEdit, Page
from adapters.database.spreadsheets.review_conditions import id_of, starts_of
from contracts.spreadsheets import DecisionRecord, ReviewCounts
from contracts.spreadsheets.reviews import (
    CheckNote,
    CloseReview,
    DecideRows,
    Exclude,
    ReviewEffect,
    ReviewExample,
    ReviewOperation,
)
from domain.spreadsheets.review import (
    RememberedEdit,
    ReviewState,
    RowProblem,
    StoredOperation,
)
from domain.tabular.line_ranges import listed_lines

_PAGE: Final = 200
"""Blocks that are read at a time."""


class SqlReviewStore:
    """Reviews in SQLite and PostgreSQL; see `adapters.ports.SpreadsheetReviews`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._bulk = bulk_of(database)

    async def state(self, uuid: str) -> ReviewState | None:
        """The review of an import; None: there is none."""
        imports, reviews = spreadsheet_imports, spreadsheet_reviews
        query = (
            select(imports.c.version, reviews)
            .join(reviews, reviews.c.import_id == imports.c.id)
            .where(imports.c.uuid == uuid)
        )
        async with self._database.reading() as connection:
            row = (await connection.execute(query)).one_or_none()
        if row is None:
            return None
        return ReviewState(
            row.version, row.is_open, review_problems.counts_of(row), row.check_failure
        )

    async def add_blocks(
        self, uuid: str, blocks: Sequence[tuple[int, bytes]], *, first: bool
    ) -> None:
        """Store rows: line of the first of a block, and its bytes; `first` removes earlier ones."""
        table = spreadsheet_review_blocks
        async with self._database.transaction() as connection:
            opened = await lock_known(connection, uuid)
            if opened.ended or opened.purged:
                return
            if first:
                await connection.execute(delete(table).where(table.c.import_id == opened.id))
            columns = ("import_id", "first_line", "data")
            rows = [(opened.id, line, data) for line, data in blocks]
            await self._bulk.insert(connection, table, columns, rows)

    async def blocks(self, uuid: str) -> AsyncIterator[Sequence[bytes]]:
        """Every block in the order of the file, some at a time."""
        table, after = spreadsheet_review_blocks, -1
        while True:
            async with self._database.reading() as connection:
                query = (
                    select(table.c.first_line, table.c.data)
                    .where(table.c.import_id == id_of(uuid), table.c.first_line > after)
                    .order_by(table.c.first_line)
                    .limit(_PAGE)
                )
                found = (await connection.execute(query)).all()
            if not found:
                return
            yield [row.data for row in found]
            after = found[-1].first_line

    async def first_blocks(self, uuid: str, count: int) -> Sequence[bytes]:
        """The first blocks of the file."""
        table = spreadsheet_review_blocks
        query = (
            select(table.c.data)
            .where(table.c.import_id == id_of(uuid))
            .order_by(table.c.first_line)
            .limit(count)
        )
        async with self._database.reading() as connection:
            return list((await connection.execute(query)).scalars())

    async def blocks_with(self, uuid: str, lines: Collection[int]) -> Sequence[bytes]:
        """The blocks that some rows may be in."""
        table = spreadsheet_review_blocks
        mine = table.c.import_id == id_of(uuid)
        async with self._database.reading() as connection:
            starts = list(
                (
                    await connection.execute(
                        select(table.c.first_line).where(mine).order_by(table.c.first_line)
                    )
                ).scalars()
            )
            wanted = sorted(starts_of(starts, lines))
            found: list[bytes] = []
            for i in range(0, len(wanted), _PAGE):
                query = (
                    select(table.c.data)
                    .where(mine, table.c.first_line.in_(wanted[i : i + _PAGE]))
                    .order_by(table.c.first_line)
                )
                found += (await connection.execute(query)).scalars()
        return found

    async def open(self, uuid: str, counts: ReviewCounts) -> None:
        """Accept corrections from now on."""
        async with self._database.transaction() as connection:
            opened = await lock_known(connection, uuid)
            if opened.ended or opened.purged:
                return
            values = counts.model_dump() | {"is_open": True, "check_failure": None}
            insert = self._bulk.insert_statement(spreadsheet_reviews).values(
                import_id=opened.id, **values
            )
            await connection.execute(
                insert.on_conflict_do_update(index_elements=["import_id"], set_=values)
            )
            await save(connection, opened, {})

    async def propose(
        self, uuid: str, operation: ReviewOperation, key: str | None = None
    ) -> int | None:
        """Store an operation without applying it; its id. None: the key stands for another one.

        Args:
            uuid: The import.
            operation: What is requested, and by whom.
            key: What a request that is repeated has in common with the first one, whose id it gets.
        """
        async with self._database.transaction() as connection:
            opened = await lock_known(connection, uuid)
            return await review_operations.propose(connection, opened, operation, key)

    async def forget(self, id: int) -> None:
        """Remove an operation that was not applied."""
        table = spreadsheet_review_operations
        async with self._database.transaction() as connection:
            await connection.execute(
                delete(table).where(table.c.id == id, table.c.version.is_(None))
            )

    async def operations(self, uuid: str) -> Sequence[ReviewOperation]:
        """The operations that were applied, by version, behind the rows that docflow skips."""
        table, imports = spreadsheet_review_operations, spreadsheet_imports
        top = select(imports.c.preview, imports.c.created_at).where(imports.c.uuid == uuid)
        query = (
            select(table)
            .where(table.c.import_id == id_of(uuid), table.c.version.is_not(None))
            .order_by(table.c.version)
        )
        async with self._database.reading() as connection:
            rows = (await connection.execute(query)).all()
            found = (await connection.execute(top)).one_or_none()
        skipped = () if found is None else review_operations.skipping(*found)
        return [*skipped, *map(review_operations.operation_of, rows)]

    async def decide_rows(self, work: DecideRows) -> None:
        """Keep rows, or leave them out, before columns are confirmed; at most once a version."""
        table, change = spreadsheet_review_operations, Exclude(rows=work.rows, back=work.keep)
        operation = ReviewOperation(
            id=0, version=work.version, operation=change, by=work.by, at=work.at
        )
        async with self._database.transaction() as connection:
            opened = await lock_known(connection, work.uuid)
            known = select(table.c.id).where(
                table.c.import_id == opened.id, table.c.version == work.version
            )
            if opened.purged or (await connection.execute(known)).first() is not None:
                return
            await connection.execute(
                insert(table).values(
                    import_id=opened.id,
                    version=work.version,
                    body=review_operations.clean_body(operation),
                    by=clean(work.by),
                    at=work.at,
                )
            )
            line = DecisionRecord(
                kind="rows",
                subject=listed_lines(work.rows),
                decision="kept" if work.keep else "left out",
                by=work.by,
                at=work.at,
            )
            await audit_trail.add(
                connection, self._bulk, opened.row.workflow_id, [line], work.version
            )
            changed = {"version": max(opened.row.version, work.version), "decided_at": work.at}
            await save(connection, opened, changed)

    async def operation(self, uuid: str, id: int) -> StoredOperation | None:
        """One operation; None: there is none of this id in this import."""
        table = spreadsheet_review_operations
        query = select(table).where(table.c.import_id == id_of(uuid), table.c.id == id)
        async with self._database.reading() as connection:
            row = (await connection.execute(query)).one_or_none()
        return None if row is None else review_operations.stored(row)

    async def apply(
        self,
        uuid: str,
        id: int,
        line: DecisionRecord,
        version: int,
        effect: ReviewEffect,
        examples: Sequence[ReviewExample],
        replaced: tuple[Collection[int] | None, Collection[int] | None],
        problems: Sequence[RowProblem],
        excluded: int,
    ) -> ReviewCounts | None:
        """Give an operation its version, and replace its problems; None: the review is closed.

        Args:
            uuid: The import.
            id: Of the operation; one with this version is left alone.
            line: Of the trail.
            version: Of the mappings after it.
            effect: What it changes.
            examples: Some of the cells.
            replaced: Rows and columns whose problems go; None: all.
            problems: Those in their place.
            excluded: Rows that are left out now.
        """
        table = spreadsheet_review_operations
        async with self._database.transaction() as connection:
            opened = await lock_known(connection, uuid)
            review = await review_problems.review_of(connection, opened)
            row = (await connection.execute(select(table).where(table.c.id == id))).one()
            if row.version == version:
                return review_problems.counts_of(review)
            if not review.is_open or opened.ended:
                return None
            await connection.execute(
                update(table)
                .where(table.c.id == id)
                .values(version=version, **review_operations.outcome(effect, examples))
            )
            await review_problems.replace(connection, self._bulk, opened, replaced, problems)
            await audit_trail.add(connection, self._bulk, opened.row.workflow_id, [line], version)
            now = {"excluded": excluded, "check_failure": None}
            counts = await review_problems.count(connection, opened, now)
            changed = {"version": max(opened.row.version, version), "decided_at": line.at}
            await save(connection, opened, changed)
            return counts

    async def note(
        self, uuid: str, id: int, effect: ReviewEffect, examples: Sequence[ReviewExample]
    ) -> None:
        """Store what an operation would change."""
        table = spreadsheet_review_operations
        async with self._database.transaction() as connection:
            await connection.execute(
                update(table)
                .where(table.c.id == id, table.c.import_id == id_of(uuid))
                .values(review_operations.outcome(effect, examples))
            )

    async def replace_problems(
        self, uuid: str, version: int, problems: Sequence[RowProblem]
    ) -> ReviewCounts | None:
        """Write all that is wrong at a version; None: there is a later one."""
        async with self._database.transaction() as connection:
            opened = await lock_known(connection, uuid)
            if opened.row.version > version or opened.ended or opened.purged:
                return None
            await review_problems.replace(connection, self._bulk, opened, (None, None), problems)
            now = {"checked": version, "check_failure": None}
            counts = await review_problems.count(connection, opened, now)
            await save(connection, opened, {})
            return counts

    async def note_check(self, note: CheckNote) -> None:
        """Store why all rows could not be checked at a version; one that is not the newest is
        left out."""
        reviews = spreadsheet_reviews
        async with self._database.transaction() as connection:
            opened = await lock_known(connection, note.uuid)
            if opened.row.version > note.version or opened.ended or opened.purged:
                return
            reason = None if note.reason is None else clean(note.reason)
            await connection.execute(
                update(reviews).where(reviews.c.import_id == opened.id).values(check_failure=reason)
            )
            await save(connection, opened, {})

    async def problems_in(
        self, uuid: str, lines: Collection[int] | None, columns: Collection[int] | None
    ) -> int:
        """How many problems some rows have in some columns; None: any."""
        async with self._database.reading() as connection:
            return await review_problems.number(connection, uuid, lines, columns)

    async def close(
        self,
        work: CloseReview,
        columns: Sequence[tuple[int, str]],
        edits: Sequence[ReviewOperation],
    ) -> None:
        """Accept no further corrections, and remember those of whole columns.

        Args:
            work: Who confirms the review, and what becomes of it.
            columns: Id and header of each column of the file.
            edits: Operations that count.
        """
        async with self._database.transaction() as connection:
            opened = await lock_known(connection, work.order.uuid)
            if opened.ended or opened.purged:
                return
            reviews = spreadsheet_reviews
            await connection.execute(
                update(reviews).where(reviews.c.import_id == opened.id).values(is_open=False)
            )
            # What was only proposed by now is not applied any more.
            table = spreadsheet_review_operations
            await connection.execute(
                delete(table).where(table.c.import_id == opened.id, table.c.version.is_(None))
            )
            line = DecisionRecord(
                kind="confirm", subject="", decision="review", by=work.by, at=work.at
            )
            await audit_trail.add(
                connection, self._bulk, opened.row.workflow_id, [line], work.version
            )
            await edit_memory.learn(connection, self._bulk, opened, dict(columns), edits)
            values: dict[str, Any] = {"version": max(opened.row.version, work.version)}
            # A dry run that is imported after all writes, and can be undone.
            values |= {"dry_run": work.order.dry_run, "decided_at": work.at}
            await save(connection, opened, values)

    async def remembered(
        self, organisation_id: int, import_type: str, headers: Sequence[tuple[int, str]]
    ) -> Sequence[RememberedEdit]:
        """Corrections of columns of earlier files that columns of these headers allow."""
        async with self._database.reading() as connection:
            return await edit_memory.find(connection, organisation_id, import_type, headers)

    async def learnt(
        self, organisations: Sequence[int], import_type: str | None, page: int, size: int
    ) -> Page[LearntEdit]:
        """What is remembered of whole columns, the newest first."""
        async with self._database.reading() as connection:
            return await edit_memory.learnt(connection, organisations, import_type, page, size)

    async def forget_learnt(self, organisation_id: int, import_type: str, about: str) -> None:
        """No longer suggest a remembered change."""
        async with self._database.transaction() as connection:
            await edit_memory.forget(connection, organisation_id, import_type, about)
