"""Messages that went to the dead letter queue."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

REJECTED_BODY_BYTES: Final = 64 * 1024
"""Bytes of a rejected body that its record keeps."""


@dataclass(frozen=True, slots=True)
class RejectedMessage:
    """A message that went to the dead letter queue, kept to be looked at and resubmitted."""

    id: int
    queue: str
    message_id: str | None
    reason: str
    description: str
    body: str
    """The raw body, at most `REJECTED_BODY_BYTES` of it."""
    truncated: bool
    received_at: datetime
    resubmitted_at: datetime | None


@dataclass(frozen=True, slots=True)
class OpenRejections:
    """Rejected messages of one queue that were not sent again."""

    queue: str
    number: int
    oldest: datetime
    """When the first of them was rejected, UTC."""


class RejectionRecord(Protocol):
    """Where rejected messages are recorded."""

    async def record(
        self, queue: str, message_id: str | None, reason: str, description: str, body: bytes
    ) -> None:
        """Keep a message; the same id and body of the same queue are kept once."""
        ...


class RejectedMessages(RejectionRecord, Protocol):
    """The record of rejected messages."""

    async def probe(self) -> None:
        """See whether messages can be recorded.

        Raises:
            Unavailable: They cannot.
        """
        ...

    async def list(self, limit: int = 50) -> Sequence[RejectedMessage]:
        """The newest first."""
        ...

    async def open(self) -> Sequence[OpenRejections]:
        """What was not sent again, by queue; queues without any are left out."""
        ...

    async def get(self, id: int) -> RejectedMessage | None:
        """One message."""
        ...

    async def mark_resubmitted(self, id: int) -> None:
        """Note that the message was sent again."""
        ...

    async def mark_dead_letter_resubmitted(
        self, queue: str, message_id: str | None, body: bytes
    ) -> None:
        """Note that a message was sent again from its dead letter queue, where it is recorded.

        Args:
            queue: That it was received from.
            message_id: As its sender set it.
            body: With which it was rejected, in full.
        """
        ...
