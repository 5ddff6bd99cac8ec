"""Many rows at once, with ids of their own: what each database must be able to do with them."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Protocol

from sqlalchemy import Table
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.models.every import metadata
from adapters.database.models.people import TARGETS

Row = tuple[Any, ...]
"""Values of one row, in the order of its columns."""


class Bulk(Protocol):
    """Rows by the thousand, on the driver's own connection within an open transaction.

    Values are taken and given as the database keeps them; `stored` and `parsed` make them so.
    """

    locks: bool
    """Rows can change under a reader, so that those about to be changed are locked first."""

    async def prepare(self, connection: AsyncConnection) -> None:
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
        keys: Sequence[Row],
        columns: Sequence[str],
        *,
        lock: bool,
    ) -> Sequence[Any]:
        """Rows of these natural keys: place among the keys, id, then the columns."""
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

    async def referred(
        self, connection: AsyncConnection, table: Table, column: str, ids: Sequence[int]
    ) -> set[int]:
        """Which of these ids a column of a table refers to."""
        ...


@lru_cache
def target_table(name: str) -> Table:
    """A table that rows of spreadsheets go to.

    Raises:
        ValueError: There is none of that name: a mistake of an import type.
    """
    if name not in TARGETS:
        raise ValueError(f"{name} is not a table that spreadsheets can fill")
    return metadata.tables[name]


@lru_cache
def parents_of(name: str) -> dict[str, Table]:
    """Columns of a target table that refer to other tables."""
    return {key.parent.name: key.column.table for key in target_table(name).foreign_keys}


@lru_cache
def children_of(name: str) -> tuple[tuple[Table, str], ...]:
    """Tables and their columns that refer to a target table."""
    table = target_table(name)
    return tuple(
        (key.parent.table, key.parent.name)
        for other in metadata.tables.values()
        for key in other.foreign_keys
        if key.column.table is table
    )
