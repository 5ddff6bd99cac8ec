"""Webhooks of jobs: posting messages, keeping secrets, the log of deliveries."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from contracts.jobs import WebhookAttempt, WebhookOrder
from domain.jobs.circuits import Circuit


@dataclass(frozen=True, slots=True)
class WebhookMessage:
    """What is posted to one receiver."""

    url: str
    id: str
    """The same for every attempt."""
    body: bytes
    timeout: float
    """Seconds for all of one attempt."""
    secrets: Sequence[bytes] = field(default=(), repr=False)
    """Each signs it; none: it is not signed."""


@dataclass(frozen=True, slots=True)
class WebhookAnswer:
    """What became of one attempt to post a message; nothing that a receiver does is an error."""

    status: int | None = None
    """Of HTTP; None: there was no answer."""
    retry_after: float | None = None
    """Seconds that the receiver asks to be left alone."""
    problem: str | None = None
    """Why the message was not accepted; None: it was."""
    refused: bool = False
    """docflow sends nothing to this address: nothing was sent."""


class Webhooks(Protocol):
    """Posts messages."""

    async def post(self, message: WebhookMessage) -> WebhookAnswer:
        """Post one message, once."""
        ...


class WebhookSecrets(Protocol):
    """Secrets of receivers, kept under a reference."""

    async def keep(self, job_id: str, secret: str) -> str:
        """Keep a secret that came with a request; its reference.

        Raises:
            Denied: There is no key to keep it under; the message says what to set.
            Unavailable: The database is not available.
        """
        ...

    async def forget(self, reference: str) -> None:
        """Remove a secret that came with a request; one of the settings stays.

        Raises:
            Unavailable: The database is not available.
        """
        ...

    async def is_other(self, job_id: str, secret: str) -> bool:
        """Whether a secret differs from those that requests for a job brought.

        False as well where none of them is kept (any more), or can be read.

        Raises:
            Unavailable: The database is not available.
        """
        ...

    def reference_of(self, name: str) -> str:
        """The reference of a secret in the settings.

        Raises:
            Denied: There is none of that name.
        """
        ...

    async def secrets(self, reference: str) -> Sequence[bytes]:
        """Every secret that is valid under a reference, the newest first.

        Raises:
            Denied: There is none, or it cannot be read with the keys that are set.
            Unavailable: The database is not available.
        """
        ...


@dataclass(frozen=True, slots=True)
class WebhookDelivery:
    """An entry of the log: one attempt to deliver one message."""

    order: WebhookOrder
    sent_at: datetime
    seconds: float
    """That the attempt took."""
    attempt: WebhookAttempt


class WebhookLog(Protocol):
    """What was sent to whom, and which hosts are left alone.

    Every method raises `Unavailable` when the database is not available.
    """

    async def message(self, id: str) -> bytes | None:
        """The body of a message that was sent before; None: it was not."""
        ...

    async def keep_message(self, id: str, job_id: str, body: bytes) -> bytes:
        """Keep the body of a message, so that every attempt sends the same; what is kept."""
        ...

    async def begin(self, host: str, now: datetime, lease: float) -> float | None:
        """Ask for an attempt; None: go ahead, else the seconds until the host may be tried.

        When the pause of a host is over, one attempt is let through; others wait for it.

        Args:
            host: Of the receiver.
            now: The moment.
            lease: Seconds after which that attempt is taken for lost.
        """
        ...

    async def end(self, host: str, now: datetime, *, healthy: bool) -> Circuit:
        """Note whether a host answered as a server that works does."""
        ...

    async def record(self, delivery: WebhookDelivery) -> None:
        """Write an entry; the same attempt is written once."""
        ...

    async def deliveries(self, job_id: str, limit: int = 200) -> Sequence[WebhookDelivery]:
        """The log of a job, the newest first."""
        ...
