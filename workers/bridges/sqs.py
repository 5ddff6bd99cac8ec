"""SQS queue -> handler: long polls, visibility timeouts as leases, dead letters in a queue."""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Hashable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from adapters.aws.errors import CREDENTIALS, Missing, has_code
from adapters.ports import Denied, PortError
from workers.bridges.consumer import Consumer
from workers.bridges.limits import Limits
from workers.bridges.retry import Accept, Retry
from workers.bridges.sqs_queue import Received, SqsQueue
from workers.bridges.totals import BridgeTotals
from workers.bridges.transport import (
    LeaseLost,
    NotDeadLettered,
    QueueMissing,
    QueueRefused,
    TransportError,
)
from workers.health import Health
from workers.services.verdicts import DeadLetter

WriteDeadLetter = Callable[[Received, DeadLetter], Awaitable[bool]]
"""Puts a message among dead letters; False: it may not be deleted, the queue does it in time."""

LONGEST_HOLD: Final = 11 * 3600
"""Seconds in flight; SQS keeps no message hidden for longer than 12 hours."""


@dataclass(frozen=True)
class Polling:
    """How a queue is received from."""

    in_flight: int = 10
    """Messages that are received and not yet settled."""
    batch: int = 10
    """Messages that one receive returns at most."""
    refill: int = 1
    """Messages that there must be room for before more are received."""
    wait: int = 20
    """Seconds that a receive waits for the first message."""
    quiet: float = 20
    """Seconds that a queue stays empty before a drain ends."""
    visibility_timeout: int = 60
    """Seconds that a message in flight stays hidden from others; extended while it is."""


class SqsTransport:
    """A queue of SQS as the consumer needs it.

    Args:
        queue: To receive from.
        write_dead_letter: Keeps messages that can never be accepted.
        polling: How the queue is received from.
    """

    def __init__(
        self, queue: SqsQueue, write_dead_letter: WriteDeadLetter, polling: Polling
    ) -> None:
        self.name = queue.name
        self._queue = queue
        self._write_dead_letter = write_dead_letter
        self._polling = polling

    async def receive(self, most: int, wait: float) -> Sequence[Received]:
        """Receive messages; waits for whole seconds, at least one."""
        polling = self._polling
        try:
            return await self._queue.receive(
                min(most, polling.batch), max(1, int(wait)), polling.visibility_timeout
            )
        except PortError as error:
            if not (isinstance(error, Denied) or has_code(error, *CREDENTIALS)):
                raise TransportError(str(error)) from error
            refused = QueueMissing if isinstance(error, Missing) else QueueRefused
            raise refused(
                f"cannot receive from {self._queue.url}: {error}; "
                "check the queue's URL, the region and the rights"
            ) from error

    def lease_seconds(self, message: Received) -> float:
        """The visibility timeout that every receive and extension sets."""
        return self._polling.visibility_timeout

    async def extend(self, message: Received) -> None:
        """Hide a message for another visibility timeout."""
        with _settling():
            await self._queue.change_visibility(message, self._polling.visibility_timeout)

    async def complete(self, message: Received) -> None:
        """Delete a message."""
        with _settling():
            await self._queue.delete(message)

    async def abandon(self, message: Received, delay: int) -> None:
        """Make a message visible again after a delay."""
        with _settling():
            await self._queue.change_visibility(message, delay)

    async def dead_letter(self, message: Received, verdict: DeadLetter) -> None:
        """Write a dead letter, then delete the message."""
        if not message.is_dead_lettered:
            try:
                written = await self._write_dead_letter(message, verdict)
            except PortError as error:
                raise NotDeadLettered(str(error)) from error
            if not written:
                raise NotDeadLettered(
                    f"{self.name} has no dead-letter queue, "
                    "and the record of rejected messages does not hold the whole body"
                )
            message.is_dead_lettered = True
        await self.complete(message)

    async def close(self) -> None:
        """Nothing is open; the client belongs to the caller."""


@contextmanager
def _settling() -> Generator[None]:
    try:
        yield
    except Denied as error:
        raise LeaseLost(str(error)) from error
    except PortError as error:
        raise TransportError(str(error)) from error


@dataclass(frozen=True)
class SqsBridge:
    """Receives messages of one queue, has them accepted, and settles them."""

    queue: SqsQueue
    accept: Accept
    """Decides about a message; may be called again with the same one."""
    write_dead_letter: WriteDeadLetter
    """Keeps messages that can never be accepted."""
    accept_of: Callable[[Received], Accept] | None = None
    """What decides about a message where more of it counts than its body; None: `accept`."""
    ordering_key: Callable[[bytes], Hashable | None] | None = None
    """Which messages must not overtake each other, by their bodies: those of one key are decided
    about one after the other, in the order in which they were received."""
    ready: Callable[[], Awaitable[bool]] | None = None
    """Whether what `accept` depends on is available. As long as it is not, messages stay in
    flight: giving them back would use up their receives."""
    polling: Polling = Polling()
    retry: Retry = field(default_factory=Retry)
    """How long a message that is not accepted is held otherwise."""
    health: Health = field(default_factory=Health)
    """Shows whether messages are received and accepted."""

    async def run(
        self, stop: asyncio.Event, *, drain: bool = False, ends_with_queue: bool = False
    ) -> BridgeTotals:
        """Work until `stop` is set; see `Consumer.run`.

        Raises:
            QueueUnusable: The queue does not exist, or does not let us in, from the beginning.
        """
        polling = self.polling
        consumer = Consumer(
            SqsTransport(self.queue, self.write_dead_letter, polling),
            self.accept,
            Limits(
                concurrency=polling.in_flight,
                in_flight=polling.in_flight,
                refill=polling.refill,
                wait=polling.wait,
                quiet=polling.quiet,
            ),
            accept_of=self.accept_of,
            ordering_key=self.ordering_key,
            ready=self.ready,
            retry=self.retry,
            hold_while_unavailable=LONGEST_HOLD,
            health=self.health,
        )
        return await consumer.run(stop, drain=drain, ends_with_queue=ends_with_queue)
