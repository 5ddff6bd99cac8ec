"""Reading spreadsheet imports, for people: status, mappings, results, trail."""

import json
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    ScalarSelect,
    Select,
    Table,
    and_,
    bindparam,
    func,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from activities.spreadsheets import import_rows, value_store
from activities.spreadsheets.import_rows import (
    SqlSpreadsheetStatuses,
    count,
    counts_of,
    paged,
    parents_of,
    read_contexts,
    read_names,
    reading_status,
)
from activities.spreadsheets.records import (
    AvailableContext,
    CellsView,
    CellView,
    ColumnsView,
    ColumnView,
    DecisionView,
    Difference,
    Page,
    QuestionGroup,
    ResultRow,
    SummaryView,
    UndoConflict,
)
from activities.spreadsheets.review_store import SqlReviewViews
from activities.spreadsheets.value_store import EVERY_VALUE, ValueFilter, mapping_of
from adapters.database.engine import Database
from adapters.database.models.spreadsheets import (
    TARGETS,
    decisions,
    spreadsheet_columns,
    spreadsheet_differences,
    spreadsheet_imports,
    spreadsheet_parked,
    spreadsheet_results,
    spreadsheet_undo_conflicts,
    spreadsheet_uploads,
    spreadsheet_values,
)
from adapters.database.records import clean, load_problems
from workflows.shared.contracts import Problem
from workflows.spreadsheets.fields import ParkedRow, Preview, SkippedRow
from workflows.spreadsheets.mappings import MappingStatus, Outcome

PAGE: Final = 1_000


async def read_parked(
    connection: AsyncConnection, uuid: str, after: int, limit: int
) -> Sequence[ParkedRow]:
    """Parked rows by line, above line `after`."""
    parameters = {"uuid": uuid, "after": after, "most": limit}
    rows = await connection.execute(_parked(), parameters)
    return [ParkedRow(row.line, row.offset, row.person, row.person_key) for row in rows]


async def read_errors(
    database: Database, uuid: str
) -> AsyncIterator[Sequence[tuple[int, Sequence[Problem]]]]:
    """Rows with outcome ERROR by line, a page at a time, each read by itself."""
    after = -1
    while True:
        async with database.reading() as connection:
            parameters = {"uuid": uuid, "after": after}
            rows = (await connection.execute(_errors(), parameters)).all()
        if not rows:
            return
        yield [(row.line, load_problems(row.problems or "[]")) for row in rows]
        after = rows[-1].line


def is_outcome(outcome: Outcome) -> ColumnElement[bool]:
    """Rows of this outcome, by the index that has all but those created."""
    column = spreadsheet_results.c.outcome
    wanted = column == outcome.value
    if outcome is Outcome.CREATED:
        return wanted
    # Both databases use a partial index only where a statement repeats its condition.
    return and_(wanted, text("outcome <> 'CREATED'"))


def _import_id() -> ScalarSelect[int]:
    imports = spreadsheet_imports
    return select(imports.c.id).where(imports.c.uuid == bindparam("uuid")).scalar_subquery()


@lru_cache
def _parked() -> Select[*tuple[Any, ...]]:
    parked = spreadsheet_parked
    return (
        select(parked.c.line, parked.c.offset, parked.c.person, parked.c.person_key)
        .where(
            parked.c.import_id == _import_id(),
            parked.c.line > bindparam("after", type_=BigInteger),
        )
        .order_by(parked.c.line)
        .limit(bindparam("most", type_=BigInteger))
    )


@lru_cache
def _errors() -> Select[Any, Any]:
    results = spreadsheet_results
    return (
        select(results.c.line, results.c.problems)
        .where(
            results.c.import_id == _import_id(),
            is_outcome(Outcome.ERROR),
            results.c.line > bindparam("after", type_=BigInteger),
        )
        .order_by(results.c.line)
        .limit(PAGE)
    )


