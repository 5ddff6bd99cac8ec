"""Rejected messages in memory, for tests."""

from collections.abc import Sequence
from datetime import UTC, datetime

from adapters.ports.errors import Unavailable
from adapters.ports.records import (
    REJECTED_BODY_BYTES,
    OpenRejections,
    RejectedFilter,
    RejectedMessage,
)


class MemoryRejectedMessages:
    """Keeps rejected messages as the database does, as long as the process lives.

    Attributes:
        away: Behave like a database that cannot be reached.
    """

    def __init__(self) -> None:
        self.away = False
        self._rows: list[RejectedMessage] = []
        self._known = set[tuple[str, str, bytes]]()

    async def probe(self) -> None:
        """See whether messages can be recorded."""
        self._check()

    async def record(
        self, queue: str, message_id: str | None, reason: str, description: str, body: bytes
    ) -> None:
        """Keep a message; the same id and body of the same queue are kept once."""
        self._check()
        if message_id is not None:
            if (queue, message_id, body) in self._known:
                return
            self._known.add((queue, message_id, body))
        self._rows.append(
            RejectedMessage(
                id=len(self._rows) + 1,
                queue=queue,
                message_id=message_id,
                reason=reason,
                description=description,
                body=body[:REJECTED_BODY_BYTES].decode("utf-8", errors="replace"),
                truncated=len(body) > REJECTED_BODY_BYTES,
                received_at=datetime.now(UTC),
                resubmitted_at=None,
            )
        )

    async def list(
        self, limit: int = 50, wanted: RejectedFilter | None = None
    ) -> Sequence[RejectedMessage]:
        """The newest first."""
        self._check()
        return self._rows[::-1][:limit]

    async def open(self) -> Sequence[OpenRejections]:
        """What was not sent again, by queue."""
        self._check()
        left = [row for row in self._rows if row.is_open]
        return [
            OpenRejections(queue, len(times), min(times))
            for queue in sorted({row.queue for row in left})
            for times in [[row.received_at for row in left if row.queue == queue]]
        ]

    async def get(self, id: int) -> RejectedMessage | None:
        """One message."""
        self._check()
        return self._rows[id - 1] if 0 < id <= len(self._rows) else None

    async def mark_resubmitted(self, id: int) -> None:
        """Note that the message was sent again."""
        self._check()
        if 0 < id <= len(self._rows):
            row = self._rows[id - 1]
            changes = {"resubmitted_at": datetime.now(UTC)}
            self._rows[id - 1] = row.model_copy(update=changes)

    async def dismiss(self, id: int, by: str, note: str | None) -> None:
        """Note that nobody has to look at the message any more."""
        changes = {"dismissed_at": datetime.now(UTC), "by": by, "note": note}
        self._rows[id - 1] = self._rows[id - 1].model_copy(update=changes)

    async def mark_dead_letter_resubmitted(
        self, queue: str, message_id: str | None, body: bytes
    ) -> None:
        """Note that a message was sent again from its dead letter queue, where it is recorded."""
        self._check()
        text = body[:REJECTED_BODY_BYTES].decode("utf-8", errors="replace")
        for row in [row for row in self._rows if row.resubmitted_at is None]:
            if (row.queue, row.message_id, row.body) == (queue, message_id, text):
                await self.mark_resubmitted(row.id)

    def _check(self) -> None:
        if self.away:
            raise Unavailable("the record of rejected messages is unavailable")
