"""What people decided about headers and values, so that the next file does not ask again."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Table, delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.bulk.dialects import bulk_of
from adapters.database.bulk.protocol import BulkEngine
from adapters.database.codec import clean
from adapters.database.engine import Database
from adapters.database.models.spreadsheets import (
    remembered_columns,
    remembered_values,
    spreadsheet_values,
)
from adapters.database.spreadsheets.locked_import import LockedImport
from adapters.database.spreadsheets.records import LearntColumn, LearntValue, Page
from adapters.database.spreadsheets.statuses import count, paged
from contracts.spreadsheets import ColumnMapping, MappingStatus
from domain.spreadsheets.bibs import QUESTIONS
from domain.spreadsheets.match_keys import header_key, value_key
from domain.spreadsheets.records import RememberedValue
from domain.tabular.blanks import is_blank

_DECIDED = (MappingStatus.MANUAL_MATCHED, MappingStatus.IGNORED)
_BY_A_PERSON = 1.0
"""Confidence of a column that a person left out; one that was left out again has less."""
_SHOWN = 200


async def columns_of(
    connection: AsyncConnection, organisation_id: int, import_type: str, headers: Sequence[str]
) -> Mapping[str, str | None]:
    """Field of each of these headers that people decided about, under the header as it is asked
    for; None for one that they left out.

    Rows of older releases are spelled in another way; of two for one key the later one counts.
    """
    memory = remembered_columns
    rows = await connection.execute(
        select(memory.c.header, memory.c.target)
        .where(memory.c.organisation_id == organisation_id, memory.c.import_type == import_type)
        .order_by(memory.c.decided_at, memory.c.header)
    )
    targets = {header_key(row.header): row.target for row in rows}
    keys = {header: header_key(header) for header in headers}
    return {header: targets[key] for header, key in keys.items() if key in targets}


async def values_of(
    connection: AsyncConnection, organisation_id: int, import_type: str, field: str
) -> Mapping[str, RememberedValue]:
    """Key of each value to what people chose for it.

    Rows of older releases are spelled in another way; of two for one key the later one counts.
    """
    memory = remembered_values
    rows = await connection.execute(
        select(memory.c.value, memory.c.target_id, memory.c.target_name)
        .where(
            memory.c.organisation_id == organisation_id,
            memory.c.import_type == import_type,
            memory.c.field == field,
        )
        .order_by(memory.c.decided_at, memory.c.value)
    )
    return {value_key(row.value): RememberedValue(row.target_id, row.target_name) for row in rows}


async def learn_columns(
    connection: AsyncConnection,
    bulk: BulkEngine,
    opened: LockedImport,
    columns: Sequence[ColumnMapping],
    at: datetime,
    by: str,
) -> None:
    """Keep what people chose for columns, and which they left out."""
    rows = {
        header_key(clean(column.header)): {
            "organisation_id": opened.row.organisation_id,
            "import_type": opened.row.import_type,
            "header": header_key(clean(column.header)),
            "target": column.target,
            "shown": clean(column.header)[:_SHOWN],
            "decided_at": at,
            "decided_by": clean(by),
        }
        for column in columns
        if column.status in _DECIDED
        and (column.target or column.confidence == _BY_A_PERSON)
        and column.header.strip()
    }
    await _write(connection, bulk, remembered_columns, list(rows.values()))


async def learn_values(
    connection: AsyncConnection, bulk: BulkEngine, opened: LockedImport, at: datetime, by: str
) -> None:
    """Keep what people chose for values, and which they left empty; of two spellings the later
    one wins."""
    values = spreadsheet_values
    chosen = await connection.execute(
        select(values.c.field, values.c.value, values.c.target_id, values.c.target_name)
        .where(
            values.c.import_id == opened.id,
            values.c.field.not_in(sorted(QUESTIONS)),
            (
                (values.c.status == MappingStatus.MANUAL_MATCHED.value)
                & values.c.target_id.is_not(None)
            )
            | (values.c.status == MappingStatus.IGNORED.value),
        )
        .order_by(values.c.id)
    )
    rows = {
        (row.field, value_key(row.value)): {
            "organisation_id": opened.row.organisation_id,
            "import_type": opened.row.import_type,
            "field": row.field,
            "value": value_key(row.value),
            "target_id": row.target_id,
            "target_name": row.target_name,
            "shown": row.value[:_SHOWN],
            "decided_at": at,
            "decided_by": clean(by),
        }
        for row in chosen
        if row.target_id is not None or not is_blank(row.value)
    }
    await _write(connection, bulk, remembered_values, list(rows.values()))


async def _write(
    connection: AsyncConnection, bulk: BulkEngine, table: Table, rows: Sequence[Mapping[str, Any]]
) -> None:
    if not rows:
        return
    keys = [column.name for column in table.primary_key]
    insert = bulk.insert_statement(table)
    await connection.execute(
        insert.on_conflict_do_update(
            index_elements=keys,
            set_={name: insert.excluded[name] for name in rows[0] if name not in keys},
        ),
        list(rows),
    )


class SqlSpreadsheetMemory:
    """What was learnt, for people: to see, correct and forget.

    Every method raises `Unavailable` when the database is down. Nothing asks whose it is but the
    organisations that are passed.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._bulk = bulk_of(database)

    async def columns(
        self,
        organisations: Sequence[int],
        import_type: str | None = None,
        query: str = "",
        *,
        page: int = 0,
        size: int = 50,
    ) -> Page[LearntColumn]:
        """Headers that were decided about, the newest first."""
        memory = remembered_columns
        wanted = _wanted(memory, organisations, import_type, memory.c.header, header_key(query))
        rows, total = await self._page(memory, wanted, page, size)
        return Page(
            [
                LearntColumn(
                    row.organisation_id,
                    row.import_type,
                    row.shown or row.header,
                    row.target,
                    row.decided_by,
                    row.decided_at,
                )
                for row in rows
            ],
            total,
        )

    async def values(
        self,
        organisations: Sequence[int],
        import_type: str | None = None,
        query: str = "",
        *,
        page: int = 0,
        size: int = 50,
    ) -> Page[LearntValue]:
        """Values that were decided about, the newest first."""
        memory = remembered_values
        wanted = _wanted(memory, organisations, import_type, memory.c.value, value_key(query))
        rows, total = await self._page(memory, wanted, page, size)
        return Page(
            [
                LearntValue(
                    row.organisation_id,
                    row.import_type,
                    row.field,
                    row.shown or row.value,
                    row.target_id,
                    row.target_name,
                    row.decided_by,
                    row.decided_at,
                )
                for row in rows
            ],
            total,
        )

    async def learn_column(self, learnt: LearntColumn) -> None:
        """Decide about a header, whatever was decided before."""
        row = {
            "organisation_id": learnt.organisation_id,
            "import_type": learnt.import_type,
            "header": header_key(clean(learnt.header)),
            "target": learnt.target,
            "shown": clean(learnt.header)[:_SHOWN],
            "decided_at": learnt.decided_at,
            "decided_by": clean(learnt.decided_by),
        }
        await self._replace(remembered_columns, row, header_key)

    async def learn_value(self, learnt: LearntValue) -> None:
        """Decide about a value, whatever was decided before."""
        row = {
            "organisation_id": learnt.organisation_id,
            "import_type": learnt.import_type,
            "field": learnt.field,
            "value": value_key(clean(learnt.value)),
            "target_id": learnt.target_id,
            "target_name": None if learnt.target_name is None else clean(learnt.target_name),
            "shown": clean(learnt.value)[:_SHOWN],
            "decided_at": learnt.decided_at,
            "decided_by": clean(learnt.decided_by),
        }
        await self._replace(remembered_values, row, value_key)

    async def forget_column(self, organisation_id: int, import_type: str, header: str) -> bool:
        """Forget a header; False when nothing was known of it."""
        known = {"organisation_id": organisation_id, "import_type": import_type}
        return await self._forget(remembered_columns, known, header_key, header_key(header))

    async def forget_value(
        self, organisation_id: int, import_type: str, field: str, value: str
    ) -> bool:
        """Forget a value of a field; False when nothing was known of it."""
        known = {"organisation_id": organisation_id, "import_type": import_type, "field": field}
        return await self._forget(remembered_values, known, value_key, value_key(value))

    async def _page(
        self, memory: Table, wanted: Sequence[ColumnElement[bool]], page: int, size: int
    ) -> tuple[Sequence[Any], int]:
        keys = [column for column in memory.primary_key]
        query = select(memory).where(*wanted).order_by(memory.c.decided_at.desc(), *keys)
        async with self._database.reading() as connection:
            total = (await connection.execute(count(memory, *wanted))).scalar_one()
            return (await connection.execute(paged(query, page, size))).all(), total

    async def _replace(self, memory: Table, row: Mapping[str, Any], key_of: Any) -> None:
        async with self._database.transaction() as connection:
            last = list(memory.primary_key)[-1].name
            known = {column.name: row[column.name] for column in memory.primary_key}
            key = known.pop(last)
            await _remove(connection, memory, known, key_of, key)
            await _write(connection, self._bulk, memory, [row])

    async def _forget(self, memory: Table, known: Mapping[str, Any], key_of: Any, key: str) -> bool:
        async with self._database.transaction() as connection:
            return await _remove(connection, memory, known, key_of, key)


async def _remove(
    connection: AsyncConnection, memory: Table, known: Mapping[str, Any], key_of: Any, key: str
) -> bool:
    """Remove a row, in whatever way an older release spelled its key."""
    last = list(memory.primary_key)[-1]
    mine = [memory.c[name] == value for name, value in known.items()]
    found = (await connection.execute(select(last).where(*mine))).scalars()
    spelled = [each for each in found if key_of(each) == key]
    for each in spelled:
        await connection.execute(delete(memory).where(*mine, last == each))
    return bool(spelled)


def _wanted(
    memory: Table,
    organisations: Sequence[int],
    import_type: str | None,
    text: ColumnElement[Any],
    key: str,
) -> Sequence[ColumnElement[bool]]:
    wanted: list[ColumnElement[bool]] = [memory.c.organisation_id.in_(sorted(organisations))]
    if import_type is not None:
        wanted.append(memory.c.import_type == import_type)
    if key:
        wanted.append(text.contains(key, autoescape=True))
    return wanted
