"""Many rows at once on PostgreSQL: arrays to find and change them, COPY to bring them in."""

from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from typing import Any, Final

import asyncpg
from sqlalchemy import Date, DateTime, Table
from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.models.base import PLACES, ExactDecimal, UtcDateTime
from adapters.database.models.people import TARGETS
from adapters.ports import Unavailable

_DIALECT: Final = PGDialect_asyncpg()


class PostgresBulk:
    """The `Bulk` of PostgreSQL."""

    locks = True

    async def prepare(self, connection: AsyncConnection) -> None:
        """Look keys up by their index: a table that was empty a moment ago looks small still."""
        driver = await _driver(connection)
        await driver.execute(
            "SET LOCAL enable_seqscan = off; "
            "SET LOCAL enable_hashjoin = off; "
            "SET LOCAL enable_mergejoin = off"
        )

    def stored(
        self, table: Table, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
    ) -> Sequence[tuple[Any, ...]]:
        """Numbers get their six places."""
        kinds = [table.c[name].type for name in columns]
        exact = [place for place, kind in enumerate(kinds) if isinstance(kind, ExactDecimal)]
        if not exact or not rows:
            return rows
        values: list[Sequence[Any]] = list(zip(*rows, strict=True))
        for place in exact:
            # Amounts repeat.
            known = {number: _exact(number) for number in set(values[place]) - {None}}
            values[place] = list(map(known.get, values[place]))
        return list(zip(*values, strict=True))

    def parsed(self, table: Table, column: str, values: Sequence[Any]) -> Sequence[Any]:
        """Dates, moments and exact numbers from their text."""
        parse = _parser(table.c[column].type)
        if parse is None:
            return values
        return [None if value is None else parse(value) for value in values]

    async def existing(
        self, connection: AsyncConnection, table: Table, ids: Sequence[int]
    ) -> set[int]:
        """Rows locked as a foreign key would lock them."""
        driver = await _driver(connection)
        sql = (
            f'SELECT id FROM "{table.name}" WHERE id = ANY($1::bigint[]) '  # noqa: S608
            "ORDER BY id FOR KEY SHARE"
        )
        return {row[0] for row in await driver.fetch(sql, ids)}

    async def find(
        self,
        connection: AsyncConnection,
        table: Table,
        keys: Sequence[tuple[Any, ...]],
        columns: Sequence[str],
        *,
        lock: bool,
    ) -> Sequence[Any]:
        """One array for each column of the key, joined by index."""
        driver = await _driver(connection)
        return await driver.fetch(
            _finding(table, tuple(columns), lock), *map(list, zip(*keys, strict=True))
        )

    async def rows(
        self,
        connection: AsyncConnection,
        table: Table,
        ids: Sequence[int],
        columns: Sequence[str],
    ) -> Sequence[Any]:
        """Rows locked in the order of their ids."""
        driver = await _driver(connection)
        return await driver.fetch(
            f'SELECT {_names(("id", *columns))} FROM "{table.name}" '  # noqa: S608
            "WHERE id = ANY($1::bigint[]) ORDER BY id FOR UPDATE",
            ids,
        )

    async def reserve(self, connection: AsyncConnection, table: Table, count: int) -> Sequence[int]:
        """The next numbers of the table's sequence."""
        driver = await _driver(connection)
        rows = await driver.fetch(
            f"SELECT nextval('{table.name}_id_seq') FROM generate_series(1, $1::int)",  # noqa: S608
            count,
        )
        return [row[0] for row in rows]

    async def insert(
        self,
        connection: AsyncConnection,
        table: Table,
        columns: Sequence[str],
        rows: Sequence[tuple[Any, ...]],
    ) -> None:
        """COPY straight into the table."""
        driver = await _driver(connection)
        try:
            await driver.copy_records_to_table(table.name, records=rows, columns=columns)
        except asyncpg.UniqueViolationError as error:
            raise Unavailable(f"another transaction is writing to {table.name}") from error

    async def update(
        self,
        connection: AsyncConnection,
        table: Table,
        columns: Sequence[str],
        rows: Sequence[tuple[Any, ...]],
    ) -> None:
        """UPDATE ... FROM one array for each column."""
        driver = await _driver(connection)
        await driver.execute(_updating(table, tuple(columns)), *map(list, zip(*rows, strict=True)))

    async def delete(self, connection: AsyncConnection, table: Table, ids: Sequence[int]) -> None:
        """All in one statement."""
        driver = await _driver(connection)
        await driver.execute(
            f'DELETE FROM "{table.name}" WHERE id = ANY($1::bigint[])',  # noqa: S608
            ids,
        )

    async def referred(
        self, connection: AsyncConnection, table: Table, column: str, ids: Sequence[int]
    ) -> set[int]:
        """The distinct values of the column among the ids."""
        driver = await _driver(connection)
        sql = (
            f'SELECT DISTINCT "{column}" FROM "{table.name}" '  # noqa: S608
            f'WHERE "{column}" = ANY($1::bigint[])'
        )
        return {row[0] for row in await driver.fetch(sql, ids)}


async def _driver(connection: AsyncConnection) -> Any:
    """asyncpg's own connection; the transaction on it has begun with an earlier statement."""
    return (await connection.get_raw_connection()).driver_connection


def _exact(number: Decimal | int) -> Decimal:
    return Decimal(number).quantize(PLACES, ROUND_HALF_UP)


def _parser(kind: Any) -> Callable[[Any], Any] | None:
    if isinstance(kind, UtcDateTime | DateTime):
        return datetime.fromisoformat
    if isinstance(kind, Date):
        return date.fromisoformat
    return Decimal if isinstance(kind, ExactDecimal) else None


def _names(columns: Sequence[str], of: str = "") -> str:
    return ", ".join(f'{of}"{column}"' for column in columns)


def _arrays(table: Table, columns: Sequence[str]) -> str:
    kinds = (table.c[column].type.compile(_DIALECT) for column in columns)
    return ", ".join(f"${place}::{kind}[]" for place, kind in enumerate(kinds, start=1))


@lru_cache(maxsize=512)
def _finding(table: Table, columns: tuple[str, ...], lock: bool) -> str:
    key = TARGETS[table.name]
    same = " AND ".join(f't."{column}" = sent."{column}"' for column in key)
    return (
        f"SELECT sent.place - 1, {_names(('id', *columns), 't.')} "  # noqa: S608
        f"FROM unnest({_arrays(table, key)}) WITH ORDINALITY AS sent({_names(key)}, place) "
        f'JOIN "{table.name}" AS t ON {same}' + (" ORDER BY t.id FOR UPDATE OF t" if lock else "")
    )


@lru_cache(maxsize=512)
def _updating(table: Table, columns: tuple[str, ...]) -> str:
    changes = ", ".join(f'"{column}" = new."{column}"' for column in columns)
    return (
        f'UPDATE "{table.name}" AS t SET {changes} '  # noqa: S608
        f"FROM unnest({_arrays(table, ('id', *columns))}) AS new({_names(('id', *columns))}) "
        "WHERE t.id = new.id"
    )
