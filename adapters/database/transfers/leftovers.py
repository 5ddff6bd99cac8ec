"""Rows that runs of transfers left open."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from sqlalchemy import delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.codec import clean
from adapters.database.models.transfers import jobstatus, transfer_turns, transfers
from adapters.ports import OpenRow
from contracts.transfers import TransferStatus

OPEN: Final = tuple(
    status.value
    for status in (
        TransferStatus.READ_MESSAGE,
        TransferStatus.ASSIGNED,
        TransferStatus.NO_ASSIGNED,
    )
)


async def open_rows(
    connection: AsyncConnection, before: datetime, after: str, limit: int
) -> Sequence[OpenRow]:
    """Transfers that have not ended and have not changed since, by the run that would end them."""
    rows = await connection.execute(
        select(transfers.c.run, transfers.c.at)
        .where(transfers.c.status.in_(OPEN), transfers.c.at <= before, transfers.c.run > after)
        .order_by(transfers.c.run)
        .limit(limit)
    )
    return [OpenRow(row.run, row.at) for row in rows]


async def terminate(
    connection: AsyncConnection, run: str, reason: str, unchanged_since: datetime | None
) -> bool:
    """Close a transfer as failed, and let the next run of its sequence key have its turn."""
    query = select(transfers).where(transfers.c.run == run).with_for_update()
    row = (await connection.execute(query)).one_or_none()
    if row is None or row.status not in OPEN or unchanged_since not in (None, row.at):
        return False
    now, status = datetime.now(UTC), TransferStatus.FAILED.value
    cleaned = clean(reason)[:1_500]
    own = transfers.c.transfer_id == row.transfer_id
    await connection.execute(
        update(transfers).where(own).values(status=status, reason=cleaned, by=None, at=now)
    )
    await connection.execute(
        insert(jobstatus).values(
            transfer_id=row.transfer_id,
            at=now,
            status=status,
            queue=row.queue,
            job=row.job,
            file=row.file,
            reason=cleaned,
        )
    )
    await connection.execute(delete(transfer_turns).where(transfer_turns.c.run == run))
    return True
