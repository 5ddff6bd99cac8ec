"""The record of rejected messages."""

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import func, select, update

from adapters.database.codec import clean
from adapters.database.engine import Database
from adapters.database.models.imports import rejected_messages
from adapters.ports import REJECTED_BODY_BYTES, OpenRejections, RejectedMessage

_LARGEST_ID: Final = 2**63 - 1
_UNKNOWN_SHA256: Final = ""
"""In rows of earlier releases."""


class SqlRejectedMessages:
    """Rejected messages; every method raises `Unavailable` when the database is unavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def probe(self) -> None:
        """See whether messages can be recorded: the database is not a standby, and has room."""
        await self._database.probe_by_writing()

    async def record(
        self, queue: str, message_id: str | None, reason: str, description: str, body: bytes
    ) -> None:
        """Keep a message; the same id and body of the same queue are kept once."""
        insert = self._database.insert
        async with self._database.transaction() as connection:
            await connection.execute(
                insert(rejected_messages)
                .values(
                    queue=queue,
                    message_id=None if message_id is None else clean(message_id),
                    reason=clean(reason),
                    description=clean(description),
                    body=_bounded(body),
                    body_sha256=hashlib.sha256(body).hexdigest(),
                    truncated=len(body) > REJECTED_BODY_BYTES,
                    received_at=datetime.now(UTC),
                )
                .on_conflict_do_nothing(index_elements=["queue", "message_id", "body_sha256"])
            )

    async def list(self, limit: int = 50) -> Sequence[RejectedMessage]:
        """The newest first."""
        query = select(rejected_messages).order_by(rejected_messages.c.id.desc()).limit(limit)
        async with self._database.reading() as connection:
            return [_message(row) for row in await connection.execute(query)]

    async def open(self) -> Sequence[OpenRejections]:
        """What was not sent again, by queue."""
        columns = rejected_messages.c
        query = (
            select(columns.queue, func.count(), func.min(columns.received_at))
            .where(columns.resubmitted_at.is_(None))
            .group_by(columns.queue)
            .order_by(columns.queue)
        )
        async with self._database.reading() as connection:
            return [OpenRejections(*row) for row in await connection.execute(query)]

    async def get(self, id: int) -> RejectedMessage | None:
        """One message; there is none with a number beyond the range of the column."""
        if not 0 < id <= _LARGEST_ID:
            return None
        query = select(rejected_messages).where(rejected_messages.c.id == id)
        async with self._database.reading() as connection:
            row = (await connection.execute(query)).one_or_none()
        return None if row is None else _message(row)

    async def mark_resubmitted(self, id: int) -> None:
        """Note that the message was sent again."""
        async with self._database.transaction() as connection:
            await connection.execute(
                update(rejected_messages)
                .where(rejected_messages.c.id == id)
                .values(resubmitted_at=datetime.now(UTC))
            )

    async def mark_dead_letter_resubmitted(
        self, queue: str, message_id: str | None, body: bytes
    ) -> None:
        """Note that a message was sent again from its dead letter queue, where it is recorded."""
        columns = rejected_messages.c
        id = None if message_id is None else clean(message_id)
        async with self._database.transaction() as connection:
            await connection.execute(
                update(rejected_messages)
                .where(
                    columns.queue == queue,
                    columns.message_id.is_not_distinct_from(id),
                    columns.body_sha256.in_((hashlib.sha256(body).hexdigest(), _UNKNOWN_SHA256)),
                    columns.resubmitted_at.is_(None),
                )
                .values(resubmitted_at=datetime.now(UTC))
            )


def _bounded(body: bytes) -> bytes:
    """The first 64 KiB, cut between two characters where the body is UTF-8."""
    if len(body) <= REJECTED_BODY_BYTES:
        return body
    end = REJECTED_BODY_BYTES
    while end > REJECTED_BODY_BYTES - 4 and body[end] & 0xC0 == 0x80:
        end -= 1
    return body[:end]


def _message(row: Any) -> RejectedMessage:
    return RejectedMessage(
        id=row.id,
        queue=row.queue,
        message_id=row.message_id,
        reason=row.reason,
        description=row.description,
        body=row.body.decode("utf-8", "replace"),
        truncated=row.truncated,
        received_at=row.received_at,
        resubmitted_at=row.resubmitted_at,
    )
