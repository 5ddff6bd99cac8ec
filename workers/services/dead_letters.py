"""Dead letters of the queues that docflow receives from: what a queue itself has given up."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from workers import catalogue
from workers.pipelines.base import load
from workers.services.errors import InvalidRequest


@dataclass(frozen=True)
class DeadLetter:
    """A message in a dead letter queue."""

    queue: str
    number: int
    """The queue's own number of the message."""
    message_id: str | None
    reason: str | None
    """Why it is there: `MaxDeliveryCountExceeded`, or what the receiver gave."""
    description: str | None
    deliveries: int
    sent_at: datetime | None
    body: bytes


class DeadLetters(Protocol):
    """The dead letters of one queue."""

    @property
    def queue(self) -> str:
        """Its name."""
        ...

    async def list(self, most: int) -> Sequence[DeadLetter]:
        """The oldest first; none is taken.

        Raises:
            QueueUnavailable: The queue does not answer.
        """
        ...

    async def resubmit(
        self, numbers: Sequence[int] | None, body: bytes | None
    ) -> Sequence[DeadLetter]:
        """Send dead letters to the queue again, and remove each once it is there.

        Args:
            numbers: Which; None: all.
            body: Of the message instead of its own.

        Returns:
            Those that were there.

        Raises:
            QueueUnavailable: The queue does not answer; what was sent is removed.
        """
        ...

    async def purge(self, numbers: Sequence[int] | None) -> Sequence[DeadLetter]:
        """Delete dead letters; those that were there.

        Raises:
            QueueUnavailable: The queue does not answer.
        """
        ...


def queues(environment: Mapping[str, str]) -> Sequence[str]:
    """Names of the queues that the settings name, of every pipeline."""
    return [name for name, _ in _known(environment)]


@asynccontextmanager
async def open_dead_letters(
    environment: Mapping[str, str], queue: str | None
) -> AsyncGenerator[DeadLetters]:
    """The dead letters of a queue.

    Args:
        environment: Where settings are read.
        queue: Its name; None: the only one there is.

    Raises:
        InvalidRequest: No setting names it, or there are several.
        SettingsError: A setting is missing or wrong.
    """
    known = dict(_known(environment))
    names = ", ".join(known) or "none"
    if queue is None and len(known) != 1:
        raise InvalidRequest(f"name the queue with --queue; the settings name {names}")
    name = queue if queue is not None else next(iter(known))
    if name not in known:
        raise InvalidRequest(f"no setting names queue {name!r}; they name {names}")
    async with load(known[name])(environment) as opened:
        yield opened


def _known(environment: Mapping[str, str]) -> list[tuple[str, str]]:
    """Each queue with the entry point that opens its dead letters."""
    found: list[tuple[str, str]] = []
    for pipeline in catalogue.PIPELINES:
        if not pipeline.available(environment):
            continue
        for bridge in pipeline.bridges:
            each = bridge.resubmission
            if each is None or each.dead_letters is None:
                continue
            if (queue := each.queue(environment)) is not None:
                found.append((queue, each.dead_letters))
    return found
