"""Who may work on a sequence key: rows of runs, which Temporal keeps alive or ends.

A row belongs to a run and not to a process: a worker that is killed loses no turn, since its run
continues. The rows of a run go with its end, in the store of transfers, or with the sweep.

A watch reserves a place for each event before it is sent. Its key is not known yet: until the run
has stood in line for one, or needs none, it is before every later event of that watch.
"""

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import ColumnElement, Delete, Select, delete, exists, func, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.engine import Database
from adapters.database.models.transfers import transfer_turns

_LOCK: Final = text("SELECT pg_advisory_xact_lock(hashtext('docflow turns'), hashtext(:key))")
_RESERVED: Final = "watch "
"""Keys of reservations begin so, with watch and queue; those of lines are hashes."""
_turns: Final = transfer_turns.c


class SqlTurns:
    """Table of turns; every method raises `Unavailable` when the database is down."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._insert = database.insert

    async def newest(self, watch: str, queue: str | None) -> datetime | None:
        """The last place that is reserved for an event of a watch; None: none is."""
        newest = select(func.max(_turns.arrived)).where(_turns.key == _reserved(watch, queue))
        async with self._database.reading() as connection:
            return (await connection.execute(newest)).scalar_one()

    async def reserve(self, watch: str, queue: str | None, run: str, place: datetime) -> None:
        """Keep a place for the job of an event."""
        async with self._database.single() as connection:
            await self._add(connection, _reserved(watch, queue), run, place)

    async def take(self, key: str, run: str, arrived: datetime) -> Sequence[str]:
        """Stand in line, or see who is before; none: it is this run's turn, until it ends."""
        own, reservation = _hashed(key), is_reserved() & (_turns.run == run)
        place = select(_turns.key, _turns.arrived).where(reservation)
        line = (
            select(_turns.run, _turns.begun)
            .where(_turns.key == own)
            # A run that has begun stays first, even when an earlier event arrives late.
            .order_by(_turns.begun.desc(), _turns.arrived, _turns.run)
        )
        async with self._database.transaction() as connection:
            if self._database.dialect == "postgresql":
                # Of two that ask at the same moment neither would see the other's row.
                await connection.execute(_LOCK, {"key": own})
            reserved = (await connection.execute(place)).first()
            await self._add(connection, own, run, reserved.arrived if reserved else arrived)
            runs = [each.run for each in await connection.execute(line)]
            before = runs[: runs.index(run)]
            if reserved and not before:
                before = [*(await connection.execute(_unplaced(*reserved))).scalars()]
            if not before:
                mine = (_turns.key == own) & (_turns.run == run)
                await connection.execute(update(transfer_turns).where(mine).values(begun=True))
                await connection.execute(delete(transfer_turns).where(reservation))
        return before

    async def unreserve(self, run: str) -> None:
        """Give up the place that was reserved for a run."""
        async with self._database.single() as connection:
            await connection.execute(given_back(run).where(is_reserved()))

    async def _add(
        self, connection: AsyncConnection, key: str, run: str, arrived: datetime
    ) -> None:
        row = {"key": key, "run": run, "arrived": arrived, "begun": False}
        await connection.execute(self._insert(transfer_turns).values(row).on_conflict_do_nothing())


def given_back(run: str) -> Delete:
    """Statement that removes all that a job has."""
    return delete(transfer_turns).where(_turns.run == run)


def _reserved(watch: str, queue: str | None) -> str:
    return f"{_RESERVED}{watch} {queue or ''}"


def is_reserved() -> ColumnElement[bool]:
    """The row is a reservation."""
    return _turns.key.startswith(_RESERVED)


def started_by(key: str, job: str) -> str:
    """Workflow id of the run that a reserved event starts: its job, where it names the queue."""
    _, _, queue = key.split(" ")
    return job if queue else job.rpartition("/")[0]


def _unplaced(key: str, arrived: datetime) -> Select[str]:
    """The first event of a watch before a moment whose sequence key is not known yet."""
    other = transfer_turns.alias().c
    stands = exists().where(other.run == _turns.run, other.key != key)
    return (
        select(_turns.run)
        .where(_turns.key == key, _turns.arrived < arrived, ~stands)
        .order_by(_turns.arrived)
        .limit(1)
    )


def _hashed(key: str) -> str:
    """Keys are longer than an index entry may be."""
    return hashlib.sha256(key.encode()).hexdigest()
