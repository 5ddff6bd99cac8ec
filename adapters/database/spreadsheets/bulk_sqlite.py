"""Many rows at once on SQLite: JSON arrays to find them, `executemany` to write them."""

import json
from collections.abc import Sequence
from functools import lru_cache
from itertools import repeat
from typing import Any

from sqlalchemy import Dialect, Table
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.models.people import TARGETS


class SqliteBulk:
    """The `Bulk` of SQLite, where a writer has the whole database to itself."""

    locks = False

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect

    async def prepare(self, connection: AsyncConnection) -> None:
        """Nothing: the statements themselves name what is looked up by index."""

    def stored(
        self, table: Table, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
    ) -> Sequence[tuple[Any, ...]]:
        """Dates, moments and exact numbers as text."""
        processors = [
            table.c[name].type.dialect_impl(self._dialect).bind_processor(self._dialect)
            for name in columns
        ]
        if not rows or not any(processors):
            return rows
        values: list[Sequence[Any]] = list(zip(*rows, strict=True))
        for place, process in enumerate(processors):
            if process is not None:
                # Dates and amounts repeat, and putting them into text takes time.
                known = {value: process(value) for value in set(values[place]) - {None}}
                values[place] = list(map(known.get, values[place]))
        return list(zip(*values, strict=True))

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
        sql = _finding(table, tuple(columns), tuple(same))
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
            f'SELECT {_names(("id", *columns))} FROM "{table.name}" '  # noqa: S608
            "WHERE id IN (SELECT value FROM json_each(?))"
        )
        return await _fetch(connection, sql, json.dumps(list(ids)))

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
        await _execute_many(connection, _inserting(table, tuple(columns)), rows)

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

    async def referred(
        self, connection: AsyncConnection, table: Table, column: str, ids: Sequence[int]
    ) -> set[int]:
        """The distinct values of the column among the ids."""
        sql = (
            f'SELECT DISTINCT "{column}" FROM "{table.name}" '  # noqa: S608
            f'WHERE "{column}" IN (SELECT value FROM json_each(?))'
        )
        return {row[0] for row in await _fetch(connection, sql, json.dumps(list(ids)))}


async def _fetch(connection: AsyncConnection, sql: str, *parameters: Any) -> Sequence[Any]:
    driver: Any = (await connection.get_raw_connection()).driver_connection
    return list(await driver.execute_fetchall(sql, parameters))


async def _execute_many(
    connection: AsyncConnection, sql: str, rows: Sequence[tuple[Any, ...]]
) -> None:
    driver: Any = (await connection.get_raw_connection()).driver_connection
    cursor = await driver.executemany(sql, rows)
    await cursor.close()


def _names(columns: Sequence[str], of: str = "") -> str:
    return ", ".join(f'{of}"{column}"' for column in columns)


@lru_cache(maxsize=512)
def _finding(table: Table, columns: tuple[str, ...], same: tuple[bool, ...]) -> str:
    """`same` marks parts of the key that are sent once for all keys.

    CROSS JOIN keeps the order of the tables: keys first, then the index.
    """
    numbers = iter(range(2, 2 + len(same)))
    conditions: list[str] = []
    for place, (column, one) in enumerate(zip(TARGETS[table.name], same, strict=True)):
        if one:
            value = f"?{next(numbers)}"
        elif any(same):
            value = "sent.value"
        else:
            value = f"json_extract(sent.value, '$[{place}]')"
        conditions.append(f't."{column}" = {value}')
    return (
        f"SELECT sent.key, {_names(('id', *columns), 't.')} "  # noqa: S608
        f'FROM json_each(?1) AS sent CROSS JOIN "{table.name}" AS t '
        f"WHERE {' AND '.join(conditions)}"
    )


@lru_cache(maxsize=512)
def _inserting(table: Table, columns: tuple[str, ...]) -> str:
    marks = ", ".join(repeat("?", len(columns)))
    return f'INSERT INTO "{table.name}" ({_names(columns)}) VALUES ({marks})'  # noqa: S608
