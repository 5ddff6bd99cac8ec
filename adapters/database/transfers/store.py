"""`jobstatus`: the state of every transfer, and every state that it was in."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Select, func, or_, select

from adapters.database.engine import Database
from adapters.database.models.transfers import jobstatus, transfers
from adapters.database.transfers import leftovers
from adapters.database.transfers.states import StateWriter
from adapters.ports import OpenRow
from adapters.ports.transfers import StatusRow
from contracts.blobs import BlobRef
from contracts.transfers import KeptTransfer, TransferStatus

_FOUND: Final = 10
_PREFIX: Final = 8
"""Hex digits of an id that are enough to look for it."""


class SqlTransferStore:
    """Tables of transfers; every method raises `Unavailable` when the database is down."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._states = StateWriter(database)

    async def record(self, row: StatusRow) -> bool:
        """Add a state; the same one twice is one, and an older one never replaces a newer one,
        unless it is the end. An end is replaced by another end, and a failure by a new beginning.
        """
        return await self._states.write(row)

    async def note(self, row: StatusRow) -> None:
        """Add to the states that a transfer was in, and leave its state now as it is."""
        await self._states.note(row)

    async def get(self, transfer_id: str) -> StatusRow | None:
        """The state of a transfer now; None: there is none."""
        found = await self._rows(select(transfers).where(transfers.c.transfer_id == transfer_id))
        return found[0] if found else None

    async def find(self, beginning: str) -> Sequence[StatusRow]:
        """Transfers whose id begins so (8 hex digits and more), the newest first; at most 10."""
        text = beginning.lower()
        if len(text) < _PREFIX or set(text) - set("0123456789abcdef"):
            return ()
        # A range, which the index of any collation answers; `g` comes after every hex digit.
        id = transfers.c.transfer_id
        query = select(transfers).where(id >= text, id < f"{text}g")
        return await self._rows(query.order_by(transfers.c.at.desc()).limit(_FOUND))

    async def trail(self, transfer_id: str) -> Sequence[StatusRow]:
        """States of a transfer, the oldest first."""
        head = await self.get(transfer_id)
        if head is None:
            return ()
        query = (
            select(jobstatus)
            .where(jobstatus.c.transfer_id == transfer_id)
            .order_by(jobstatus.c.at, jobstatus.c.status)
        )
        async with self._database.reading() as connection:
            found = (await connection.execute(query)).mappings()
            return [_row({**_event_of(head), **row}) for row in found]

    async def newest(
        self,
        *,
        limit: int,
        status: TransferStatus | None = None,
        queue: str | None = None,
        account_id: str | None = None,
        reason: str | None = None,
        before: datetime | None = None,
        behind: str | None = None,
    ) -> Sequence[StatusRow]:
        """The state of each transfer now, the newest change first."""
        query = select(transfers).order_by(transfers.c.at.desc(), transfers.c.transfer_id)
        for column, value in (
            (transfers.c.status, status and status.value),
            (transfers.c.queue, queue),
            (transfers.c.account_id, account_id),
        ):
            if value is not None:
                query = query.where(column == value)
        if reason is not None:
            query = query.where(transfers.c.reason.startswith(reason, autoescape=True))
        if before is not None:
            at, id = transfers.c.at, transfers.c.transfer_id
            is_later = at < before if behind is None else or_(at < before, id > behind)
            query = query.where(at <= before, is_later)
        return await self._rows(query.limit(limit))

    async def count(self, status: TransferStatus) -> int:
        """How many transfers are in a state now."""
        query = select(func.count()).where(transfers.c.status == status.value)
        async with self._database.reading() as connection:
            return (await connection.execute(query)).scalar_one()

    async def open_rows(self, before: datetime, after: str, limit: int) -> Sequence[OpenRow]:
        """Transfers that have not ended."""
        async with self._database.reading() as connection:
            return await leftovers.open_rows(connection, before, after, limit)

    async def terminate(
        self, id: str, reason: str, unchanged_since: datetime | None = None
    ) -> bool:
        """Close a transfer as failed, and let the next run have its turn."""
        async with self._database.transaction() as connection:
            return await leftovers.terminate(connection, id, reason, unchanged_since)

    async def _rows(self, query: Select[Any]) -> Sequence[StatusRow]:
        async with self._database.reading() as connection:
            found = (await connection.execute(query)).mappings()
            return [_row(dict(row)) for row in found]


def _event_of(row: StatusRow) -> dict[str, Any]:
    names = ("source", "event_id", "account_id", "type", "subject")
    return {name: getattr(row, name) for name in names}


def _row(values: dict[str, Any]) -> StatusRow:
    receipt, kept = values.get("receipt"), values.get("kept")
    typed: dict[str, Any] = {
        **values,
        "status": TransferStatus(values["status"]),
        "receipt": None if receipt is None else BlobRef.model_validate_json(receipt),
        "kept": None if kept is None else KeptTransfer.model_validate_json(kept),
    }
    return StatusRow(**typed)
