"""Bulk writes on SQLite: INSERT what is new, then UPDATE what differs, with `executemany`.

Bulk writes on SQLite: INSERT what is new, then UPDATE what differs, with `executemany`.

Two plain statements instead of one upsert, because SQLite reports how many rows a statement
touched but not which of them it created.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import lru_cache, partial
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Dialect,
    Executable,
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
from workflows.shared.conversion import PackedRows

STAMPS: Final = ("source_line", "source_task", "created_at", "updated_at", "version")
"""The bookkeeping of a row, behind its values."""


def quoted(columns: Sequence[str], of: str = "") -> str:
    """Names for a statement, each with the prefix `of`."""
    return ", ".join(f'{of}"{column}"' for column in columns)


@lru_cache(maxsize=512)
def finding(
    table: Table, key: tuple[str, ...], columns: tuple[str, ...], same: tuple[bool, ...]
) -> str:
    """Find rows by keys that are sent as one JSON array; `same` marks parts that are sent once.

    CROSS JOIN keeps the order of the tables: keys first, then the index.
    """
    numbers = iter(range(2, 2 + len(same)))
    conditions: list[str] = []
    for place, (column, one) in enumerate(zip(key, same, strict=True)):
        if one:
            value = f"?{next(numbers)}"
        elif any(same):
            value = "sent.value"
        else:
            value = f"json_extract(sent.value, '$[{place}]')"
        conditions.append(f't."{column}" = {value}')
    return (
        f"SELECT sent.key, {quoted(('id', *columns), 't.')} "  # noqa: S608
        f'FROM json_each(?1) AS sent CROSS JOIN "{table.name}" AS t '
        f"WHERE {' AND '.join(conditions)}"
    )


@lru_cache(maxsize=512)
def insert_sql(name: str, columns: tuple[str, ...], rows: int = 1) -> str:
    """Insert so many rows, each followed by its `STAMPS`, whose key is unknown."""
    return f"{fill_sql(name, (*columns, *STAMPS), rows)} ON CONFLICT DO NOTHING"


@lru_cache(maxsize=512)
def fill_sql(name: str, columns: tuple[str, ...], rows: int = 1) -> str:
    """Insert so many rows."""
    marks = ", ".join(["(" + ", ".join("?" * len(columns)) + ")"] * rows)
    return f'INSERT INTO "{name}" ({quoted(columns)}) VALUES {marks}'  # noqa: S608 - names of our models


@lru_cache(maxsize=512)
def packed_sql(name: str, columns: tuple[str, ...], shared: int, rows: int) -> str:
    """The same for rows that share their first columns and all stamps but the line.

    Its parameters are those of each row, its line the last of them, then those that all share.
    """
    own = len(columns) - shared + 1
    all_share = ", ".join(f"?{rows * own + n}" for n in range(1, shared + len(STAMPS)))
    marks = ", ".join(
        f"({', '.join(f'?{row * own + n}' for n in range(1, own + 1))}, {all_share})"
        for row in range(rows)
    )
    names = quoted((*columns[shared:], STAMPS[0], *columns[:shared], *STAMPS[1:]))
    return f'INSERT INTO "{name}" ({names}) VALUES {marks} ON CONFLICT DO NOTHING'  # noqa: S608


@lru_cache(maxsize=512)
def update_sql(name: str, columns: tuple[str, ...]) -> str | None:
    """Update rows that differ; None: there is nothing but the key.

    Numbered parameters, so that it takes the very rows of the INSERT.
    """
    key = key_of(DOMAIN[name])
    number = {column: f"?{place}" for place, column in enumerate((*columns, *STAMPS), start=1)}
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


_PARAMETERS: Final = 900
"""Of one statement: what every build of SQLite takes."""


class SqliteBulk:
    """The `BulkEngine` of SQLite, where a writer has the whole database to itself."""

    locks = False

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect

    def insert_statement(self, table: Table) -> Insert:
        """An INSERT that knows ON CONFLICT."""
        return insert(table)

    def turn(self, *, alone: bool) -> None:
        """Nothing: a writer has the whole database to itself."""

    async def fetch(
        self, connection: AsyncConnection, statement: Executable, parameters: Mapping[str, Any]
    ) -> Sequence[Any]:
        """As SQLAlchemy runs it."""
        return (await connection.execute(statement, parameters)).all()

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
        name, columns = batch.table.name, batch.columns
        created = await self.insert_new(connection, batch, stamp)
        change = update_sql(name, columns)
        if created == len(batch) or change is None:
            return created, 0
        stamped = self._stamped(batch, stamp)
        return created, await _execute_many(connection, change, list(zip(*stamped, strict=True)))

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
            [*columns, *STAMPS],
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
        name, columns = batch.table.name, batch.columns
        if isinstance(batch.rows, PackedRows):
            (now,) = self._stored(batch.table, ("updated_at",), [(stamp.now,)])
            stamps = (stamp.task, now[0], now[0], 1)
            return await _insert_packed(connection, name, columns, batch.rows, stamps)
        sql_of = partial(insert_sql, name, columns)
        return await _insert(connection, sql_of, self._stamped(batch, stamp))

    async def fill(
        self,
        connection: AsyncConnection,
        table: Table,
        columns: Sequence[str],
        rows: Sequence[tuple[Any, ...]],
    ) -> None:
        """Plain inserts."""
        await self.insert(connection, table, columns, self.stored(table, columns, rows))

    async def expect_lookups(self, connection: AsyncConnection) -> None:
        """Nothing: the statements themselves name what is looked up by index."""

    def stored(
        self, table: Table, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
    ) -> Sequence[tuple[Any, ...]]:
        """Dates, moments and exact numbers as text."""
        if not any(_processor(table.c[name].type, self._dialect) for name in columns):
            return rows
        return list(zip(*self._stored(table, columns, rows), strict=True))

    def parsed(self, table: Table, column: str, values: Sequence[Any]) -> Sequence[Any]:
        """As they are: what SQLite keeps is what JSON knows."""
        return values

    async def existing(
        self, connection: AsyncConnection, table: Table, ids: Sequence[int]
    ) -> set[int]:
        """They cannot be deleted before the transaction ends."""
        sql = f'SELECT id FROM "{table.name}" WHERE id IN (SELECT value FROM json_each(?))'  # noqa: S608
        return {row[0] for row in await _fetch(connection, sql, json.dumps(list(ids)))}

    async def find(
        self,
        connection: AsyncConnection,
        table: Table,
        names: Sequence[str],
        keys: Sequence[tuple[Any, ...]],
        columns: Sequence[str],
        *,
        lock: bool,
    ) -> Sequence[Any]:
        """One JSON array of the keys, joined by index."""
        columns_of_keys: list[Sequence[Any]] = list(zip(*keys, strict=True))
        same = [len(set(values)) == 1 for values in columns_of_keys]
        if sum(same) == len(keys[0]) - 1:
            varying = columns_of_keys[same.index(False)]
            sent: Sequence[Any] = varying
        else:
            same, sent = [False] * len(same), keys
        constants = [values[0] for values, one in zip(columns_of_keys, same, strict=True) if one]
        sql = finding(table, tuple(names), tuple(columns), tuple(same))
        return await _fetch(connection, sql, json.dumps(sent), *constants)

    async def rows(
        self,
        connection: AsyncConnection,
        table: Table,
        ids: Sequence[int],
        columns: Sequence[str],
    ) -> Sequence[Any]:
        """One JSON array of the ids."""
        sql = (
            f'SELECT {quoted(("id", *columns))} FROM "{table.name}" '  # noqa: S608
            "WHERE id IN (SELECT value FROM json_each(?))"
        )
        return await _fetch(connection, sql, json.dumps(list(ids)))

    async def lookup(
        self,
        connection: AsyncConnection,
        table: Table,
        owner: tuple[str, int],
        column: str,
        values: Sequence[str],
        columns: Sequence[str],
    ) -> Sequence[Any]:
        """One JSON array of the values, joined by index."""
        name, own = owner
        sql = (
            f"SELECT {quoted(('id', *columns), 't.')} FROM json_each(?1) AS sent "  # noqa: S608
            f'CROSS JOIN "{table.name}" AS t '
            f'WHERE t."{name}" = ?2 AND t."{column}" = sent.value'
        )
        return await _fetch(connection, sql, json.dumps(list(values)), own)

    def as_date(self, value: Any) -> date | None:
        """From its text."""
        return None if value is None else date.fromisoformat(value)

    async def reserve(self, connection: AsyncConnection, table: Table, count: int) -> Sequence[int]:
        """The numbers after the highest that was ever given; the inserts make them known."""
        rows = await _fetch(
            connection, "SELECT seq FROM sqlite_sequence WHERE name = ?", table.name
        )
        highest = rows[0][0] if rows else 0
        return range(highest + 1, highest + 1 + count)

    async def insert(
        self,
        connection: AsyncConnection,
        table: Table,
        columns: Sequence[str],
        rows: Sequence[tuple[Any, ...]],
    ) -> None:
        """Plain inserts."""
        await _execute_many(connection, fill_sql(table.name, tuple(columns)), rows)

    async def update(
        self,
        connection: AsyncConnection,
        table: Table,
        columns: Sequence[str],
        rows: Sequence[tuple[Any, ...]],
    ) -> None:
        """An UPDATE for each row; numbered parameters take the rows as they are."""
        changes = ", ".join(
            f'"{column}" = ?{place}' for place, column in enumerate(columns, start=2)
        )
        await _execute_many(
            connection,
            f'UPDATE "{table.name}" SET {changes} WHERE id = ?1',  # noqa: S608
            rows,
        )

    async def delete(self, connection: AsyncConnection, table: Table, ids: Sequence[int]) -> None:
        """One by one, by primary key."""
        await _execute_many(
            connection,
            f'DELETE FROM "{table.name}" WHERE id = ?',  # noqa: S608
            list(zip(ids, strict=True)),
        )

    async def referring(
        self, connection: AsyncConnection, table: Table, column: str, ids: Sequence[int]
    ) -> Sequence[tuple[int, int]]:
        """One JSON array of the ids."""
        sql = (
            f'SELECT id, "{column}" FROM "{table.name}" '  # noqa: S608
            f'WHERE "{column}" IN (SELECT value FROM json_each(?))'
        )
        rows = await _fetch(connection, sql, json.dumps(list(ids)))
        return [(row[0], row[1]) for row in rows]

    def _stamped(self, batch: RowBatch, stamp: Stamp) -> list[Sequence[Any]]:
        """Columns as SQLite stores them, followed by their bookkeeping in the order of `STAMPS`."""
        (now,) = self._stored(batch.table, ("updated_at",), [(stamp.now,)])
        columns = [*self._bound(batch.table, batch.columns, batch.values), batch.lines]
        return [
            *columns,
            *([value] * len(batch) for value in (stamp.task, now[0], now[0], 1)),
        ]

    def _stored(
        self, table: Table, names: Sequence[str], rows: Sequence[tuple[Any, ...]]
    ) -> list[Sequence[Any]]:
        """Column by column, with values as SQLAlchemy would bind them."""
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
        return self._bound(table, names, columns)

    def _bound(
        self, table: Table, names: Sequence[str], values: Sequence[Sequence[Any]]
    ) -> list[Sequence[Any]]:
        """Columns with values as SQLAlchemy would bind them."""
        columns = list(values)
        for place, name in enumerate(names):
            process = _processor(table.c[name].type, self._dialect)
            if process is not None:
                # Dates and amounts repeat, and putting them into text takes time.
                known = {value: process(value) for value in set(columns[place]) - {None}}
                columns[place] = list(map(known.get, columns[place]))
        return columns


def _processor(column_type: Any, dialect: Dialect) -> Callable[[Any], Any] | None:
    return column_type.dialect_impl(dialect).bind_processor(dialect)


async def _fetch(connection: AsyncConnection, sql: str, *parameters: Any) -> Sequence[Any]:
    driver: Any = (await connection.get_raw_connection()).driver_connection
    return list(await driver.execute_fetchall(sql, parameters))


async def _insert(
    connection: AsyncConnection, sql_of: Callable[[int], str], columns: Sequence[Sequence[Any]]
) -> int:
    """Insert rows that come as columns, many with one statement.

    SQLite gives the interpreter lock back for each statement and then has to wait for it, most of
    the time while another thread reads the next rows.
    """
    width, count = len(columns), len(columns[0])
    values: list[Any] = [None] * (width * count)
    for place, column in enumerate(columns):
        values[place::width] = column
    together = _PARAMETERS // width
    end = len(values) - len(values) % (width * together)
    done = 0
    for rows, start, stop in ((together, 0, end), (1, end, len(values))):
        if start < stop:
            step = rows * width
            parts = [values[place : place + step] for place in range(start, stop, step)]
            done += await _execute_many(connection, sql_of(rows), parts)
    return done


async def _insert_packed(
    connection: AsyncConnection,
    name: str,
    columns: tuple[str, ...],
    rows: PackedRows,
    stamps: Sequence[Any],
) -> int:
    """Insert rows as they are packed; what all of them share is sent once with a statement."""
    shared = [*rows.scope, *stamps]
    values = rows.texts()
    width = len(values) // len(rows)
    step = width * ((_PARAMETERS - len(shared)) // width)
    end = len(values) - len(values) % step
    done = 0
    for start, stop, size in ((0, end, step), (end, len(values), len(values) - end)):
        if start < stop:
            sql = packed_sql(name, columns, len(rows.scope), size // width)
            parts = [[*values[at : at + size], *shared] for at in range(start, stop, size)]
            done += await _execute_many(connection, sql, parts)
    return done


async def _execute_many(
    connection: AsyncConnection, sql: str, rows: Sequence[Sequence[Any]]
) -> int:
    driver: Any = (await connection.get_raw_connection()).driver_connection
    cursor = await driver.executemany(sql, rows)
    try:
        return cursor.rowcount
    finally:
        await cursor.close()
