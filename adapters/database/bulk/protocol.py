"""Rows on their way into a table, and what each database must be able to do with them."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, Self

from sqlalchemy import ColumnElement, FromClause, Table, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.models.base import key_of

AnyInsert = postgresql.Insert | sqlite.Insert
"""Both know ON CONFLICT, with the same methods."""


@dataclass(frozen=True)
class RowBatch:
    """Rows of one table, unique by natural key.

    Attributes:
        table: Where they go.
        columns: The natural key and every column that the rows have.
        rows: Values in the order of `columns`.
        lines: Line of each row in its file.
        origin: Place of each row in the chunk it came with.
    """

    table: Table
    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    lines: Sequence[int]
    origin: Sequence[int]

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, places: Sequence[int]) -> Self:
        """The rows at these places, in this order."""
        if len(places) == len(self.rows):
            return self
        return type(self)(
            self.table,
            self.columns,
            [self.rows[place] for place in places],
            [self.lines[place] for place in places],
            [self.origin[place] for place in places],
        )

    def column(self, name: str) -> list[Any]:
        """The values of one column."""
        place = self.columns.index(name)
        return [row[place] for row in self.rows]

    def with_column(self, name: str, values: Sequence[Any]) -> "RowBatch":
        """The same rows with one column replaced or added."""
        if name in self.columns:
            place = self.columns.index(name)
            rows = [
                (*row[:place], value, *row[place + 1 :])
                for row, value in zip(self.rows, values, strict=True)
            ]
            return RowBatch(self.table, self.columns, rows, self.lines, self.origin)
        rows = [(*row, value) for row, value in zip(self.rows, values, strict=True)]
        return RowBatch(self.table, (*self.columns, name), rows, self.lines, self.origin)

    def keys(self, names: Sequence[str] | None = None) -> list[tuple[Any, ...]]:
        """Each row's natural key, or these columns of it."""
        wanted = key_of(self.table) if names is None else names
        return list(zip(*(self.column(name) for name in wanted), strict=True))


@dataclass(frozen=True)
class Stamp:
    """Who writes, and when: the bookkeeping of every row of one transaction."""

    task: str
    now: datetime


@dataclass(frozen=True)
class KeySource:
    """Keys sent along with a query, as something to select from.

    Attributes:
        source: Yields one row per key.
        columns: Its expression for each column of the key.
        place: Its expression for the key's place among the keys sent, from 0.
        parameters: The keys, as parameters of the statement.
    """

    source: FromClause
    columns: Mapping[str, ColumnElement[Any]]
    place: ColumnElement[int]
    parameters: Mapping[str, Any]


class BulkWriter(Protocol):
    """What differs between the databases."""

    def insert(self, table: Table) -> AnyInsert:
        """An INSERT that knows ON CONFLICT."""
        ...

    def turn(self, *, alone: bool) -> ColumnElement[Any] | None:
        """An expression that waits for its turn on the number `:turn` until the transaction ends.

        Those that must be alone wait for all others, the others only for those.
        """
        ...

    async def expect_many(self, connection: AsyncConnection) -> None:
        """Plan the rest of the transaction for many rows, whatever the statistics are."""
        ...

    def keys(
        self, table: Table, names: Sequence[str], keys: Sequence[tuple[Any, ...]]
    ) -> KeySource:
        """Keys as something to select from; `names` are columns of `table`."""
        ...

    def among(self, column: ColumnElement[Any], values: Sequence[str]) -> ColumnElement[bool]:
        """Whether a text column is one of these values, however many they are."""
        ...

    async def merge(
        self, connection: AsyncConnection, batch: RowBatch, stamp: Stamp
    ) -> tuple[int, int]:
        """Upsert by natural key; how many rows were created and how many updated."""
        ...

    async def merge_staged(
        self,
        connection: AsyncConnection,
        table: Table,
        load_id: int,
        columns: tuple[str, ...],
        stamp: Stamp,
    ) -> tuple[int, int]:
        """Upsert the rows a load has staged; how many were created and how many updated."""
        ...

    async def insert_new(self, connection: AsyncConnection, batch: RowBatch, stamp: Stamp) -> int:
        """Insert the rows whose key is unknown; how many these were."""
        ...

    async def fill(
        self,
        connection: AsyncConnection,
        table: Table,
        columns: Sequence[str],
        rows: Sequence[tuple[Any, ...]],
    ) -> None:
        """Insert rows into a table of the store's own."""
        ...


def advisory_lock_key(name: str) -> int:
    """A signed 64-bit number for a name, the same in every process."""
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    return int.from_bytes(digest, signed=True)


async def acquire_advisory_lock(connection: AsyncConnection, writer: BulkWriter, name: str) -> None:
    """Take the advisory lock of `name` until the transaction ends, waiting for its holder."""
    turn = writer.turn(alone=True)
    if turn is not None:
        await connection.execute(select(turn), {"turn": advisory_lock_key(name)})
