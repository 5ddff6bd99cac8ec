"""Reviews in the database: rows in blocks, problems by cell, corrections by version."""

import json
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, delete, distinct, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from activities.spreadsheets import import_rows, memory_store
from activities.spreadsheets.import_rows import LockedImport, count, lock_known, paged, save
from activities.spreadsheets.records import LearntEdit, Page
from activities.spreadsheets.review_rules import (
    PROBLEMS,
    RememberedEdit,
    ReviewState,
    RowProblem,
    StoredOperation,
)
from activities.spreadsheets.validation import DOCFLOW
from adapters.database.bulk import engine as bulk
from adapters.database.engine import Database
from adapters.database.models.spreadsheets import (
    spreadsheet_imports,
    spreadsheet_review_blocks,
    spreadsheet_review_operations,
    spreadsheet_review_problems,
    spreadsheet_reviews,
)
from adapters.database.records import clean
from workflows.shared.cells import listed_lines
from workflows.spreadsheets.mappings import DecisionRecord, ReviewCounts
from workflows.spreadsheets.reviews import (
    OPERATION,
    ROWS,
    CheckNote,
    CloseReview,
    DecideRows,
    Exclude,
    ReviewEffect,
    ReviewExample,
    ReviewOperation,
    UndoOperation,
)

PAGE: Final = 200
"""Rows or blocks that one statement names."""


def id_of(uuid: str) -> Any:
    """Number of an import, for conditions."""
    imports = spreadsheet_imports
    return select(imports.c.id).where(imports.c.uuid == uuid).scalar_subquery()


def concerned(
    own: Any, lines: Collection[int] | None, columns: Collection[int] | None
) -> list[list[ColumnElement[bool]]]:
    """Conditions that together name the problems of some rows in some columns."""
    table = spreadsheet_review_problems
    conditions: list[ColumnElement[bool]] = [table.c.import_id == own]
    if columns is not None:
        conditions.append(table.c.column_id.in_(sorted(columns)))
    if lines is None:
        return [conditions]
    ordered = sorted(lines)
    return [
        [*conditions, table.c.line.in_(ordered[i : i + PAGE])] for i in range(0, len(ordered), PAGE)
    ]


def starts_of(starts: Sequence[int], lines: Collection[int]) -> set[int]:
    """First lines of the blocks that rows may be in."""
    found: set[int] = set()
    place = 0
    for line in sorted(lines):
        while place + 1 < len(starts) and starts[place + 1] <= line:
            place += 1
        if starts and starts[place] <= line:
            found.add(starts[place])
    return found


async def propose(
    connection: AsyncConnection, opened: LockedImport, operation: ReviewOperation, key: str | None
) -> int | None:
    """Store an operation; its id, or that of the one with this key. None: that is another one."""
    table = spreadsheet_review_operations
    body, by = clean_body(operation), clean(operation.by)
    if key is not None:
        query = select(table).where(table.c.import_id == opened.id, table.c.key == key)
        known = (await connection.execute(query)).one_or_none()
        if known is not None:
            return known.id if (known.body, known.by) == (body, by) else None
    new = insert(table).values(import_id=opened.id, body=body, by=by, at=operation.at, key=key)
    return (await connection.execute(new.returning(table.c.id))).scalar_one()


async def purge_proposals(connection: AsyncConnection, before: datetime, limit: int) -> int:
    """Remove operations that were proposed before, and never applied; how many."""
    table = spreadsheet_review_operations
    due = select(table.c.id).where(table.c.version.is_(None), table.c.at < before).limit(limit)
    ids = list((await connection.execute(due)).scalars())
    if ids:
        # One that was applied meanwhile has a version, and stays.
        gone = delete(table).where(table.c.id.in_(ids), table.c.version.is_(None))
        await connection.execute(gone)
    return len(ids)


def clean_body(operation: ReviewOperation) -> str:
    """The body of an operation as it is stored."""
    # Characters that PostgreSQL refuses are escaped in JSON: they are cleaned before.
    text = json.dumps(operation.operation.model_dump(mode="json"), ensure_ascii=False)
    return clean(text.replace("\\u0000", "\ufffd"))