class SqlSpreadsheetViews(SqlSpreadsheetStatuses):
    """Imports as the gateway shows them.

    Every method raises `Unavailable` when the database is down. Apart from `get` and `list`,
    nothing asks whose import it is: callers look it up first. One that is not there is empty.
    Pages count from 0.
    """

    @property
    def reviews(self) -> SqlReviewViews:
        """Reviews of rows before they are written."""
        return SqlReviewViews(self._database)

    async def changed(self, uuid: str) -> int | None:
        """The revision of the status; None when there is no such import."""
        async with self._database.reading() as connection:
            return (await connection.execute(_revision(), {"uuid": uuid})).scalar_one_or_none()

    async def columns(self, uuid: str) -> ColumnsView:
        """Columns by place, with samples, and the version of the mappings."""
        columns = spreadsheet_columns
        async with self._database.reading() as connection:
            row = (await connection.execute(reading_status(), {"uuid": uuid})).one_or_none()
            if row is None:
                return ColumnsView(0, ())
            query = select(columns).where(columns.c.import_id == row.id).order_by(columns.c.id)
            found = await connection.execute(query)
            return ColumnsView(row.version, [_column(each) for each in found])

    async def preview(self, uuid: str) -> Preview | None:
        """The top of the file; None before it was looked at."""
        query = select(spreadsheet_imports.c.preview).where(spreadsheet_imports.c.uuid == uuid)
        async with self._database.reading() as connection:
            stored = (await connection.execute(query)).scalar_one_or_none()
        if stored is None:
            return None
        fields = json.loads(stored)
        rows = [(line, cells) for line, cells in fields.pop("rows")]
        skipped = [SkippedRow(*row) for row in fields.pop("skipped", ())]
        return Preview(**fields, rows=rows, skipped=skipped)

    async def cells(
        self,
        uuid: str,
        wanted: ValueFilter = EVERY_VALUE,
        *,
        page: int = 0,
        size: int = 50,
    ) -> CellsView:
        """Distinct values in the order they were found, and the version of the mappings."""
        values = spreadsheet_values
        async with self._database.reading() as connection:
            row = (await connection.execute(reading_status(), {"uuid": uuid})).one_or_none()
            if row is None:
                return CellsView(0, (), 0)
            conditions = wanted.conditions(row.id)
            total = await connection.execute(count(values, *conditions))
            query = select(values).where(*conditions).order_by(values.c.id)
            found = await connection.execute(paged(query, page, size))
            return CellsView(
                row.version, [mapping_of(each, CellView) for each in found], total.scalar_one()
            )

    async def cell_counts(self, uuid: str, wanted: ValueFilter) -> Mapping[str, int]:
        """How many values match, by field, in the order in which they were found."""
        async with self._database.reading() as connection:
            row = (await connection.execute(reading_status(), {"uuid": uuid})).one_or_none()
            return {} if row is None else await value_store.counts(connection, row.id, wanted)

    async def questions(self, uuid: str) -> Sequence[QuestionGroup]:
        """Open questions about people, by kind."""
        values, imports = spreadsheet_values, spreadsheet_imports
        query = (
            select(
                values.c.question,
                func.min(values.c.reason).label("reason"),
                func.count().label("count"),
                func.min(values.c.id).label("first_id"),
            )
            .join(imports, imports.c.id == values.c.import_id)
            .where(
                imports.c.uuid == uuid,
                values.c.question.is_not(None),
                values.c.status == MappingStatus.UNMATCHED.value,
            )
            .group_by(values.c.question)
            .order_by(values.c.question)
        )
        async with self._database.reading() as connection:
            return [QuestionGroup.model_validate(row) for row in await connection.execute(query)]

    async def results(
        self, uuid: str, *, outcome: Outcome | None = None, page: int = 0, size: int = 50
    ) -> Page[ResultRow]:
        """Outcome of the rows, by line."""
        results = spreadsheet_results
        async with self._database.reading() as connection:
            row = (await connection.execute(reading_status(), {"uuid": uuid})).one_or_none()
            if row is None or row.purged_at is not None:
                return Page((), 0)
            counts = counts_of(row)
            columns = (results.c.line, results.c.outcome, results.c.message, results.c.problems)
            query = select(*columns)
            query = query.where(results.c.import_id == row.id).order_by(results.c.line)
            total = counts.done
            if outcome is not None:
                query = query.where(is_outcome(outcome))
                total = getattr(counts, outcome.value.lower())
            found = await connection.execute(paged(query, page, size))
            items = [
                ResultRow.model_validate(
                    {**each, "problems": load_problems(each["problems"] or "[]")}
                )
                for each in found.mappings()
            ]
        return Page(items, total)

    async def summary(self, uuid: str) -> SummaryView:
        """Outcome of the rows in figures, and what was changed in rows that were there."""
        differences = spreadsheet_differences
        async with self._database.reading() as connection:
            row = (await connection.execute(reading_status(), {"uuid": uuid})).one_or_none()
            if row is None:
                return SummaryView(parked=0)
            query = select(differences).where(differences.c.import_id == row.id)
            rows = await connection.execute(query.order_by(differences.c.place))
            found = [
                Difference(
                    line=each.line,
                    table=each.table_name,
                    column=each.column_name,
                    before=each.before,
                    after=each.after,
                )
                for each in rows
            ]
            named = await _with_names(connection, found)
            return SummaryView(**counts_of(row).model_dump(), parked=row.parked, differences=named)

    async def decisions(self, uuid: str, *, page: int = 0, size: int = 50) -> Page[DecisionView]:
        """Who decided what, the newest first."""
        async with self._database.reading() as connection:
            row = (await connection.execute(reading_status(), {"uuid": uuid})).one_or_none()
            if row is None:
                return Page((), 0)
            mine = decisions.c.workflow_id == row.workflow_id
            total = await connection.execute(count(decisions, mine))
            query = select(decisions).where(mine)
            query = query.order_by(decisions.c.at.desc(), decisions.c.id.desc())
            found = await connection.execute(paged(query, page, size))
            return Page([_decision(each) for each in found], total.scalar_one())

    async def undo_conflicts(
        self, uuid: str, *, page: int = 0, size: int = 50
    ) -> Page[UndoConflict]:
        """Rows that an undo left alone, by line."""
        conflicts = spreadsheet_undo_conflicts
        async with self._database.reading() as connection:
            row = (await connection.execute(reading_status(), {"uuid": uuid})).one_or_none()
            if row is None:
                return Page((), 0)
            mine = conflicts.c.import_id == row.id
            total = await connection.execute(count(conflicts, mine))
            query = select(conflicts).where(mine).order_by(conflicts.c.line, conflicts.c.id)
            found = await connection.execute(paged(query, page, size))
            items = [
                UndoConflict.model_validate({**each, "table": each["table_name"]})
                for each in found.mappings()
            ]
            return Page(items, total.scalar_one())

    async def contexts(self, organisations: Collection[int]) -> Sequence[AvailableContext]:
        """Events, membership periods and races that imports of organisations can belong to."""
        async with self._database.reading() as connection:
            return await read_contexts(connection, organisations)

    async def context_names(
        self, organisations: Collection[int], wanted: Collection[tuple[str, int]]
    ) -> Mapping[tuple[str, int], str]:
        """Names of some events, periods and races of organisations, by table and id."""
        async with self._database.reading() as connection:
            return await read_names(connection, organisations, wanted)

    async def note_upload(self, uuid: str, blob_name: str, subject: str, at: datetime) -> None:
        """Note a file on its way in, so that it is found if it never becomes an import."""
        values = {
            "uuid": uuid,
            "blob_name": blob_name,
            "subject": clean(subject),
            "created_at": at,
        }
        async with self._database.transaction() as connection:
            await connection.execute(
                insert(spreadsheet_uploads)
                .values(values)
                .on_conflict_do_nothing(index_elements=["blob_name"])
            )

    async def created_since(self, subject: str, since: datetime) -> int:
        """Uploads and imports that have begun since a moment."""
        uploads, imports = spreadsheet_uploads, spreadsheet_imports
        noted = count(uploads, uploads.c.subject == clean(subject), uploads.c.created_at >= since)
        opened = count(imports, imports.c.by == clean(subject), imports.c.created_at >= since)
        query = select(noted.scalar_subquery() + opened.scalar_subquery())
        async with self._database.reading() as connection:
            return (await connection.execute(query)).scalar_one()


