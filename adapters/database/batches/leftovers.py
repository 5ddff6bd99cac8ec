"""Rows that runs of cases and batches left open."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import Text, and_, case, cast, delete, literal, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.codec import clean
from adapters.database.models.batches import TEMPORARY, batches
from adapters.ports import OpenRow
from contracts.batches import BatchKey, LoaderStatus
from domain.batches.events import ended

AFTER_RESOURCES: Final = timedelta(minutes=45)
"""The sweeper of resources goes first: it closes the row, and stops loads that are open."""

_PROCESSING: Final = LoaderStatus.PROCESSING.value
_REQUESTED: Final = and_(
    batches.c.loader_status == LoaderStatus.WAITING.value, batches.c.purpose.is_not(None)
)


async def open_rows(
    connection: AsyncConnection, before: datetime, after: str, limit: int
) -> Sequence[OpenRow]:
    """Batches in `processing`, and those that were started and wait for their case, by id."""
    id = literal("batch/") + cast(batches.c.case_id, Text) + "/" + cast(batches.c.batch_id, Text)
    run = case(
        (batches.c.loader_status == _PROCESSING, id),
        else_=literal("case/") + cast(batches.c.case_id, Text),
    )
    rows = await connection.execute(
        select(id.label("id"), run.label("run"), batches.c.updated_at)
        .where(
            or_(batches.c.loader_status == _PROCESSING, _REQUESTED),
            batches.c.updated_at <= before,
            id > after,
        )
        .order_by(id)
        .limit(limit)
    )
    return [
        OpenRow(
            row.id,
            row.updated_at,
            run=row.run,
            grace=AFTER_RESOURCES if row.run == row.id else timedelta(),
        )
        for row in rows
    ]


async def terminate(
    connection: AsyncConnection,
    run: str,
    reason: str,
    unchanged_since: datetime | None,
) -> bool:
    """Close a batch as terminated: its case is free, and it may be started again."""
    _, case_id, batch_id = run.split("/")
    key = BatchKey(case_id=int(case_id), batch_id=int(batch_id))
    own = and_(batches.c.case_id == key.case_id, batches.c.batch_id == key.batch_id)
    query = select(batches.c.updated_at).where(
        own, or_(batches.c.loader_status == _PROCESSING, _REQUESTED)
    )
    changed_at = (await connection.execute(query.with_for_update())).scalar_one_or_none()
    if changed_at is None or unchanged_since not in (None, changed_at):
        return False
    now = datetime.now(UTC)
    values: dict[str, Any] = {**ended(LoaderStatus.TERMINATED, now), "reason": clean(reason)}
    await connection.execute(update(batches).where(own).values(**values, updated_at=now))
    for table in TEMPORARY:
        mine = and_(table.c.case_id == key.case_id, table.c.batch_id == key.batch_id)
        await connection.execute(delete(table).where(mine))
    return True
