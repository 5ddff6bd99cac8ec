"""Reading where spreadsheet imports stand: status rows alone, which lists and commands show."""

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, Table, bindparam, func, select

from adapters.database.codec import clean
from adapters.database.engine import Database
from adapters.database.models.spreadsheets import COUNTS, spreadsheet_imports
from adapters.database.spreadsheets.records import (
    ImportFilter,
    ImportSorting,
    Page,
    SpreadsheetRow,
    UndoView,
)
from contracts.blobs import BlobRef
from contracts.spreadsheets import Layout, RowCounts, SpreadsheetState, UndoCounts, UndoState

EVERY_IMPORT: Final = ImportFilter()
MOST_COUNTED: Final = 10_000
"""Imports that a list counts: counting ten million takes the database seconds."""
_MOST_WAITING: Final = 1_000
_NEWEST: Final = (spreadsheet_imports.c.created_at.desc(), spreadsheet_imports.c.id.desc())
_ORDERS: Final[Mapping[ImportSorting, Sequence[ColumnElement[Any]]]] = {
    ImportSorting.NEWEST: _NEWEST,
    ImportSorting.OLDEST: (spreadsheet_imports.c.created_at, spreadsheet_imports.c.id),
    ImportSorting.FILENAME: (spreadsheet_imports.c.filename, *_NEWEST),
}
_LARGE: Final = frozenset({"preview", "fields"})
"""Columns of the status row that a status is read without."""


class SqlSpreadsheetStatuses:
    """Status rows of imports; every method raises `Unavailable` when the database is down.

    Apart from `get` and `list`, nothing asks whose import it is: callers look it up first. One
    that is not there is empty. Pages count from 0.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, uuid: str, organisations: Collection[int]) -> SpreadsheetRow | None:
        """The status of an import; None when it is none of these organisations'."""
        row = await self._status(uuid)
        return None if row is None or row.organisation_id not in organisations else _status(row)

    async def organisations(self) -> tuple[int, ...]:
        """Every organisation that has imports."""
        async with self._database.reading() as connection:
            return tuple((await connection.execute(_organisations())).scalars())

    async def list(
        self,
        organisations: Collection[int],
        wanted: ImportFilter = EVERY_IMPORT,
        *,
        page: int = 0,
        size: int = 20,
        most_counted: int = MOST_COUNTED,
    ) -> Page[SpreadsheetRow]:
        """Imports of these organisations; the total is counted up to `most_counted`."""
        conditions = _conditions(organisations, wanted)
        query = select(*_status_columns()).where(*conditions).order_by(*_ORDERS[wanted.sorting])
        async with self._database.reading() as connection:
            total = (await connection.execute(_count_to(most_counted + 1, conditions))).scalar_one()
            rows = await connection.execute(paged(query, page, size))
            items = [_status(row) for row in rows]
        return Page(items, min(total, most_counted), has_more=total > most_counted)

    async def waiting(self, organisations: Collection[int], by: str) -> Sequence[str]:
        """Imports that a person has uploaded and that wait for an answer; at most 1,000."""
        imports = spreadsheet_imports
        query = (
            select(imports.c.uuid)
            .where(
                *_conditions(organisations, ImportFilter(by=by)),
                imports.c.waiting_since.is_not(None),
            )
            .order_by(imports.c.created_at)
            .limit(_MOST_WAITING)
        )
        async with self._database.reading() as connection:
            return list((await connection.execute(query)).scalars())

    async def undo(self, uuid: str) -> UndoView | None:
        """Progress of an undo; None: none has begun."""
        row = await self._status(uuid)
        if row is None or row.undo_state is None:
            return None
        counts = UndoCounts(
            deleted=row.undo_deleted, restored=row.undo_restored, left_alone=row.undo_left_alone
        )
        return UndoView(
            state=UndoState(row.undo_state),
            counts=counts,
            by=row.undo_by,
            requested_at=row.undo_requested_at,
            finished_at=row.undo_finished_at,
        )

    async def _status(self, uuid: str) -> Any:
        async with self._database.reading() as connection:
            return (await connection.execute(reading_status(), {"uuid": uuid})).one_or_none()


def _conditions(organisations: Collection[int], wanted: ImportFilter) -> list[ColumnElement[bool]]:
    imports = spreadsheet_imports.c
    conditions: list[ColumnElement[bool]] = [imports.organisation_id.in_(sorted(organisations))]
    for column, value in (
        (imports.state, wanted.state),
        (imports.import_type, wanted.import_type),
        (imports.context_id, wanted.context_id),
        (imports.by, wanted.by),
    ):
        if value is not None:
            conditions.append(column == value)
    if wanted.text:
        conditions.append(imports.filename.icontains(clean(wanted.text), autoescape=True))
    return conditions


@lru_cache
def _organisations() -> Select[Any]:
    """The next larger id after each: DISTINCT would read every row that there is."""
    ids = spreadsheet_imports.c.organisation_id
    found = select(func.min(ids).label("id")).cte("found", recursive=True)
    following = select(func.min(ids)).where(ids > found.c.id).scalar_subquery()
    found = found.union_all(select(following).where(found.c.id.is_not(None)))
    return select(found.c.id).where(found.c.id.is_not(None))


def _count_to(most: int, conditions: Sequence[ColumnElement[bool]]) -> Select[int]:
    some = select(spreadsheet_imports.c.id).where(*conditions).limit(most)
    return select(func.count()).select_from(some.subquery())


def count(table: Table, *conditions: ColumnElement[bool]) -> Select[int]:
    """How many rows of a table fit."""
    return select(func.count()).select_from(table).where(*conditions)


def paged(query: Select[*tuple[Any, ...]], page: int, size: int) -> Select[*tuple[Any, ...]]:
    """One page of a query; pages count from 0."""
    return query.limit(size).offset(page * size)


def _status_columns() -> list[ColumnElement[Any]]:
    return [column for column in spreadsheet_imports.c if column.name not in _LARGE]


@lru_cache
def reading_status() -> Select[*tuple[Any, ...]]:
    """Reads the status of the import `uuid`."""
    mine = spreadsheet_imports.c.uuid == bindparam("uuid")
    return select(*_status_columns()).where(mine)


def counts_of(row: Any) -> RowCounts:
    """Counts from a status row."""
    return RowCounts(**{name: getattr(row, name) for name in COUNTS})


def _status(row: Any) -> SpreadsheetRow:
    return SpreadsheetRow(
        uuid=row.uuid,
        workflow_id=row.workflow_id,
        organisation_id=row.organisation_id,
        import_type=row.import_type,
        context_id=row.context_id,
        filename=row.filename,
        by=row.by,
        auto_start=row.auto_start,
        dry_run=row.dry_run,
        fingerprint=row.fingerprint,
        state=SpreadsheetState(row.state),
        state_since=row.state_since,
        step=row.step,
        reason=row.reason,
        assignee=row.assignee,
        waiting_since=row.waiting_since,
        version=row.version,
        revision=row.revision,
        total=row.total,
        counts=counts_of(row),
        parked=row.parked,
        values_total=row.values_total,
        values_open=row.values_open,
        layout=Layout() if row.layout is None else Layout.model_validate_json(row.layout),
        report=None if row.report is None else BlobRef.model_validate_json(row.report),
        undo_state=None if row.undo_state is None else UndoState(row.undo_state),
        created_at=row.created_at,
        updated_at=row.updated_at,
        finished_at=row.finished_at,
        purged_at=row.purged_at,
        round=row.mark_round,
    )
