"""Who may work on a sequence key: rows of runs, which Temporal keeps alive or ends.

A row belongs to a run and not to a process: a worker that is killed loses no turn, since its run
continues. The row of a run that was terminated is removed with its other rows by the sweep.
"""

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import delete, select, text, update

from adapters.database.engine import Database
from adapters.database.models.transfers import transfer_turns

_LOCK: Final = text("SELECT pg_advisory_xact_lock(hashtext('docflow turns'), hashtext(:key))")


class SqlTurns:
    """Table of turns; every method raises `Unavailable` when the database is down."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._insert = database.insert

    async def take(self, key: str, run: str, arrived: datetime) -> Sequence[str]:
        """Stand in line, or see who is before; none: it is this run's turn, until it gives back."""
        turns, own = transfer_turns.c, _hashed(key)
        row = {"key": own, "run": run, "arrived": arrived, "begun": False}
        line = (
            select(turns.run, turns.begun)
            .where(turns.key == own)
            # A run that has begun stays first, even when an earlier event arrives late.
            .order_by(turns.begun.desc(), turns.arrived, turns.run)
        )
        async with self._database.transaction() as connection:
            if self._database.dialect == "postgresql":
                # Of two that ask at the same moment neither would see the other's row.
                await connection.execute(_LOCK, {"key": own})
            await connection.execute(
                self._insert(transfer_turns).values(row).on_conflict_do_nothing()
            )
            runs = [each.run for each in await connection.execute(line)]
            before = runs[: runs.index(run)]
            if not before:
                mine = (turns.key == own) & (turns.run == run)
                await connection.execute(update(transfer_turns).where(mine).values(begun=True))
        return before

    async def give_back(self, key: str, run: str) -> None:
        """Leave the line."""
        turns = transfer_turns.c
        async with self._database.transaction() as connection:
            await connection.execute(
                delete(transfer_turns).where(turns.key == _hashed(key), turns.run == run)
            )


def _hashed(key: str) -> str:
    """Keys are longer than an index entry may be."""
    return hashlib.sha256(key.encode()).hexdigest()
