"""What watches saw, and the days of expected files."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, delete, exists, func, select
from sqlalchemy.dialects.postgresql import insert

from adapters.database.engine import Database
from adapters.database.models.transfers import (
    expected_days,
    jobstatus,
    transfers,
    watch_states,
    watched_files,
)
from adapters.database.records import clean
from adapters.ports.transfers import Arrival
from workflows.transfers.events import RouteKey, TransferStatus
from workflows.transfers.watches import ExpectedDay, ExpectedState, SeenFile, WatchState

_COLUMNS: Final = tuple(each.name for each in watched_files.columns if each.name != "watch")


class SqlWatchStore:
    """Tables of watches; every method raises `Unavailable` when the database is down."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def seen(self, watch: str) -> Sequence[SeenFile]:
        """Files that were there at the last look."""
        return await self._found(watch, watched_files.c.vanished.is_(None))

    async def vanished(self, watch: str, at: datetime) -> Sequence[SeenFile]:
        """Files that were found gone at that moment."""
        return await self._found(watch, watched_files.c.vanished == at)

    async def _found(self, watch: str, which: ColumnElement[bool]) -> Sequence[SeenFile]:
        query = select(watched_files).where(watched_files.c.watch == watch, which)
        async with self._database.reading() as connection:
            return [_file(row) for row in (await connection.execute(query)).mappings()]

    async def put(self, watch: str, files: Sequence[SeenFile]) -> None:
        """Insert or replace files; key: path."""
        if not files:
            return
        adding = insert(watched_files)
        new = adding.excluded
        put = adding.on_conflict_do_update(
            index_elements=["watch", "path"],
            set_={name: new[name] for name in _COLUMNS if name != "path"},
        )
        async with self._database.transaction() as connection:
            await connection.execute(put, [_values(watch, each) for each in files])

    async def prune(self, watch: str, before: datetime) -> int:
        """Remove files that vanished before a moment; how many they were."""
        gone = delete(watched_files).where(
            watched_files.c.watch == watch, watched_files.c.vanished < before
        )
        async with self._database.transaction() as connection:
            return (await connection.execute(gone)).rowcount

    async def files(self, watch: str, limit: int, *, unsent: bool = False) -> Sequence[SeenFile]:
        """Files for people, those that vanished included, the newest first.

        Args:
            watch: Whose.
            limit: How many at most.
            unsent: Only those without an event.
        """
        query = (
            select(watched_files)
            .where(watched_files.c.watch == watch)
            .order_by(watched_files.c.since.desc(), watched_files.c.path)
            .limit(limit)
        )
        if unsent:
            query = query.where(watched_files.c.event.is_(None))
        async with self._database.reading() as connection:
            return [_file(row) for row in (await connection.execute(query)).mappings()]

    async def state(self, watch: str) -> WatchState | None:
        """What its last look came to; None: there was none."""
        query = select(watch_states.c.record).where(watch_states.c.watch == watch)
        async with self._database.reading() as connection:
            record = (await connection.execute(query)).scalar_one_or_none()
        return None if record is None else WatchState.model_validate_json(record)

    async def put_state(self, state: WatchState) -> None:
        """Insert or replace what a look came to."""
        record = clean(state.model_dump_json())
        put = (
            insert(watch_states)
            .values(watch=state.watch, record=record)
            .on_conflict_do_update(index_elements=["watch"], set_={"record": record})
        )
        async with self._database.transaction() as connection:
            await connection.execute(put)


def _values(watch: str, file: SeenFile) -> dict[str, Any]:
    values = {name: getattr(file, name) for name in _COLUMNS}
    cleaned = {
        name: clean(value) if isinstance(value, str) else value for name, value in values.items()
    }
    return {"watch": watch, **cleaned}


def _file(row: Any) -> SeenFile:
    return SeenFile(**{name: row[name] for name in _COLUMNS})


_CAME: Final = tuple(each.value for each in (TransferStatus.ASSIGNED, TransferStatus.READ_MESSAGE))
"""States with which a transfer enters its queue."""


class SqlExpectedStore:
    """Tables of expectations; every method raises `Unavailable` when the database is down."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def arrivals(
        self, queue: str, begin: datetime, end: datetime, limit: int
    ) -> Sequence[Arrival]:
        """Transfers that came on a queue, each once, by the time at which it first came there.

        Args:
            queue: Which.
            begin: Included.
            end: Not included.
            limit: How many at most.
        """
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
        """What was recorded of an expectation, the newest day first."""
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
        """Insert or replace; key: (name, day). What a person has closed stays closed."""
        if not days:
            return
        adding = insert(expected_days)
        put = adding.on_conflict_do_update(
            index_elements=["name", "day"],
            set_={name: adding.excluded[name] for name in ("state", "record")},
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
