"""Rows that runs of transfers left open."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from sqlalchemy import exists, func, insert, null, select, union_all, update
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.codec import clean
from adapters.database.models.transfers import jobstatus, transfer_turns, transfers
from adapters.database.transfers.turns import given_back, is_reserved, started_by
from adapters.ports import OpenRow
from contracts.transfers import TransferStatus, file_job_id

OPEN: Final = tuple(
    status.value
    for status in (
        TransferStatus.READ_MESSAGE,
        TransferStatus.ASSIGNED,
        TransferStatus.NO_ASSIGNED,
    )
)

_ID: Final = (len(file_job_id("")) - len("/job") + 1, 64)
"""Where the id of a job has that of its transfer: first character and length."""


async def open_rows(
    connection: AsyncConnection, before: datetime, after: str, limit: int
) -> Sequence[OpenRow]:
    """Transfers that have not ended and have not changed since, by the run that would end them.

    Reservations of events without such a row as well, as where a look was broken off.
    """
    is_open = transfers.c.status.in_(OPEN)
    opened = select(transfers.c.run, transfers.c.at, null().label("key")).where(
        is_open, transfers.c.at <= before, transfers.c.run > after
    )
    turns = transfer_turns.c
    reserved = select(turns.run, turns.arrived, turns.key).where(
        is_reserved(),
        turns.arrived <= before,
        turns.run > after,
        ~exists().where(is_open, transfers.c.transfer_id == func.substr(turns.run, *_ID)),
    )
    rows = await connection.execute(union_all(opened, reserved).order_by("run").limit(limit))
    return [OpenRow(row.run, row.at, row.key and started_by(row.key, row.run)) for row in rows]


async def terminate(
    connection: AsyncConnection, run: str, reason: str, unchanged_since: datetime | None
) -> bool:
    """Close a transfer as failed, and let the next run of its sequence key have its turn."""
    query = select(transfers).where(transfers.c.run == run).with_for_update()
    row = (await connection.execute(query)).one_or_none()
    if row is None or row.status not in OPEN:
        await connection.execute(given_back(run))
        return False
    if unchanged_since not in (None, row.at):
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
    await connection.execute(given_back(file_job_id(row.transfer_id)))
    return True