async def _with_names(
    connection: AsyncConnection, found: Sequence[Difference]
) -> Sequence[Difference]:
    """Differences in which rows that are referred to have their names, not their ids."""
    wanted: dict[Table, set[int]] = defaultdict(set)
    for each in found:
        if (parent := _parent(each)) is not None:
            wanted[parent].update(
                int(value) for value in (each.before, each.after) if value and value.isdecimal()
            )
    names: dict[tuple[Table, str | None], str] = {}
    for parent, ids in wanted.items():
        query = select(parent.c.id, parent.c.name).where(parent.c.id.in_(sorted(ids)))
        names |= {(parent, str(row.id)): row.name for row in await connection.execute(query)}
    return [
        each
        if (parent := _parent(each)) is None
        else each.model_copy(
            update={
                "before": names.get((parent, each.before), each.before),
                "after": names.get((parent, each.after), each.after),
            }
        )
        for each in found
    ]


def _parent(difference: Difference) -> Table | None:
    """The table that a column refers to, where its rows have names."""
    if difference.table not in TARGETS:
        return None
    parent = parents_of(difference.table).get(difference.column)
    return parent if parent is not None and "name" in parent.c else None


@lru_cache
def _revision() -> Select[int]:
    imports = spreadsheet_imports
    return select(imports.c.revision).where(imports.c.uuid == bindparam("uuid"))


def _column(row: Any) -> ColumnView:
    return ColumnView.model_validate(
        {
            **row._asdict(),
            "index": row.position,
            "alternatives": import_rows.load_alternatives(row.alternatives),
            "samples": json.loads(row.samples),
            "blanks": json.loads(row.blanks),
        }
    )


def _decision(row: Any) -> DecisionView:
    alternatives = import_rows.load_alternatives(row.alternatives)
    return DecisionView.model_validate({**row._asdict(), "alternatives": alternatives})
