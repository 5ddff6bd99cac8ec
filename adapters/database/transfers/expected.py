"""Days of expectations, and arrivals on queues, in the database."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import exists, func, select

from adapters.database.codec import clean
from adapters.database.engine import Database
from adapters.database.models.transfer_watches import expected_days
from adapters.database.models.transfers import jobstatus, transfers
from adapters.ports.watches import Arrival
from contracts.transfers import RouteKey, TransferStatus
from contracts.transfers.watches import ExpectedDay, ExpectedState

_CAME: Final = tuple(each.value for each in (TransferStatus.ASSIGNED, TransferStatus.READ_MESSAGE))
"""States with which a transfer enters its queue."""


class SqlExpectedStore:
    """Tables of expectations; every method raises `Unavailable` when the database is down."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._insert = database.insert

    async def arrivals(
        self, queue: str, begin: datetime, end: datetime, limit: int
    ) -> Sequence[Arrival]:
        """Transfers that came on a queue, each once."""
        earlier = jobstatus.alias()
        came = func.min(jobstatus.c.at).label("came")
        query = (
            select(jobstatus.c.transfer_id, came)
            .where(
                jobstatus.c.queue == queue,
                jobstatus.c.status.in_(_CAME),
                jobstatus.c.at >= begin,
                jobstatus.c.at < end,
                # One that is carried out again has come before.
                ~exists().where(
                    earlier.c.transfer_id == jobstatus.c.transfer_id,
                    earlier.c.queue == queue,
                    earlier.c.status.in_(_CAME),
                    earlier.c.at < begin,
                ),
            )
            .group_by(jobstatus.c.transfer_id)
            .order_by(came, jobstatus.c.transfer_id)
            .limit(limit)
            .subquery()
        )
        joined = select(query.c.came, transfers).join(
            transfers, transfers.c.transfer_id == query.c.transfer_id
        )
        async with self._database.reading() as connection:
            rows = (await connection.execute(joined.order_by(query.c.came))).mappings().all()
        return [
            Arrival(row["transfer_id"], row["came"], _key(dict(row)), row["file"]) for row in rows
        ]

    async def days(self, name: str, limit: int) -> Sequence[ExpectedDay]:
        """What was recorded, the newest day first."""
        query = (
            select(expected_days.c.record)
            .where(expected_days.c.name == name)
            .order_by(expected_days.c.day.desc())
            .limit(limit)
        )
        async with self._database.reading() as connection:
            found = (await connection.execute(query)).scalars()
            return [ExpectedDay.model_validate_json(each) for each in found]

    async def record(self, days: Sequence[ExpectedDay]) -> None:
        """Insert or replace; what a person has closed stays closed."""
        if not days:
            return
        insert = self._insert(expected_days)
        put = insert.on_conflict_do_update(
            index_elements=["name", "day"],
            set_={name: insert.excluded[name] for name in ("state", "record")},
            where=expected_days.c.state != ExpectedState.CLOSED.value,
        )
        values = [
            {
                "name": each.name,
                "day": each.day,
                "state": each.state.value,
                "record": clean(each.model_dump_json()),
            }
            for each in days
        ]
        async with self._database.transaction() as connection:
            await connection.execute(put, values)


def _key(row: dict[str, str | None]) -> RouteKey | None:
    account, source, type_, subject = (
        row[name] for name in ("account_id", "source", "type", "subject")
    )
    if not (account and source and type_ and subject):
        return None
    return RouteKey(account_id=account, source=source, type=type_, subject=subject)