def stored(row: Any, undone_by: int | None = None) -> StoredOperation:
    """An operation from its row."""
    effect = ReviewEffect.model_validate_json(row.effect or "{}")
    examples = [ReviewExample.model_validate(each) for each in json.loads(row.examples or "[]")]
    return StoredOperation(operation_of(row), effect, examples, undone_by)


def operation_of(row: Any) -> ReviewOperation:
    """What was requested, from its row."""
    return ReviewOperation(
        id=row.id,
        version=row.version or 0,
        operation=OPERATION.validate_json(row.body),
        by=row.by,
        at=row.at,
    )


def outcome(effect: ReviewEffect, examples: Sequence[ReviewExample]) -> dict[str, str]:
    """What an operation changes, as its row has it."""
    shown = json.dumps([each.model_dump() for each in examples], ensure_ascii=False)
    return {"effect": effect.model_dump_json(), "examples": clean(shown)}


def skipping(preview: str | None, at: datetime) -> list[ReviewOperation]:
    """The rows that docflow skips as operations before all others, by reason."""
    by_reason: dict[str, list[int]] = {}
    for line, reason, is_skipped, _ in json.loads(preview or "{}").get("skipped", ()):
        if is_skipped:
            by_reason.setdefault(reason, []).append(line)
    return [
        ReviewOperation(
            id=0,
            version=0,
            operation=Exclude(rows=tuple(lines[i : i + ROWS]), reason=reason),
            by=DOCFLOW,
            at=at,
        )
        for reason, lines in by_reason.items()
        for i in range(0, len(lines), ROWS)
    ]


_AT_ONCE: Final = 10_000
_COLUMNS: Final = ("import_id", "line", "column_id", "value", "reason")


async def replace(
    connection: AsyncConnection,
    opened: LockedImport,
    replaced: tuple[Collection[int] | None, Collection[int] | None],
    problems: Sequence[RowProblem],
) -> None:
    """Write what is wrong in the place of the problems of some rows and columns; None: all."""
    table = spreadsheet_review_problems
    for conditions in concerned(opened.id, *replaced):
        await connection.execute(delete(table).where(*conditions))
    # Most cells of a column have the same reason.
    reasons = {reason: clean(reason) for reason in {each.reason for each in problems}}
    rows = [
        (opened.id, each.line, each.column, _text(each.value), reasons[each.reason])
        for each in problems[:PROBLEMS]
    ]
    for i in range(0, len(rows), _AT_ONCE):
        await bulk.insert(connection, table, _COLUMNS, rows[i : i + _AT_ONCE])


async def number(
    connection: AsyncConnection,
    uuid: str,
    lines: Collection[int] | None,
    columns: Collection[int] | None,
) -> int:
    """How many problems some rows have in some columns; None: any."""
    total = 0
    for each in concerned(id_of(uuid), lines, columns):
        query = select(func.count()).select_from(spreadsheet_review_problems).where(*each)
        total += (await connection.execute(query)).scalar_one()
    return total


async def count_problems(
    connection: AsyncConnection, opened: LockedImport, more: Mapping[str, Any]
) -> ReviewCounts:
    """Count the rows with a problem, and change more of the review with that."""
    problems, reviews = spreadsheet_review_problems, spreadsheet_reviews
    # COUNT(DISTINCT) sorts; a subquery is read off the index.
    lines = select(problems.c.line).where(problems.c.import_id == opened.id).distinct()
    query = select(func.count()).select_from(lines.subquery())
    wrong = (await connection.execute(query)).scalar_one()
    await connection.execute(
        update(reviews).where(reviews.c.import_id == opened.id).values(wrong=wrong, **more)
    )
    return counts_of(await review_of(connection, opened))


async def review_of(connection: AsyncConnection, opened: LockedImport) -> Any:
    """The row of the review of an import."""
    reviews = spreadsheet_reviews
    query = select(reviews).where(reviews.c.import_id == opened.id)
    return (await connection.execute(query)).one()


