"""Bulk writes on SQLite: INSERT what is new, then UPDATE what differs, with `executemany`.

Two plain statements instead of one upsert, because SQLite reports how many rows a statement
touched but not which of them it created.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import repeat
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Dialect,
    Table,
    Text,
    and_,
    bindparam,
    func,
    literal,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.sqlite import Insert, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.bulk.protocol import KeySource, RowBatch, Stamp
from adapters.database.models.base import UtcDateTime
from adapters.database.models.every import DOMAIN, STAGED, key_of

_STAMPS = ("source_line", "source_task", "created_at", "updated_at", "version")


class SqliteWriter:
    """The `BulkWriter` of SQLite."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect

    def insert(self, table: Table) -> Insert:
        """An INSERT that knows ON CONFLICT."""
        return insert(table)

    def turn(self, *, alone: bool) -> None:
        """Nothing: a writer has the whole database to itself."""

    async def expect_many(self, connection: AsyncConnection) -> None:
        """Nothing: SQLite looks rows up by the index of their key."""

    def keys(
        self, table: Table, names: Sequence[str], keys: Sequence[tuple[Any, ...]]
    ) -> KeySource:
        """One JSON array of arrays, because SQLite bounds the number of parameters."""
        columns = self._stored(table, names, keys)
        sent = json.dumps(list(zip(*columns, strict=True)))
        source = func.json_each(bindparam("sent", type_=Text)).table_valued("key", "value")
        return KeySource(
            source,
            {
                name: func.json_extract(source.c["value"], literal(f"$[{place}]"))
                for place, name in enumerate(names)
            },
            source.c["key"],
            {"sent": sent},
        )

    def among(self, column: ColumnElement[Any], values: Sequence[str]) -> ColumnElement[bool]:
        """One JSON array, because SQLite bounds the number of parameters."""
        sent = func.json_each(bindparam(None, json.dumps(list(values)), Text))
        return column.in_(select(sent.table_valued("value").c["value"]))

    async def merge(
        self, connection: AsyncConnection, batch: RowBatch, stamp: Stamp
    ) -> tuple[int, int]:
        """Insert what is new; when that was not everything, update what differs."""
        rows = list(self._stamped(batch, stamp))
        name, columns = batch.table.name, batch.columns
        created = await _execute_many(connection, _insert_sql(name, columns), rows)
        change = _update_sql(name, columns)
        if created == len(rows) or change is None:
            return created, 0
        return created, await _execute_many(connection, change, rows)

    async def merge_staged(
        self,
        connection: AsyncConnection,
        table: Table,
        load_id: int,
        columns: tuple[str, ...],
        stamp: Stamp,
    ) -> tuple[int, int]:
        """The same two steps, from the staging twin."""
        staged, key = STAGED[table.name], key_of(table)
        mine = staged.c.load_id == load_id
        new = insert(table).from_select(
            [*columns, *_STAMPS],
            select(
                *(staged.c[name] for name in columns),
                staged.c.source_line,
                literal(stamp.task),
                literal(stamp.now, UtcDateTime),
                literal(stamp.now, UtcDateTime),
                literal(1),
            ).where(mine),
        )
        created = (await connection.execute(new.on_conflict_do_nothing())).rowcount
        values = [name for name in columns if name not in key]
        if not values:
            return created, 0
        change = (
            update(table)
            .values(
                {
                    **{name: staged.c[name] for name in (*values, "source_line")},
                    "source_task": stamp.task,
                    "updated_at": stamp.now,
                    "version": table.c.version + 1,
                }
            )
            .where(
                mine,
                and_(*(table.c[name] == staged.c[name] for name in key)),
                or_(*(table.c[name].is_distinct_from(staged.c[name]) for name in values)),
            )
        )
        return created, (await connection.execute(change)).rowcount

    async def insert_new(self, connection: AsyncConnection, batch: RowBatch, stamp: Stamp) -> int:
        """INSERT ... ON CONFLICT DO NOTHING."""
        rows = list(self._stamped(batch, stamp))
        return await _execute_many(connection, _insert_sql(batch.table.name, batch.columns), rows)

    async def fill(
        self,
        connection: AsyncConnection,
        table: Table,
        columns: Sequence[str],
        rows: Sequence[tuple[Any, ...]],
    ) -> None:
        """Plain inserts."""
        stored = zip(*self._stored(table, columns, rows), strict=True)
        await _execute_many(connection, _fill_sql(table.name, tuple(columns)), list(stored))

    def _stamped(self, batch: RowBatch, stamp: Stamp) -> Iterable[tuple[Any, ...]]:
        """Rows as SQLite stores them, followed by their bookkeeping in the order of `_STAMPS`."""
        (now,) = self._stored(batch.table, ("updated_at",), [(stamp.now,)])
        return zip(
            *self._stored(batch.table, batch.columns, batch.rows),
            batch.lines,
            *(repeat(value, len(batch)) for value in (stamp.task, now[0], now[0], 1)),
            strict=True,
        )

    def _stored(
        self, table: Table, names: Sequence[str], rows: Sequence[tuple[Any, ...]]
    ) -> list[Sequence[Any]]:
        """Column by column, with values as SQLAlchemy would bind them."""
        columns: list[Sequence[Any]] = list(zip(*rows, strict=True)) if rows else [()] * len(names)
        for place, name in enumerate(names):
            process = _processor(table.c[name].type, self._dialect)
            if process is not None:
                columns[place] = [
                    None if value is None else process(value) for value in columns[place]
                ]
        return columns


def _processor(column_type: Any, dialect: Dialect) -> Callable[[Any], Any] | None:
    return column_type.dialect_impl(dialect).bind_processor(dialect)


async def _execute_many(
    connection: AsyncConnection, sql: str, rows: Sequence[tuple[Any, ...]]
) -> int:
    raw = await connection.get_raw_connection()
    driver: Any = raw.driver_connection
    cursor = await driver.executemany(sql, rows)
    try:
        return cursor.rowcount
    finally:
        await cursor.close()


@lru_cache(maxsize=512)
def _insert_sql(name: str, columns: tuple[str, ...]) -> str:
    return f"{_fill_sql(name, (*columns, *_STAMPS))} ON CONFLICT DO NOTHING"


@lru_cache(maxsize=512)
def _fill_sql(name: str, columns: tuple[str, ...]) -> str:
    names = ", ".join(f'"{column}"' for column in columns)
    marks = ", ".join("?" * len(columns))
    return f'INSERT INTO "{name}" ({names}) VALUES ({marks})'  # noqa: S608 - names of our models


@lru_cache(maxsize=512)
def _update_sql(name: str, columns: tuple[str, ...]) -> str | None:
    """Numbered parameters, so that it takes the very rows of the INSERT."""
    key = key_of(DOMAIN[name])
    number = {column: f"?{place}" for place, column in enumerate((*columns, *_STAMPS), start=1)}
    values = [column for column in columns if column not in key]
    if not values:
        return None
    stamps = ("source_line", "source_task", "updated_at")
    changes = ", ".join(f'"{column}" = {number[column]}' for column in (*values, *stamps))
    differs = " OR ".join(f'"{column}" IS NOT {number[column]}' for column in values)
    found = " AND ".join(f'"{column}" = {number[column]}' for column in key)
    return (
        f'UPDATE "{name}" SET {changes}, version = version + {number["version"]} '  # noqa: S608
        f"WHERE {found} AND ({differs})"
    )
