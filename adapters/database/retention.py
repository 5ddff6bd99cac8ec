"""Removal of rows by age, page by page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from pydantic import TypeAdapter
from sqlalchemy import (
    Column,
    ColumnElement,
    CursorResult,
    Table,
    and_,
    delete,
    func,
    select,
    tuple_,
    update,
)

from adapters.database.engine import Database
from adapters.ports import OldRow
from contracts.blobs import BlobRef

_BLOB = TypeAdapter(BlobRef)


@dataclass(frozen=True, eq=False)
class SqlOldRows:
    """Rows of one table whose time is over; every method raises `Unavailable` without the database.

    Attributes:
        database: Where they are.
        table: With a primary key.
        since: When the time of a row begins; leads an index.
        condition: What else has to be true of a row.
        blob: Names a blob, as JSON, that goes with the row; None: none does.
        emptied: Columns that are overwritten instead of the row being deleted; the condition has
            to be false afterwards.
        also: Tables with rows of the same key, which go first.
    """

    database: Database
    table: Table
    since: Column[Any]
    condition: ColumnElement[bool]
    blob: Column[Any] | None = None
    emptied: Mapping[str, Any] = field(default_factory=dict[str, Any])
    also: Sequence[Table] = ()

    async def count(self, before: datetime, most: int) -> int:
        """How many there are, counted up to `most`."""
        due = select(self.since).where(self._is_due(before)).limit(most).subquery()
        async with self.database.reading() as connection:
            found = await connection.scalar(select(func.count()).select_from(due))
        return int(found or 0)

    async def due(self, before: datetime, limit: int) -> Sequence[OldRow]:
        """The oldest of them."""
        key = list(self.table.primary_key.columns)
        blobs = () if self.blob is None else (self.blob,)
        query = select(*key, *blobs).where(self._is_due(before)).order_by(self.since).limit(limit)
        async with self.database.reading() as connection:
            rows = (await connection.execute(query)).all()
        return [OldRow(tuple(row)[: len(key)], _names(row[-1]) if blobs else ()) for row in rows]

    async def remove(self, rows: Sequence[OldRow], before: datetime) -> int:
        """Remove them; one that has changed since it was read stays."""
        names = [column.name for column in self.table.primary_key.columns]
        keys = [row.key for row in rows]
        async with self.database.transaction() as connection:
            own = and_(_is_one_of(self.table, names, keys), self._is_due(before))
            if self.also:
                # What changes meanwhile waits, or is waited for and no longer due.
                locked = select(*self.table.primary_key.columns).where(own).with_for_update()
                keys = [tuple(row) for row in await connection.execute(locked)]
                if not keys:
                    return 0
                for table in self.also:
                    await connection.execute(delete(table).where(_is_one_of(table, names, keys)))
                own = _is_one_of(self.table, names, keys)
            change = (
                update(self.table).values(**self.emptied) if self.emptied else delete(self.table)
            )
            done = await connection.execute(change.where(own))
        return cast(CursorResult[Any], done).rowcount

    def _is_due(self, before: datetime) -> ColumnElement[bool]:
        return and_(self.since < before, self.condition)


def _is_one_of(
    table: Table, names: Sequence[str], keys: Sequence[tuple[Any, ...]]
) -> ColumnElement[bool]:
    if len(names) == 1:
        return table.c[names[0]].in_([key[0] for key in keys])
    return tuple_(*(table.c[name] for name in names)).in_(keys)


def _names(blob: str | None) -> tuple[str, ...]:
    return () if blob is None else (_BLOB.validate_json(blob).name,)
