"""`jobstatus`: the state of every transfer, and every state that it was in."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Executable, Select, and_, bindparam, func, or_, select
from sqlalchemy.dialects import postgresql, sqlite

from adapters.database.codec import clean
from adapters.database.engine import Database
from adapters.database.models.transfers import jobstatus, transfers
from adapters.database.transfers import leftovers
from adapters.ports import OpenRow
from adapters.ports.transfers import StatusRow
from contracts.blobs import BlobRef
from contracts.transfers import KeptTransfer, TransferStatus

_FOUND: Final = 10
_PREFIX: Final = 8
"""Hex digits of an id that are enough to look for it."""
_TRAIL: Final = ("transfer_id", "at", "status", "queue", "job", "file", "reason", "by")
_KEPT: Final = ("account_id", "type", "subject", "queue", "job", "file", "run", "receipt", "kept")
"""What a row that leaves it out does not change."""
_SAME: Final = ("status", "queue", "job", "reason", "by", "run")
_SUCCEEDED: Final = TransferStatus.SUCCEEDED.value
_READ: Final = TransferStatus.READ_MESSAGE.value
_ENDED: Final = (_SUCCEEDED, TransferStatus.FAILED.value)
_BEFORE: Final = (
    select(transfers).where(transfers.c.transfer_id == bindparam("id")).with_for_update()
)


class SqlTransferStore:
    """Tables of transfers; every method raises `Unavailable` when the database is down."""

    def __init__(self, database: Database) -> None:
        self._database = database
        insert = sqlite.insert if database.dialect == "sqlite" else postgresql.insert
        # Made once: a row is written three times for each event.
        self._newest = _newest(insert(transfers))
        self._trail = insert(jobstatus).on_conflict_do_nothing()

    async def record(self, row: StatusRow) -> None:
        """Add a state; the same one twice is one, and an older one never replaces a newer one,
        unless it is the end. An end is replaced by another end, and a failure by a new beginning.
        """
        values = _values(row)
        async with self._database.transaction() as connection:
            asked = await connection.execute(_BEFORE, {"id": row.transfer_id})
            known = asked.mappings().one_or_none()
            if known is not None and all(known[name] == values[name] for name in _SAME):
                # Another attempt at the step that has written it.
                return
            await connection.execute(self._newest, [values])
            await connection.execute(self._trail, [{name: values[name] for name in _TRAIL}])

    async def note(self, row: StatusRow) -> None:
        """Add to the states that a transfer was in, and leave its state now as it is."""
        values = _values(row)
        async with self._database.transaction() as connection:
            await connection.execute(self._trail, [{name: values[name] for name in _TRAIL}])

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


def _newest(insert: sqlite.Insert | postgresql.Insert) -> Executable:
    """Insert a row, or replace what it changes in an older one."""
    new = insert.excluded
    changed = {
        **{name: new[name] for name in ("status", "at", "reason", "by")},
        **{name: func.coalesce(new[name], transfers.c[name]) for name in _KEPT},
        # The event whose id it is stays the one that came first.
        "digest": func.coalesce(transfers.c.digest, new.digest),
    }
    # What succeeded is not carried out again, and a note on a run does not open what has failed: a
    # clock that is fast, or a run that was terminated while it wrote, would hide the end.
    replaces_end = or_(
        new.status.in_(_ENDED),
        and_(
            transfers.c.status != _SUCCEEDED,
            or_(new.status != _READ, new.reason.is_(None)),
        ),
    )
    return insert.on_conflict_do_update(
        index_elements=["transfer_id"],
        set_=changed,
        where=or_(
            and_(
                transfers.c.at < new.at,
                or_(transfers.c.status.not_in(_ENDED), replaces_end),
            ),
            # Of one moment the end counts; and an end counts whatever the clock said of the
            # machine that wrote the state before it.
            and_(
                or_(transfers.c.at == new.at, new.status.in_(_ENDED)),
                transfers.c.status.not_in(_ENDED),
            ),
        ),
    )


def _event_of(row: StatusRow) -> dict[str, Any]:
    names = ("source", "event_id", "account_id", "type", "subject")
    return {name: getattr(row, name) for name in names}


def _values(row: StatusRow) -> dict[str, Any]:
    """A row as columns; texts without what PostgreSQL refuses."""
    names = (column.name for column in transfers.columns)
    values = {name: getattr(row, name) for name in names}
    cleaned = {
        name: clean(value) if isinstance(value, str) else value for name, value in values.items()
    }
    receipt = None if row.receipt is None else clean(row.receipt.model_dump_json())
    kept = None if row.kept is None else clean(row.kept.model_dump_json())
    return {**cleaned, "status": row.status.value, "receipt": receipt, "kept": kept}


def _row(values: dict[str, Any]) -> StatusRow:
    receipt, kept = values.get("receipt"), values.get("kept")
    typed: dict[str, Any] = {
        **values,
        "status": TransferStatus(values["status"]),
        "receipt": None if receipt is None else BlobRef.model_validate_json(receipt),
        "kept": None if kept is None else KeptTransfer.model_validate_json(kept),
    }
    return StatusRow(**typed)