def counts_of(row: Any) -> ReviewCounts:
    """The figures of a review."""
    return ReviewCounts(rows=row.rows, wrong=row.wrong, excluded=row.excluded, checked=row.checked)


def _text(text: str | None) -> str | None:
    return None if text is None else clean(text)


_PAGE: Final = 200
"""Blocks that are read at a time."""


class SqlReviewStore:
    """Rows, problems and corrections of reviews; each method is a transaction and may run twice."""

    def __init__(self, database: Database) -> None:
        self._database = database

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
        return ReviewState(row.version, row.is_open, counts_of(row), row.check_failure)

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
            await bulk.insert(connection, table, columns, rows)

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
            adding = insert(spreadsheet_reviews).values(import_id=opened.id, **values)
            await connection.execute(
                adding.on_conflict_do_update(index_elements=["import_id"], set_=values)
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
            return await propose(connection, opened, operation, key)

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
        skipped = () if found is None else skipping(*found)
        return [*skipped, *map(operation_of, rows)]

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
                    body=clean_body(operation),
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
            await import_rows.add(connection, opened.row.workflow_id, [line], work.version)
            changed = {"version": max(opened.row.version, work.version), "decided_at": work.at}
            await save(connection, opened, changed)

    async def operation(self, uuid: str, id: int) -> StoredOperation | None:
        """One operation; None: there is none of this id in this import."""
        table = spreadsheet_review_operations
        query = select(table).where(table.c.import_id == id_of(uuid), table.c.id == id)
        async with self._database.reading() as connection:
            row = (await connection.execute(query)).one_or_none()
        return None if row is None else stored(row)

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
            review = await review_of(connection, opened)
            row = (await connection.execute(select(table).where(table.c.id == id))).one()
            if row.version == version:
                return counts_of(review)
            if not review.is_open or opened.ended:
                return None
            await connection.execute(
                update(table)
                .where(table.c.id == id)
                .values(version=version, **outcome(effect, examples))
            )
            await replace(connection, opened, replaced, problems)
            await import_rows.add(connection, opened.row.workflow_id, [line], version)
            now = {"excluded": excluded, "check_failure": None}
            counts = await count_problems(connection, opened, now)
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
                .values(outcome(effect, examples))
            )

    async def replace_problems(
        self, uuid: str, version: int, problems: Sequence[RowProblem]
    ) -> ReviewCounts | None:
        """Write all that is wrong at a version; None: there is a later one."""
        async with self._database.transaction() as connection:
            opened = await lock_known(connection, uuid)
            if opened.row.version > version or opened.ended or opened.purged:
                return None
            await replace(connection, opened, (None, None), problems)
            now = {"checked": version, "check_failure": None}
            counts = await count_problems(connection, opened, now)
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
            return await number(connection, uuid, lines, columns)

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
            await import_rows.add(connection, opened.row.workflow_id, [line], work.version)
            await memory_store.learn(connection, opened, dict(columns), edits)
            values: dict[str, Any] = {"version": max(opened.row.version, work.version)}
            # A dry run that is imported after all writes, and can be undone.
            values |= {"dry_run": work.order.dry_run, "decided_at": work.at}
            await save(connection, opened, values)

    async def remembered(
        self, organisation_id: int, import_type: str, headers: Sequence[tuple[int, str]]
    ) -> Sequence[RememberedEdit]:
        """Corrections of columns of earlier files that columns of these headers allow."""
        async with self._database.reading() as connection:
            return await memory_store.find(connection, organisation_id, import_type, headers)

    async def learnt(
        self, organisations: Sequence[int], import_type: str | None, page: int, size: int
    ) -> Page[LearntEdit]:
        """What is remembered of whole columns, the newest first."""
        async with self._database.reading() as connection:
            return await memory_store.learnt(connection, organisations, import_type, page, size)

    async def forget_learnt(self, organisation_id: int, import_type: str, about: str) -> None:
        """No longer suggest a remembered change."""
        async with self._database.transaction() as connection:
            await memory_store.forget(connection, organisation_id, import_type, about)


