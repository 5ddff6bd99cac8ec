"""Rows on their way into a table, and what each database must be able to do with them."""

import hashlib
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from itertools import chain
from typing import Any, Protocol, Self

from sqlalchemy import ColumnElement, Executable, FromClause, Table, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.models.base import key_of

Row = tuple[Any, ...]
"""Values of one row, in the order of its columns."""
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

    @cached_property
    def values(self) -> Sequence[Sequence[Any]]:
        """The same values column by column."""
        width = len(self.columns)
        # Slices of all values in one list take half the time of zip.
        every = list(chain.from_iterable(self.rows))
        return [every[place::width] for place in range(width)]

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
        """The values of one column; a copy."""
        return list(self.values[self.columns.index(name)])

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
        places = [self.columns.index(name) for name in wanted]
        if len(places) == 1:
            return [(row[places[0]],) for row in self.rows]
        return list(map(operator.itemgetter(*places), self.rows))


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


class BulkEngine(Protocol):
    """Rows by the thousand, within an open transaction: what each database must be able to do.

    `merge`, `merge_staged` and `insert_new` write rows that a natural key alone names, with their
    bookkeeping. What follows `stored` is for rows with ids of their own; it takes and gives values
    as the database keeps them, and `stored` and `parsed` make them so.
    """

    locks: bool
    """Rows can change under a reader, so that those about to be changed are locked first."""

    def insert_statement(self, table: Table) -> AnyInsert:
        """An INSERT that knows ON CONFLICT."""
        ...

    def turn(self, *, alone: bool) -> ColumnElement[Any] | None:
        """An expression that waits for its turn on the number `:turn` until the transaction ends.

        Those that must be alone wait for all others, the others only for those.
        """
        ...

    async def fetch(
        self, connection: AsyncConnection, statement: Executable, parameters: Mapping[str, Any]
    ) -> Sequence[Any]:
        """Rows of a statement that runs often: the same object each time, with all of its values.

        They are read by place.
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
        """Insert rows of Python values."""
        ...

    async def expect_lookups(self, connection: AsyncConnection) -> None:
        """Plan the rest of the transaction for look-ups by index."""
        ...

    def stored(self, table: Table, columns: Sequence[str], rows: Sequence[Row]) -> Sequence[Row]:
        """Rows as the database will give them back."""
        ...

    def parsed(self, table: Table, column: str, values: Sequence[Any]) -> Sequence[Any]:
        """Values of one column as the database keeps them, from their JSON."""
        ...

    async def existing(
        self, connection: AsyncConnection, table: Table, ids: Sequence[int]
    ) -> set[int]:
        """Which of these ids are there; they stay until the transaction ends."""
        ...

    async def find(
        self,
        connection: AsyncConnection,
        table: Table,
        names: Sequence[str],
        keys: Sequence[Row],
        columns: Sequence[str],
        *,
        lock: bool,
    ) -> Sequence[Any]:
        """Rows whose columns `names` are one of the keys: place among the keys, id, the columns."""
        ...

    async def rows(
        self,
        connection: AsyncConnection,
        table: Table,
        ids: Sequence[int],
        columns: Sequence[str],
    ) -> Sequence[Any]:
        """Rows of these ids, locked: id, then the columns."""
        ...

    async def lookup(
        self,
        connection: AsyncConnection,
        table: Table,
        owner: tuple[str, int],
        column: str,
        values: Sequence[str],
        columns: Sequence[str],
    ) -> Sequence[Any]:
        """Rows of an owner whose column has one of the values: id, then the columns."""
        ...

    def as_date(self, value: Any) -> date | None:
        """A date as rules know it, from a row of `lookup`."""
        ...

    async def reserve(self, connection: AsyncConnection, table: Table, count: int) -> Sequence[int]:
        """Reserved ids, in ascending order."""
        ...

    async def insert(
        self,
        connection: AsyncConnection,
        table: Table,
        columns: Sequence[str],
        rows: Sequence[Row],
    ) -> None:
        """Insert rows.

        Raises:
            Unavailable: A concurrent writer inserted one of them.
        """
        ...

    async def update(
        self,
        connection: AsyncConnection,
        table: Table,
        columns: Sequence[str],
        rows: Sequence[Row],
    ) -> None:
        """Set the columns of rows; each row is its id, then their values."""
        ...

    async def delete(self, connection: AsyncConnection, table: Table, ids: Sequence[int]) -> None:
        """Delete rows."""
        ...

    async def referring(
        self, connection: AsyncConnection, table: Table, column: str, ids: Sequence[int]
    ) -> Sequence[tuple[int, int]]:
        """Rows whose column refers to one of these ids: id of the row, and of what it refers to."""
        ...


def advisory_lock_key(name: str) -> int:
    """A signed 64-bit number for a name, the same in every process."""
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    return int.from_bytes(digest, signed=True)


async def acquire_advisory_lock(connection: AsyncConnection, bulk: BulkEngine, name: str) -> None:
    """Take the advisory lock of `name` until the transaction ends, waiting for its holder."""
    turn = bulk.turn(alone=True)
    if turn is not None:
        await connection.execute(select(turn), {"turn": advisory_lock_key(name)})
