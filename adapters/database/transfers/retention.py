"""Rows of transfers whose time is over."""

from typing import Final

from adapters.database.engine import Database
from adapters.database.models.transfers import jobstatus, transfers
from adapters.database.retention import SqlOldRows
from adapters.database.transfers.leftovers import OPEN

_ENDED: Final = transfers.c.status.not_in(OPEN)


def old_transfers(database: Database) -> SqlOldRows:
    """Transfers that have ended, with every state that they were in; their receipts stay."""
    return SqlOldRows(database, transfers, transfers.c.at, _ENDED, also=(jobstatus,))
