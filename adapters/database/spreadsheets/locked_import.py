"""An import that is held for the length of a transaction.

A caller that changes an import locks its status row first, and then, where rows of the
organisation's tables are written, the organisation. Of two attempts at one step the second
therefore waits, and sees what the first has done; two imports of one organisation take turns.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import Executable, Select, bindparam, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.bulk.protocol import BulkEngine, acquire_advisory_lock
from adapters.database.models.spreadsheets import (
    spreadsheet_imports,
    spreadsheet_values,
)
from adapters.database.spreadsheets.statuses import counts_of
from contracts.spreadsheets import FINAL, MappingStatus, SpreadsheetState
from domain.spreadsheets.records import SheetMark


@dataclass(frozen=True)
class LockedImport:
    """A status row, locked until the transaction ends.

    Attributes:
        id: What the rows of the import's other tables are filed under.
        row: The status row as it was when it was locked.
    """

    id: int
    row: Any

    @property
    def state(self) -> SpreadsheetState:
        """Where the import stands."""
        return SpreadsheetState(self.row.state)

    @property
    def ended(self) -> bool:
        """Whether nothing more may happen to it but undo and purge."""
        return self.state in FINAL

    @property
    def purged(self) -> bool:
        """Whether what was kept for it is gone, and must not come back."""
        return self.row.purged_at is not None

    @property
    def mark(self) -> SheetMark:
        """How far its rows have come."""
        return mark_of(self.row)


async def lock(connection: AsyncConnection, uuid: str) -> LockedImport | None:
    """Lock an import; None when there is none."""
    row = (await connection.execute(_locking(), {"uuid": uuid})).one_or_none()
    return None if row is None else LockedImport(row.id, row)


async def lock_known(connection: AsyncConnection, uuid: str) -> LockedImport:
    """Lock an import that must be there.

    Raises:
        LookupError: It is not: its run began without `open`.
    """
    opened = await lock(connection, uuid)
    if opened is None:
        raise LookupError(f"there is no import {uuid}")
    return opened


async def acquire_organisation_lock(
    connection: AsyncConnection, bulk: BulkEngine, organisation_id: int
) -> None:
    """Wait until no other import writes rows of the organisation."""
    await acquire_advisory_lock(connection, bulk, f"spreadsheets/{organisation_id}")


async def save(
    connection: AsyncConnection, opened: LockedImport, values: Mapping[str, Any]
) -> None:
    """Change columns of the status row; its revision rises."""
    parameters = {"own_id": opened.id, "updated_at": datetime.now(UTC), **values}
    await connection.execute(_saving(tuple(values)), parameters)


async def counted_values(connection: AsyncConnection, opened: LockedImport) -> dict[str, int]:
    """Figures of the import's values as the status row has them."""
    row = (
        await connection.execute(
            _counting(), {"own_id": opened.id, "open": MappingStatus.UNMATCHED.value}
        )
    ).one()
    return {"values_total": row.total, "values_open": row.open}


def mark_of(row: Any) -> SheetMark:
    """The progress mark from a status row."""
    return SheetMark(
        round=row.mark_round,
        chunk=row.mark_chunk,
        cursor=row.mark_cursor,
        offset=row.mark_offset,
        counts=counts_of(row),
        finished=row.round_ended,
    )


@lru_cache
def _locking() -> Select[Any]:
    return (
        select(spreadsheet_imports)
        .where(spreadsheet_imports.c.uuid == bindparam("uuid"))
        .with_for_update()
    )


@lru_cache(maxsize=64)
def _saving(names: tuple[str, ...]) -> Executable:
    table = spreadsheet_imports
    changes: dict[str, Any] = {name: bindparam(name) for name in names}
    return (
        update(table)
        .where(table.c.id == bindparam("own_id"))
        .values(revision=table.c.revision + 1, **{"updated_at": bindparam("updated_at"), **changes})
    )


@lru_cache
def _counting() -> Select[int, int]:
    values = spreadsheet_values
    return select(
        func.count().label("total"),
        func.count().filter(values.c.status == bindparam("open")).label("open"),
    ).where(values.c.import_id == bindparam("own_id"))