class SqlReviewViews:
    """Reviews as the gateway shows them; one that is not there is empty. Pages count from 0."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def problem_lines(
        self, uuid: str, *, column: int | None = None, page: int = 0, size: int = 50
    ) -> Sequence[int]:
        """Rows with problems, in the order of the file; in one column, if it is given."""
        problems = spreadsheet_review_problems
        conditions = _mine(uuid, column)
        query = select(problems.c.line).distinct().where(*conditions).order_by(problems.c.line)
        async with self._database.reading() as connection:
            return list((await connection.execute(paged(query, page, size))).scalars())

    async def all_problem_lines(self, uuid: str, column: int | None = None) -> Sequence[int]:
        """Every row with a problem, in the order of the file; in one column, if it is given."""
        problems = spreadsheet_review_problems
        mine = _mine(uuid, column)
        query = select(problems.c.line).distinct().where(*mine).order_by(problems.c.line)
        async with self._database.reading() as connection:
            return list((await connection.execute(query)).scalars())

    async def problem_count(self, uuid: str, column: int) -> int:
        """How many rows have a problem in a column."""
        problems = spreadsheet_review_problems
        query = select(func.count(distinct(problems.c.line))).where(*_mine(uuid, column))
        async with self._database.reading() as connection:
            return (await connection.execute(query)).scalar_one()

    async def problem_counts(self, uuid: str) -> Mapping[int, int]:
        """How many problems each column has; 0: rows as a whole."""
        problems = spreadsheet_review_problems
        query = (
            select(problems.c.column_id, func.count())
            .where(*_mine(uuid))
            .group_by(problems.c.column_id)
        )
        async with self._database.reading() as connection:
            return {column: found for column, found in await connection.execute(query)}

    async def problems(self, uuid: str, lines: Sequence[int]) -> Mapping[int, Sequence[RowProblem]]:
        """What is wrong with some rows, by row."""
        problems = spreadsheet_review_problems
        query = (
            select(problems)
            .where(*_mine(uuid), problems.c.line.in_(lines))
            .order_by(problems.c.line, problems.c.column_id)
        )
        found: dict[int, list[RowProblem]] = defaultdict(list)
        async with self._database.reading() as connection:
            for row in await connection.execute(query):
                found[row.line].append(RowProblem(row.line, row.column_id, row.value, row.reason))
        return found

    async def starts(self, uuid: str) -> Sequence[int]:
        """Line of the first row of each block."""
        blocks = spreadsheet_review_blocks
        query = (
            select(blocks.c.first_line)
            .where(blocks.c.import_id == id_of(uuid))
            .order_by(blocks.c.first_line)
        )
        async with self._database.reading() as connection:
            return list((await connection.execute(query)).scalars())

    async def operations(
        self, uuid: str, *, page: int = 0, size: int = 50
    ) -> Page[StoredOperation]:
        """The operations, the newest first."""
        table = spreadsheet_review_operations
        mine = (table.c.import_id == id_of(uuid), table.c.version.is_not(None))
        query = select(table).where(*mine).order_by(table.c.version.desc())
        undos = select(table).where(*mine, table.c.body.contains('"UNDO"'))
        async with self._database.reading() as connection:
            total = await connection.execute(count(table, *mine))
            rows = (await connection.execute(paged(query, page, size))).all()
            taken_back = _taken_back([stored(row) for row in await connection.execute(undos)])
        items = [stored(row, taken_back.get(row.version)) for row in rows]
        return Page(items, total.scalar_one())


def _taken_back(undos: Sequence[StoredOperation]) -> Mapping[int, int]:
    """Version of an operation to that of the undo which takes it back."""
    found: dict[int, int] = {}
    for each in sorted(undos, key=lambda each: -each.operation.version):
        operation, version = each.operation.operation, each.operation.version
        if isinstance(operation, UndoOperation) and version not in found:
            found[operation.version] = version
    return found


def _mine(uuid: str, column: int | None = None) -> list[ColumnElement[bool]]:
    problems = spreadsheet_review_problems
    conditions: list[ColumnElement[bool]] = [problems.c.import_id == id_of(uuid)]
    if column is not None:
        conditions.append(problems.c.column_id == column)
    return conditions
